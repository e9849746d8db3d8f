"""Which numbers of a row are there, as one whole number: rows that lack the same have the same."""

import numpy as np

from unfog.maths.arrays import Bools, Ints

CODED = 40  # numbers of a row whose pattern is told by powers of two


def codes(lost: Bools) -> Ints:
    """A whole number for each pattern of gaps."""
    if lost.shape[1] <= CODED:
        return lost @ (1 << np.arange(lost.shape[1], dtype=np.intp))
    return np.unique(lost, axis=0, return_inverse=True)[1].reshape(-1)
