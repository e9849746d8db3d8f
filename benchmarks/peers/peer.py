"""What every adapter looks like: a module `<row>_peer.py` that says what it times, and makes a player.

An adapter turns the feature rows into its library's own form in `make`, before the clock starts, so that what
is timed is the library deciding and learning. Rewards reach it one at a time, through `update` alone.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Peer(Protocol):
    """A library in the middle of a run."""

    def decide(self, t: int) -> int:
        """The arm for round t."""
        ...

    def update(self, t: int, arm: int, reward: float) -> None:
        """Take in the reward of the arm that was played in round t."""
        ...


class Adapter(Protocol):
    """A module with one row of the table."""

    DISTRIBUTION: str  # the package's name in the registry
    MODEL: str  # what of the library is used
    PARAMETERS: str  # shared, disjoint, ...: how the arms' parameters hang together

    def make(self, features: Array, seed: int) -> Peer:
        """A fresh player for these rows: features (T, K, m)."""
        ...


def contexts(features: Array) -> Array:
    """What a library with one context a round is given: the first arm's row, (T, m).

    Under the feature map of `problem.py` the mean reward of *every* arm is linear in that row, so a model of
    its own for each arm is well specified, only with K times as many parameters.
    """
    return np.ascontiguousarray(features[:, 0])
