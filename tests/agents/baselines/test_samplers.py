"""The samplers among the rivals play every map, for both kinds of rewards, and at home."""

from typing import Any

import numpy as np
import pytest

from tests.agents.baselines.chains import coin_world
from tests.agents.baselines.plain import world
from unfog.agents.baselines import RIVALS
from unfog.agents.catalogue import Catalogue, named
from unfog.lab.spec import catalog
from unfog.simulation import simulate

NAMES = ["lmcts", "feelgood", "ulmcts", "pgts", "laplacets"]
MATRICES = np.random.default_rng(5).normal(0.3, 1.0, (4, 2, 3))
MAPS: dict[str, dict[str, Any]] = {
    "quadratic": {},
    "product": {},
    "per_arm": {},
    "matrix": {"actions": MATRICES},
    "own": {"actions": 3},
}


@pytest.mark.parametrize("make", [world, coin_world], ids=["gaussian", "coins"])
@pytest.mark.parametrize("features", MAPS)
def test_they_play_every_map(make: Any, features: str) -> None:
    problem = make(features=features, **MAPS[features])
    names = [name for name in NAMES if make is coin_world or name != "pgts"]  # for rewards of 0 or 1 alone
    found = simulate(problem, names, rounds=6, trials=2).values["regret"]
    assert np.isfinite(found).all()
    assert found.shape == (len(names), 2, 6)


def test_what_is_tuned_is_a_setting_and_the_published_value_is_among_the_choices() -> None:
    for name in NAMES:
        rival = RIVALS[name]
        if not rival.tuned:
            assert name == "pgts"
            continue
        assert len(rival.grid) == 6
        for learner in (rival.agent.learner, rival.agent.binary):
            assert vars(learner)[rival.tuned] in rival.grid


@pytest.mark.parametrize(
    ("home", "kind"), [("rival-lmcts", "gaussian"), ("rival-lmcts-logistic", "bernoulli")]
)
def test_all_are_known_at_home(home: str, kind: str) -> None:
    agents = catalog()[home].run.agents
    assert [agent.name for agent in named(agents, rows=Catalogue(kind))] == list(agents)
    assert RIVALS["lmcts"].home in catalog()
