"""The posterior mismatch against joint Gaussians written out, dense quadrature, and limits."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from tests.problems import evidence, given, random_knowledge
from unfog.agents.denoise import PlugIn
from unfog.agents.learn import Conjugate
from unfog.channel.knowledge import Knowledge
from unfog.maths import gaussian
from unfog.maths.arrays import Array
from unfog.maths.gaussian import Gaussian
from unfog.theory import mismatch
from unfog.theory.mismatch import Divergence, Rounds, divergence, log_likelihood, sampling


def made_rounds(known: Knowledge, n: int, rng: np.random.Generator) -> Rounds:
    """Rounds drawn from the model, with random matrices and the plug-in denoiser's rows."""
    d, m = len(known.context_mean), len(known.prior_mean)
    contexts = rng.multivariate_normal(known.context_mean, known.context_cov, n + 1)
    bias = rng.multivariate_normal(np.zeros(d), known.bias_cov)
    noisy = contexts + bias + rng.multivariate_normal(np.zeros(d), known.noise_cov, n + 1)
    matrices, theta = (
        rng.standard_normal((n, m, d)),
        rng.multivariate_normal(known.prior_mean, known.prior_cov),
    )
    noise = np.sqrt(np.asarray(known.reward_var)) * rng.standard_normal(n)
    rewards = np.einsum("m,nmd,nd->n", theta, matrices, contexts[:-1]) + noise
    denoiser = PlugIn()
    setup, rows = denoiser.setup(known, None), []
    state = denoiser.start(setup)
    for chat, matrix in zip(noisy, matrices, strict=False):
        rows.append(matrix @ denoiser.predict(setup, state, chat).mean)
        state = denoiser.update(setup, state, chat, np.full(d, np.nan))
    return Rounds(noisy, matrices, np.reshape(rows, (n, m)), rewards)


def stacked(many: list[Rounds]) -> Rounds:
    return Rounds(*(np.stack(parts) for parts in zip(*many, strict=True)))


def by_hand(known: Knowledge, rounds: Rounds, theta: Array) -> float:
    """The log density of the rewards given the noisy contexts, as that of both less that of the latter.

    Both are linear in independent Gaussians: gamma, c_1 .. c_t, the channel's noise and the rewards' noise.
    """
    t, d = rounds.noisy.shape
    n = t - 1
    size = d + 2 * t * d + n
    mean, cov, maps = np.zeros(size), np.zeros((size, size)), np.zeros((t * d + n, size))
    cov[:d, :d] = known.bias_cov
    cov[size - n :, size - n :] = np.eye(n) * np.asarray(known.reward_var)
    maps[t * d :, size - n :] = np.eye(n)
    for i in range(t):
        seen, context = slice(i * d, (i + 1) * d), slice(d + i * d, d + (i + 1) * d)
        noise = slice(d + t * d + i * d, d + t * d + (i + 1) * d)
        mean[context], cov[context, context], cov[noise, noise] = known[0], known.context_cov, known.noise_cov
        maps[seen, :d] = maps[seen, context] = maps[seen, noise] = np.eye(d)
        if i < n:
            maps[t * d + i, context] = theta @ rounds.matrices[i]
    centre, spread, chats = maps @ mean, maps @ cov @ maps.T, rounds.noisy.ravel()
    both = multivariate_normal(centre, spread).logpdf(np.append(chats, rounds.rewards))
    alone = multivariate_normal(centre[: t * d], spread[: t * d, : t * d]).logpdf(chats)
    return float(both - alone)


def dense(known: Knowledge, rounds: Rounds, thetas: Array) -> Array:
    """The same at many thetas (p, m): all contexts given all noisy ones, then a full covariance each."""
    t, d = rounds.noisy.shape
    cov = np.kron(np.eye(t), known.context_cov)
    others = np.kron(np.eye(t), known.noise_cov) + np.kron(np.ones((t, t)), known.bias_cov)
    both = np.block([[cov, np.zeros_like(cov)], [np.zeros_like(cov), others]])
    start, sees = np.append(np.tile(known.context_mean, t), np.zeros(t * d)), np.tile(np.eye(t * d), (1, 2))
    mean, cov = (part[..., : t * d] for part in given(start, both, sees, rounds.noisy.ravel()))
    found = []
    for theta in thetas:
        weights = np.zeros((t - 1, t, d))
        weights[np.arange(t - 1), np.arange(t - 1)] = theta @ rounds.matrices
        flat = weights.reshape(t - 1, t * d)
        spread = flat @ cov[: t * d] @ flat.T + np.eye(t - 1) * np.asarray(known.reward_var)
        away = rounds.rewards - flat @ mean
        logs = np.linalg.slogdet(2 * np.pi * spread)[1]
        found.append(-0.5 * (logs + away @ np.linalg.solve(spread, away)))
    return np.array(found)


