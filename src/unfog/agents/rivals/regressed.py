"""Learn what follows a reading from pairs."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from unfog import validation
from unfog.agents.parts import Bounds, Denoiser, Privilege
from unfog.channel.knowledge import Knowledge
from unfog.features import Context
from unfog.maths.arrays import Array, matvec
from unfog.validation import InputError

MOST_POWERS = 9


class State(NamedTuple):
    """A regression of several numbers on the same ones."""

    seen: Array  # (...,)  pairs
    root: Array  # (..., p, p)  of X^-1
    weights: Array  # (..., p, q)  Phi
    scatter: Array  # (..., q, q)  l I and products of residuals


@dataclass(frozen=True, kw_only=True)
class Regressed(Denoiser, Bounds):
    """Learn what follows a reading from pairs: ridge regression of true contexts on what was read before
    them.

        zhat(x) = Phi'f(x),   Phi = X^-1 sum f(x) z',   X = l I + sum f(x) f(x)',
        f(x) = [1, x, ..., x^powers]
        |zhat(x) - E[z | x]| <= e_t = C_0 |f(x)|_{X^-1} ln(t / delta)

    The empirical risk minimiser and the ball of *Follow-ups Also Matter* (rivals/polinucb.py), with the rate
    1/2 of linear functions. X^-1 is kept as a square root by the rank-one update of maths/gaussian.py. The
    covariance of z given x is the mean of products of residuals and of one l I; they add up by the exact
    recursion (z - zhat)(z - zhat)' / (1 + f'X^-1 f). Features that are not linear in z are expected under
    N(zhat, that), as section 6.3 of the paper would have it. Nothing is told.

    Of a context the first `before` coordinates may be x itself, read as they are; the others are z then. With
    `before` zero the whole reading is x, and the whole context z.

    Settings
    --------
    `before` and `powers` as above, `ridge` is l, `constant` C_0; `delta` the ball's chance.

    The ball holds what it should with probability 1 - delta.
    """

    before: int = 0
    powers: int = 1
    ridge: float = 1.0
    constant: float = 1.0
    delta: float = 0.05

    name = "regressed"
    note = "learns from pairs what true contexts follow a reading, and how far off that may be"
    squares = 4

    def __post_init__(self) -> None:
        """Check the settings."""
        validation.count("before", self.before, 0)
        validation.count("powers", self.powers, 1, MOST_POWERS)
        validation.positive("ridge", self.ridge)
        validation.not_negative("constant", self.constant)
        check_chance("delta", self.delta)

    @property
    def sees_context(self) -> bool:
        """It learns from pairs."""
        return True

    def setup(self, known: Knowledge, privilege: Privilege | None) -> Array:
        """Nothing is told: a zero for each coordinate says how many there are."""
        xp, dim = known.context_mean.__array_namespace__(), known.context_mean.shape[0]
        if self.before >= dim:
            raise InputError("before", self.before, f"less than {dim}, the dimension of contexts")
        return xp.zeros_like(known.context_mean)

    def start(self, parameters: Array) -> State:
        """No pair yet."""
        dim = parameters.shape[0]
        p, q = 1 + self.powers * (self.before or dim), dim - self.before
        return State(np.zeros(()), np.eye(p) / self.ridge**0.5, np.zeros((p, q)), self.ridge * np.eye(q))

    def predict(self, parameters: Array, state: State, noisy: Array) -> Context:
        """N(zhat, C), and x as it was read."""
        xp = noisy.__array_namespace__()
        mean = matvec(state.weights.mT, self._basis(noisy))
        cov = state.scatter / (state.seen + 1)[..., None, None]
        if not self.before:
            return Context(mean, cov)
        sure = xp.zeros((*cov.shape[:-1], self.before), dtype=cov.dtype)
        above = xp.zeros((*cov.shape[:-2], self.before, parameters.shape[0]), dtype=cov.dtype)
        whole = xp.concat([above, xp.concat([sure, cov], axis=-1)], axis=-2)
        return Context(xp.concat([noisy[..., : self.before], mean], axis=-1), whole)

    def reach(self, parameters: Array, state: State, noisy: Array) -> Array:
        """e_t for every coordinate of z, and zero for those of x."""
        xp = noisy.__array_namespace__()
        half = matvec(state.root.mT, self._basis(noisy))
        length = xp.sqrt(xp.vecdot(half, half))
        radius = self.constant * length * xp.log((state.seen + 1) / self.delta)
        after = xp.arange(parameters.shape[0]) >= self.before
        return radius[..., None] * after.astype(noisy.dtype)

    def update(self, parameters: Array, state: State, noisy: Array, context: Any) -> State:
        """With one more pair."""
        xp, row = noisy.__array_namespace__(), self._basis(noisy)
        half = matvec(state.root.mT, row)
        total = 1 + xp.vecdot(half, half)
        gain = matvec(state.root, half)
        off = context[..., self.before :] - matvec(state.weights.mT, row)
        moved = gain[..., :, None] * (off / total[..., None])[..., None, :]
        scaled = half / (total + xp.sqrt(total))[..., None]
        return State(
            state.seen + 1,
            state.root - gain[..., None] * scaled[..., None, :],
            state.weights + moved,
            state.scatter + off[..., :, None] * (off / total[..., None])[..., None, :],
        )

    def _basis(self, noisy: Array) -> Array:
        """f(x), (..., p)."""
        xp = noisy.__array_namespace__()
        x = noisy[..., : self.before or noisy.shape[-1]]
        powers = [x**power for power in range(1, self.powers + 1)]
        found: Array = xp.concat([xp.ones_like(x[..., :1]), *powers], axis=-1)
        return found


def check_chance(field: str, value: object) -> None:
    """A probability of being wrong."""
    if not 0 < validation.positive(field, value) < 1:
        raise InputError(field, value, "a probability, more than 0 and less than 1")
