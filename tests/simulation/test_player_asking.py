"""Questions within a budget, put where they are worth most."""

import numpy as np
import pytest

import unfog
from unfog.agents.catalogue import Catalogue
from unfog.simulation.player import MOST, Asking, played
from unfog.validation import InputError

FIELDS = {"dim": 2, "actions": 5, "reveal": "on_request", "revealed": 0.1}


def test_no_more_is_asked_than_can_be_paid_and_little_is_left() -> None:
    for share in [0.0, 0.02, 0.3, 1.0]:
        check_no_more_is_asked_than_can_be_paid_and_little_is_left(share)


def check_no_more_is_asked_than_can_be_paid_and_little_is_left(share: float) -> None:
    rng, rounds, trials = np.random.default_rng(1), 2000, 5
    asking = Asking(share, trials)
    for t in range(rounds):
        asking.next(rng.exponential(size=trials) + 0.001 * t)
        assert (asking.requests <= 1 + share * (t + 1)).all()
    assert (asking.requests >= share * rounds - MOST - 2).all()
    assert share > 0 or not asking.requests.any()


def test_the_first_round_asks_and_then_the_worth_decides() -> None:
    """Every tenth round is worth ten times as much, and one in ten can be paid."""
    asking, found = Asking(0.1, 1), []
    for t in range(3000):
        found.append(asking.next(np.array([10.0 if t % 10 == 3 else 1.0]))[0])
    assert found[0] == 1
    asked = np.flatnonzero(found[200:]) + 200
    assert (asked % 10 == 3).mean() > 0.95


def test_a_player_is_shown_what_it_asks_for_and_nothing_else() -> None:
    agent = Catalogue()["temporal"]
    world = unfog.TemporalProblem(**FIELDS)  # type: ignore[arg-type]
    rounds = list(played(world, agent, 60, range(4), 3))
    shown = np.stack(
        [~np.isnan(decision.known).any(-1) for _, decision in rounds if decision.known is not None]
    )
    assert shown.shape == (60, 4)
    assert shown[0].all()
    assert (shown.sum(0) <= 1 + 0.1 * 60).all()
    assert (shown.sum(0) >= 4).all()
    for emission, decision in rounds:
        assert decision.known is not None
        told = ~np.isnan(decision.known)
        np.testing.assert_array_equal(decision.known[told], emission.context[told])


def test_who_cannot_say_what_a_context_is_worth_is_refused() -> None:
    world = unfog.GaussianProblem(**FIELDS)  # type: ignore[arg-type]
    with pytest.raises(
        InputError, match="'late' cannot say what a true context is worth; allowed: agents that can"
    ):
        unfog.run(world, rounds=5, trials=2, agents=["late"])
    unfog.run(world, rounds=5, trials=2, agents=["unfog", "temporal"])
