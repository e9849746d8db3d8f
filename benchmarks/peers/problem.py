"""The work: the feature map of the paper, phi(a, c) = [a^2, c^2, a c], with contexts seen as they are.

Actions, contexts and theta are standard normal, m = 3d, and r = phi'theta + N(0, 1). Prior and noise have
unit variance on purpose: it is what every library can be told, some of them nothing else.
"""

from typing import NamedTuple

import numpy as np

from benchmarks.peers.peer import Array


class Problem(NamedTuple):
    """Everything drawn beforehand."""

    features: Array  # (T, K, m)
    rewards: Array  # (T, K), noise included


def draw(*, rounds: int, arms: int, size: int, seed: int) -> Problem:
    """A problem of this size; `size` is m, a multiple of three."""
    dim, rest = divmod(size, 3)
    if rest:
        raise ValueError(f"m = {size}: a multiple of three is needed")
    rng = np.random.default_rng(seed)
    theta = rng.standard_normal(size)
    shape = (rounds, arms, dim)
    action = np.broadcast_to(rng.standard_normal((arms, dim)), shape)
    context = np.broadcast_to(rng.standard_normal((rounds, 1, dim)), shape)
    features = np.concatenate([action**2, context**2, action * context], -1)
    return Problem(features, features @ theta + rng.standard_normal((rounds, arms)))
