"""What callers of the transformer tell of a noise, of devices and of true contexts, checked at the door.

A noise is told once for all rows, or once a row: `noises` gives a covariance (d, d), or one a row (n, d, d).
A coordinate that is measured without error has the variance zero.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from unfog import _table, validation
from unfog.features import Context
from unfog.maths.arrays import Array, Ints, diagonal_matrix
from unfog.validation import InputError

KINDS = ("exact", "drift")
OUTPUTS = ("mean", "mean+sd", "draws")
LEAST = 1e-15  # smallest eigenvalue of a correlation matrix that is not taken for zero


class Told(NamedTuple):
    """What a caller says of the channel; None where it is to be found."""

    noise: Array | None  # (d, d)
    bias_cov: Array | None  # (d, d)
    mean: Array | None  # (d,)
    cov: Array | None  # (d, d)
    walk: Array | None  # (d, d)
    bias: Array | None  # (d,)  the mean of biases
    dim: int

    def settled(self, noise: Array | None) -> bool:
        """Whether, with what is told of the noise of rows, a bias is all that there is to learn."""
        parts = self.mean, self.cov, self.bias_cov, noise if self.noise is None else self.noise
        return not any(part is None for part in parts)

    @property
    def law(self) -> Context:
        """Of contexts, where it is told."""
        if self.mean is None or self.cov is None:
            raise InputError("context_mean", None, "the mean of contexts, and their covariance")
        return Context(self.mean, self.cov)


class Rows(NamedTuple):
    """Readings, and whose they are."""

    noisy: Array  # (n, d)  not a number where lost
    devices: list[Hashable]
    of: Ints  # (n,)
    true: Array | None  # (n, d)  not a number where not known


def channel(settings: Mapping[str, Any], dim: int) -> Told:
    """What the transformer's settings say, for rows of so many coordinates."""
    validation.one_of("kind", settings["kind"], KINDS)
    validation.one_of("output", settings["output"], OUTPUTS)
    validation.count("draws", settings["draws"], most=10_000)
    walk, mean, noise, bias = (settings[name] for name in ("walk_cov", "context_mean", "noise_cov", "bias"))
    if (settings["kind"] == "drift") != (walk is not None):
        allowed = "the covariance of a step of the bias, for the kind drift; None for others"
        raise InputError("walk_cov", walk, allowed)
    bias_cov, context_cov, walk_cov = (
        None if settings[name] is None else validation.covariance(name, settings[name], dim)
        for name in ("bias_cov", "context_cov", "walk_cov")
    )
    return Told(
        None if noise is None else noises("noise_cov", noise, None, dim),
        bias_cov,
        None if mean is None else validation.vector("context_mean", mean, dim),
        context_cov,
        walk_cov,
        None if bias is None else validation.vector("bias", bias, dim),
        dim,
    )


def noises(field: str, value: object, rows: int | None, dim: int) -> Array:
    """One covariance (d, d), or one for each of the rows (n, d, d), if there are any.

    With as many rows as columns a square of numbers may mean either, and is refused.
    """
    allowed = f"a variance, {dim} variances or a covariance ({dim}, {dim}) for all rows"
    if rows is not None:
        allowed += f"; or one for each: ({rows}, {dim}) or ({rows}, {dim}, {dim})"
    given = validation.numbers(field, value, allowed)
    if given.ndim == 2 and given.shape == (rows, dim) and rows == dim > 1:
        said = f"of shape {given.shape} is one covariance, or the variances of {rows} rows of {dim} columns"
        clear = (
            f"({rows}, {dim}, {dim}), a covariance for each row; a number or {dim} variances, for all rows"
        )
        raise InputError(field, said, clear)
    if given.ndim == 0 or given.shape == (dim,):
        found = np.diag(validation.vector(field, value, dim))
    elif given.shape in ((dim, dim), (rows, dim, dim)):
        found = given
    elif given.shape == (rows, dim):
        _check_variances(field, given, allowed)
        return diagonal_matrix(given)
    else:
        raise InputError(field, f"has shape {given.shape}", allowed)
    _check(field, found, allowed)
    return (found + found.mT) / 2


def _check_variances(field: str, given: Array, allowed: str) -> None:
    if (given < 0).any():
        row, column = (int(i) for i in np.argwhere(given < 0)[0])
        raise InputError(field, f"row {row}, column {column} is {given[row, column]:g}", allowed)


def _check(field: str, covs: Array, allowed: str) -> None:
    """Refuse what is no covariance; variances of zero are fine, where nothing goes with them."""
    dim = covs.shape[-1]
    each = covs.reshape(-1, dim, dim)
    variances = np.linalg.diagonal(each)
    scale = np.sqrt(np.where(variances > 0, variances, 1.0))
    scaled = each / scale[:, :, None] / scale[:, None, :]
    # A coordinate without noise stands as a one, unless it goes with another: then as a zero.
    filled = scaled + diagonal_matrix((variances == 0) & (np.abs(scaled).sum(-1) == 0))
    skew = np.abs(scaled - scaled.mT).max(axis=(-2, -1), initial=0.0) > 1e-9
    bad = (variances < 0).any(-1) | skew | (np.linalg.eigvalsh((filled + filled.mT) / 2)[:, 0] < LEAST)
    if bad.any():
        row = int(np.argmax(bad))
        where = f"row {row} has" if covs.ndim == 3 else "is"
        raise InputError(field, f"{where} {each[row].tolist()}, which is no covariance", allowed)


def labels(groups: npt.ArrayLike | None, rows: int) -> tuple[list[Hashable], Ints]:
    """The devices there are, and which one each row is of; without groups all rows are of one, None."""
    if groups is None:
        return [None], np.zeros(rows, np.intp)
    allowed = f"a label for each of the {rows} rows, a number or a text"
    return _table.labels("groups", groups, np.ones(rows, bool), allowed)


def device(group: object) -> Hashable:
    """The label of one device; None for the one that has no name."""
    if group is None or _table.is_label(group):
        return group
    raise InputError("group", group, "a number or a text; None where there is one device alone")


def truths(true: npt.ArrayLike | None, like: Array) -> Array | None:
    """True contexts (n, d), not a number where they are not known."""
    if true is None:
        return None
    allowed = f"numbers of the shape of X, {like.shape}; NaN where the true context is not known"
    found = _table.matrix("true", true, allowed, coerce=True)
    if found.shape != like.shape:
        raise InputError("true", f"has shape {found.shape}", allowed)
    return found


def reading(x: Any, names: Sequence[str] | None, allowed: str) -> Array:
    """The numbers of one reading; where they have names, in the order of the names that were fitted."""
    labels = x.keys() if isinstance(x, Mapping) else getattr(x, "index", None)
    if isinstance(x, Mapping) and names is None:
        raise InputError("x", x, f"{allowed}, in the order of the columns: none of them has a name")
    if names is None or labels is None or callable(labels):
        return _table.array("x", x, allowed, coerce=True)
    given = dict(zip(labels, x.values() if isinstance(x, Mapping) else x, strict=True))
    if len(given) != len(names) or set(given) != set(names):
        raise InputError(
            "x", f"has {', '.join(map(str, labels))}", f"a number for each of {', '.join(names)}"
        )
    return _table.array("x", [given[name] for name in names], allowed, coerce=True)
