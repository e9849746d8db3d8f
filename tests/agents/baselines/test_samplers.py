"""The samplers among the rivals: what is tuned, and their experiments at home."""

from unfog.agents.baselines import RIVALS
from unfog.agents.catalogue import Catalogue, named
from unfog.lab.spec import catalog

NAMES = ["lmcts", "feelgood", "ulmcts", "pgts", "laplacets"]


def test_the_published_value_of_what_is_tuned_is_among_the_choices() -> None:
    for name in NAMES:
        rival = RIVALS[name]
        assert bool(rival.tuned) == (name != "pgts")
        for learner in (rival.agent.learner, rival.agent.binary) if rival.tuned else ():
            assert vars(learner)[rival.tuned] in rival.grid, name


def test_all_are_known_at_home() -> None:
    for home, kind in (("rival-lmcts", "gaussian"), ("rival-lmcts-logistic", "bernoulli")):
        agents = catalog()[home].run.agents
        assert [agent.name for agent in named(agents, rows=Catalogue(kind))] == list(agents)
    assert RIVALS["lmcts"].home in catalog()
