"""The law of contexts made of a sample: its moments, its kernel, and the subset that stands for many."""

import jax.numpy as jnp
import numpy as np
import pytest

from tests.problems import spd
from unfog.channel import deconvolution
from unfog.maths.arrays import Array

D = 3


def skewed(rng: np.random.Generator, number: int) -> Array:
    return rng.gamma(1.5, 1.0, (number, D)) @ np.linalg.cholesky(spd(rng, D)).T - [2.0, 0.0, 5.0]


@pytest.mark.parametrize("bandwidth", [0.0, 0.5, 1.0, 50.0])
def test_mean_and_covariance_stay_those_of_the_sample(rng: np.random.Generator, bandwidth: float) -> None:
    contexts = skewed(rng, 40)
    law = deconvolution.kernel_law(contexts, 100, bandwidth)
    atoms = np.cov(law.atoms.T, aweights=law.weights, bias=True)
    np.testing.assert_allclose(law.weights @ law.atoms, contexts.mean(0), rtol=1e-12)
    np.testing.assert_allclose(atoms + law.kernel, np.cov(contexts.T, bias=True), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose((law.mean, law.cov[0]), (contexts.mean(0), (atoms + law.kernel)[0]))


def test_the_kernel_is_silvermans(rng: np.random.Generator) -> None:
    contexts = skewed(rng, 200)
    law = deconvolution.kernel_law(contexts, 200, 0.5)
    h = 0.5 * (4 / (5 * 200)) ** (1 / 7)
    np.testing.assert_allclose(law.kernel, h**2 * np.cov(contexts.T, bias=True), rtol=1e-12)


def test_no_bandwidth_is_the_sample_and_a_wide_one_its_gaussian(rng: np.random.Generator) -> None:
    contexts = skewed(rng, 30)
    plain, wide = (deconvolution.kernel_law(contexts, 30, bandwidth) for bandwidth in (0.0, 1e6))
    np.testing.assert_allclose(plain.atoms, contexts, rtol=1e-12)
    assert (plain.kernel == 0).all()
    np.testing.assert_allclose(wide.atoms, np.tile(contexts.mean(0), (30, 1)), rtol=1e-12)
    np.testing.assert_allclose(wide.kernel, np.cov(contexts.T, bias=True), rtol=1e-12)


def test_a_subset_stands_for_those_nearest_to_it(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    contexts = skewed(rng, 500)
    kept, weights = deconvolution.thin(contexts, 60)
    assert kept.shape == (60, D)
    assert (kept[:, None] == contexts).all(-1).any(-1).all()  # a subset, nobody in it twice
    assert len(np.unique(kept, axis=0)) == 60
    inverse, counts = np.diag(1 / contexts.var(0)), np.zeros(60)
    for context in contexts:
        away = kept - context
        counts[np.argmin(np.einsum("ni,ij,nj->n", away, inverse, away))] += 1
    np.testing.assert_allclose(weights, counts / 500, rtol=1e-12)
    assert weights.sum() == pytest.approx(1)
    assert weights.max() > 2 * weights.min()
    monkeypatch.setattr(deconvolution, "CELLS", 60 * 7)  # a few at a time
    np.testing.assert_array_equal(deconvolution.thin(contexts, 60)[1], weights)
    compiled = deconvolution.kernel_law(jnp.asarray(contexts), 60, 0.5)
    for found, right in zip(compiled, deconvolution.kernel_law(contexts, 60, 0.5), strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-9, atol=1e-12)


def test_weights_bring_a_subset_closer_to_the_whole(rng: np.random.Generator) -> None:
    """The share of a half-space, by the subset with its weights and without; 200 subsets, one sample."""
    contexts = skewed(rng, 2000)
    gaps = []
    for _ in range(200):
        shuffled = contexts[rng.permutation(2000)]
        kept, weights = deconvolution.thin(shuffled, 100)
        beyond = kept[:, 0] > np.quantile(contexts[:, 0], 0.8)
        gaps.append((weights @ beyond - 0.2, beyond.mean() - 0.2))
    weighed, plain = np.mean(np.square(gaps), 0) ** 0.5
    assert weighed < 0.7 * plain


def test_copies_and_constants_do_no_harm() -> None:
    contexts = np.tile([[1.0, 4.0], [2.0, 4.0], [2.0, 4.0]], (20, 1))
    kept, weights = deconvolution.thin(contexts, 12)
    assert weights.sum() == pytest.approx(1)
    assert weights @ kept[:, 0] == pytest.approx(5 / 3)
    assert (weights == 0).any()  # copies of one that speaks for all
    law = deconvolution.kernel_law(contexts, 12, 0.5)
    assert np.isfinite(law.atoms).all()


def test_few_enough_are_kept_as_they_are(rng: np.random.Generator) -> None:
    contexts = skewed(rng, 20)
    kept, weights = deconvolution.thin(contexts, 20)
    assert kept is contexts
    np.testing.assert_allclose(weights, 1 / 20)
