"""Quantiles against SciPy's over the whole range, and uniform numbers that are uniform and independent."""

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import chi2, norm

from unfog.maths.random import uniforms, upper_quantile


def test_quantiles_are_right_to_the_stated_accuracy() -> None:
    tails = np.concat([np.geomspace(1e-300, 0.5, 4001), np.linspace(0.5, 1 - 1e-9, 4001)])
    right = norm.isf(tails)
    np.testing.assert_allclose(upper_quantile(tails), right, rtol=2e-7, atol=1e-15)
    assert upper_quantile(np.asarray(0.5)) == 0
    assert upper_quantile(np.asarray(0.3)).shape == ()


def test_quantiles_are_the_same_on_jax_and_in_single_precision() -> None:
    tails = np.geomspace(1e-30, 0.999, 200)
    np.testing.assert_allclose(jax.jit(upper_quantile)(jnp.asarray(tails)), upper_quantile(tails), rtol=1e-13)
    single = upper_quantile(tails.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, upper_quantile(tails), rtol=1e-5, atol=1e-6)


def test_two_normals_make_two_independent_uniforms(rng: np.random.Generator) -> None:
    cells, draws = 8, 64_000
    found = uniforms(rng.standard_normal((draws, 2)))
    assert all(x.shape == (draws,) and x.min() >= 0 and x.max() <= 1 for x in found)
    # Equal counts in the cells of a grid: a right pair fails with probability 0.001.
    counts, _, _ = np.histogram2d(*found, bins=cells, range=[[0, 1], [0, 1]])
    expected = draws / cells**2
    assert ((counts - expected) ** 2 / expected).sum() < chi2.isf(0.001, cells**2 - 1)


def test_a_tail_too_small_for_a_number_is_the_smallest_one() -> None:
    assert upper_quantile(np.array(0.0)) == upper_quantile(np.array(np.finfo(np.float64).tiny))
