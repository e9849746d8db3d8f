"""Whether errors depend on the truth: the regression of errors on true contexts, which pairs allow.

A channel reads c + bias + n with an n that knows nothing of c. A sensor with a gain reads 0.5 c + n, and so
does one that drags readings towards their mean. Its error is -0.5 c + n and falls with c. So regress errors,

    e = B c + rest,    B_jk the error of coordinate j for a deviation more of coordinate k,

groups taken off both. Where some B_jk is more than `FAR` standard errors from zero, that is said. Of several
standard errors the largest counts. One is HC3, which holds where errors have other spreads at other contexts
(J. S. Long and L. H. Ervin, *Using Heteroscedasticity Consistent Standard Errors in the Linear Regression
Model*). The others are from sums over blocks of rows that follow each other, which are alike where rows are
in the order of time. They help and are no cure: with 300 pairs that keep 0.9 of their distance from the mean
from row to row one right sensor of 20 is noted. So the note speaks of it.
"""

import numpy as np

from unfog.maths.arrays import Array, Ints
from unfog.model import tables

FAR = 4.0  # standard errors; three coordinates that are right: 0.5 % of studies of 30 pairs, 0.1 % of 300
FEW = 10  # pairs for each coordinate, without which nothing is said
BLOCKS = 5, 10, 20  # longer ones for what stays longer
TIME = "(Pairs that stay alike for long can look so by chance.)"


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
    found = [(rest**2).T @ lines**2, *(_in_blocks(rest, lines, number) for number in BLOCKS)]
    return slope, np.sqrt(np.max(found, axis=0))


def _in_blocks(rest: Array, lines: Array, number: int) -> Array:
    """Squared errors of slopes where only so many blocks of rows are draws of their own."""
    blocks = zip(np.array_split(rest, number), np.array_split(lines, number), strict=True)
    found: Array = np.sum([(left.T @ line) ** 2 for left, line in blocks], axis=0)
    return found


def _words(j: int, k: int, slope: float, error: float) -> str:
    if j == k:
        return (
            f"Errors depend on the truth: where that of coordinate {j} moves by 1, the reading moves by"
            f" {1 + slope:.2f} ± {error:.2f}, and 1 is assumed. First turn readings into contexts with"
            f" unfog.model.calibration.affine(noisy, true). {TIME}"
        )
    return (
        f"Errors depend on the truth: that of coordinate {j} moves by {slope:.2f} ± {error:.2f} deviations of"
        f" contexts where coordinate {k} moves by one, and 0 is assumed. {TIME}"
    )
