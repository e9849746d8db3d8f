"""The posterior mismatch: how far what Algorithm 1 samples theta from is from theta's true posterior.

The paper's D_t = E[KL(P_t || Pbar_t)]. Pbar_t is the conjugate posterior of the rows psi_H(a) the agent made
up as it went. P_t is the posterior given all that was seen: chat_1 .. chat_t, the actions and the rewards of
rounds 1 .. n = t - 1, with bias and contexts unknown. For phi(a, c) = G(a) c and Gaussian rewards all else is
jointly Gaussian given theta: with gamma ~ N(g, S) from the noisy contexts alone, w_i = G(a_i)'theta and B and
M as in channel/knowledge.py, the rewards are Gaussian and gamma couples them,

    mean_i = w_i'(mu_c + B (chat_i - mu_c - g)),
    cov    = diag(sigma^2 + w_i'M^-1 w_i) + Y S Y',    the rows of Y being -w_i'B,

and P_t is proportional to the prior times their density: how an action was chosen, given the past, does not
depend on theta. Woodbury's formula makes this O(n d^2) for each theta. theta is left to particles: adaptive
importance sampling, from Pbar_t to a Gaussian with P_t's moments (Cappe et al., *Adaptive importance sampling
in general mixture classes*), some of them wider spread for the tails' sake. Their error in the divergence of
that Gaussian from Pbar_t, which has a closed form, is taken off.
"""

from typing import NamedTuple

import numpy as np

from unfog.agents.denoise import bias
from unfog.agents.learn.conjugate import reward_variance
from unfog.channel.knowledge import Knowledge, known_shrinkage, posterior_mean
from unfog.maths import gaussian
from unfog.maths.arrays import Array, matvec
from unfog.maths.gaussian import Gaussian

CELLS = 1 << 17  # numbers in memory at a time: a part of the particles that fits into the cache
SCALES = (1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 2.0, 4.0)  # the widths of particles, in turn: P_t may have long tails
ADAPTING, MOST_STEPS = 4, 30  # the first quarter of the particles adapts the Gaussian, in at most 30 steps
ENOUGH = 0.65  # the search ends when this share of them is effective
LEAST = 0.3  # below this effective share P_t is flattened


class Rounds(NamedTuple):
    """The data up to round t = n + 1, and the agent's own rows."""

    noisy: Array  # (..., n + 1, d)  chat, this round's included
    matrices: Array  # (..., n, m, d)  G of the chosen arms
    rows: Array  # (..., n, m)  psi_H of the chosen arms, at their time
    rewards: Array  # (..., n)


class Divergence(NamedTuple):
    """KL(P_t || Pbar_t). Where few particles are effective, trust neither value nor error."""

    value: Array  # (...,)
    error: Array  # (...,)  the particles' standard error
    ess: Array  # (...,)  effective sample size, at most that of three quarters of the particles


class Particles(NamedTuple):
    """Weighed draws of theta from around `centre`, a Gaussian near P_t."""

    theta: Array  # (p, m)
    weights: Array  # (p,)  of mean 1: with these the particles stand for P_t
    target: Array  # (p,)  ln of prior times likelihood
    proposal: Array  # (p,)  ln of the density they were drawn from
    centre: Gaussian


class _Terms(NamedTuple):
    """The parts of the rewards' density that do not depend on theta."""

    slopes: Array  # (..., d + 1, n, m)  of -Y root(S), column by column, and of the mean
    forms: Array  # (..., n, m m)  G M^-1 G'
    rewards: Array  # (..., n)
    noise: Array  # ()  sigma^2


def _compute_terms(known: Knowledge, rounds: Rounds) -> _Terms:
    channel, matrices = known_shrinkage(known), rounds.matrices
    noisy = rounds.noisy - known.context_mean
    tally = bias.Tally(np.asarray(noisy.shape[-2]), noisy.sum(-2))
    bias_mean, bias_cov = bias.belief(bias.FromEither().sight(known), tally)
    contexts = posterior_mean(channel, rounds.noisy[..., :-1, :], bias_mean[..., None, :])
    coupling = matrices @ (channel.gain @ gaussian.square_root(bias_cov))
    slopes = np.moveaxis(np.concat([coupling, matvec(matrices, contexts)[..., None]], -1), -1, -3)
    forms = (matrices @ channel.cov @ matrices.mT).reshape(*matrices.shape[:-2], matrices.shape[-2] ** 2)
    return _Terms(slopes, forms, rounds.rewards, reward_variance(known))


