"""What agents are told: moments from rows with gaps, lines turned around, conditional means."""

import numpy as np
from scipy.stats import multivariate_normal

from tests.paper.people import PLACE, made
from unfog.maths.arrays import Array
from unfog.paper.warfarin import Errors, estimate_channel, moments


def rows_with_gaps(n: int) -> Array:
    rng = np.random.default_rng(8)
    root = np.array([[2.0, 0.0, 0.0], [-1.5, 0.7, 0.0], [0.3, 0.2, 0.4]])
    rows = np.array([5.0, -3.0, 1.0]) + rng.standard_normal((n, 3)) @ root.T
    rows[rng.random((n, 3)) < 0.3] = np.nan
    return rows[~np.isnan(rows).all(1)]


def test_moments_with_gaps_are_those_of_the_greatest_likelihood() -> None:
    rows = rows_with_gaps(100)

    def likelihood(mean: Array, cov: Array) -> float:
        """Row by row, of what is there of it."""
        seen = [(row[known], known) for row in rows for known in [~np.isnan(row)]]
        return sum(multivariate_normal(mean[k], cov[np.ix_(k, k)]).logpdf(x) for x, k in seen)

    mean, cov = moments(rows, steps=300)
    best, step = likelihood(mean, cov), 0.01
    for i in range(3):
        moved = mean + step * np.sqrt(cov[i, i]) * np.eye(3)[i]
        assert likelihood(moved, cov) < best
        assert likelihood(2 * mean - moved, cov) < best
        for j in range(i + 1):
            bump = np.zeros((3, 3))
            bump[i, j] = bump[j, i] = step * np.sqrt(cov[i, i] * cov[j, j])
            assert likelihood(mean, cov + bump) < best
            assert likelihood(mean, cov - bump) < best


def test_moments_without_gaps_are_the_usual_ones() -> None:
    rows = rows_with_gaps(400)
    whole = rows[~np.isnan(rows).any(1)]
    mean, cov = moments(whole)
    np.testing.assert_allclose(mean, whole.mean(0), rtol=1e-9)
    np.testing.assert_allclose(cov, np.cov(whole.T, ddof=0), rtol=1e-4, atol=1e-6)


def test_what_is_told_undoes_the_channel() -> None:
    people = made(6000, gaps=0.05)
    seen = Errors(reported=1.5, miscalled=0.2).noisy(people.contexts, np.random.default_rng(4))
    found = estimate_channel(people.contexts, seen)
    off = found.record.outside(found.noisy.inside(seen)) - people.contexts
    sizes = found.record.scale
    for name in ("height", "vkorc1"):
        error, true = off[:, PLACE[name]], people.contexts[:, PLACE[name]]
        known = ~np.isnan(error)
        # The error of a line turned around has no mean, and nothing to do with the truth.
        assert abs(error[known].mean()) < 1e-9 * sizes[PLACE[name]]
        assert abs(np.corrcoef(error[known], true[known])[0, 1]) < 1e-9
        told_sd = np.sqrt(found.noise_cov[PLACE[name], PLACE[name]]) * sizes[PLACE[name]]
        assert abs(error[known].std() / told_sd - 1) < 1e-6
    assert np.diag(found.noise_cov)[PLACE["age"]] < 1e-5


def test_denoised_contexts_are_conditional_means() -> None:
    people = made(900, gaps=0.2)
    seen = Errors(reported=2.0, miscalled=0.1).noisy(people.contexts, np.random.default_rng(4))
    found = estimate_channel(people.contexts, seen)
    inside, filled = found.noisy.inside(seen), found.denoised(seen)
    for row in range(5):
        known = np.flatnonzero(~np.isnan(inside[row]))
        cov = (found.context_cov + found.noise_cov)[np.ix_(known, known)]
        away = np.linalg.solve(cov, inside[row, known] - found.context_mean[known])
        expected = found.context_mean + found.context_cov[:, known] @ away
        np.testing.assert_allclose(filled[row], expected, atol=1e-8)
