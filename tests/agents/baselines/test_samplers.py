"""The samplers among the baselines: what is tuned, and their experiments at home."""

from unfog.agents.baselines import BASELINES
from unfog.agents.catalogue import Catalogue, select_rows
from unfog.lab.spec import catalog

NAMES = ["lmcts", "feelgood", "ulmcts", "pgts", "laplacets"]


def test_the_published_value_of_what_is_tuned_is_among_the_choices() -> None:
    for name in NAMES:
        baseline = BASELINES[name]
        assert bool(baseline.tuned) == (name != "pgts")
        for learner in (baseline.agent.learner, baseline.agent.binary_learner) if baseline.tuned else ():
            assert vars(learner)[baseline.tuned] in baseline.grid, name


def test_all_are_known_at_home() -> None:
    for home, kind in (("baseline-lmcts", "gaussian"), ("baseline-lmcts-logistic", "bernoulli")):
        agents = catalog()[home].run.agents
        assert [agent.name for agent in select_rows(agents, rows=Catalogue(kind))] == list(agents)
    assert BASELINES["lmcts"].home in catalog()
