"""Ratios of paired regrets: their intervals against a bootstrap, and how often they hold."""

import json

import numpy as np
import pytest

from unfog.lab.baselines.report import Comparison, Outcome, Ratio, Row, from_plain, held, plain, ratio
from unfog.maths.arrays import Array


def paired(rng: np.random.Generator, trials: int, truth: float = 1.5) -> tuple[Array, Array]:
    """Regrets that share their trials' luck, skewed, with this ratio of means."""
    shared, noise = rng.gamma(4.0, 5.0, trials), rng.gamma(9.0, 1 / 9, (2, trials))
    return truth * shared * noise[0], shared * noise[1]


def test_the_interval_is_that_of_a_bootstrap(rng: np.random.Generator) -> None:
    """Percentiles of 20,000 bootstrap ratios: their own error is far below a tenth of the width."""
    other, ours = paired(rng, 300)
    found = ratio(other, ours)
    drawn = rng.integers(0, 300, (20_000, 300))
    again = other[drawn].mean(1) / ours[drawn].mean(1)
    low, high = np.quantile(again, [0.025, 0.975])
    assert found.value == pytest.approx(other.mean() / ours.mean(), rel=1e-12)
    assert abs(found.low - low) < 0.1 * (high - low)
    assert abs(found.high - high) < 0.1 * (high - low)
    assert np.sqrt(found.low * found.high) == pytest.approx(found.value)


def test_pairing_makes_it_narrow(rng: np.random.Generator) -> None:
    other, ours = paired(rng, 300)
    apart = ratio(rng.permutation(other), ours)
    found = ratio(other, ours)
    assert found.high - found.low < 0.8 * (apart.high - apart.low)


def test_intervals_hold_as_often_as_they_say(rng: np.random.Generator) -> None:
    """In 2,000 sets of 40 trials, 95 %: the error of that share is 0.005; skewed regrets cost a point."""
    held_in = 0
    for _ in range(2000):
        found = ratio(*paired(rng, 40))
        held_in += found.low <= 1.5 <= found.high
    assert held_in / 2000 == pytest.approx(0.95, abs=0.02)


def test_one_who_always_loses_twice_as_much_is_known_to_the_last_digit() -> None:
    ours = np.array([3.0, 5.0, 9.0])
    assert ratio(2 * ours, ours) == pytest.approx(Ratio(2.0, 2.0, 2.0))
    assert ratio(ours, ours).wins is ratio(ours, ours).loses is False


def test_it_is_turned_round_by_turning_the_pair_round(rng: np.random.Generator) -> None:
    other, ours = paired(rng, 60)
    found, back = ratio(other, ours), ratio(ours, other)
    assert back == pytest.approx(Ratio(1 / found.value, 1 / found.high, 1 / found.low))


def test_what_cannot_be_said_is_not_a_number() -> None:
    one = np.array([2.0])
    assert ratio(3 * one, one).value == 3.0
    assert np.isnan(ratio(3 * one, one)[1:]).all()
    assert np.isnan(ratio(np.array([1.0, -3.0]), np.array([1.0, 2.0]))).all()
    assert not ratio(3 * one, one).wins


def test_fewer_trials_are_paired_with_the_first_of_the_others() -> None:
    regrets = {"slow": np.array([2.0, 6.0]), "unfog": np.array([1.0, 3.0, 1e9])}
    row = held("slow", "unfog", "same", regrets)
    assert (row.ratio.value, row.trials, row.regret) == (2.0, 2, 4.0)


def row(told: str, found: Ratio) -> Row:
    return Row("linucb", "unfog", told, found, 4.0, np.nan, 1)


def test_exceptions_are_those_told_no_more_that_ours_does_not_beat() -> None:
    doubtful, won, lost = Ratio(1.1, 0.9, 1.3), Ratio(1.2, 1.1, 1.3), Ratio(0.8, 0.7, 0.9)
    nothing = Ratio(np.nan, np.nan, np.nan)
    wanted = {
        ("same", doubtful): True,
        ("less", doubtful): True,
        ("more", doubtful): False,
        ("ours", lost): False,
        ("same", won): False,
        ("same", lost): True,
        ("same", nothing): True,
    }
    assert {(told, found): row(told, found).exception for told, found in wanted} == wanted
    rows = tuple(row("same", found) for found in (doubtful, lost))
    one = Outcome("drift", "t", 9, 0, "y", rows, (), {"unfog": 5.0}, {}, {})
    assert [found.ratio for _, found in Comparison((one,), {}).exceptions()] == [lost, doubtful]


def test_json_holds_all_of_it() -> None:
    rows = (row("same", Ratio(1.5, np.nan, np.nan)), row("more", Ratio(1.5, 1.2, 1.8)))
    one = Outcome("drift", "t", 9, 0, "y", rows, rows[1:], {"unfog": 5.0}, {"oful": "why"}, {"unfog": 1e-6})
    found = Comparison((one,), {"fig1-movielens": "no file"})
    text = json.dumps(plain(found), allow_nan=False)
    assert plain(from_plain(json.loads(text))) == plain(found)
    assert str(from_plain(json.loads(text))) == str(found)
