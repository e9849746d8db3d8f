"""Robust denoising: one round against quadrature and importance sampling, many against a grid over gamma."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal, multivariate_t
from scipy.stats import t as student_t

from tests.problems import random_knowledge, within
from unfog.agents.denoise import Drift, Exact, Robust
from unfog.agents.denoise.robust import State
from unfog.channel.knowledge import Knowledge
from unfog.features import Context
from unfog.maths.arrays import Array
from unfog.validation import InputError

KNOWN = {dim: random_knowledge(seed=6, dim=dim) for dim in (1, 2, 3)}


def run(denoiser: Any, known: Knowledge, noisy: Array, contexts: Array) -> tuple[list[Context], Any]:
    """What it believes in each round, and its last state: (..., rounds, d) measurements and contexts."""
    parameters = denoiser.setup(known, None)
    state, found = denoiser.start(parameters), []
    for t in range(noisy.shape[-2]):
        found.append(denoiser.predict(parameters, state, noisy[..., t, :]))
        state = denoiser.update(parameters, state, noisy[..., t, :], contexts[..., t, :])
    return found, state


def story(known: Knowledge, rounds: int, nu: float, seed: int = 2) -> tuple[Array, Array, Array]:
    """Measurements, contexts and the bias behind them."""
    rng = np.random.default_rng(seed)
    dim = len(known.context_mean)
    bias = rng.multivariate_normal(np.zeros(dim), known.bias_cov)
    contexts = rng.multivariate_normal(known.context_mean, known.context_cov, rounds)
    noise = multivariate_t(np.zeros(dim), known.noise_cov, df=nu).rvs(rounds, random_state=rng)
    return contexts + bias + noise.reshape(rounds, dim), contexts, bias


def by_sampling(
    known: Knowledge, bias: tuple[Array, Array], nu: float, noisy: Array, n: int
) -> tuple[Array, Array, Array, Array]:
    """Mean of (c, gamma) and covariance of c, by draws weighed by the t's density; their standard errors."""
    rng = np.random.default_rng(3)
    dim = len(noisy)
    c = rng.multivariate_normal(known.context_mean, known.context_cov, n)
    gamma = rng.multivariate_normal(*bias, n)
    weights = multivariate_t(np.zeros(dim), known.noise_cov, df=nu).pdf(noisy - c - gamma)
    weights /= weights.sum()
    both = np.concatenate([c, gamma], 1)
    mean = weights @ both
    error = np.sqrt(weights**2 @ (both - mean) ** 2)
    away = c - mean[:dim]
    products = away[:, :, None] * away[:, None, :]
    cov = np.einsum("n,nij->ij", weights, products)
    return mean, error, cov, np.sqrt(np.einsum("n,nij->ij", weights**2, (products - cov) ** 2))


@pytest.mark.parametrize("far", [1.0, 6.0])
def test_one_round_is_the_posterior_by_importance_sampling(far: float) -> None:
    known, rng = KNOWN[3], np.random.default_rng(4)
    denoiser, noisy = Robust(nu=3), known.context_mean + far * rng.standard_normal(3)
    parameters = denoiser.setup(known, None)
    belief = State(np.array([0.4, -0.3, 0.2]), 0.3 * known.bias_cov)
    context = denoiser.predict(parameters, belief, noisy)
    after = denoiser.update(parameters, belief, noisy, noisy)
    mean, error, cov, cov_error = by_sampling(known, (belief.mean, belief.cov), 3, noisy, 400_000)
    # Fifteen tests at 5 standard errors: 1e-5.
    assert within(np.concatenate([context.mean, after.mean]), mean, error)
    assert within(context.cov, cov, cov_error)
    assert error.max() < 0.02


