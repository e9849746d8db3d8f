"""Probabilities that fit are let through as often as is said, and those that do not are found."""

import numpy as np
import pytest
from scipy.stats import chisquare

from unfog.evaluation import checks
from unfog.evaluation.log import DecisionLog
from unfog.maths.arrays import Array, Ints

ARMS = ("a", "b", "c", "d")
FLOOR = 0.2


def learning(logs: int, rounds: int, seed: int) -> tuple[Array, Ints]:
    """Laws (logs, rounds, K) and arms of loggers that come to like what they drew, and look at a context."""
    dice = np.random.default_rng(seed)
    liked, laws, arms = np.zeros((logs, 4)), [], []
    for _ in range(rounds):
        scores = liked + dice.normal(size=(logs, 1)) * np.array([1.0, -0.5, 0.3, 0.0])
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        law = (1 - FLOOR) * shares / shares.sum(axis=1, keepdims=True) + FLOOR / 4
        arm = (law.cumsum(axis=1)[:, :-1] < dice.random((logs, 1))).sum(axis=1)
        liked = 0.98 * liked
        liked[np.arange(logs), arm] += 0.04 + 0.05 * dice.normal(size=logs)
        laws.append(law)
        arms.append(arm)
    return np.stack(laws, axis=1), np.stack(arms, axis=1)


def log_of(law: Array, arm: Ints, own: Array | None = None, every: bool = True) -> DecisionLog:
    n = len(arm)
    own = law[np.arange(n), arm] if own is None else own
    return DecisionLog(("x",), ARMS, np.zeros((n, 1)), arm, np.zeros(n), own, law if every else None)


@pytest.mark.slow
@pytest.mark.parametrize("check", [checks.by_arm, checks.by_size])
def test_the_level(check: object) -> None:
    """5 % and 1 % of logs of learning loggers, within three standard errors of 600 logs: 2.7 % and 1.2 %."""
    assert callable(check)
    laws, arms = learning(600, 1000, 5)
    found = np.array([check(log_of(law, arm)).p_value for law, arm in zip(laws, arms, strict=True)])
    assert (found < 0.05).mean() == pytest.approx(0.05, abs=0.027)
    assert (found < 0.01).mean() == pytest.approx(0.01, abs=0.012)
    assert found.mean() == pytest.approx(0.5, abs=3 / np.sqrt(12 * 600))


def peaked(dice: np.random.Generator, rounds: int, arms: int, floor: float) -> Array:
    """One arm of each round has all but the floor: the logs of an agent that explores evenly."""
    law = np.full((rounds, arms), floor / arms)
    law[np.arange(rounds), dice.integers(0, arms, rounds)] += 1 - floor
    return law


UNFRIENDLY = [(20, 0.1, 500), (20, 0.1, 2000), (20, 1.0, 100), (5, 0.1, 300), (5, 0.05, 1000), (2, 0.02, 300)]


@pytest.mark.parametrize(("arms", "floor", "rounds"), UNFRIENDLY)
def test_few_large_weights_are_no_misfit(arms: int, floor: float, rounds: int) -> None:
    """At most 2 of 200 right logs are said to be wrong: at the level of 0.1 % more have a chance of 0.1 %."""
    said = 0
    for seed in range(200):
        dice = np.random.default_rng(seed)
        law = peaked(dice, rounds, arms, floor)
        arm = (law.cumsum(axis=1)[:, :-1] < dice.random((rounds, 1))).sum(axis=1)
        names, none = tuple(map(str, range(arms))), np.zeros(rounds)
        log = DecisionLog(("x",), names, none[:, None], arm, none, law[np.arange(rounds), arm])
        said += not checks.by_weight(log).fits
    assert said <= 2


def test_a_constant_law_is_the_chi_square_of_pearson() -> None:
    dice, law = np.random.default_rng(2), np.array([0.1, 0.2, 0.3, 0.4])
    arm = dice.choice(4, 500, p=[0.15, 0.2, 0.25, 0.4])
    found = checks.by_arm(log_of(np.tile(law, (500, 1)), arm))
    counts = np.bincount(arm, minlength=4)
    expected = chisquare(counts, 500 * law)
    assert found.statistic == pytest.approx(expected.statistic, rel=1e-10)
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-9)
    assert found.degrees == 3
    scores = np.abs(counts - 500 * law) / np.sqrt(500 * law * (1 - law))
    assert found.worst == f"arm {ARMS[int(scores.argmax())]!r}"
    assert found.actual == counts[scores.argmax()]
    assert found.expected == pytest.approx(500 * law[scores.argmax()])


