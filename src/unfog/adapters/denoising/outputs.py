"""What is handed on of each context: its mean, its mean and deviations, or draws of it side by side."""

from collections.abc import Callable, Iterable

import numpy as np

from unfog.adapters.denoising.rows import Block
from unfog.maths.arrays import Array
from unfog.maths.gaussian import singular_root


def endings(output: str, draws: int) -> tuple[str, ...]:
    """What is behind the names of columns, copy by copy."""
    if output == "draws":
        return tuple(f"_draw{i}" for i in range(1, draws + 1))
    return ("",) if output == "mean" else ("", "_sd")


def written(
    output: str, found: Iterable[Block], shape: tuple[int, int], normals: Callable[[], Array]
) -> Array:
    """The columns (n, d copies); `normals` gives standard normals (n, draws, d), where they are needed."""
    rows, dim = shape
    if output == "mean":
        means = np.empty(shape)
        for block in found:
            means[block.rows] = block.mean
        return means
    if output == "mean+sd":
        both = np.empty((rows, 2 * dim))
        for block in found:
            both[block.rows, :dim] = block.mean
            both[block.rows, dim:] = np.sqrt(np.maximum(np.linalg.diagonal(block.cov), 0.0))
        return both
    drawn = normals()
    for block in found:
        root = singular_root(block.cov)
        drawn[block.rows] = block.mean[:, None] + drawn[block.rows] @ root.mT
    return drawn.reshape(rows, -1)