class Grid:
    """The posterior of gamma in one or two dimensions, every round's likelihood multiplied up on a grid."""

    def __init__(self, known: Knowledge, reach: float, points: int) -> None:
        self.known, dim = known, len(known.context_mean)
        axis = np.linspace(-reach, reach, points)
        self.points = np.stack(np.meshgrid(*[axis] * dim, indexing="ij"), -1).reshape(-1, dim)
        self.log = multivariate_normal(np.zeros(dim), known.bias_cov).logpdf(self.points)

    def see(self, noisy: Array, nu: float) -> None:
        """Given gamma, chat - mu_c - gamma is N(0, Sigma_c) plus a t: a fine sum over its precision."""
        logs = np.linspace(-14, 4, 181)
        away = noisy - self.known.context_mean - self.points
        covs = self.known.context_cov + self.known.noise_cov / np.exp(logs)[:, None, None]
        roots = np.linalg.inv(np.linalg.cholesky(covs))
        far = ((roots @ away.T) ** 2).sum(1)
        log = nu / 2 * (1 + logs - np.exp(logs)) + np.linalg.slogdet(roots)[1]
        self.log = self.log + np.log(np.exp(log[:, None] - far / 2).sum(0))

    def moments(self) -> tuple[Array, Array]:
        density = np.exp(self.log - self.log.max())
        density /= density.sum()
        mean = density @ self.points
        return mean, np.einsum("n,ni,nj->ij", density, self.points - mean, self.points - mean)


def gap(state: Any, mean: Array, cov: Array) -> tuple[float, float]:
    """How far the belief about gamma is off: its mean in deviations, its covariance as a share."""
    root = np.linalg.inv(np.linalg.cholesky(cov))
    shape = root @ state.cov @ root.T
    return float(np.linalg.norm(root @ (state.mean - mean))), float(np.abs(shape - np.eye(len(mean))).max())


@pytest.mark.parametrize("seed", range(4))
def test_the_bias_of_one_dimension_is_near_its_posterior(seed: int) -> None:
    noisy, contexts, _ = story(KNOWN[1], 150, 3, seed)
    grid, denoiser = Grid(KNOWN[1], 8.0, 1601), Robust(nu=3)
    worst = np.zeros(2)
    for t in range(150):
        grid.see(noisy[t], 3)
        if t in (0, 4, 19, 149):
            found = gap(run(denoiser, KNOWN[1], noisy[: t + 1], contexts[: t + 1])[1], *grid.moments())
            if t == 0:  # exact
                assert max(found) < 1e-6
            worst = np.maximum(worst, found)
    assert worst[0] < 0.25
    assert worst[1] < 0.15


@pytest.mark.slow
def test_the_bias_of_two_dimensions_is_near_its_posterior() -> None:
    noisy, contexts, _ = story(KNOWN[2], 25, 3)
    grid = Grid(KNOWN[2], 7.0, 101)
    for measurement in noisy:
        grid.see(measurement, 3)
    off, share = gap(run(Robust(nu=3), KNOWN[2], noisy, contexts)[1], *grid.moments())
    assert off < 0.25
    assert share < 0.15


def test_from_pairs_the_bias_is_near_its_posterior_too() -> None:
    known, rounds = KNOWN[1], 60
    noisy, contexts, _ = story(known, rounds, 3)
    points = np.linspace(-8, 8, 4001)
    seen = noisy - contexts
    scale = np.sqrt(known.noise_cov[0, 0])
    log = -(points**2) / 2 / known.bias_cov[0, 0] + student_t(3, scale=scale).logpdf(seen - points).sum(0)
    density = np.exp(log - log.max())
    density /= density.sum()
    mean = density @ points
    var = density @ (points - mean) ** 2
    off, share = gap(run(Robust(nu=3, pairs=True), known, noisy, contexts)[1], mean[None], var[None, None])
    assert off < 0.25
    assert share < 0.2


def test_with_many_degrees_of_freedom_it_goes_to_the_exact_denoiser_or_filter() -> None:
    for step in [0.0, 0.1]:
        for pairs in [False, True]:
            check_with_many_degrees_of_freedom_it_goes_to_the_exact_denoiser_or_filter(pairs, step)


