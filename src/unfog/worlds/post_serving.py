"""Contexts of which a part is read before the arm is chosen."""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from unfog import validation
from unfog.features.base import Context
from unfog.features.per_arm import per_arm
from unfog.maths.arrays import Array, Ints
from unfog.maths.random import generator
from unfog.validation import InputError, Numbers
from unfog.worlds.arms import MOST_ACTIONS, Arms
from unfog.worlds.channel import channel
from unfog.worlds.composed import Composed, Parts, described
from unfog.worlds.payoffs import Noisy
from unfog.worlds.problem import Emission, Truth

MAPS = ("linear", "polynomial")
MOST_DIM = 500
EXACT = 1e-12  # a covariance that stands for none


class Followed(NamedTuple):
    """Contexts (x, z)."""

    mapping: str
    half: float  # h
    weights: Array  # (p, q)  W
    offset: Array  # (q,)  b
    deviation: float  # s

    @property
    def normals(self) -> int:
        """Two make a uniform number, exp(-(x^2 + y^2) / 2); one is for each z."""
        return 2 * self.weights.shape[0] + self.weights.shape[1]

    def draw(self, normals: Array, row: Ints | None) -> Array:  # noqa: ARG002
        """A context."""
        xp, p = normals.__array_namespace__(), self.weights.shape[0]
        uniform = xp.exp(-0.5 * (normals[..., :p] ** 2 + normals[..., p : 2 * p] ** 2))
        x = self.half * (2 * uniform - 1)
        found: Array = xp.concat([x, self.expected(x) + self.deviation * normals[..., 2 * p :]], axis=-1)
        return found

    def expected(self, x: Array) -> Array:
        """The mean of z after x: (..., p) -> (..., q)."""
        xp = x.__array_namespace__()
        f = x if self.mapping == "linear" else x**2
        found: Array = f @ xp.asarray(self.weights, dtype=x.dtype) + xp.asarray(self.offset, dtype=x.dtype)
        return found

    def moments(self) -> tuple[Array, Array]:
        """Mean and covariance of (x, z)."""
        square, p = self.half**2 / 3, self.weights.shape[0]
        linear = self.mapping == "linear"
        mean, variance, shared = (0.0, square, square) if linear else (square, 0.8 * square * square, 0.0)
        cross, inner = shared * self.weights, variance * self.weights.T @ self.weights
        left = self.deviation**2 * np.eye(len(self.offset))
        cov = np.block([[square * np.eye(p), cross], [cross.T, inner + left]])
        return np.concat([np.zeros(p), mean * self.weights.sum(0) + self.offset]), cov


@dataclass(frozen=True, kw_only=True, eq=False)
class PostServingProblem(Composed):
    """Contexts of which a part is read before the arm is chosen, and the rest follows it: c = (x, z).

        x uniform on [-h, h]^p,   z = W'f(x) + b + N(0, s^2),   r = c'theta_a + N(0, sigma^2)

    The synthetic problem of *Follow-ups Also Matter: Improving Contextual Bandits via Post-serving Contexts*
    (C. Wang, Z. Ye, Z. Feng, A. Badanidiyuru and H. Xu), with p = 100, five z, ten arms and h = 10. Of its
    three maps from x to z two are here: `linear`, f(x) = x, and `polynomial`, f(x) = x^2. The paper does not
    say how W, b and theta are drawn, nor how large the noise is: all are standard normal here, W and b once
    for all trials.

    A reading holds x, and z is lost (the mask says so). Agents are told the mean and the covariance of c, as
    everywhere. Regret is against one who knows theta, W and b: z is then expected to be W'f(x) + b. With
    `foretold`, z is read too, by agents that would see everything; the yardstick stays.

    The fields: p is `before`, the number of z `after`, h `half`, s^2 `after_var`, sigma^2 `reward_var`.

    Each arm's theta has independent entries of variance `prior_cov`.
    """

    before: int = 100
    after: int = 5
    actions: int = 10
    mapping: str = "polynomial"
    half: float = 10.0
    after_var: float = 1.0
    reward_var: float = 1.0
    prior_cov: float = 1.0
    foretold: bool = False

    def __post_init__(self) -> None:
        """Check every field."""
        _ = self._parts

    def _compose(self) -> Parts:
        p = validation.count("before", self.before, most=MOST_DIM)
        q = validation.count("after", self.after, most=MOST_DIM)
        arms = validation.count("actions", self.actions, most=MOST_ACTIONS)
        validation.flag("foretold", self.foretold)
        contexts, payoff = self._contexts(p, q), Noisy(validation.positive("reward_var", self.reward_var))
        mean, cov = contexts.moments()
        made = Arms(partial(per_arm, intercept=False), (arms, p + q), np.zeros((arms, p + q)), "normal")
        spread = validation.positive("prior_cov", self.prior_cov)
        laws: dict[str, Numbers] = {"context_mean": mean, "context_cov": cov}
        laws |= {"noise_cov": EXACT, "bias_cov": EXACT}
        blame = "actions", "before", "after"
        known = described(p + q, made.one(), payoff, 0.0, spread, blame=blame, **laws)
        through = channel(self, known)
        if not through.plain:
            raise InputError("channel", "noise of another kind", "none: what is read is read as it is")
        return Parts(known, contexts, through, made, payoff)

    def _contexts(self, p: int, q: int) -> Followed:
        source = generator(0, 0, "post serving")
        weights, offset = source.standard_normal((p, q)), source.standard_normal(q)
        half, mapping = (
            validation.positive("half", self.half),
            validation.one_of("mapping", self.mapping, MAPS),
        )
        return Followed(
            mapping, half, weights, offset, validation.positive("after_var", self.after_var) ** 0.5
        )

    def emit(self, truth: Truth, normals: Array, number: Ints | None = None) -> Emission:
        """A context, of which x is read; the best that can be known of it is what follows x on average."""
        emission, contexts = super().emit(truth, normals, number), self._parts.contexts
        assert isinstance(contexts, Followed)
        context, p = emission.context, self.before
        xp = context.__array_namespace__()
        x, read = context[..., :p], (xp.arange(context.shape[-1]) < p).astype(context.dtype)
        best = Context(
            xp.concat([x, contexts.expected(x)], axis=-1), xp.diag((1 - read) * contexts.deviation**2)
        )
        if self.foretold:
            return emission._replace(best=best)
        known = xp.asarray(self._parts.known.context_mean, dtype=context.dtype)
        mask = xp.broadcast_to(read, context.shape)
        return emission._replace(noisy=xp.where(mask > 0, emission.noisy, known), mask=mask, best=best)
