"""Whether errors depend on the truth: the regression of errors on true contexts, which pairs allow.

A channel reads c + bias + n with an n that knows nothing of c. A sensor with a gain reads 0.5 c + n, and so
does one that drags readings towards their mean. Its error is -0.5 c + n and falls with c. So regress errors,

    e = B c + rest,    B_jk the error of coordinate j for a deviation more of coordinate k,

groups taken off both. Where some B_jk is more than `FAR` standard errors from zero, that is said. These are
the larger of two. The first is HC3, which holds where errors have other spreads at other contexts (J. S. Long
and L. H. Ervin, *Using Heteroscedasticity Consistent Standard Errors in the Linear Regression Model*). The
second is from sums over blocks of rows that follow each other, which are alike where rows are in the order of
time: without it every slow sensor would look as if it had a gain.
"""

import numpy as np

from unfog.maths.arrays import Array, Ints
from unfog.model import tables

FAR = 4.0  # standard errors; of 1,000 sensors that are right, with 3 coordinates, about one is noted
FEW = 10  # pairs for each coordinate, without which nothing is said
BLOCKS = 20


def dependence(contexts: Array, errors: Array, labels: Ints) -> tuple[str, ...]:
    """What to note of errors (n, d) beside their true contexts (n, d), n labels of groups."""
    d = contexts.shape[1]
    away, within = (part - tables.group_means(part, labels)[labels] for part in (contexts, errors))
    spread = np.sqrt((away**2).mean(axis=0))
    if len(away) < FEW * d + labels.max() or not spread.all():
        return ()
    slope, error = _slopes(away / spread, within / spread, 1 / np.bincount(labels)[labels])
    far = np.argwhere(np.abs(slope) > FAR * error)
    return tuple(_words(int(j), int(k), slope[j, k], error[j, k]) for j, k in far)


def _slopes(away: Array, within: Array, own: Array) -> tuple[Array, Array]:
    """B and its standard errors, (d, d) each; `own` is what the mean of its group gives a row of leverage."""
    gram = away.T @ away
    if np.linalg.eigvalsh(gram / len(away))[0] < tables.SINGULAR:  # contexts stay the same in each group
        return np.zeros_like(gram), np.ones_like(gram)
    lines = away @ np.linalg.inv(gram)
    slope = within.T @ lines
    room = 1 - own - (lines * away).sum(axis=1)
    alone = room < tables.SINGULAR  # a row that decides its own fit says nothing
    rest = np.where(alone[:, None], 0.0, within - away @ slope.T) / np.where(alone, 1.0, room)[:, None]
    each = (rest**2).T @ lines**2
    blocks = zip(np.array_split(rest, BLOCKS), np.array_split(lines, BLOCKS), strict=True)
    together = sum((left.T @ line) ** 2 for left, line in blocks)
    return slope, np.sqrt(np.maximum(each, together))


def _words(j: int, k: int, slope: float, error: float) -> str:
    if j == k:
        return (
            f"Errors depend on the truth: where that of coordinate {j} moves by 1, the reading moves by"
            f" {1 + slope:.2f} ± {error:.2f}, and 1 is assumed. First turn readings into contexts with"
            " unfog.model.calibration.affine(noisy, true)."
        )
    return (
        f"Errors depend on the truth: that of coordinate {j} moves by {slope:.2f} ± {error:.2f} deviations of"
        f" contexts where coordinate {k} moves by one, and 0 is assumed."
    )
