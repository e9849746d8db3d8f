"""Bad input is refused at the door: the message names the field, the value and what is allowed.

Public constructors and the spec call these checks; nothing further inside checks again.
"""

import re
from collections.abc import Sequence
from importlib import import_module
from typing import Self, TypeAlias

import numpy as np
import numpy.typing as npt

from unfog.meant import meant, nearest

Array: TypeAlias = npt.NDArray[np.float64]
Numbers: TypeAlias = float | Sequence[float] | Sequence[Sequence[float]] | Array

REFERENCE = re.compile(r"[A-Za-z_]\w*(\.\w+)*:[A-Za-z_]\w*")  # module:name
VARIABLES = "UNFOG_"  # what the names of our environment variables begin with
DIGITS = re.compile(
    r"Exceeds the limit \((\d+) digits\) for integer string conversion.*to increase the limit"
)
LARGEST = 1e50  # squares of squares of larger numbers overflow
SMALLEST = 1e-50  # likewise what one divides by
WORST_CONDITION = 1e15  # past this a covariance is singular to double precision


class InputError(ValueError):
    """A value that cannot be used; the message is one line.

    >>> import unfog
    >>> try:
    ...     unfog.GaussianProblem(dim=0)
    ... except unfog.InputError as error:
    ...     print(error)
    dim: 0; allowed: a whole number, at least 1 and at most 1000
    """

    def __init__(self, field: str, value: object, allowed: str, near: str | None = None) -> None:
        """Say which field, which value, and what is allowed.

        `near` is the name that was meant, or empty; unless told it is looked for among what is allowed.
        """
        told = _short(value)
        self.near = meant(field, told, allowed) if near is None else near
        super().__init__(one_line(f"{_short(field)}: {told}{self.asks}; allowed: {allowed}"))
        self.field, self.value, self.allowed = field, value, allowed

    @property
    def asks(self) -> str:
        """What the message says after the value, where a name was meant."""
        return f" (did you mean {self.near!r}?)" if self.near else ""

    def __reduce__(self) -> tuple[type["InputError"], tuple[str, str, str, str]]:
        """From a worker process the words travel: the value itself may not."""
        return type(self), (self.field, _short(self.value), self.allowed, self.near)

    def renamed(self, field: str) -> Self:
        """The same complaint, about a field that its reader calls so."""
        return type(self)(field, self.value, self.allowed, self.near)

    @classmethod
    def prefixed(cls, table: str, error: "InputError") -> "InputError":
        """The same complaint, about a field of a table, or about several; a variable is in no table."""
        names = error.field.split(", ")
        fields = ", ".join(name if name.startswith(VARIABLES) else f"{table}.{name}" for name in names)
        return cls(fields, error.value, error.allowed, error.near)


def one_line(text: str) -> str:
    """Without line breaks, what cannot be written, or what would change how the rest is read."""
    words = " ".join(text.split())
    if words.isprintable():
        return words
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in words)


def shown(value: object) -> str:
    """A value as Python writes it, where it can be written: a number of 5,000 digits cannot."""
    try:
        return repr(value)
    except Exception:  # noqa: BLE001  # the value may be anybody's
        return f"{type(value).__name__} that cannot be shown"


def _short(value: object) -> str:
    text = value if isinstance(value, str) else shown(value)
    text = DIGITS.sub(
        r"a whole number of more than \1 digits", " ".join(text.split())
    )  # else: advice on code
    return text if len(text) <= 160 else f"{text[:100]}...{text[-57:]}"


def numbers(field: str, value: object, allowed: str) -> Array:
    """An array of finite floats, from numbers only: no text, no booleans, nothing ragged."""
    try:
        raw = np.asarray(value)
    except ValueError:
        raise InputError(field, f"{_short(value)} is ragged", allowed) from None
    except (TypeError, RecursionError, OverflowError) as error:
        raise InputError(field, f"{_short(value)} is no array ({error})", allowed) from None
    if raw.dtype.kind not in "iuf" or _has_bool(value):
        raise InputError(field, f"{_short(value)} is not made of numbers", allowed)
    array = raw.astype(np.float64)
    if not np.all(np.isfinite(array)):
        raise InputError(field, f"{_short(value)} has a value that is not finite", allowed)
    if np.abs(array).max(initial=0.0) > LARGEST:
        raise InputError(field, f"{_short(value)} has a value beyond {LARGEST:g}", allowed)
    return array


def _has_bool(value: object) -> bool:
    """Whether a truth value hides among numbers, where NumPy would take it for 0 or 1."""
    return isinstance(value, bool) or (isinstance(value, list | tuple) and any(map(_has_bool, value)))


def vector(field: str, value: object, size: int) -> Array:
    """A vector of `size` numbers; one number stands for all."""
    allowed = f"a number or a list of {size} numbers"
    array = numbers(field, value, allowed)
    if array.ndim == 0:
        return np.full(size, float(array))
    if array.shape != (size,):
        raise InputError(field, f"{_short(value)} has shape {array.shape}", allowed)
    return array


