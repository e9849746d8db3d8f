"""MaxMinUCB and MinWD: the context that is seen is imperfect, the true one comes after the reward.

J. Yang and S. Ren, *Robust Bandit Learning with Imperfect Context*. Both rules are known for certain (the
abstract says them). Their simulations choose between edge data centres with a Gaussian kernel; we do not know
their numbers well enough to have their problem here.
"""

from dataclasses import dataclass
from math import pi
from statistics import NormalDist

import numpy as np

from unfog import validation
from unfog.agents.agent import Agent
from unfog.agents.base import Chooser, Denoiser, Privilege, View
from unfog.agents.baselines.base import Baseline
from unfog.agents.baselines.linear_ucb import Ellipsoid
from unfog.agents.choose.greedy import Largest, among_largest
from unfog.agents.choose.ucb import moments
from unfog.channel.knowledge import Knowledge
from unfog.features import Context
from unfog.maths.arrays import Array

PAPER = "Yang and Ren, Robust Bandit Learning with Imperfect Context"
DELTA = 0.1  # how probable it is that theta is ever outside its ellipsoid
LEVEL = 0.9  # the quantile of the errors' length that is the default radius


@dataclass(frozen=True, kw_only=True)
class Imperfect(Denoiser):
    """Take the context for what was read, give or take the channel's errors.

        |c - chat| <= Delta

    The true context comes after the reward. J. Yang and S. Ren, *Robust Bandit Learning with Imperfect
    Context*. It has no settings.
    """

    name = "imperfect"
    note = "the noisy context, and how large errors are told to be; sees true contexts afterwards"
    sees_context = True

    def setup(self, known: Knowledge, privilege: Privilege | None) -> Array:
        """The covariance of n + gamma."""
        return known.noise_cov + known.bias_cov

    def predict(self, parameters: Array, state: tuple[()], noisy: Array) -> Context:
        """The centre of the ball."""
        return Context(noisy, parameters)


@dataclass(frozen=True, kw_only=True)
class MaxMin(Largest):
    """MaxMinUCB: the arm that is best in the worst context that the reading leaves possible.

        argmax_a min_{|c - chat| <= Delta} U(a, c)
        U(a, c) = phi(a, c)'theta_hat + h_t |phi(a, c)|_{V^-1}
        h_t = R sqrt(2 ln(det V^.5 det(l I)^-.5 / delta)) + sqrt(l) S

    J. Yang and S. Ren, *Robust Bandit Learning with Imperfect Context*. U is an upper bound of the mean
    reward, learnt from true contexts by ridge regression in the features: theirs, a kernel's, with the kernel
    phi(a, c)'phi(a', c'). The ball is searched at 8 d + 1 points: its centre and, in 4 d directions, the
    points at Delta and half of it. Directions are those of the axes and of another orthonormal basis, of
    cosines, to and fro. What is worst may lie between these points, and is then not found.

    It must be told Delta (`radius`). Unless it is, Delta is the length that errors n + gamma exceed once in
    ten times, as told: squared lengths are taken for multiples of a chi-square with the right mean and
    variance, by the quantiles of E. B. Wilson and M. M. Hilferty. That default is ours. R and S are needed
    for h_t, which is from memory (medium), and so are l = 1 and delta = 0.1 (low).

    Settings
    --------
    How many widths are added, 1 as published; `radius` is Delta, 0 for that of errors.
    """

    alpha: float = 1.0
    radius: float = 0.0

    name = "maxmin"
    note = "the best of the worst contexts near by"
    cost = 8.0

    def __post_init__(self) -> None:
        """Check the settings."""
        validation.not_negative("alpha", self.alpha)
        validation.not_negative("radius", self.radius)

    def bounds(self, view: View) -> Array:
        """The worth of each arm that may be chosen in its worst context: (..., K)."""
        xp, centre = view.context.mean.__array_namespace__(), view.context.mean
        radius, worst = self._radius(view)[..., None], self._worth(view, centre)
        for offset in offsets(centre.shape[-1]):  # one by one: all at once would take much memory
            worth = self._worth(view, centre + radius * xp.asarray(offset, dtype=centre.dtype))
            worst = xp.minimum(worst, worth)
        return view.mask(worst)

    def _worth(self, view: View, context: Array) -> Array:
        """What every arm is worth in one context (..., d)."""
        if view.features is None:
            raise ValueError(f"{self.name}: what another context would give is for the feature map to say")
        mean, variance = moments(view._replace(design=view.features.at(context)))
        xp = mean.__array_namespace__()
        return self.judged(view, mean + self.alpha * xp.sqrt(variance))

    def judged(self, view: View, bounds: Array) -> Array:
        """The worth of every arm in a context, from all their bounds (..., K) there: its own."""
        return bounds

    def _radius(self, view: View) -> Array:
        """Delta, (...,)."""
        xp = view.context.cov.__array_namespace__()
        if self.radius:
            return xp.asarray(self.radius, dtype=view.context.cov.dtype)
        return length_quantile(view.context.cov, LEVEL)


