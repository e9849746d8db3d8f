"""Checks the arguments of the transformer: noise, devices, true contexts.

A noise is given once for all rows, or once per row: `noises` returns a covariance (d, d), or one per row
(n, d, d).
A coordinate that is measured without error has the variance zero.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from unfog import _table, validation
from unfog.channel.knowledge import limit_cov
from unfog.features import Context
from unfog.maths.arrays import Array, Ints, diagonal_matrix
from unfog.validation import InputError

KINDS = ("exact", "drift")
OUTPUTS = ("mean", "mean+sd", "draws")
LEAST = 1e-15  # smaller eigenvalues of a correlation matrix count as zero


class ChannelSettings(NamedTuple):
    """What a caller gives of the channel; None for what is to be estimated."""

    noise: Array | None  # (d, d)
    bias_cov: Array | None  # (d, d)
    mean: Array | None  # (d,)
    cov: Array | None  # (d, d)
    walk: Array | None  # (d, d)
    bias: Array | None  # (d,)  the mean of biases
    dim: int

    def settled(self, noise: Array | None) -> bool:
        """Whether only biases are left to learn, given the `noise` of rows."""
        parts = self.mean, self.cov, self.bias_cov, noise if self.noise is None else self.noise
        return not any(part is None for part in parts)

    def limited(self, noisy: Array) -> "ChannelSettings":
        """The same, with no bias too small to compute with, measured by contexts or else by readings."""
        if self.bias_cov is None or np.diag(self.bias_cov).all():
            return self
        cov = self.cov
        if cov is None:
            centred = np.nan_to_num(noisy - np.nanmean(noisy, axis=0))
            cov = np.diag((centred**2).mean(axis=0))
        return self._replace(bias_cov=limit_cov(self.bias_cov, np.where(cov, cov, np.eye(self.dim))))

    @property
    def law(self) -> Context:
        """The law of contexts, if it is given."""
        if self.mean is None or self.cov is None:
            raise InputError("context_mean", None, "the mean of contexts, and their covariance")
        return Context(self.mean, self.cov)


class Rows(NamedTuple):
    """Readings, and the devices they are from."""

    noisy: Array  # (n, d)  NaN where lost
    devices: list[Hashable]
    of: Ints  # (n,)
    true: Array | None  # (n, d)  NaN where not known


def channel(settings: Mapping[str, Any], dim: int) -> ChannelSettings:
    """The settings of the transformer, checked for rows of `dim` coordinates."""
    validation.one_of("kind", settings["kind"], KINDS)
    validation.one_of("output", settings["output"], OUTPUTS)
    validation.count("draws", settings["draws"], most=10_000)
    walk, mean, noise, bias = (settings[name] for name in ("walk_cov", "context_mean", "noise_cov", "bias"))
    if (settings["kind"] == "drift") != (walk is not None):
        allowed = "the covariance of a step of the bias, for the kind drift; None for others"
        raise InputError("walk_cov", walk, allowed)
    bias_cov, context_cov, walk_cov = (
        None if settings[name] is None else validation.covariance(name, settings[name], dim, exact=exact)
        for name, exact in (("bias_cov", True), ("context_cov", False), ("walk_cov", False))
    )
    return ChannelSettings(
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
    values = validation.numbers(field, value, allowed)
    if values.ndim == 2 and values.shape == (rows, dim) and rows == dim > 1:
        actual = (
            f"of shape {values.shape} is one covariance, or the variances of {rows} rows of {dim} columns"
        )
        clear = (
            f"({rows}, {dim}, {dim}), a covariance for each row; a number or {dim} variances, for all rows"
        )
        raise InputError(field, actual, clear)
    if values.ndim == 0 or values.shape == (dim,):
        cov = np.diag(validation.vector(field, value, dim))
    elif values.shape in ((dim, dim), (rows, dim, dim)):
        cov = values
    elif values.shape == (rows, dim):
        _check_variances(field, values, allowed)
        return diagonal_matrix(values)
    else:
        raise InputError(field, f"has shape {values.shape}", allowed)
    _check_covariances(field, cov, allowed)
    return (cov + cov.mT) / 2


def _check_variances(field: str, variances: Array, allowed: str) -> None:
    if (variances < 0).any():
        row, column = (int(i) for i in np.argwhere(variances < 0)[0])
        raise InputError(field, f"row {row}, column {column} is {variances[row, column]:g}", allowed)


def _check_covariances(field: str, covs: Array, allowed: str) -> None:
    """Raise InputError unless these are covariances; a variance may be zero if its covariances are."""
    dim = covs.shape[-1]
    each = covs.reshape(-1, dim, dim)
    variances = np.linalg.diagonal(each)
    scale = np.sqrt(np.where(variances > 0, variances, 1.0))
    scaled = each / scale[:, :, None] / scale[:, None, :]
    # A coordinate without noise gets the variance 1; if it has covariances it keeps 0, and is refused.
    filled = scaled + diagonal_matrix((variances == 0) & (np.abs(scaled).sum(-1) == 0))
    skew = np.abs(scaled - scaled.mT).max(axis=(-2, -1), initial=0.0) > 1e-9
    bad = (variances < 0).any(-1) | skew | (np.linalg.eigvalsh((filled + filled.mT) / 2)[:, 0] < LEAST)
    if bad.any():
        row = int(np.argmax(bad))
        where = f"row {row} has" if covs.ndim == 3 else "is"
        raise InputError(field, f"{where} {each[row].tolist()}, which is no covariance", allowed)


def labels(groups: npt.ArrayLike | None, rows: int) -> tuple[list[Hashable], Ints]:
    """The devices, and the index of that of each row; without groups there is one device, None."""
    if groups is None:
        return [None], np.zeros(rows, np.intp)
    allowed = f"a label for each of the {rows} rows, a number or a text"
    return _table.labels("groups", groups, np.ones(rows, bool), allowed)


def device(group: object) -> Hashable:
    """Check the label of a device; None is the device without a name."""
    if group is None or _table.is_label(group):
        return group
    raise InputError("group", group, "a number or a text; None where there is one device alone")


def truths(true: npt.ArrayLike | None, like: Array) -> Array | None:
    """True contexts (n, d), NaN where they are not known."""
    if true is None:
        return None
    allowed = f"numbers of the shape of X, {like.shape}; NaN where the true context is not known"
    contexts = _table.matrix("true", true, allowed, coerce=True)
    if contexts.shape != like.shape:
        raise InputError("true", f"has shape {contexts.shape}", allowed)
    return contexts


def reading(x: Any, names: Sequence[str] | None, allowed: str) -> Array:
    """The numbers of one reading; if they have names, in the order of the names that were fitted."""
    labels = x.keys() if isinstance(x, Mapping) else getattr(x, "index", None)
    if isinstance(x, Mapping) and names is None:
        raise InputError("x", x, f"{allowed}, in the order of the columns: none of them has a name")
    if names is None or labels is None or callable(labels):
        return _table.array("x", x, allowed, coerce=True)
    by_name = dict(zip(labels, x.values() if isinstance(x, Mapping) else x, strict=True))
    if len(by_name) != len(names) or set(by_name) != set(names):
        raise InputError(
            "x", f"has {', '.join(map(str, labels))}", f"a number for each of {', '.join(names)}"
        )
    cells = [np.nan if validation.is_missing(by_name[name]) else by_name[name] for name in names]
    return _table.array("x", cells, allowed, coerce=True)
