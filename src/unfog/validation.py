"""Bad input is refused at the door: the message names the field, the value and what is allowed.

Public constructors, the spec and the calls of a round make these checks; nothing further inside checks again.
A refusal of a name suggests the nearest of those that are allowed. Whoever refuses it may say which names
there are; where they do not, the refusal's own words list them.

What comes in from a world or a caller during a round is checked before anything is changed by it. Not a
number means lost in a noisy context, and hidden in a true one, where that is allowed; elsewhere it, and
infinity, would stay in a belief for good. What is finite but absurd may come in: agents/round.py.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from importlib import import_module
from itertools import islice
from math import nextafter
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.float64]
Numbers: TypeAlias = float | Sequence[float] | Sequence[Sequence[float]] | Array
REFERENCE = re.compile(r"[A-Za-z_]\w*(\.\w+)*:[A-Za-z_]\w*")  # module:name
VARIABLES = "UNFOG_"  # what the names of our environment variables begin with
LARGEST = 1e50  # squares of squares of larger numbers overflow
SMALLEST = 1e-50  # likewise what one divides by
WORST_CONDITION = 1e15  # past this a covariance is singular to double precision
LONGEST_NAME = 200
MOST_ARMS = 10_000
MOST_COORDINATES = 1_000

LONGEST_LOOKED_UP = 80  # of names that are looked up: what is longer is no slip of the pen
CLOSE = 0.65  # of the letters of two names, those that they share: 'best' is no 'robust'
MOST = 2000  # names to compare with: a refusal takes no time
UNKNOWN = ("no such", "unknown ")  # a refusal that begins so is of the name of its field
NAME = re.compile(r"(?!.*:[A-Z]+$)[A-Za-z_][\w:./-]*(?<!/)")  # `always:ARM` is a form, and no name
BEFORE = re.compile(r"^(?:[a-z ]*(?:one of|with|among|the names|the arms|columns of the context|each of):? )")
BETWEEN = re.compile(r", |; | or ")
QUOTED = re.compile(r"'([^']+)'")
WORD = re.compile(r"[\w:./-]+")


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
        text = _short(value)
        self.near = meant(field, text, allowed) if near is None else near
        super().__init__(one_line(f"{_short(field)}: {text}{self.asks}; allowed: {allowed}"))
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
    text = " ".join((value if isinstance(value, str) else shown(value)).split())
    return text if len(text) <= 160 else f"{text[:100]}...{text[-57:]}"


def nearest(value: object, names: Iterable[str]) -> str:
    """The name that is most like this one, the first of several; empty where none is like it.

    Small and large letters are alike; the name itself is not news.
    """
    if not isinstance(value, str) or len(value) > LONGEST_LOOKED_UP:
        return ""
    known = {name.lower(): name for name in islice(names, MOST) if name != value}
    matcher = SequenceMatcher(b=value.strip().lower(), autojunk=False)
    best, similar = CLOSE, ""
    for word, name in known.items():
        matcher.set_seq1(word)
        # The quick ones are bounds on the last, which takes longer.
        if min(matcher.real_quick_ratio(), matcher.quick_ratio()) >= best and matcher.ratio() >= best:
            best, similar = nextafter(matcher.ratio(), 2), name
    return similar


def meant(field: str, value: str, allowed: str) -> str:
    """The name that was meant, from the words of a refusal: what was given, and the names that it lists."""
    name = field.rpartition(".")[2] if value.startswith(UNKNOWN) and "'" not in value else _find_name(value)
    if not name or len(name) > LONGEST_LOOKED_UP:
        return ""
    names = BETWEEN.split(BEFORE.sub("", allowed))
    return "" if name in names else nearest(name, filter(NAME.fullmatch, names))


def _find_name(value: str) -> str:
    """The name that a value is, or the first that it quotes; a list or a table of names is none."""
    if value.startswith(("[", "{", "(")):
        return ""
    quoted = QUOTED.search(value)
    return quoted[1] if quoted else value if WORD.fullmatch(value) else ""


def numbers(field: str, value: object, allowed: str) -> Array:
    """An array of finite floats, from numbers only: no text, no truth values, nothing ragged.

    A truth value beside numbers counts as 0 or 1.
    """
    try:
        raw = np.asarray(value)
    except ValueError:
        raise InputError(field, f"{_short(value)} is ragged", allowed) from None
    except (TypeError, OverflowError) as error:
        raise InputError(field, f"{_short(value)} is no array ({error})", allowed) from None
    if raw.dtype.kind not in "iuf":
        raise InputError(field, f"{_short(value)} is not made of numbers", allowed)
    array = raw.astype(np.float64)
    if not np.all(np.isfinite(array)):
        raise InputError(field, f"{_short(value)} has a value that is not finite", allowed)
    if np.abs(array).max(initial=0.0) > LARGEST:
        raise InputError(field, f"{_short(value)} has a value beyond {LARGEST:g}", allowed)
    return array


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
    array = numbers(field, value, allowed)
    fits = array.ndim >= 2 if width is None else array.ndim == 2 and array.shape[1] == width
    if not fits or 0 in array.shape:
        raise InputError(field, f"{_short(value)} has shape {array.shape}", allowed)
    return array


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
    members = set(dir(value))
    missing = [name for name in vars(contract) if name[0] != "_" and name not in members]
    if isinstance(value, type):
        raise InputError(field, f"the class {value.__name__}", f"{allowed}; of a class, an instance")
    if missing:
        raise InputError(field, f"{_short(value)} has no {missing[0]}", allowed)


def imported(field: str, path: str, allowed: str) -> object:
    """What is called module:name; the module is imported."""
    module, _, name = path.partition(":")
    try:
        members = vars(import_module(module))
    except (Exception, SystemExit) as error:  # the module is the user's: it may raise anything, or leave
        reason = error if isinstance(error, ImportError | SyntaxError) else repr(error)
        raise InputError(field, f"cannot import {module}: {reason}", allowed) from error
    if name not in members:
        raise InputError(field, f"there is no {name!r} in {module}", allowed)
    return members[name]


def check_finite(field: str, values: Array, gaps: str = "") -> None:
    """Finite numbers; `gaps` says what a value means that is not a number, where it may be there."""
    bad = np.abs(values) > LARGEST
    bad |= ~np.isfinite(values) if not gaps else np.isinf(values)
    allowed = f"finite numbers, at most {LARGEST:g} in size" + (f"; nan where {gaps}" if gaps else "")
    _check_values(field, values, bad, allowed)


def check_reward(field: str, values: Array, kind: str, low: float = -LARGEST, high: float = LARGEST) -> None:
    """Rewards of this kind, from `low` to `high`."""
    if kind == "bernoulli":
        return _check_values(field, values, (values != 0) & (values != 1), "0 or 1")
    within = "" if (low, high) == (-LARGEST, LARGEST) else f" from {low:g} to {high:g}"
    return _check_values(field, values, ~((values >= low) & (values <= high)), f"finite numbers{within}")


def _check_values(field: str, values: Array, bad: Any, allowed: str) -> None:
    """Name the first bad one, by its place where there are several."""
    if not np.any(bad):
        return
    index = tuple(int(i) for i in np.argwhere(bad)[0])
    where = "".join(f"[{i}]" for i in index)
    raise InputError(f"{field}{where}", f"{float(np.asarray(values)[index])}", allowed)


def check_name(field: str, value: object) -> str:
    """A word or a few, on one line."""
    allowed = f"text on one line, of 1 to {LONGEST_NAME} characters"
    if (
        not isinstance(value, str)
        or not 0 < len(value) <= LONGEST_NAME
        or not value.isprintable()
        or not value.strip()
    ):
        raise InputError(field, shown(value), allowed)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InputError(field, shown(value), allowed) from None
    return str.__str__(value)  # of NumPy's texts and of enumerations, too: logs and checksums hold plain text


def as_list(field: str, values: Any, allowed: str) -> list[Any]:
    """All there are, of what can be gone through and is no text."""
    try:
        items = None if isinstance(values, str | bytes) else list(values)
    except TypeError:  # also of an array without an axis, which says that it can be
        items = None
    if items is None:
        raise InputError(field, shown(values), allowed)
    return items


def check_names(field: str, values: Any, most: int = MOST_ARMS) -> list[str]:
    """Names, each once."""
    names = [
        check_name(f"{field}[{i}]", value)
        for i, value in enumerate(as_list(field, values, "a list of names"))
    ]
    if not 0 < len(names) <= most:
        raise InputError(field, f"{len(names)} names", f"1 to {most}")
    if len(set(names)) < len(names):
        i = next(i for i, one in enumerate(names) if one in names[:i])
        raise InputError(f"{field}[{i}]", repr(names[i]), "each name once")
    return names


def check_coordinates(field: str, value: Any) -> list[str]:
    """Names of the coordinates of a context."""
    return check_names(field, value, MOST_COORDINATES)


def check_arms(field: str, value: Any) -> dict[str, Any]:
    """Names of arms, with their vectors where they have any."""
    if value is None:
        return {}
    names = check_names(field, value, MOST_ARMS)
    if not isinstance(value, Mapping):
        return dict.fromkeys(names)
    return {one: None if value[one] is None else arm_vector(f"{field}.{one}", value[one]) for one in names}


def arm_vector(field: str, value: Any) -> list[Any]:
    """The numbers of an arm: a list, or for matrices a list of rows."""
    allowed = "a list of finite numbers"
    array = numbers(field, value, allowed)
    if array.ndim not in (1, 2) or array.size == 0:
        raise InputError(field, value, allowed)
    entries: list[Any] = array.tolist()
    return entries