def log_likelihood(known: Knowledge, rounds: Rounds, theta: Array) -> Array:
    """The log density of the rewards given the noisy contexts, at every theta: (..., p, m) -> (..., p)."""
    terms = _compute_terms(known, rounds)
    size = max(1, CELLS // max(1, terms.slopes[..., 0].size))
    pieces = [_log_density(terms, theta[..., i : i + size, :]) for i in range(0, theta.shape[-2], size)]
    return np.concat(pieces, -1)


def _log_density(terms: _Terms, theta: Array) -> Array:
    """The log density, by one Cholesky factor of d + 1 rows: the covariance is D + Y S Y' with D diagonal.

    With V = [Y root(S), r - mean] / sqrt(D), the last pivot of I + V'V is one more than the residuals' square
    under the whole covariance, and the others make the determinant of I + root(S)' Y'D^-1 Y root(S).
    """
    squares = (theta[..., :, None] * theta[..., None, :]).reshape(*theta.shape[:-1], -1)
    variances = terms.noise + squares @ terms.forms.mT
    linear = theta[..., None, :, :] @ terms.slopes.mT
    linear[..., -1, :, :] -= terms.rewards[..., None, :]
    scaled = (linear / np.sqrt(variances)[..., None, :, :]).swapaxes(-3, -2)
    pivots = np.linalg.diagonal(np.linalg.cholesky(np.eye(scaled.shape[-2]) + scaled @ scaled.mT)) ** 2
    logs = np.log(2 * np.pi * variances).sum(-1) + np.log(pivots[..., :-1]).sum(-1)
    return np.asarray(-0.5 * (logs + pivots[..., -1] - 1))


def sampling(known: Knowledge, rounds: Rounds) -> Gaussian:
    """Pbar_t, what the agent draws theta from: the conjugate posterior of its own rows."""
    prior, noise = gaussian.from_moments(known.prior_mean, known.prior_cov), reward_variance(known)
    rows, surprise = rounds.rows @ prior.root, rounds.rewards - matvec(rounds.rows, known.prior_mean)
    lower = np.linalg.cholesky(np.eye(rows.shape[-1]) + rows.mT @ rows / noise)
    root: Array = prior.root @ np.linalg.inv(lower).mT
    shift = matvec(root.mT, matvec(rounds.rows.mT, surprise)) / noise
    return Gaussian(known.prior_mean + matvec(root, shift), root)


def _log_normal(belief: Gaussian, theta: Array, wider: float = 1.0) -> Array:
    """The log density of N(mean, wider^2 cov) at every theta: (p, m) -> (p,)."""
    scaled = np.linalg.solve(belief.root, (theta - belief.mean).mT) / wider
    volume = np.linalg.slogdet(belief.root)[1] + len(belief.mean) * np.log(wider * np.sqrt(2 * np.pi))
    return np.asarray(-0.5 * (scaled**2).sum(-2) - volume)


def _draw(known: Knowledge, rounds: Rounds, centre: Gaussian, normals: Array) -> Particles:
    """Particles from a mixture of Gaussians that differ in width."""
    scale = np.resize(SCALES, len(normals))
    theta = centre.mean + (scale[:, None] * normals) @ centre.root.mT
    parts = [np.log(np.mean(scale == wide)) + _log_normal(centre, theta, wide) for wide in set(SCALES)]
    proposal: Array = np.logaddexp.reduce(parts)
    prior = _log_normal(gaussian.from_moments(known.prior_mean, known.prior_cov), theta)
    target = prior + log_likelihood(known, rounds, theta)
    return Particles(theta, _weights(target - proposal), target, proposal, centre)


def _weights(logs: Array) -> Array:
    return np.exp(logs - np.logaddexp.reduce(logs) + np.log(len(logs)))


def _effective(weights: Array) -> float:
    """Kish's effective sample size."""
    return float(len(weights) / np.mean(weights**2))


def _match_moments(particles: Particles) -> Gaussian:
    """The Gaussian with the moments of the target, flattened until enough particles are effective."""
    theta, weights = particles.theta, particles.weights
    while _effective(weights) < LEAST * len(weights):
        weights = _weights(0.8 * np.log(np.maximum(weights, 1e-300)))
    mean = (weights[:, None] * theta).mean(0)
    return gaussian.from_moments(mean, (theta - mean).mT @ (weights[:, None] * (theta - mean)) / len(theta))


def posterior(known: Knowledge, rounds: Rounds, normals: Array) -> Particles:
    """Weighed particles of P_t, of one trial, from standard normals (p, m)."""
    first, centre = len(normals) // ADAPTING, sampling(known, rounds)
    for _ in range(MOST_STEPS):
        particles = _draw(known, rounds, centre, normals[:first])
        if _effective(particles.weights) >= ENOUGH * first:
            break
        centre = _match_moments(particles)
    return _draw(known, rounds, centre, normals[first:])


def divergence(known: Knowledge, rounds: Rounds, normals: Array) -> Divergence:
    """KL(P_t || Pbar_t) of every trial, from standard normals (..., p, m); zero before the first reward."""
    results = np.zeros((3, *rounds.rewards.shape[:-1]))
    for trial in np.ndindex(results.shape[1:]):  # one by one: each adapts as far as it needs to
        results[:, *trial] = _divergence(known, Rounds(*(part[trial] for part in rounds)), normals[trial])
    return Divergence(*results)


def _divergence(known: Knowledge, rounds: Rounds, normals: Array) -> tuple[float, float, float]:
    """Value, error and effective sample size of one trial."""
    particles, sampler = posterior(known, rounds, normals), sampling(known, rounds)
    base = _log_normal(sampler, particles.theta)
    value, parts = _estimate(particles.target, particles.proposal, base)
    check, same = _estimate(_log_normal(particles.centre, particles.theta), particles.proposal, base)
    error = float(np.std(parts - same)) / len(parts) ** 0.5
    return value - check + between(particles.centre, sampler), error, _effective(particles.weights)


def _estimate(target: Array, proposal: Array, base: Array) -> tuple[float, Array]:
    """KL(target || base), only the target not being normalised, and every particle's part in it: (p,)."""
    logs = target - proposal
    weights, volume = _weights(logs), np.logaddexp.reduce(logs) - np.log(len(logs))
    mean = np.mean(weights * (target - base))
    return float(mean - volume), weights * (target - base - mean - 1)


def between(one: Gaussian, other: Gaussian) -> float:
    """KL(one || other) of two Gaussians."""
    shift, ratio = (np.linalg.solve(other.root, part) for part in (one.mean - other.mean, one.root))
    spread = (ratio**2).sum() - 2 * np.linalg.slogdet(ratio)[1] - len(shift)
    return float(0.5 * (spread + shift @ shift))
