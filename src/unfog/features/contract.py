"""What a feature map phi(a, c) must offer, and a belief about a context.

A map holds the actions; shown a belief about the context it yields a `Design`, which knows the expected
features psi(a) = E[phi(a, c)] of every arm without building the (K, m) matrix where structure avoids it.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

from unfog.maths.arrays import Array, Ints
from unfog.maths.gaussian import Gaussian
from unfog.model.rewards import Laws


class Context(NamedTuple):
    """A Gaussian belief about a context; a known context has covariance zero.

    >>> import numpy as np
    >>> import unfog
    >>> belief = unfog.features.Context(np.array([1.0, -1.0]), 0.5 * np.eye(2))
    >>> belief.mean.tolist()
    [1.0, -1.0]
    """

    mean: Array  # (..., d)
    cov: Array  # (..., d, d), its batch axes may be absent when all trials share it


class Design(Protocol):
    """The expected features of all arms in one round.

    >>> import numpy as np
    >>> import unfog
    >>> features = unfog.features.product(np.array([[1.0, 0.0], [1.0, 2.0]]))
    >>> design = features.at(np.array([3.0, -1.0]))
    >>> design.scores(np.array([1.0, 1.0])).tolist()  # of the two arms, with theta = (1, 1)
    [3.0, 1.0]
    """

    def scores(self, theta: Array) -> Array:
        """psi(a)'theta of every arm: theta (..., m) -> (..., K)."""
        ...

    def row(self, arm: Ints) -> Array:
        """psi(arm): (...,) -> (..., m)."""
        ...

    def variances(self, belief: Gaussian) -> Array:
        """Variance of every arm's score under a belief about theta: (..., K)."""
        ...

    def covariance(self, arm: Ints) -> Array:
        """Cov(phi(arm, c)) under the belief about the context: (..., m, m)."""
        ...

    def context_variance(self, belief: Gaussian, arm: Ints) -> Array:
        """E[theta'Cov(phi(arm, c))theta] under a belief about theta: (...,)."""
        ...

    def context_slope(self, theta: Array, arm: Ints) -> Array:
        """Cov(phi(arm, c)) theta, half the gradient of theta'Cov(phi)theta: theta (..., m) -> (..., m)."""
        ...

    def laws(self, theta: Array) -> Laws:
        """The laws of the scores phi(a, c)'theta under the belief about the context: theta (..., m)."""
        ...


class FeatureMap(Protocol):
    """phi(a, c) for one set of actions.

    >>> import numpy as np
    >>> import unfog
    >>> features = unfog.features.product(np.ones((4, 2)))
    >>> features.size, features.arms
    (2, 4)
    """

    @property
    def size(self) -> int:
        """How many features: m."""
        ...

    @property
    def arms(self) -> int:
        """How many actions: K."""
        ...

    @property
    def cells(self) -> int:
        """Numbers that one design keeps in memory for a moment, beyond a few for each arm."""
        ...

    def design(self, context: Context) -> Design:
        """The expected features of every arm under this belief about the context."""
        ...

    def at(self, context: Array) -> Design:
        """The features of every arm at a known context (..., d)."""
        ...

    def over_rounds(self) -> "FeatureMap":
        """The same map with a singleton axis for rounds before K, to score a block of rounds at once."""
        ...


@runtime_checkable
class Linear(Protocol):
    """What a map linear in the context has besides: phi(a, c) = G(a) c.

    >>> import numpy as np
    >>> import unfog
    >>> features = unfog.features.product(np.array([[1.0, 2.0]]))
    >>> features.matrices.tolist()
    [[[1.0, 0.0], [0.0, 2.0]]]
    """

    @property
    def matrices(self) -> Array:
        """G(a) of every arm: (..., K, m, d)."""
        ...


MapBuilder: TypeAlias = Callable[[Array], FeatureMap]
"""Turns actions (..., K, p) into a feature map."""
