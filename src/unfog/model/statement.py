"""A calibration as people read it: each number with its standard error, coordinate by coordinate.

Variances are shown as standard deviations, in the units of the readings; the error of s = sqrt(v) is that of
v over 2 s. A number without an error is one that the study does not show: it was told, or taken for zero.
"""

import numpy as np

from unfog.maths.arrays import Array
from unfog.model.errors import Errors


def statement(context_mean: Array, context_cov: Array, bias: Array, noise_cov: Array, errors: Errors) -> str:
    """A table of four lines, a column for each coordinate."""
    rows = {
        "context mean": (context_mean, errors.context_mean),
        "context sd": _deviations(context_cov, errors.context_cov),
        "bias": (bias, errors.bias),
        "noise sd": _deviations(noise_cov, errors.noise_cov),
    }
    return "\n".join(f"{name:13}{_line(*row)}".rstrip() for name, row in rows.items())


def _deviations(cov: Array, error: Array) -> tuple[Array, Array]:
    deviations = np.sqrt(np.diag(cov))
    return deviations, (np.diag(error) if error.ndim else error) / (2 * deviations)


def _line(values: Array, errors: Array) -> str:
    pairs = zip(values, np.broadcast_to(errors, values.shape), strict=True)
    return " ".join(f"{_number(value, error):20}" for value, error in pairs)


def _number(value: float, error: float) -> str:
    return f"{value:.4g}" if np.isnan(error) else f"{value:.4g} ± {error:.2g}"
