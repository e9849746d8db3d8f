"""What a bound asks of a problem, and whether it is so."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unfog.arrays import Array
from unfog.inputs import InputError
from unfog.knowledge import Knowledge

_SLACK = 1 + 1e-9  # an equality may be met up to rounding


class LinearMap(NamedTuple):
    """What the bounds need of phi(a, c) = G(a) c, averaged over sets of actions where they are drawn."""

    gram: Array  # (d, d)  E sum_a G(a)'G(a)
    trace: float  # E max_a Tr G(a)'G(a)
    norm: float  # E max_a of G(a)'s largest singular value, squared


class Case(NamedTuple):
    """A problem, as the bounds see it."""

    known: Knowledge
    arms: int
    feature_norm: float  # the root of the mean of max_a |phi(a, c)|^2, or a bound on it
    linear: LinearMap | None = None  # None: features that are not linear in the context

    @property
    def dim(self) -> int:
        """D."""
        return self.known.context_mean.shape[-1]

    @property
    def size(self) -> int:
        """M."""
        return self.known.prior_mean.shape[-1]

    @property
    def prior_var(self) -> float:
        """lambda, or the largest variance of a prior that is not a multiple of I."""
        return float(np.max(np.linalg.eigvalsh(self.known.prior_cov)))

    @property
    def reward_var(self) -> float:
        """sigma^2."""
        if self.known.reward_var is None:
            raise InputError("problem", "rewards of 0 or 1", "Gaussian rewards: the bounds are for these")
        return float(self.known.reward_var)


def linear_case(known: Knowledge, matrices: Array) -> Case:
    """The case of phi(a, c) = G(a) c: matrices (..., K, m, d), averaged over leading axes.

    Gaussian contexts have no largest norm, so the paper's Assumption 1, |phi| <= 1, is taken in mean square:
    of phi(a, c), of the expected features that an agent believes in, and of the error between the two. The
    last two are largest in the first round, with all of the bias unknown.
    """
    grams = matrices.mT @ matrices
    traces = np.trace(grams, axis1=-2, axis2=-1)
    norms = np.linalg.norm(matrices, ord=2, axis=(-2, -1)) ** 2
    gain = np.linalg.solve(known.context_cov + known.noise_cov, known.context_cov).T
    seen, wrong = gain @ known.context_cov, gain @ known.bias_cov @ gain.T
    error = known.context_cov - seen + wrong
    largest = max(np.trace(known.context_cov), np.trace(seen + wrong), np.trace(error))
    norm = float(norms.max(-1).mean())
    square = norm * (largest + known.context_mean @ known.context_mean)
    gram = grams.sum(-3).reshape(-1, *grams.shape[-2:]).mean(0)
    features = LinearMap(gram, float(traces.max(-1).mean()), norm)
    return Case(known, matrices.shape[-3], float(np.sqrt(square)), features)


class Condition(NamedTuple):
    """One thing a bound asks, where it holds, and what was found instead."""

    asks: str
    holds: NDArray[np.bool_]  # of the shape of the horizons, or ()
    found: str


def narrow(case: Case, horizon: Array) -> Condition:
    """Lambda / sigma^2 <= d / T."""
    ratio = case.prior_var / case.reward_var
    most = _first(horizon, ratio > case.dim / horizon * _SLACK)
    holds = ratio <= case.dim / horizon * _SLACK
    return Condition("lambda/sigma^2 <= d/T", holds, f"{ratio:.4g} > {case.dim}/{most:.0f}")


def long(case: Case, horizon: Array) -> Condition:
    """D / T <= 1."""
    least = _first(horizon, horizon < case.dim)
    return Condition("d/T <= 1", case.dim <= horizon, f"d = {case.dim}, T = {least:.0f}")


def noisy_rewards(case: Case) -> Condition:
    """Lambda / sigma^2 <= 1."""
    ratio = case.prior_var / case.reward_var
    return Condition("lambda/sigma^2 <= 1", np.asarray(ratio <= _SLACK), f"{ratio:.4g}")


def centred_prior(case: Case) -> Condition:
    """Theta ~ N(0, lambda I)."""
    cov = case.known.prior_cov
    holds = not case.known.prior_mean.any() and _multiple(cov)
    return Condition("theta ~ N(0, lambda I)", np.asarray(holds), "another mean or covariance")


def small_features(case: Case) -> Condition:
    """The paper's Assumption 1, in mean square."""
    holds = case.feature_norm <= _SLACK
    return Condition(
        "Assumption 1: |phi| <= 1", np.asarray(holds), f"root mean square {case.feature_norm:.4g}"
    )


def linear_features(case: Case) -> Condition:
    """phi(a, c) = G(a) c."""
    return Condition("phi(a, c) = G(a) c", np.asarray(case.linear is not None), "another feature map")


def square_features(case: Case) -> Condition:
    """M = d."""
    return Condition("m = d", np.asarray(case.size == case.dim), f"m = {case.size}, d = {case.dim}")


def isotropic(case: Case) -> Condition:
    """Sigma_c, Sigma_n and Sigma_gamma are multiples of I."""
    covs = (case.known.context_cov, case.known.noise_cov, case.known.bias_cov)
    holds = all(map(_multiple, covs))
    return Condition("Sigma_c, Sigma_n, Sigma_gamma multiples of I", np.asarray(holds), "other covariances")


def _multiple(cov: Array) -> bool:
    return cov.ndim == 2 and bool(np.allclose(cov, cov[0, 0] * np.eye(len(cov)), rtol=1e-9, atol=0))


def _first(horizon: Array, wrong: NDArray[np.bool_]) -> float:
    """A horizon at which something does not hold, or any."""
    return float(np.ravel(horizon[wrong] if wrong.any() else horizon)[0])
