"""Tables of readings and true contexts, and their means and covariances with standard errors.

Readings and true contexts are matrices of numbers, NaN where a value is missing (`unfog._table.matrix`).
`Design` says which of the designs a study has: what it assumes, and what no such study can know. The
four are those of the literature on measurement error (R. J. Carroll, D. Ruppert, L. A. Stefanski and C. M.
Crainiceanu, *Measurement Error in Nonlinear Models*, section 1.8; in R the package mecor, by L. Nab): pairs
for all, readings repeated, the truth for some, an estimate from elsewhere.

The standard errors of means and covariances hold whatever the law of the numbers. An estimate is, but for
small terms, a mean of what each row (or context, or group) contributes to it. So with contributions p_i,
about their mean,

    standard error^2 = sum_i p_i^2 / (n (n - 1)),

the infinitesimal jackknife (B. Efron, *The Jackknife, the Bootstrap and Other Resampling Plans*, chapter 6).
Heavy tails make it larger, as they should; a formula for Gaussian numbers would miss them. For a covariance
within groups of m rows, each deviation is too small because the group's mean is subtracted, and so counts
m / (m - 1). Rows that are correlated in time carry less information than it seems: errors are then too small.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unfog import _table
from unfog._frames import is_frame, names_of, select
from unfog._table import matrix
from unfog.maths.arrays import Array, Bools, Ints
from unfog.maths.statistics import standard_error
from unfog.validation import InputError

SINGULAR = 1e-12  # smallest eigenvalue of a correlation matrix that is not taken for zero
TWO_MATRICES = "two matrices (n, d) of numbers of the same shape; NaN where a value is missing"


class Rows(NamedTuple):
    """Pairs without a missing value."""

    other: Array  # (n, d)
    true: Array  # (n, d)
    kept: Bools  # which of the original rows these are


class Errors(NamedTuple):
    """Standard errors of the numbers of a calibration; NaN: the study cannot tell."""

    context_mean: Array  # (d,)
    context_cov: Array  # (d, d)
    bias: Array  # (d,)
    noise_cov: Array  # (d, d)


UNTOLD = Errors(*(np.asarray(np.nan),) * 4)  # of numbers that no study gave


PAIRS, REPLICATES, SUBSET, EXTERNAL = DESIGNS = "pairs", "replicates", "subset", "external"

ASSUMED = {
    PAIRS: "The true contexts have no error. Errors do not depend on them. Each pair is a draw of its own"
    " (with groups: each group is), and pairs are like the decisions to come.",
    REPLICATES: "A context stays the same while it is read again. The errors of its readings do not depend on"
    " each other or on the context.",
    SUBSET: "Whose truth is known was decided at random, or by the noisy reading, and not by the truth."
    " The expected truth is a line of the reading. Each row is a draw of its own.",
    EXTERNAL: "The device errs here as it did in the study that the noise comes from. Errors do not depend on"
    " the contexts.",
}
UNKNOWN = {
    PAIRS: "Without groups: how far biases of other devices or times lie apart.",
    REPLICATES: "The bias. An error that all readings of a context share looks like a part of the context:"
    " context_mean and context_cov hold it.",
    SUBSET: "Whether rows without truth differ in more than their readings; how far biases of other devices"
    " lie apart.",
    EXTERNAL: "Whether noise and bias are what they were: readings alone do not tell noise from contexts that"
    " spread.",
}


class Design(NamedTuple):
    """A description of a study: its design, its data, its assumptions."""

    name: str = PAIRS
    used: str = ""  # how many pairs, readings, contexts
    notes: tuple[str, ...] = ()  # of this study alone

    @property
    def assumed(self) -> str:
        """What must hold for the estimates to be right."""
        return ASSUMED[self.name]

    @property
    def unknown(self) -> str:
        """What cannot be known from such a study, however large."""
        return UNKNOWN[self.name]

    def __str__(self) -> str:
        lines = f"{self.name}: {self.used}", f"assumed: {self.assumed}", f"not known: {self.unknown}"
        return "\n".join([*lines, *self.notes])


def complete(field: str, other: npt.ArrayLike, true: npt.ArrayLike) -> Rows:
    """Both matrices without the rows that lack a value."""
    first, second = beside(field, other, true)
    mask = np.asarray(np.isfinite(first + second).all(axis=1))
    check_count(field, first[mask], 1)
    return Rows(first[mask], second[mask], mask)


def beside(field: str, other: npt.ArrayLike, true: npt.ArrayLike) -> tuple[Array, Array]:
    """Two matrices of one shape, with all their rows; of two frames with the same names, columns by name."""
    if is_frame(other) and is_frame(true) and sorted(names_of(other)) == sorted(names_of(true)):
        true = select(true, names_of(other))
    first, second = matrix(field, other, TWO_MATRICES), matrix("true", true, TWO_MATRICES)
    if first.shape != second.shape:
        raise InputError(field, f"has shape {first.shape} and true {second.shape}", TWO_MATRICES)
    return first, second


def check_count(field: str, pairs: Array, groups: int) -> None:
    """Raise InputError for fewer pairs than a covariance needs."""
    n, d = pairs.shape
    if n < d + groups:
        more = f" and {groups} groups" if groups > 1 else ""
        allowed = f"at least {d + groups} pairs without a missing value, for {d} dimensions{more}"
        raise InputError(field, f"{n} pairs are complete", allowed)


def labels(groups: npt.ArrayLike | None, mask: Bools) -> Ints:
    """Groups of the pairs in the mask, numbered from 0 in the order of their labels."""
    if groups is None:
        return np.zeros(int(mask.sum()), np.intp)
    allowed = f"a label for each of the {len(mask)} pairs, two different ones or more among the complete"
    names, numbers = _table.labels("groups", groups, mask, allowed)
    if len(names) < 2:
        raise InputError("groups", f"{len(names)} group with complete pairs", allowed)
    return numbers


def group_means(values: Array, labels: Ints) -> Array:
    """The mean of the rows (n, d) of each label, (G, d)."""
    return np.stack([np.bincount(labels, column) for column in values.T], 1) / np.bincount(labels)[:, None]


def check_varies(field: str, values: Array, before: Array, constant: str) -> None:
    """Raise InputError for a column that does not vary by more than rounding error of the values `before`."""
    flat = np.ptp(values, axis=0) <= 1e-14 * np.abs(before).max(axis=0)
    if flat.any():
        raise InputError(field, f"column {int(np.argmax(flat))} {constant}", "columns that vary")


def check_independent(field: str, values: Array) -> None:
    """Raise InputError for columns whose covariance would be singular."""
    shifted = values - values.mean(axis=0)
    scaled = shifted / np.sqrt((shifted**2).mean(axis=0))
    if np.linalg.eigvalsh(scaled.T @ scaled / len(values))[0] < SINGULAR:
        problem = "columns hang together: one follows from the others"
        raise InputError(field, problem, "columns that vary on their own")


def matrix_error(line: Callable[[int], Array], size: int) -> Array:
    """Standard errors of a matrix (d, d).

    `line(a)` are contributions (n, d) to its line a, one line at a time to save memory.
    """
    return np.stack([standard_error(line(a)) for a in range(size)])


def covariance_error(values: Array) -> Array:
    """Standard errors of the sample covariance of rows (n, d)."""
    deviations = values - values.mean(axis=0)
    return matrix_error(lambda a: deviations[:, [a]] * deviations, values.shape[1])


def within_error(deviations: Array, labels: Ints, cov: Array) -> Array:
    """Standard errors of a covariance within groups, from deviations (n, d) from the group's mean."""
    sizes = np.bincount(labels)
    free = len(labels) - len(sizes)
    size = sizes[labels].astype(np.float64)
    stretch = np.where(size > 1, size / np.maximum(size - 1, 1), 0.0)
    weight = (size - 1) / size / free**2
    squares, second = deviations**2, (weight * stretch)[:, None] * deviations
    total = ((weight * stretch**2)[:, None] * squares).T @ squares
    return np.sqrt(np.maximum(total - 2 * cov * (second.T @ deviations) + weight.sum() * cov**2, 0.0))


def wishart_error(cov: Array, free: float) -> Array:
    """Standard errors of a covariance of Gaussian numbers with `free` degrees of freedom."""
    variances = np.diag(cov)
    return np.asarray(np.sqrt((variances[:, None] * variances + cov**2) / free))


def between_covariance(means: Array, blur: float, cov: Array, least: float) -> Array:
    """Covariance of what groups' means (G, d) are estimates of, each of covariance blur * cov, by moments.

    In units of cov no eigenvalue is below `least`.
    """
    raw = np.atleast_2d(np.cov(means.T)) - cov * blur
    root = np.linalg.cholesky(cov)
    scaled = np.linalg.solve(root, np.linalg.solve(root, raw).T)
    values, vectors = np.linalg.eigh((scaled + scaled.T) / 2)
    half = root @ vectors * np.sqrt(np.maximum(values, least))
    return half @ half.T
