"""Every row that takes true contexts as they come, in every kind of world, however much is shown."""

from typing import Any

import numpy as np
import pytest

from unfog.agents.catalogue import AGENTS
from unfog.simulation import play
from unfog.validation import InputError
from unfog.worlds.synthetic import GaussianProblem, LogisticProblem
from unfog.worlds.temporal import TemporalProblem

TAKING = [name for name, row in AGENTS.items() if row.can.revise is not None]
SHOWN: dict[str, dict[str, Any]] = {
    "some": {"revealed": 0.1},
    "coordinates": {"reveal_share": 0.5},
    "late and in part": {"revealed": 0.4, "reveal_share": 0.6, "reveal_delay": 3},
    "at equal distances": {"revealed": 0.2, "reveal": "every"},
    "none": {"revealed": 0.0},
}
WORLDS: dict[str, Any] = {
    "gaussian": GaussianProblem,
    "logistic": LogisticProblem,
    "temporal": TemporalProblem,
}


@pytest.mark.parametrize("world", WORLDS)
def test_it_plays(world: str) -> None:
    """Also where trials of a batch part in the middle of a block, with what they are shown."""
    for shown in SHOWN:
        check_it_plays(world, shown)


def check_it_plays(world: str, shown: str) -> None:
    found = play(WORLDS[world](dim=2, actions=4, **SHOWN[shown]), TAKING, rounds=40, trials=3, seed=1)
    for values in found.values.values():
        assert np.isfinite(values).all()


@pytest.mark.parametrize("world", WORLDS)
def test_a_lag_goes_with_both_kinds_of_rewards(world: str) -> None:
    """Learning again does no harm: regret stays within half of what it is without, 20 trials."""
    problem = WORLDS[world](dim=3, actions=5, revealed=0.1)
    found = play(problem, ["temporal", "temporal:lag=6"], rounds=100, trials=20, seed=0)
    plain, again = found.values["regret"][:, :, -1].mean(-1)
    assert again < 1.5 * plain


def test_a_lag_that_reaches_beyond_the_window_is_refused() -> None:
    problem = GaussianProblem(dim=2, actions=4, reveal_delay=26)
    with pytest.raises(
        InputError, match=r"'temporal:lag=6' with contexts 26 rounds late; allowed: a lag that"
    ):
        play(problem, ["temporal:lag=6"], rounds=5, trials=2, seed=0)


def test_contexts_that_leave_their_range_are_believed() -> None:
    """A level that walks far from where it was told to be: true contexts are taken as they are."""
    problem = TemporalProblem(dim=1, actions=4, level_walk=1.0, level_cov=0.01, revealed=0.5)
    found = play(problem, ["temporal", "temporal:clip_sd=1000", "naive"], rounds=200, trials=20, seed=3)
    bounded, free, naive = found.values["regret"][:, :, -1].mean(-1)
    assert bounded < 1.05 * free
    assert bounded < naive
