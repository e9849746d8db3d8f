"""Pairs and noisy contexts together: against one long Gaussian vector, and series that are known."""

import numpy as np
import pytest

from tests.problems import spd
from tests.timed import Truth, drawn, irregular, kernel
from unfog.channel import fit_dynamics_sparse
from unfog.channel.calibration import calibrate
from unfog.maths.arrays import Array
from unfog.validation import InputError

D = 2
LAWS = np.random.default_rng(12)
CONTEXT, NOISE = spd(LAWS, D, 0.4, 3.0), spd(LAWS, D, 0.2, 0.8)
CONTEXTS, ERRORS = Truth(0.01, 4.0, 0.0), Truth(0.01, 2.0, 0.2)


def drawn_pairs(rng: np.random.Generator, n: int, every: int) -> tuple[Array, Array, Array]:
    """Noisy and true contexts, true ones seldom, and times."""
    times, label = irregular(rng, n), np.zeros(n, np.intp)
    true = 3.0 + drawn(rng, CONTEXTS, times, label, CONTEXT)
    noisy = true - 1.0 + drawn(rng, ERRORS, times, label, NOISE)
    return noisy, np.where((np.arange(n) % every == 0)[:, None], true, np.nan), times


def test_the_likelihood_is_that_of_one_long_vector(rng: np.random.Generator) -> None:
    n = 30
    noisy, true, times = drawn_pairs(rng, n, 3)
    times[7] = times[6]  # a second reading of a moment with a true context
    true[7] = true[6]
    first = np.isin(np.arange(n), [0, 18])
    given = fit_dynamics_sparse.record(noisy, true, times, first, (CONTEXT, NOISE))
    point = np.array([[np.log(0.02), np.log(3.0), np.log(0.05), np.log(1.5), -1.0, 0.2, -0.3]])
    value, _, _ = fit_dynamics_sparse.news(given, fit_dynamics_sparse.numbers(point))

    label, white = np.cumsum(first).astype(np.intp), 1 / (1 + np.exp(1.0))
    same = (label[:, None] == label) * fit_dynamics_sparse.VAGUE
    contexts = kernel(Truth(0.02, 3.0, 0.0), times, label) * np.exp(0.2) + same
    errors = kernel(Truth(0.05, 1.5, white), times, label) * np.exp(-0.3) + same
    both = np.kron(contexts, CONTEXT)
    joint = np.block([[both + np.kron(errors, NOISE), both], [both, both]])
    paired = np.isfinite(true[:, 0]) & (np.arange(n) != 7)
    kept = np.concatenate([np.ones(n * D, bool), np.repeat(paired, D)])
    centre = np.nanmean(true, axis=0)
    error = (noisy - true)[np.isfinite(true[:, 0])].mean(axis=0)
    gap = np.concatenate([(noisy - centre - error).ravel(), (true - centre).ravel()])[kept]
    joint = joint[np.ix_(kept, kept)]
    distance = gap @ np.linalg.solve(joint, gap)
    right = -(distance + np.linalg.slogdet(joint)[1] + len(gap) * np.log(2 * np.pi)) / 2
    assert value[0] == pytest.approx(right, rel=1e-8)


@pytest.mark.slow
def test_time_constants_show_where_pairs_are_too_far_apart(rng: np.random.Generator) -> None:
    """One true context in twenty, five time constants apart: pairs alone see neither of the two."""
    noisy, true, times = drawn_pairs(rng, 600, 20)
    timing = calibrate(noisy, true, times=times).timing
    assert timing is not None
    assert any("true contexts alone" in note for note in timing.notes)
    for name, right in (("fast.time", 4.0), ("error.time", 2.0)):
        constant = timing.constants[name]
        # Three standard errors of the logarithm, twice: 5e-3; covariances by 30 pairs add to them.
        assert abs(np.log(constant.estimate / right)) < 3 * constant.error / constant.estimate + 0.2


def test_too_few_pairs_are_refused_by_name(rng: np.random.Generator) -> None:
    noisy, true, times = drawn_pairs(rng, 120, 30)
    with pytest.raises(InputError, match=r"^true: 4 pairs are complete; allowed: at least 5 with times"):
        calibrate(noisy, true, times=times)
    with pytest.raises(InputError, match=r"^times: \S+ comes after"):
        calibrate(noisy, true, times=times[::-1])
