"""The filter against one long Gaussian vector."""

import numpy as np
import pytest

from tests.problems import spd
from tests.timed import Truth, density, drawn, irregular, kernel
from unfog.channel.dynamics import Filtered, Law, Series, filter_series, likelihood, scatter, series
from unfog.maths.arrays import Array, Ints

TRUTHS = [
    Truth(0.1, 2.0, 0.3, 30.0, ((24.0, 0.4), (7.0, 0.2))),
    Truth(0.0, 5.0, 0.1, np.inf, ((24.0, 0.0), (7.0, 0.3))),
    Truth(1.5, 0.2, 0.6, np.inf, ((24.0, 2.0), (7.0, 0.0))),
]
LABELS = np.repeat([0, 1, 2], [20, 31, 2])


def laws(truths: list[Truth]) -> Law:
    walk, time, white, slow = np.array([one[:4] for one in truths]).T
    return Law(walk, slow, time, white, np.array([[size for _, size in one.cycles] for one in truths]))


def readings(rng: np.random.Generator) -> tuple[Array, Array]:
    """Of three series: gaps, and two readings of one moment."""
    times = irregular(rng, len(LABELS))
    times[33:] += 40.0
    times[11] = times[10]
    return times, drawn(rng, TRUTHS[0], times, LABELS, spd(rng, 3)) + 5.0 * LABELS[:, None]


def seen(rng: np.random.Generator) -> tuple[Array, Series, Filtered]:
    times, values = readings(rng)
    given = series(values, times, LABELS, (24.0, 7.0))
    return times, given, filter_series(laws(TRUTHS), given)


def test_the_likelihood_is_that_of_one_long_vector(rng: np.random.Generator) -> None:
    times, given, found = seen(rng)
    for k, truth in enumerate(TRUTHS):
        right = density(truth, times, LABELS, given.values, scatter(found)[k])
        assert likelihood(found)[k] == pytest.approx(right, rel=1e-9)


def test_the_covariance_is_the_best(rng: np.random.Generator) -> None:
    times, given, found = seen(rng)
    best = scatter(found)[0]
    for step in (1e-3, -1e-3):
        for i, j in np.ndindex(3, 3):
            other = best.copy()
            other[i, j] += step
            other[j, i] = other[i, j]
            assert density(TRUTHS[0], times, LABELS, given.values, other) < likelihood(found)[0]


def test_starts_are_those_of_generalised_least_squares(rng: np.random.Generator) -> None:
    times, given, found = seen(rng)
    for k, truth in enumerate(TRUTHS):
        precision = np.linalg.inv(kernel(truth, times, LABELS))
        which: Array = (LABELS[:, None] == np.arange(3)).astype(np.float64)
        blur = np.linalg.inv(which.T @ precision @ which)
        np.testing.assert_allclose(
            found.starts[:, :, k], blur @ which.T @ precision @ given.values, rtol=1e-8
        )
        np.testing.assert_allclose(found.blur[:, k], np.diag(blur), rtol=1e-8)


def test_series_may_be_of_any_length_and_order(rng: np.random.Generator) -> None:
    times, values = readings(rng)
    law = laws([truth._replace(cycles=()) for truth in TRUTHS])
    order: Ints = np.concatenate([np.flatnonzero(label == LABELS) for label in (2, 0, 1)])
    one = likelihood(filter_series(law, series(values, times, LABELS)))
    other = likelihood(filter_series(law, series(values[order], times[order], LABELS[order])))
    np.testing.assert_allclose(one, other, rtol=1e-12)