def covariance(field: str, value: object, size: int) -> Array:
    """A positive definite matrix; one number stands for a multiple of I, a list for a diagonal."""
    allowed = (
        f"a positive number, {size} positive numbers or a symmetric positive definite {size} x {size} matrix"
    )
    array = numbers(field, value, allowed)
    if array.ndim == 0:
        array = np.full(size, float(array))
    if array.shape == (size,):  # it cannot be singular, and may be too large to find its eigenvalues
        _check_variances(field, value, array, allowed)
        return np.diag(array)
    if array.shape != (size, size):
        raise InputError(field, f"{_short(value)} has shape {array.shape}", allowed)
    skew = np.abs(array - array.T)
    if skew.max(initial=0.0) > 1e-12 * np.abs(array).max(initial=0.0):
        i, j = np.unravel_index(np.argmax(skew), skew.shape)
        pair = f"entry [{i}][{j}] = {array[i, j]:g} but [{j}][{i}] = {array[j, i]:g}"
        raise InputError(field, f"not symmetric, {pair}", allowed)
    _check_definite(field, value, array, allowed)
    return array / 2 + array.T / 2


def _check_definite(field: str, value: object, matrix: Array, allowed: str) -> None:
    # Scaling to a unit diagonal first: units differ between coordinates, and that alone is no singularity.
    diagonal = np.diag(matrix)
    _check_variances(field, value, diagonal, allowed)
    scale = np.sqrt(diagonal)
    least, most = np.linalg.eigvalsh(matrix / scale / scale[:, None])[[0, -1]]
    if least <= 0 or most / least > WORST_CONDITION:
        kind = "singular" if least > -1e-12 * most else "not positive definite"
        raise InputError(field, f"{_short(value)} is {kind} (smallest eigenvalue {least:.3g})", allowed)


def _check_variances(field: str, value: object, variances: Array, allowed: str) -> None:
    if np.any(variances <= 0):
        raise InputError(field, f"{_short(value)} has the variance {variances.min():g}", allowed)
    if np.any(variances < SMALLEST):
        raise InputError(field, f"{_short(value)} has a variance below {SMALLEST:g}", allowed)


def rows(field: str, value: object, width: int | None, allowed: str) -> Array:
    """One or more rows of finite numbers; without a width, rows may themselves be arrays of any shape."""
    found = numbers(field, value, allowed)
    fits = found.ndim >= 2 if width is None else found.ndim == 2 and found.shape[1] == width
    if not fits or 0 in found.shape:
        raise InputError(field, f"{_short(value)} has shape {found.shape}", allowed)
    return found


def positive(field: str, value: object) -> float:
    """A positive finite number."""
    allowed = "a positive number"
    array = numbers(field, value, allowed)
    if array.ndim != 0 or not array > 0:
        raise InputError(field, value, allowed)
    if array < SMALLEST:
        raise InputError(field, value, f"{allowed}, at least {SMALLEST:g}")
    return float(array)


def not_negative(field: str, value: object) -> float:
    """Zero or a positive finite number."""
    allowed = "zero or a positive number"
    array = numbers(field, value, allowed)
    if array.ndim != 0 or array < 0:
        raise InputError(field, value, allowed)
    if 0 < array < SMALLEST:
        raise InputError(field, value, f"{allowed}, at least {SMALLEST:g}")
    return float(array)


def share(field: str, value: object) -> float:
    """A number between 0 and 1, neither of them."""
    if not 0 < positive(field, value) < 1:
        raise InputError(field, value, "a number between 0 and 1, such as 0.95")
    return positive(field, value)


def count(field: str, value: object, least: int = 1, most: int = 10**9) -> int:
    """A whole number in a range."""
    allowed = f"a whole number, at least {least} and at most {most}"
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value <= most:
        raise InputError(field, shown(value), allowed)
    return int(value)


def flag(field: str, value: object) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise InputError(field, shown(value), "True or False")
    return value


def one_of(field: str, value: object, names: Sequence[str]) -> str:
    """One of these names."""
    if not isinstance(value, str) or value not in names:
        raise InputError(field, shown(value), ", ".join(names), nearest(value, names))
    return value


def offering(field: str, value: object, contract: type, allowed: str) -> None:
    """Refuse what lacks a member of a contract, and a class where an instance of it is meant."""
    there = set(dir(value))
    lacks = [name for name in vars(contract) if name[0] != "_" and name not in there]
    if isinstance(value, type):
        raise InputError(field, f"the class {value.__name__}", f"{allowed}; of a class, an instance")
    if lacks:
        raise InputError(field, f"{_short(value)} has no {lacks[0]}", allowed)


def imported(field: str, path: str, allowed: str) -> object:
    """What is called module:name; the module is imported."""
    module, _, name = path.partition(":")
    try:
        found = vars(import_module(module))
    except (Exception, SystemExit) as error:  # the module is the user's: it may raise anything, or leave
        said = error if isinstance(error, ImportError | SyntaxError) else repr(error)
        raise InputError(field, f"cannot import {module}: {said}", allowed) from error
    if name not in found:
        raise InputError(field, f"there is no {name!r} in {module}", allowed)
    return found[name]