def test_bins_are_those_of_brute_force() -> None:
    """Every round and every arm by itself."""
    laws, arms = learning(1, 300, 8)
    law, arm = laws[0], arms[0]
    law[::3] = checks.EDGES[[3, 4, 5, 6]]  # 0.1, 0.2, 0.3 and 0.4 lie on edges
    edges = [0.0, *checks.EDGES, 1.0000001]
    bins = len(edges) - 1
    gap, cov = np.zeros(bins), np.zeros((bins, bins))
    for p, a in zip(law, arm, strict=True):
        inside = np.array([[edges[b] <= x < edges[b + 1] for x in p] for b in range(bins)], dtype=float)
        gap += inside[:, a] - inside @ p
        cov += inside @ (np.diag(p) - np.outer(p, p)) @ inside.T
    there = np.diag(cov) >= checks.LEAST_VARIANCE
    expected = gap[there] @ np.linalg.pinv(cov[np.ix_(there, there)], rcond=1e-9) @ gap[there]
    found = checks.by_size(log_of(law, arm))
    assert found.statistic == pytest.approx(expected, rel=1e-6)
    assert found.degrees == np.linalg.matrix_rank(cov[np.ix_(there, there)], tol=1e-6)


def test_weights_are_those_of_hotelling() -> None:
    laws, arms = learning(1, 400, 9)
    log = log_of(laws[0], arms[0], every=False)
    weights = np.eye(4)[log.arm] / log.probability[:, None]
    gap = weights.mean(axis=0) - 1
    found = checks.by_weight(log)
    unseen = checks.UNSEEN * weights.max() ** 2 + (400 * checks.ROUNDED) ** 2
    expected = 400 * gap @ np.linalg.inv(np.cov(weights.T) + np.eye(4) * unseen / 400) @ gap
    assert found.statistic == pytest.approx(expected, rel=1e-9)
    assert found.degrees == 4
    assert f"mean of 1 / p is {(1 / log.probability).mean():.4g}, of arms offered 4)" in found.sentence
    assert checks.fits(log) == (found,)


def test_arms_that_come_and_go_have_fewer_degrees() -> None:
    dice = np.random.default_rng(4)
    law = np.repeat([[0.3, 0.7, 0.0, 0.0], [0.0, 0.0, 0.4, 0.6]], 200, axis=0)
    arm = (law.cumsum(axis=1)[:, :-1] < dice.random((400, 1))).sum(axis=1)
    log = log_of(law, arm)
    assert checks.by_arm(log).degrees == 2
    alone = log._replace(probabilities=None, offered=law > 0)
    assert checks.by_weight(alone).fits
    assert not checks.by_weight(alone._replace(offered=None)).fits


def test_sums_that_cannot_vary() -> None:
    """A weight times p adds up the same under a constant law: few digits pass, wrong laws do not."""
    dice, law = np.random.default_rng(7), np.array([1, 2, 3, 3]) / 9
    arm = dice.choice(4, 100_000, p=law)
    for digits, fits in ((16, True), (3, True), (1, False)):
        told = np.tile(law.round(digits), (len(arm), 1))
        found = checks.by_weight(log_of(told, arm, every=False))
        assert (found.fits, found.degrees) == (fits, 4)
    told = np.tile(law.round(3), (len(arm), 1))  # which sum to 0.999
    assert [one.fits for one in checks.fits(log_of(told, arm))] == [True, True]


def test_a_logger_that_is_certain_says_nothing() -> None:
    arm = np.arange(100) % 4
    for found in checks.fits(log_of(np.eye(4)[arm], arm)):
        assert (found.degrees, found.p_value, found.fits) == (0, 1.0, True)
        assert "arms were all but certain" in found.sentence


def shuffled(law: Array, dice: np.random.Generator) -> Array:
    return law[dice.permutation(len(law))]


def smoothed(law: Array, dice: np.random.Generator) -> Array:
    return 0.7 * law + 0.3 / 4


def rounded(law: Array, dice: np.random.Generator) -> Array:
    """To one of a few values, as a logger that stores a byte's worth might."""
    found = np.maximum(np.round(law * 3) / 3, 0.05)
    return found / found.sum(axis=1, keepdims=True)


def relabelled(law: Array, dice: np.random.Generator) -> Array:
    return law[:, [1, 0, 2, 3]]


@pytest.mark.parametrize("spoil", [shuffled, smoothed, rounded, relabelled])
def test_what_does_not_fit_is_found(spoil: object) -> None:
    """In each of eight logs of 4,000 rounds, at the level at which it is said."""
    assert callable(spoil)
    laws, arms = learning(8, 4000, 6)
    dice = np.random.default_rng(1)
    for law, arm in zip(laws, arms, strict=True):
        told = spoil(law, dice)
        own = told[np.arange(4000), arm]
        found = checks.fits(log_of(told, arm))
        weighed = checks.by_weight(log_of(told, arm, own, every=False))
        assert min(one.p_value for one in found) < checks.SAFE
        assert weighed.p_value < checks.SAFE
        assert "do not fit the arms drawn" in weighed.sentence
        assert all(one.fits for one in checks.fits(log_of(law, arm)))