@pytest.mark.parametrize(("dim", "size", "n"), [(3, 2, 6), (2, 4, 9), (1, 1, 1)])
def test_the_likelihood_is_that_of_the_joint_gaussian(dim: int, size: int, n: int) -> None:
    known, rng = random_knowledge(7, dim, size), np.random.default_rng(dim)
    rounds = made_rounds(known, n, rng)
    thetas = known.prior_mean + 2 * rng.standard_normal((5, size))
    truth = [by_hand(known, rounds, theta) for theta in thetas]
    np.testing.assert_allclose(log_likelihood(known, rounds, thetas), truth, rtol=1e-9)
    np.testing.assert_allclose(dense(known, rounds, thetas), truth, rtol=1e-9)


def test_the_likelihood_in_pieces_and_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    known, rng = random_knowledge(3, 2, 3), np.random.default_rng(0)
    many = [made_rounds(known, 8, rng) for _ in range(4)]
    thetas = rng.standard_normal((4, 50, 3))
    apart = [log_likelihood(known, one, theta) for one, theta in zip(many, thetas, strict=True)]
    np.testing.assert_allclose(log_likelihood(known, stacked(many), thetas), apart, rtol=1e-12)
    monkeypatch.setattr(mismatch, "CELLS", 7 * 8 * 3)
    np.testing.assert_allclose(log_likelihood(known, many[0], thetas[0]), apart[0], rtol=1e-12)


def test_the_sampling_distribution_is_the_learners(rng: np.random.Generator) -> None:
    known = random_knowledge(4, 3, 5)
    many = stacked([made_rounds(known, 20, rng) for _ in range(3)])
    conjugate = Conjugate()
    state = conjugate.start(known, None)
    for i in range(20):
        state = conjugate.update(conjugate.setup(known), state, evidence(many.rows[:, i]), many.rewards[:, i])
    found = sampling(known, many)
    np.testing.assert_allclose(found.mean, state.mean, rtol=1e-9)
    np.testing.assert_allclose(gaussian.covariance(found), gaussian.covariance(state), rtol=1e-9)


def normal(x: Array, mean: Array, cov: Array) -> Array:
    return np.atleast_1d(multivariate_normal(mean, cov).logpdf(x))


def by_quadrature(known: Knowledge, rounds: Rounds, points: int, reach: float) -> tuple[float, Array, Array]:
    """KL(P_t || Pbar_t) and P_t's moments, by sums over a grid of the joint Gaussian's density."""
    precision = np.linalg.inv(known.prior_cov) + rounds.rows.T @ rounds.rows / np.asarray(known.reward_var)
    pull = np.linalg.solve(known.prior_cov, known.prior_mean)
    mean = np.linalg.solve(precision, pull + rounds.rewards @ rounds.rows / np.asarray(known.reward_var))
    cov = np.linalg.inv(precision)
    lines = [
        centre + reach * scale * np.linspace(-1, 1, points)
        for centre, scale in zip(mean, np.sqrt(np.diag(cov)), strict=True)
    ]
    grid = np.stack(np.meshgrid(*lines, indexing="ij"), -1).reshape(-1, len(mean))
    logs = normal(grid, known.prior_mean, known.prior_cov) + dense(known, rounds, grid)
    weights = np.exp(logs - logs.max())
    cell = np.prod([line[1] - line[0] for line in lines])
    volume = np.log(weights.sum() * cell) + logs.max()
    weights /= weights.sum()
    assert weights[np.any((grid == grid.min(0)) | (grid == grid.max(0)), 1)].sum() < 1e-7
    middle = weights @ grid
    spread = (grid - middle).T @ (weights[:, None] * (grid - middle))
    return float(weights @ (logs - volume - normal(grid, mean, cov))), middle, spread


def moments_of(found: mismatch.Particles) -> tuple[Array, Array]:
    weights = found.weights[:, None]
    mean = (weights * found.theta).mean(0)
    return mean, (found.theta - mean).T @ (weights * (found.theta - mean)) / len(found.theta)


