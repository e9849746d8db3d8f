"""The conditions of the bounds, and whether a problem meets them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unfog.channel.knowledge import Knowledge, known_shrinkage
from unfog.maths.arrays import Array
from unfog.theory.information import numbers
from unfog.validation import InputError

_SLACK = 1 + 1e-9  # an equality may be met up to rounding


class LinearMap(NamedTuple):
    """What the bounds need of phi(a, c) = G(a) c, averaged over sets of actions where they are drawn.

    >>> import unfog
    >>> from unfog.theory.conditions import linear_case
    >>> matrices = [[[0.5]], [[-0.5]]]  # G(a) of two arms
    >>> problem = unfog.GaussianProblem(dim=1, actions=matrices, features="matrix", prior_cov=0.01)
    >>> case = linear_case(problem.knowledge(), matrices)
    >>> case.linear.norm, case.linear.largest
    (0.25, 0.25)
    """

    gram: Array  # (d, d)  E sum_a G(a)'G(a)
    trace: float  # E max_a Tr G(a)'G(a)
    norm: float  # E max_a of G(a)'s largest singular value, squared
    largest: float  # the same for the set of actions in which it is largest


class Case(NamedTuple):
    """A problem, as the bounds see it.

    >>> import unfog
    >>> from unfog.theory.conditions import linear_case
    >>> matrices = [[[0.5]], [[-0.5]]]  # G(a) of two arms
    >>> problem = unfog.GaussianProblem(dim=1, actions=matrices, features="matrix", prior_cov=0.01)
    >>> case = linear_case(problem.knowledge(), matrices)
    >>> case.arms, case.dim, case.size, case.prior_var
    (2, 1, 1, 0.01)
    """

    known: Knowledge
    arms: int
    feature_norm: float  # the root of the mean of max_a |phi(a, c)|^2, or a bound on it
    linear: LinearMap | None = None  # None: features that are not linear in the context
    bounded: bool = False  # feature_norm is the largest |phi(a, c)| there is

    @property
    def dim(self) -> int:
        """Size of a context, d."""
        return self.known.context_mean.shape[-1]

    @property
    def size(self) -> int:
        """Size of theta, m."""
        return self.known.prior_mean.shape[-1]

    @property
    def prior_var(self) -> float:
        """Variance of theta, or the largest one of a prior that is not a multiple of I."""
        return float(np.max(np.linalg.eigvalsh(self.known.prior_cov)))

    @property
    def reward_var(self) -> float:
        """Variance of rewards."""
        if self.known.reward_var is None:
            raise InputError("problem", "rewards of 0 or 1", "Gaussian rewards: the bounds are for these")
        return float(self.known.reward_var)


def linear_case(known: Knowledge, matrices: object) -> Case:
    """The case of phi(a, c) = G(a) c: matrices (..., K, m, d), averaged over leading axes.

    Gaussian contexts have no largest norm, so the paper's Assumption 1, |phi| <= 1, is taken in mean square:
    of phi(a, c), of the expected features that an agent believes in, and of the error between the two. The
    last two are largest in the first round, with all of the bias unknown.

    >>> import unfog
    >>> from unfog.theory.conditions import linear_case
    >>> matrices = [[[0.5]], [[-0.5]]]  # G(a) of two arms
    >>> problem = unfog.GaussianProblem(dim=1, actions=matrices, features="matrix", prior_cov=0.01)
    >>> case = linear_case(problem.knowledge(), matrices)
    >>> round(case.feature_norm, 2)  # the bounds ask for 1 at most
    0.5
    """
    maps = _read_matrices(known, matrices)
    grams = maps.mT @ maps
    traces = np.trace(grams, axis1=-2, axis2=-1).max(-1)
    norms = (np.linalg.norm(maps, ord=2, axis=(-2, -1)) ** 2).max(-1)
    _, gain, cov = known_shrinkage(known)
    wrong = gain @ known.bias_cov @ gain.T
    spreads = known.context_cov, gain @ known.context_cov + wrong, cov + wrong
    square = norms.mean() * (max(map(np.trace, spreads)) + known.context_mean @ known.context_mean)
    gram = grams.sum(-3).reshape(-1, *grams.shape[-2:]).mean(0)
    features = LinearMap(gram, float(traces.mean()), float(norms.mean()), float(norms.max()))
    return Case(known, maps.shape[-3], float(np.sqrt(square)), features)


def _read_matrices(known: Knowledge, matrices: object) -> Array:
    """The matrix G(a) of every arm, checked."""
    m, d = known.prior_mean.shape[-1], known.context_mean.shape[-1]
    maps = numbers(matrices)
    if maps is None or maps.ndim < 3 or maps.shape[-2:] != (m, d) or 0 in maps.shape:
        what = repr(matrices)[:80] if maps is None else f"an array of shape {maps.shape}"
        raise InputError("matrices", what, f"finite numbers of shape (..., K, {m}, {d}), K >= 1")
    return maps


class Condition(NamedTuple):
    """One thing a bound asks, where it holds, and what was found instead.

    >>> import unfog
    >>> from unfog.theory.conditions import linear_case, small_features
    >>> matrices = [[[0.5]], [[-0.5]]]  # G(a) of two arms
    >>> problem = unfog.GaussianProblem(dim=1, actions=matrices, features="matrix", prior_cov=0.01)
    >>> case = linear_case(problem.knowledge(), matrices)
    >>> condition = small_features(case)
    >>> condition.asks, bool(condition.holds), condition.actual
    ('Assumption 1: |phi| <= 1', True, 'root mean square 0.5')
    """

    asks: str
    holds: NDArray[np.bool_]  # of the shape of the horizons, or ()
    actual: str


def narrow(case: Case, horizon: Array) -> Condition:
    """Theta's prior is narrow for the horizon."""
    ratio = case.prior_var / case.reward_var
    most = _pick_horizon(horizon, ratio > case.dim / horizon * _SLACK)
    holds = ratio <= case.dim / horizon * _SLACK
    return Condition("lambda/sigma^2 <= d/T", holds, f"{ratio:.4g} > {case.dim}/{most:.0f}")


