"""What a learner is shown of a round: the arm, and what was believed when it was chosen.

A reward hangs on phi(a, c), of which the agent knows the law alone. Learners ask for as much of it as they
use, and it is worked out when they ask: the expected features x, their covariance, what not knowing the
context adds to a reward's variance, E[theta'Cov(phi)theta], or the slope of that, Cov(phi)E[theta].
"""

from typing import Any, NamedTuple, cast

from unfog.features import Context, Design, FeatureMap
from unfog.features.base import Liftable
from unfog.maths.arrays import Array, Ints
from unfog.maths.gaussian import Belief


class Evidence(NamedTuple):
    """A round as a learner sees it; where the true context is known, the design is that of this context.

    >>> import numpy as np
    >>> import unfog
    >>> from unfog.agents.evidence import Evidence
    >>> from unfog.features import Context
    >>> from unfog.maths.gaussian import Gaussian
    >>> features = unfog.features.product(np.array([[1.0], [-1.0]]))
    >>> design = features.design(Context(np.array([2.0]), np.array([[0.5]])))
    >>> seen = Evidence(features, design, Gaussian(np.array([0.5]), np.eye(1)), arm=np.array(1))
    >>> seen.row().tolist(), seen.covariance().tolist()
    ([-2.0], [[0.5]])
    """

    features: FeatureMap
    design: Design
    belief: Belief  # about theta
    arm: Ints  # (...,)
    unbiased: Array | None = None  # (..., d)  mean of the context, were the bias zero, for lifted rows
    hidden: Array | None = None  # (...,)  `context_variance`, where it is worked out already
    chosen: Array | None = None  # (..., m)  `row`, likewise
    context: Context | None = None  # what was believed of it, for learners that ask how far it shifts
    told: Array | None = None  # (...,)  of the choice, what the learner `hears` (agents/parts.py)

    def row(self) -> Array:
        """The expected features of the arm, (..., m)."""
        return self.design.row(self.arm) if self.chosen is None else self.chosen

    def covariance(self) -> Array:
        """Cov(phi), (..., m, m)."""
        return self.design.covariance(self.arm)

    def context_variance(self) -> Array:
        """E[theta'Cov(phi)theta]: what not knowing the context adds to the variance of a reward, (...,)."""
        if self.hidden is not None:
            return self.hidden
        fitting: Any = self.belief  # a belief in blocks comes with a design in blocks
        return self.design.context_variance(fitting, self.arm)

    def expected_reward(self, noise: Array) -> tuple[Array, Array]:
        """Mean and variance of a reward, (...,) each; `noise` is its variance given theta."""
        row = self.row()
        xp = row.__array_namespace__()
        return xp.vecdot(row, self.belief.centre), noise + self.belief.variance(row)

    def weighed(self) -> "Evidence":
        """With its row and its `context_variance` worked out, for those who ask more than once."""
        return self._replace(hidden=self.context_variance(), chosen=self.row())

    def known_to_be(self, design: Design) -> "Evidence":
        """With what is known of the context by now."""
        return self._replace(design=design, hidden=None, chosen=None, context=None)

    def context_slope(self) -> Array:
        """Cov(phi)E[theta], half the slope of theta'Cov(phi)theta at the mean, (..., m)."""
        return self.design.context_slope(self.belief.centre, self.arm)

    def lifted_row(self) -> Array:
        """The row that waits for the bias, (..., q): features/base.py."""
        if self.unbiased is None:
            raise ValueError("a lifted row needs a denoiser that rewinds")
        return cast(Liftable, self.features).lift(self.unbiased, self.arm)

    def shift(self) -> tuple[Context, Array]:
        """What was believed of the context, and of how far the bias has moved its mean, (..., d)."""
        if self.unbiased is None or self.context is None:
            raise ValueError("a shift needs a denoiser that rewinds")
        return self.context, self.unbiased - self.context.mean


class Known(Evidence):
    """A round whose context is known for certain: no variance comes of it."""

    def context_variance(self) -> Array:
        """None."""
        xp = self.arm.__array_namespace__()
        nothing: Array = xp.zeros(self.arm.shape, dtype=self.belief.root.dtype)
        return nothing