@pytest.mark.parametrize(("dim", "size", "points"), [(1, 1, 1500), (2, 2, 90)])
def test_the_divergence_is_the_integral(dim: int, size: int, points: int) -> None:
    """Within 4 of its standard errors, which are small: a right estimate fails in 1 of 16,000 seeds."""
    known, rng = random_knowledge(2, dim, size), np.random.default_rng(5)
    rounds = made_rounds(known, 6, rng)
    value, mean, cov = by_quadrature(known, rounds, points, 25.0 if dim == 1 else 18.0)
    normals = rng.standard_normal((20_000, size))
    found = divergence(known, rounds, normals)
    assert found.error < 0.02 * value
    assert abs(found.value - value) < 4 * found.error
    middle, spread = moments_of(mismatch.posterior(known, rounds, normals))
    scale = np.sqrt(np.diag(cov))
    np.testing.assert_allclose((middle - mean) / scale, 0.0, atol=0.04)
    np.testing.assert_allclose((spread - cov) / scale / scale[:, None], 0.0, atol=0.06)


@pytest.mark.slow
def test_the_error_is_the_spread_over_draws() -> None:
    """Of 200 estimates: their spread is known to 5 %, their mean error to 1 % or so."""
    known, rng = random_knowledge(2, 2, 2), np.random.default_rng(8)
    rounds = made_rounds(known, 12, rng)
    again = Rounds(*(np.broadcast_to(part, (200, *part.shape)) for part in rounds))
    found = divergence(known, again, rng.standard_normal((200, 800, 2)))
    assert np.std(found.value) == pytest.approx(np.sqrt(np.mean(found.error**2)), rel=0.25)
    precise = divergence(known, rounds, rng.standard_normal((40_000, 2)))
    assert abs(found.value.mean() - precise.value) < 5 * np.hypot(np.std(found.value) / 14, precise.error)


def test_a_channel_without_noise_leaves_no_mismatch() -> None:
    known, rng = random_knowledge(6, 3, 2), np.random.default_rng(1)
    values = []
    for size in (1.0, 1e-2, 1e-4, 1e-8):
        clear = known._replace(noise_cov=size * known.noise_cov, bias_cov=size * known.bias_cov)
        found = divergence(
            clear, made_rounds(clear, 25, np.random.default_rng(3)), rng.standard_normal((2000, 2))
        )
        values.append(float(found.value))
    assert values[0] > 0.5
    assert values[0] > values[1] > values[2]
    assert abs(values[2]) < 1e-3
    assert abs(values[3]) < 1e-7


def test_batches_are_trials_one_by_one(rng: np.random.Generator) -> None:
    known = random_knowledge(9, 2, 2)
    many = [made_rounds(known, 10, rng) for _ in range(4)]
    normals = rng.standard_normal((2, 2, 500, 2))
    both = Rounds(*(part.reshape(2, 2, *part.shape[1:]) for part in stacked(many)))
    found = divergence(known, both, normals)
    assert found.value.shape == found.error.shape == found.ess.shape == (2, 2)
    apart = [divergence(known, one, z) for one, z in zip(many, normals.reshape(4, 500, 2), strict=True)]
    np.testing.assert_array_equal(np.stack([np.ravel(part) for part in found], -1), np.array(apart))


def test_before_the_first_reward_there_is_none(rng: np.random.Generator) -> None:
    known = random_knowledge(9, 2, 3)
    found = divergence(known, made_rounds(known, 0, rng), rng.standard_normal((400, 3)))
    np.testing.assert_allclose([found.value, found.error], 0.0, atol=1e-12)
    assert found.ess > 250


def test_few_effective_particles_show(monkeypatch: pytest.MonkeyPatch) -> None:
    """A posterior far from what is sampled from is found by adapting, and missed without."""
    known = random_knowledge(2, 2, 2)._replace(reward_var=np.asarray(0.02))
    rng = np.random.default_rng(5)
    rounds, normals = made_rounds(known, 30, rng), rng.standard_normal((2000, 2))
    found: Divergence = divergence(known, rounds, normals)
    assert found.value > 20
    assert found.ess > 750
    monkeypatch.setattr(mismatch, "MOST_STEPS", 0)
    assert divergence(known, rounds, normals).ess < 50


def test_two_gaussians_by_hand() -> None:
    """N((1, 0), diag(4, 1)) from N(0, I): (4 + 1 + 1 - 2 - ln 4) / 2."""
    one = Gaussian(np.array([1.0, 0.0]), np.array([[0.0, 2.0], [1.0, 0.0]]))
    other = Gaussian(np.zeros(2), np.eye(2))
    assert mismatch.between(one, other) == pytest.approx((4 - np.log(4)) / 2)
    assert mismatch.between(one, one) == pytest.approx(0.0)


def test_rewards_must_have_a_variance(rng: np.random.Generator) -> None:
    known = random_knowledge(2, 2, 2)
    rounds = made_rounds(known, 3, rng)
    with pytest.raises(ValueError, match="Gaussian noise"):
        divergence(known._replace(reward_var=None), rounds, rng.standard_normal((400, 2)))