@dataclass(frozen=True, kw_only=True)
class MinWd(MaxMin):
    """MinWD: the arm that falls least short of the best one, in the worst context that is possible.

        argmin_a max_{|c - chat| <= Delta} [max_a' U(a', c) - U(a, c)]
        U(a, c) = phi(a, c)'theta_hat + h_t |phi(a, c)|_{V^-1}
        h_t = R sqrt(2 ln(det V^.5 det(l I)^-.5 / delta)) + sqrt(l) S

    J. Yang and S. Ren, *Robust Bandit Learning with Imperfect Context*. The bound U and how the ball is
    searched are those of `MaxMin`.

    Settings
    --------
    Those of `MaxMin`.
    """

    name = "minwd"
    note = "the least loss in the worst context near by"

    def judged(self, view: View, bounds: Array) -> Array:
        """How far it is below the best that may be chosen; zero where that is rounding."""
        xp, available = bounds.__array_namespace__(), view.mask(bounds)
        return xp.where(among_largest(available), 0.0, bounds - available.max(-1)[..., None])


def length_quantile(cov: Array, level: float) -> Array:
    """An approximate quantile, at this level, of the length of N(0, cov): (..., d, d) -> (...,)."""
    xp = cov.__array_namespace__()
    mean, squares = xp.linalg.trace(cov), (cov**2).sum((-2, -1))
    share = 2 * squares / (9 * mean**2)  # 2 / (9 f), with f = mean^2 / squares degrees of freedom
    length: Array = xp.sqrt(mean * (1 - share + NormalDist().inv_cdf(level) * xp.sqrt(share)) ** 3)
    return length


def offsets(dim: int) -> Array:
    """The points of the unit ball that are searched besides its centre: (8 d, d)."""
    index = np.arange(dim)
    cosines = np.cos(pi / dim * (index + 0.5) * index[:, None])
    cosines = cosines / np.linalg.norm(cosines, axis=1, keepdims=True)
    directions = np.concat([np.eye(dim), cosines])
    return np.concat([size * directions for size in (-1.0, -0.5, 0.5, 1.0)])


def _row(name: str, chooser: Chooser, summary: str) -> Baseline:
    parts, binary_learner = (
        (Imperfect(), Ellipsoid(delta=DELTA), chooser),
        Ellipsoid(delta=DELTA, zero_one=True),
    )
    return Baseline(
        Agent(name, *parts, binary_learner=binary_learner, summary=summary, reference=PAPER),
        needs="how far a noisy context may be from the true one; the noise of rewards, how long theta is",
        sees="noisy contexts, and true ones after the rewards",
        tuned="alpha",
        grid=(0.01, 0.03, 0.1, 0.3, 0.6, 1.0),
        sure="medium",
    )


IMPERFECT = [
    _row("maxmin", MaxMin(), "the arm whose upper bound is largest in the worst context near the noisy one"),
    _row("minwd", MinWd(), "the arm that loses least to the best in the worst context near the noisy one"),
]