def long(case: Case, horizon: Array) -> Condition:
    """There are as many rounds as coordinates of a context."""
    least = _pick_horizon(horizon, horizon < case.dim)
    return Condition("d/T <= 1", case.dim <= horizon, f"d = {case.dim}, T = {least:.0f}")


def noisy_rewards(case: Case) -> Condition:
    """Rewards vary as much as theta, or more."""
    ratio = case.prior_var / case.reward_var
    return Condition("lambda/sigma^2 <= 1", np.asarray(ratio <= _SLACK), f"{ratio:.4g}")


def centred_prior(case: Case) -> Condition:
    """The prior of theta is centred, and a multiple of I."""
    cov = case.known.prior_cov
    holds = not case.known.prior_mean.any() and _is_multiple(cov)
    return Condition("theta ~ N(0, lambda I)", np.asarray(holds), "another mean or covariance")


def small_features(case: Case) -> Condition:
    """The paper's Assumption 1: in mean square for linear maps, else of the largest norm, if one is known."""
    size = f"{'largest norm' if case.bounded else 'root mean square'} {case.feature_norm:.4g}"
    known = case.bounded or case.linear is not None
    holds = known and case.feature_norm <= _SLACK
    more = "" if known else "; no largest norm is known"
    return Condition("Assumption 1: |phi| <= 1", np.asarray(holds), size + more)


def linear_features(case: Case) -> Condition:
    """Features are linear in the context."""
    return Condition("phi(a, c) = G(a) c", np.asarray(case.linear is not None), "another feature map")


def square_features(case: Case) -> Condition:
    """Features have the size of a context."""
    return Condition("m = d", np.asarray(case.size == case.dim), f"m = {case.size}, d = {case.dim}")


def isotropic(case: Case) -> Condition:
    """All covariances of the channel are multiples of I."""
    covs = (case.known.context_cov, case.known.noise_cov, case.known.bias_cov)
    holds = all(map(_is_multiple, covs))
    return Condition("Sigma_c, Sigma_n, Sigma_gamma multiples of I", np.asarray(holds), "other covariances")


def isotropic_noise(case: Case) -> Condition:
    """The covariances of noise and bias are multiples of I."""
    holds = _is_multiple(case.known.noise_cov) and _is_multiple(case.known.bias_cov)
    return Condition("Sigma_n, Sigma_gamma multiples of I", np.asarray(holds), "other covariances")


def _is_multiple(cov: Array) -> bool:
    return cov.ndim == 2 and bool(np.allclose(cov, cov[0, 0] * np.eye(len(cov)), rtol=1e-9, atol=0))


def _pick_horizon(horizon: Array, wrong: NDArray[np.bool_]) -> float:
    """A horizon at which a condition fails, or any if it fails at none."""
    return float(np.ravel(horizon[wrong] if wrong.any() else horizon)[0])