def check_with_many_degrees_of_freedom_it_goes_to_the_exact_denoiser_or_filter(
    pairs: bool, step: float
) -> None:
    known = KNOWN[3]
    noisy, contexts, _ = story(known, 40, 1000)
    gaussian: Any = Drift(step=step, pairs=pairs) if step else Exact(pairs=pairs)
    right, _ = run(gaussian, known, noisy, contexts)
    gaps = []
    for nu in (500.0, 1000.0):
        found, _ = run(Robust(nu=nu, step=step, pairs=pairs), known, noisy, contexts)
        gaps.append(max(np.abs(a.mean - b.mean).max() for a, b in zip(found, right, strict=True)))
        assert max(np.abs(a.cov - b.cov).max() for a, b in zip(found, right, strict=True)) < 0.01
    assert gaps[1] < 0.01
    assert gaps[0] / gaps[1] == pytest.approx(2, rel=0.05)  # of order 1 / nu


def test_one_wild_measurement_hardly_moves_it_and_moves_the_exact_one_far() -> None:
    known = KNOWN[3]
    noisy, contexts, _ = story(known, 50, 1000)
    wild = noisy.copy()
    wild[20] += 300
    moved = {}
    for denoiser in (Robust(nu=4), Exact()):
        pair = [run(denoiser, known, seen, contexts)[0][-1].mean for seen in (noisy, wild)]
        moved[denoiser] = np.abs(pair[1] - pair[0]).max()
    assert moved[Robust(nu=4)] < 0.02
    assert moved[Exact()] > 1


def test_errors_have_the_size_it_says() -> None:
    known, trials, rounds = KNOWN[3], 2000, 10
    rng = np.random.default_rng(8)
    bias = rng.multivariate_normal(np.zeros(3), known.bias_cov, trials)[:, None]
    contexts = rng.multivariate_normal(known.context_mean, known.context_cov, (trials, rounds))
    noise = multivariate_t(np.zeros(3), known.noise_cov, df=4).rvs((trials, rounds), random_state=rng)
    found, _ = run(Robust(nu=4), known, contexts + bias + noise, contexts)
    last = found[-1]
    error = last.mean - contexts[:, -1]
    size = np.einsum("ti,tij,tj->t", error, np.linalg.inv(last.cov), error)
    # The mean of size is 3 if covariances are right, within 5 of its standard errors and 3 % of closeness.
    assert abs(size.mean() - 3) < 5 * size.std() / np.sqrt(trials) + 0.09


@pytest.mark.slow
def test_both_engines_agree_and_a_batch_is_its_members(rng: np.random.Generator) -> None:
    known = KNOWN[3]
    noisy, contexts = rng.normal(1, 3, (2, 5, 2, 3))

    def last(known: Any, noisy: Any, contexts: Any) -> Any:
        return [run(Robust(pairs=pairs), known, noisy, contexts)[0][-1] for pairs in (False, True)]

    compiled = jax.jit(last)(*jax.tree.map(jnp.asarray, (known, noisy, contexts)))
    alone = last(known, noisy[3], contexts[3])
    for found, one, theirs in zip(last(known, noisy, contexts), alone, compiled, strict=True):
        assert (found.mean.shape, found.cov.shape) == ((5, 3), (5, 3, 3))
        np.testing.assert_allclose(found.mean[3], one.mean, atol=1e-12)
        np.testing.assert_allclose(theirs.mean, found.mean, atol=1e-10)
        np.testing.assert_allclose(theirs.cov, found.cov, atol=1e-10)


def test_bad_degrees_of_freedom_are_refused_by_name() -> None:
    for nu in (0, 0.5, 1001, float("nan")):
        with pytest.raises(InputError, match=r"^nu: .*allowed: a (positive number|number from 1 to 1000)"):
            Robust(nu=nu)


def test_other_settings_are_refused_and_equal_ones_are_equal() -> None:
    with pytest.raises(InputError, match=r"^pairs: 1; allowed: True or False"):
        Robust(pairs=1)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"^step: -0.1; allowed: zero or a positive number"):
        Robust(step=-0.1)
    assert Robust() == Robust(pairs=False, nu=10.0) != Robust(pairs=True) == Robust(pairs=True, nu=10.0)
