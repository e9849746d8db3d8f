"""The alarm against its definition worked out the long way, and how often it is raised in whole worlds."""

from math import log2

import numpy as np
import pytest

import unfog
from tests.agents.world import foretold
from tests.live.watched import rounds
from tests.problems import spd
from unfog.agents.catalogue import AGENTS
from unfog.channel import innovations
from unfog.channel.innovations import ALARM, CAP, LIMIT, SCALES, Innovations
from unfog.maths.arrays import Array
from unfog.validation import Numbers

NAMES = ["steps", "sleep", "pulse"]


def fold(readings: Array, past: Innovations | None = None) -> Innovations:
    """Of readings (n, ..., d) that were expected to be standard normal."""
    found = past or innovations.start(readings.shape[-1], readings.shape[1:-1])
    for z in readings:
        found = innovations.after(found, z, np.zeros_like(z), np.ones_like(z))
    return found


def density(z: Array, variance: float) -> Array:
    return np.exp(-(z**2) / (2 * variance)) / np.sqrt(2 * np.pi * variance)


def ratio(z: Array, variance: float) -> Array:
    """As the module's docstring has it, its mean by a fine sum."""

    def plain(x: Array) -> Array:
        near = np.minimum(np.abs(x), CAP)
        return density(near, variance) / density(near, 1.0)

    grid = np.linspace(-12, 12, 240_001)
    return plain(z) / ((plain(grid) * density(grid, 1.0)).sum() * (grid[1] - grid[0]))


def test_e_values_are_the_mean_over_scales_and_starts_of_products_of_ratios(rng: np.random.Generator) -> None:
    z = rng.standard_normal((7, 2)) * [1.3, 4.0]
    ratios = np.stack([ratio(z, v) for v in SCALES])  # (scales, n, d)
    left = np.array([1.0, *(1 / (2 + log2(1 + t)) for t in range(1, 8))])
    products = np.stack([ratios[:, start:].prod(1) for start in range(7)])  # (starts, scales, d)
    expected = np.tensordot(left[:-1] - left[1:], products.mean(1), 1) + left[-1]
    each, together = innovations.e_values(fold(z))
    np.testing.assert_allclose(each, expected, rtol=1e-6)  # the sum for c_v has steps of 1e-4
    np.testing.assert_allclose(together, expected.mean(), rtol=1e-6)


def test_before_any_reading_e_values_are_one() -> None:
    each, together = innovations.e_values(innovations.start(3))
    np.testing.assert_allclose([*each, together], 1.0)


def test_what_is_lost_says_nothing(rng: np.random.Generator) -> None:
    z = rng.standard_normal((40, 2)) * 2
    with_gaps = np.where(np.arange(40)[:, None] % 4 == [1, 5], np.nan, z)
    gone = fold(with_gaps)
    seen, mean, square = innovations.moments(gone.total)
    np.testing.assert_allclose(seen, [30, 40])
    np.testing.assert_allclose(mean, np.nanmean(with_gaps, 0))
    np.testing.assert_allclose(square, np.nanmean(with_gaps**2, 0))
    np.testing.assert_allclose(innovations.e_values(gone)[0][1], innovations.e_values(fold(z))[0][1])
    never = fold(np.full((5, 2), np.nan))
    np.testing.assert_allclose(innovations.e_values(never)[0], 1.0)
    assert np.isnan(innovations.moments(never.total).mean).all()


def test_a_reading_is_measured_by_what_was_expected_of_it() -> None:
    found = innovations.after(
        innovations.start(2), np.array([5.0, 1.0]), np.array([1.0, 2.0]), np.full(2, 4.0)
    )
    np.testing.assert_allclose(found.total, np.array([[1, 1], [2, -0.5], [4, 0.25]]))


@pytest.mark.parametrize("good", [0, 1, 100])
def test_one_absurd_reading_raises_no_alarm(good: int, rng: np.random.Generator) -> None:
    past = fold(rng.standard_normal((good, 3)), innovations.start(3))
    absurd = fold(np.full((1, 3), 1e12), past)
    assert innovations.e_values(absurd)[1] < ALARM / 2
    assert absurd.alarmed == 0
    assert innovations.moments(absurd.total - past.total).mean.tolist() == [LIMIT] * 3
    assert innovations.e_values(fold(rng.standard_normal((40, 3)), absurd))[1] < 1


def test_trouble_after_ten_thousand_good_readings_is_seen(rng: np.random.Generator) -> None:
    """Variances of twice what is told, which is what noise of three times makes of readings."""
    good = fold(rng.standard_normal((10_000, 50, 3)))
    assert (good.alarmed > 0).mean() <= 0.05
    found = fold(rng.standard_normal((300, 50, 3)) * np.sqrt(2), good)
    assert (found.alarmed > 0).mean() >= 0.95


def test_the_alarm_says_what_is_wrong(rng: np.random.Generator) -> None:
    z = rng.standard_normal((300, 3))
    assert innovations.sentences(fold(z), NAMES) == []
    wide = fold(z * [2.0, 1.0, 0.5])
    assert innovations.sentences(wide, NAMES) == [
        "steps: readings spread 1.9 times as far as the channel says",
        "pulse: readings spread 0.54 times as far as the channel says",
    ]
    moved = fold(0.5 * z + [0.0, -2.0, 0.0])
    sentence = innovations.sentences(moved, NAMES)[1]
    assert sentence == "sleep: readings lie 2.0 deviations below what the channel says"
    over = fold(rng.standard_normal((4000, 3)), wide)
    [sentence] = innovations.sentences(over, NAMES)
    assert sentence == f"readings were not as the channel says after {wide.alarmed} of them; by now they are"


def test_worlds_side_by_side_are_worlds_one_by_one(rng: np.random.Generator) -> None:
    z = rng.standard_normal((60, 4, 2)) * np.array([1.0, 1.0, 3.0, 0.2])[:, None]
    together, alone = fold(z), [fold(z[:, i]) for i in range(4)]
    np.testing.assert_array_equal(together.alarmed, [one.alarmed for one in alone])
    np.testing.assert_array_equal(together.evidence, [one.evidence for one in alone])
    assert (together.alarmed > 0).tolist() == [False, False, True, True]


def share(agent: str, told: Numbers, actual: Numbers, worlds: int, number: int, **fields: Numbers) -> float:
    """In how many worlds the alarm is raised."""
    true = actual if np.any(actual) else told
    problem = unfog.GaussianProblem(actions=4, noise_cov=true, assumed_noise_cov=told, **fields)  # type: ignore[arg-type]
    found, row = innovations.start(problem.dim, (worlds,)), AGENTS[agent]
    for now in rounds(problem, row, number, worlds, 3):
        law = foretold(row, now.setup, now.before, now.decision)
        assert law is not None
        found = innovations.after(found, now.noisy, *law)
    return float((found.alarmed > 0).mean())


CORRELATED = spd(np.random.default_rng(4), 5), 1.1 * spd(np.random.default_rng(5), 5)


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["unfog", "late"])
def test_noise_told_wrong_by_three_is_seen_and_noise_told_right_is_left_alone(agent: str) -> None:
    """100 worlds: a rate that is just what is promised has a standard error of 2.2 %."""
    contexts, noise = CORRELATED
    for factor in (3.0, 1 / 3):
        assert share(agent, noise, factor * noise, 100, 200, context_cov=contexts, missing=0.1) >= 0.95
    assert share(agent, noise, 0.0, 100, 300, context_cov=contexts, missing=0.1) <= 0.05
