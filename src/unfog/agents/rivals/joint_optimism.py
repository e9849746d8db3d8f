"""Optimism about theta and about the context at once."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from unfog import validation
from unfog.agents.choose.largest import Largest
from unfog.agents.parts import View
from unfog.features import Context
from unfog.features.base import Sloped
from unfog.maths.arrays import Array, Ints, matvec
from unfog.maths.gaussian import Belief, Gaussian

MOST_STEPS = 100


@dataclass(frozen=True, kw_only=True)
class JointOptimism(Largest):
    """Optimism about theta and about the context at once: poLinUCB's rule, and its search.

        argmax_a max_z max_w phi(a, z)'w    with z in an ellipsoid around zhat and w in one around theta_hat

    Given z the best w is theta_hat + S psi / |psi|_S with S the covariance of the belief, which has the width
    of the ellipsoid in it. Given w the best z lies where the score's slope points: exactly so for maps linear
    in z, to first order for others. The two are found in turns, `steps` of them. Each turn raises the score
    of a linear map. There may be two tops: the search goes once where the slope at zhat points and once the
    other way, and the higher end counts. A few turns suffice (tests compare with a search of the whole ball).
    The paper says what is to be maximised and not how: that it is in turns is ours.

    Settings
    --------
    `alpha` scales both ellipsoids, `steps` is how many turns the search takes.
    """

    alpha: float = 1.0
    steps: int = 3

    name = "joint_optimism"
    note = "the best arm of the best theta and the best context that may be"

    def __post_init__(self) -> None:
        """Check the settings."""
        validation.not_negative("alpha", self.alpha)
        validation.count("steps", self.steps, 0, MOST_STEPS)

    def bounds(self, view: View) -> Array:
        """The best score of every arm that may be chosen: (..., K)."""
        features, (mean, cov) = view.features, view.context
        if features is None or not isinstance(features, Sloped):
            raise ValueError("features: joint_optimism needs a map with slopes")
        xp = mean.__array_namespace__()
        reach = xp.zeros_like(mean) if view.reach is None else view.reach
        arm = xp.broadcast_to(xp.arange(features.arms), (*mean.shape[:-1], features.arms))
        ball = Ball(
            features.over_rounds(), arm, mean[..., None, :], cov[..., None, :, :], reach[..., None, :]
        )
        ends = [self._search(view.belief, ball, way) for way in (1.0, -1.0)]
        return view.among(xp.maximum(*ends))

    def _search(self, belief: Belief, ball: "Ball", way: float) -> Array:
        """A top of every arm's score: (..., K)."""
        xp, theta = ball.mean.__array_namespace__(), belief.centre[..., None, :]
        at, room = xp.broadcast_to(ball.mean, (*ball.arm.shape, ball.mean.shape[-1])), self.alpha * ball.reach
        for turn in range(self.steps):
            ahead, deviation = toward(belief, ball.rows(at))
            hope = theta + self.alpha * ahead / _positive(deviation)[..., None]
            push = room * ball.slope(at, hope)
            length = _positive(xp.sqrt(xp.vecdot(push, push)))[..., None]
            at = ball.mean + (way if turn == 0 else 1.0) * room * push / length
        rows = ball.rows(at)
        found: Array = (rows * theta).sum(-1) + self.alpha * toward(belief, rows)[1]
        return found


class Ball(NamedTuple):
    """Where the context of every arm may be; each arm is asked at a context of its own."""

    many: Any  # the map, for as many contexts as there are arms
    arm: Ints  # (..., K)
    mean: Array  # (..., 1, d)
    cov: Array  # (..., 1, d, d)  of a context given its mean
    reach: Array  # (..., 1, d)

    def rows(self, at: Array) -> Array:
        """The expected features of every arm at contexts (..., K, d): (..., K, m)."""
        found: Array = self.many.design(Context(at, self.cov)).row(self.arm)
        return found

    def slope(self, at: Array, theta: Array) -> Array:
        """That of every arm's score, each for a theta of its own (..., K, m): (..., K, d)."""
        found: Array = self.many.slope(at, theta, self.arm)
        return found


def _positive(x: Array) -> Array:
    """With one for zero: what is divided by it is zero, too."""
    xp = x.__array_namespace__()
    return xp.where(x > 0, x, xp.ones_like(x))


def toward(belief: Belief, rows: Array) -> tuple[Array, Array]:
    """Cov row (..., K, m) and the deviation of row'theta (..., K), for one row an arm: (..., K, m).

    A belief in blocks has one for each arm, outside of which the arm's row is zero.
    """
    xp = rows.__array_namespace__()
    if isinstance(belief, Gaussian):
        half = rows @ belief.root
        return half @ belief.root.mT, xp.sqrt(xp.vecdot(half, half))
    number, size = belief.root.shape[-3:-1]
    place = xp.eye(number, dtype=rows.dtype)[..., None]
    own = (rows.reshape(*rows.shape[:-1], number, size) * place).sum(-2)
    half = matvec(belief.root.mT, own)
    ahead = place * matvec(belief.root, half)[..., None, :]
    return ahead.reshape(*ahead.shape[:-2], -1), xp.sqrt(xp.vecdot(half, half))
