"""Bad input is refused at once: the message names the field, the value and what is allowed.

Public constructors, the spec and the calls of a round make these checks; code behind them does not repeat
them. An error about a name suggests the nearest allowed one, among names that the caller gives or that the
message lists.

Input from a world or a caller during a round is checked before it changes anything. NaN means lost in a noisy
context, and hidden in a true one, if that is allowed; otherwise NaN and infinity are refused, since they
would stay in a belief for good. Values that are finite but absurd are handled in agents/round.py.
"""

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, tzinfo
from decimal import Decimal
from difflib import SequenceMatcher
from functools import wraps
from importlib import import_module
from inspect import isfunction, signature
from itertools import islice
from math import nextafter
from numbers import Real
from typing import Any, Self, TypeAlias, TypeVar, cast

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.float64]
Public = TypeVar("Public", bound=Callable[..., Any])
Numbers: TypeAlias = float | Sequence[float] | Sequence[Sequence[float]] | Array
Identifier: TypeAlias = str | int
"""The name of a unit, an arm or a level: integers are as good as their text."""
REFERENCE = re.compile(r"[A-Za-z_]\w*(\.\w+)*:[A-Za-z_]\w*")  # module:name
VARIABLES = "UNFOG_"  # the prefix of our environment variables
LARGEST = 1e50  # squares of squares of larger numbers overflow
SMALLEST = 1e-50  # likewise what one divides by
WORST_CONDITION = 1e15  # past this a covariance is singular to double precision
LONGEST_NAME = 200
MOST_ARMS = 10_000
MOST_COORDINATES = 1_000

LONGEST_LOOKED_UP = 80  # characters of a name for which we look for a suggestion
CLOSE = 0.65  # the least similarity of a suggestion: 'best' is not 'robust'
MOST = 2000  # names to compare with, so that errors are fast
CONSTRUCTORS = "__init__", "__new__"
UNKNOWN = ("no such", "unknown ")  # a value that begins so is about the name of its field
NAME = re.compile(r"(?!.*:[A-Z]+$)[A-Za-z_][\w:./-]*(?<!/)")  # `always:ARM` is a form, not a name
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

    def __init__(self, field: str, value: object, allowed: str, near: str | float | None = None) -> None:
        """The field, the value, and what is allowed.

        `near` is the suggested name or number, or ""; by default a name is looked for in `allowed`.
        """
        text = _shorten(value)
        self.near = suggest(field, text, allowed) if near is None else near
        super().__init__(one_line(f"{_shorten(field)}: {text}{self.asks}; allowed: {allowed}"))
        self.field, self.value, self.allowed = field, value, allowed

    @property
    def asks(self) -> str:
        """The suggestion, which follows the value in the message."""
        return "" if self.near == "" else f" (did you mean {self.near!r}?)"

    def __reduce__(self) -> tuple[type["InputError"], tuple[str, str, str, str | float]]:
        """Pickle the value as text, since it may not be picklable itself."""
        return type(self), (self.field, _shorten(self.value), self.allowed, self.near)

    def renamed(self, field: str) -> Self:
        """The same error with another name for the field."""
        return type(self)(field, self.value, self.allowed, self.near)

    @classmethod
    def prefixed(cls, table: str, error: "InputError") -> "InputError":
        """The same error about one or more fields of a table; environment variables keep their names."""
        names = error.field.split(", ")
        fields = ", ".join(name if name.startswith(VARIABLES) else f"{table}.{name}" for name in names)
        return cls(fields, error.value, error.allowed, error.near)


def one_line(text: str) -> str:
    """The text on one line, with characters escaped that are not printable."""
    words = " ".join(text.split())
    if words.isprintable():
        return words
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in words)


def display(value: object) -> str:
    """The repr of a value, or its type if that fails, as for a number with 5,000 digits."""
    try:
        return repr(value)
    except Exception:  # noqa: BLE001  # the value may be anybody's
        return f"{type(value).__name__} that cannot be shown"


def _shorten(value: object) -> str:
    text = " ".join((value if isinstance(value, str) else display(value)).split())
    return text if len(text) <= 160 else f"{text[:100]}...{text[-57:]}"


def nearest(value: object, names: Iterable[str]) -> str:
    """The first of the most similar names; "" if none is similar.

    Case does not matter, and the name itself is no suggestion.
    """
    if not isinstance(value, str) or len(value) > LONGEST_LOOKED_UP:
        return ""
    known = {name.lower(): name for name in islice(names, MOST) if name != value}
    matcher = SequenceMatcher(b=value.strip().lower(), autojunk=False)
    best, similar = CLOSE, ""
    for word, name in known.items():
        matcher.set_seq1(word)
        # The quick ratios are upper limits of the exact one, which takes longer.
        if min(matcher.real_quick_ratio(), matcher.quick_ratio()) >= best and matcher.ratio() >= best:
            best, similar = nextafter(matcher.ratio(), 2), name
    return similar


def suggest(field: str, value: str, allowed: str) -> str:
    """The suggestion for an error message: the name most similar to the value, among those in `allowed`."""
    name = field.rpartition(".")[2] if value.startswith(UNKNOWN) and "'" not in value else _find_name(value)
    if not name or len(name) > LONGEST_LOOKED_UP:
        return ""
    names = BETWEEN.split(BEFORE.sub("", allowed))
    return "" if name in names else nearest(name, filter(NAME.fullmatch, names))


def _find_name(value: str) -> str:
    """The value if it is a name, or the first name that it quotes; "" for lists and tables."""
    if value.startswith(("[", "{", "(")):
        return ""
    quoted = QUOTED.search(value)
    return quoted[1] if quoted else value if WORD.fullmatch(value) else ""


def numbers(field: str, value: object, allowed: str) -> Array:
    """An array of finite floats, from numbers only: no text, no booleans, nothing ragged.

    A boolean among numbers counts as 0 or 1.
    """
    try:
        raw = np.asarray(value)
    except ValueError:
        raise InputError(field, f"{_shorten(value)} is ragged", allowed) from None
    except (TypeError, OverflowError) as error:
        raise InputError(field, f"{_shorten(value)} is no array ({error})", allowed) from None
    if isinstance(value, str):
        raise InputError(field, display(value), allowed, nearest_number(value))
    if raw.dtype.kind not in "iuf":
        raise InputError(field, f"{_shorten(value)} is not made of numbers", allowed)
    array = raw.astype(np.float64)
    if not np.all(np.isfinite(array)):
        raise InputError(field, f"{_shorten(value)} has a value that is not finite", allowed)
    if np.abs(array).max(initial=0.0) > LARGEST:
        raise InputError(field, f"{_shorten(value)} has a value beyond {LARGEST:g}", allowed)
    return array


def vector(field: str, value: object, size: int) -> Array:
    """A vector of `size` numbers; one number stands for all."""
    allowed = f"a number or a list of {size} numbers"
    array = numbers(field, value, allowed)
    if array.ndim == 0:
        return np.full(size, float(array))
    if array.shape != (size,):
        raise InputError(field, f"{_shorten(value)} has shape {array.shape}", allowed)
    return array


def covariance(field: str, value: object, size: int, *, exact: bool = False) -> Array:
    """A positive definite matrix; one number stands for a multiple of I, a list for a diagonal.

    With `exact` a variance may be 0, of a coordinate without error, if its covariances are 0, too.
    """
    numbers_allowed = f"a positive number, {size} positive numbers"
    if exact:
        numbers_allowed = f"a variance (0: without error), {size} variances"
    allowed = f"{numbers_allowed} or a symmetric positive definite {size} x {size} matrix"
    array = numbers(field, value, allowed)
    if array.ndim == 0:
        array = np.full(size, float(array))
    if array.shape == (size,):  # never singular, and possibly too large for eigenvalues
        _check_variances(field, value, array[array != 0] if exact else array, allowed)
        return np.diag(array)
    if array.shape != (size, size):
        raise InputError(field, f"{_shorten(value)} has shape {array.shape}", allowed)
    skew = np.abs(array - array.T)
    if skew.max(initial=0.0) > 1e-12 * np.abs(array).max(initial=0.0):
        i, j = np.unravel_index(np.argmax(skew), skew.shape)
        pair = f"entry [{i}][{j}] = {array[i, j]:g} but [{j}][{i}] = {array[j, i]:g}"
        raise InputError(field, f"not symmetric, {pair}", allowed)
    noisy = array.any(axis=0) if exact else np.ones(size, bool)
    if noisy.any():
        _check_definite(field, value, array[np.ix_(noisy, noisy)], allowed)
    return array / 2 + array.T / 2


def _check_definite(field: str, value: object, matrix: Array, allowed: str) -> None:
    # Scale to a unit diagonal first: different units of the coordinates do not make a matrix singular.
    diagonal = np.diag(matrix)
    _check_variances(field, value, diagonal, allowed)
    scale = np.sqrt(diagonal)
    least, most = np.linalg.eigvalsh(matrix / scale / scale[:, None])[[0, -1]]
    if least <= 0 or most / least > WORST_CONDITION:
        kind = "singular" if least > -1e-12 * most else "not positive definite"
        raise InputError(field, f"{_shorten(value)} is {kind} (smallest eigenvalue {least:.3g})", allowed)


def _check_variances(field: str, value: object, variances: Array, allowed: str) -> None:
    if np.any(variances <= 0):
        raise InputError(field, f"{_shorten(value)} has the variance {variances.min():g}", allowed)
    if np.any(variances < SMALLEST):
        raise InputError(field, f"{_shorten(value)} has a variance below {SMALLEST:g}", allowed)


def rows(field: str, value: object, width: int | None, allowed: str) -> Array:
    """One or more rows of finite numbers; without a width, rows may be arrays of any shape."""
    array = numbers(field, value, allowed)
    fits = array.ndim >= 2 if width is None else array.ndim == 2 and array.shape[1] == width
    if not fits or 0 in array.shape:
        raise InputError(field, f"{_shorten(value)} has shape {array.shape}", allowed)
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
    """A number between 0 and 1, exclusive."""
    if not 0 < positive(field, value) < 1:
        raise InputError(field, value, "a number between 0 and 1, such as 0.95")
    return positive(field, value)


def count(field: str, value: object, least: int = 1, most: int = 10**9) -> int:
    """An integer in a range."""
    allowed = f"a whole number, at least {least} and at most {most}"
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value <= most:
        raise InputError(field, display(value), allowed)
    return int(value)


def flag(field: str, value: object) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise InputError(field, display(value), "True or False")
    return value


def one_of(field: str, value: object, names: Sequence[str]) -> str:
    """One of these names."""
    if not isinstance(value, str) or value not in names:
        raise InputError(field, display(value), ", ".join(names), nearest(value, names))
    return value


def check_contract(field: str, value: object, contract: type, allowed: str) -> None:
    """Raise if a value lacks a member of a contract, or is a class instead of an instance."""
    members = set(dir(value))
    missing = [name for name in vars(contract) if name[0] != "_" and name not in members]
    if isinstance(value, type):
        raise InputError(field, f"the class {value.__name__}", f"{allowed}; of a class, an instance")
    if missing:
        raise InputError(field, f"{_shorten(value)} has no {missing[0]}", allowed)


def import_object(field: str, path: str, allowed: str) -> object:
    """The object called module:name; the module is imported."""
    module, _, name = path.partition(":")
    try:
        members = vars(import_module(module))
    except (Exception, SystemExit) as error:  # the user's module may raise anything, or exit
        reason = error if isinstance(error, ImportError | SyntaxError) else repr(error)
        raise InputError(field, f"cannot import {module}: {reason}", allowed) from error
    if name not in members:
        raise InputError(field, f"there is no {name!r} in {module}", allowed)
    return members[name]


def check_keywords(public: Public) -> Public:
    """Refuse a misspelt keyword of a public function, or of a class's constructor and its own public methods.

    A decorator. It looks at the keywords only after a call has raised a TypeError.

    >>> from unfog.validation import InputError, check_keywords
    >>> @check_keywords
    ... def area(width: float, height: float) -> float:
    ...     return width * height
    >>> try:
    ...     area(3.0, hieght=2.0)
    ... except InputError as error:
    ...     print(error)
    hieght: no such argument of area() (did you mean 'height'?); allowed: width, height
    """
    if not isinstance(public, type):
        return _with_checked_keywords(public, public.__name__)
    for name, member in [*vars(public).items()]:
        kind = type(member) if isinstance(member, staticmethod | classmethod) else None
        function = member.__func__ if isinstance(member, staticmethod | classmethod) else member
        if isfunction(function) and (name in CONSTRUCTORS or name[0] != "_"):
            checked = _with_checked_keywords(function, name)
            setattr(public, name, kind(checked) if kind else checked)
    return public


def _with_checked_keywords(function: Public, label: str) -> Public:
    @wraps(function)
    def checked(*args: Any, **keywords: Any) -> Any:
        try:
            return function(*args, **keywords)
        except TypeError as error:
            owner = args[0] if label in CONSTRUCTORS and args else None
            owner = owner if owner is None or isinstance(owner, type) else type(owner)
            own_label = owner.__name__ if owner else label
            _refuse_keywords(function, own_label, keywords, str(error))
            raise

    return cast(Public, checked)


def _refuse_keywords(
    function: Callable[..., Any], label: str, keywords: Mapping[str, object], message: str
) -> None:
    """Raise InputError about the first keyword that a function, or what it passes keywords on to, lacks."""
    parameters = signature(function).parameters.values()
    passes_on = any(one.kind is one.VAR_KEYWORD for one in parameters)
    names = [one.name for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]
    allowed = [name for name in names if name not in ("self", "cls", "_cls")]
    for name in keywords:
        if name not in names and (not passes_on or f"unexpected keyword argument '{name}'" in message):
            others = [f"what {label}() passes on"] if passes_on else []
            listed = ", ".join(allowed + others) or "none"
            raise InputError(name, f"no such argument of {label}()", listed) from None


def check_finite(field: str, values: Array, gaps: str = "") -> None:
    """Raise unless numbers are finite; `gaps` says what NaN means, if it is allowed."""
    bad = np.abs(values) > LARGEST
    bad |= ~np.isfinite(values) if not gaps else np.isinf(values)
    allowed = f"finite numbers, at most {LARGEST:g} in size" + (f"; nan where {gaps}" if gaps else "")
    _check_values(field, values, bad, allowed)


def check_reward(field: str, values: Array, kind: str, low: float = -LARGEST, high: float = LARGEST) -> None:
    """Raise unless rewards are of this kind, and from `low` to `high`."""
    if kind == "bernoulli":
        return _check_values(field, values, (values != 0) & (values != 1), "0 or 1")
    within = "" if (low, high) == (-LARGEST, LARGEST) else f" from {low:g} to {high:g}"
    return _check_values(field, values, ~((values >= low) & (values <= high)), f"finite numbers{within}")


def _check_values(field: str, values: Array, bad: Any, allowed: str) -> None:
    """Raise an error about the first bad value, with its index, if any is bad."""
    if not np.any(bad):
        return
    index = tuple(int(i) for i in np.argwhere(bad)[0])
    where = "".join(f"[{i}]" for i in index)
    raise InputError(f"{field}{where}", f"{float(np.asarray(values)[index])}", allowed)


def check_name(field: str, value: object) -> str:
    """Return a name: text on one line."""
    allowed = f"text on one line, of 1 to {LONGEST_NAME} characters"
    if (
        not isinstance(value, str)
        or not 0 < len(value) <= LONGEST_NAME
        or not value.isprintable()
        or not value.strip()
    ):
        raise InputError(field, display(value), allowed)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InputError(field, display(value), allowed) from None
    return str.__str__(value)  # plain text for logs and checksums, also from NumPy's strings and enumerations


def check_decision(value: object) -> str:
    """Return the id of a decision; a Decision itself, or its number, is refused with a word on its id."""
    if isinstance(getattr(value, "id", None), str) and hasattr(value, "arm"):
        raise InputError("decision", type(value).__name__, "the id of a decision", "d.id")
    if isinstance(value, int):
        raise InputError("decision", display(value), "the id of a decision", "d.id")
    return check_name("decision", value)


def nearest_arm(value: object, arms: Sequence[str]) -> str:
    """The arm that was probably meant: the most similar name, or that at this index; "" if there is none."""
    name = str(value)
    if name.isdecimal() and len(name) < 10 and int(name) < len(arms):
        return arms[int(name)]
    return nearest(name, arms)


def as_list(field: str, values: Any, allowed: str) -> list[Any]:
    """The items of an iterable that is not text."""
    try:
        items = None if isinstance(values, str | bytes) else list(values)
    except TypeError:  # also for an array without axes, which claims to be iterable
        items = None
    if items is None:
        raise InputError(field, display(values), allowed)
    return items


def check_names(field: str, values: Any, most: int = MOST_ARMS) -> list[str]:
    """Return distinct names."""
    return _check_distinct(field, values, most, check_name, "each name once")


def check_identifiers(field: str, values: Any, most: int = MOST_ARMS) -> list[str]:
    """Return distinct names of arms or levels: texts, or integers as texts."""
    allowed = "each name once; a number and its text are the same name"
    return _check_distinct(field, values, most, check_identifier, allowed)


def _check_distinct(
    field: str, values: Any, most: int, check: Callable[[str, object], str], allowed: str
) -> list[str]:
    names = [
        check(f"{field}[{i}]", value) for i, value in enumerate(as_list(field, values, "a list of names"))
    ]
    if not 0 < len(names) <= most:
        raise InputError(field, f"{len(names)} names", f"1 to {most}")
    if len(set(names)) < len(names):
        i = next(i for i, one in enumerate(names) if one in names[:i])
        raise InputError(f"{field}[{i}]", repr(names[i]), allowed)
    return names


def check_coordinates(field: str, value: Any) -> list[str]:
    """Return the names of a context's coordinates."""
    return check_names(field, value, MOST_COORDINATES)


def check_arms(field: str, value: Any) -> dict[str, Any]:
    """Return the names of arms with their vectors, or None for arms without."""
    if value is None:
        return {}
    names = check_identifiers(field, value, MOST_ARMS)
    if not isinstance(value, Mapping):
        return dict.fromkeys(names)
    vectors = zip(names, value.values(), strict=True)
    return {one: None if vector is None else arm_vector(f"{field}.{one}", vector) for one, vector in vectors}


def arm_vector(field: str, value: Any) -> list[Any]:
    """The numbers of an arm: a list, or for matrices a list of rows."""
    allowed = "a list of finite numbers"
    array = numbers(field, value, allowed)
    if array.ndim not in (1, 2) or array.size == 0:
        raise InputError(field, value, allowed)
    entries: list[Any] = array.tolist()
    return entries


def is_missing(value: object) -> bool:
    """Whether it says that there is no value: None, NaN, NaT, pandas.NA, a masked cell, a null of Arrow."""
    if value is None or isinstance(value, str | int):
        return value is None
    if isinstance(value, float | np.floating):
        return bool(value != value)
    if isinstance(value, Decimal):
        return value.is_nan()
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    pandas = sys.modules.get("pandas")
    masks = np.ma.masked, getattr(pandas, "NA", None), getattr(pandas, "NaT", None)
    return any(value is one for one in masks) or getattr(value, "is_valid", True) is False


def unbox(value: Any) -> Any:
    """The plain value in an array without axes or in a scalar of Arrow; other values as they are."""
    if isinstance(value, np.ndarray) and value.shape == () and value is not np.ma.masked:
        return value.item()
    return value.as_py() if hasattr(value, "as_py") else value


def number(field: str, value: object, allowed: str = "a finite number") -> float:
    """A finite float from a number of any type; text and booleans are refused."""
    result = value if type(value) is float else _to_float(field, value, allowed)
    if not -LARGEST <= result <= LARGEST:
        raise InputError(field, display(value), f"{allowed}, at most {LARGEST:g} in size")
    return result


def _to_float(field: str, value: object, allowed: str) -> float:
    plain = unbox(value)
    if isinstance(plain, bool) or not isinstance(plain, Real | Decimal):
        raise InputError(field, display(value), allowed, nearest_number(plain))
    try:
        return float(plain)
    except (OverflowError, ValueError):  # an integer that is too large, a NaN that signals
        raise InputError(field, display(value), allowed) from None


def nearest_number(value: object) -> str | float:
    """The number that a text spells, as a suggestion; "" if it spells none."""
    try:
        spelt = float(value) if isinstance(value, str) else np.nan
    except ValueError:
        return ""
    if not abs(spelt) <= LARGEST:
        return ""
    return int(spelt) if spelt == int(spelt) else spelt


def check_identifier(field: str, value: object) -> str:
    """Return the name of a unit, an arm or a level: text, or an integer as text.

    7, numpy.int64(7) and 7.0 (a column of pandas with gaps) are '7'.
    """
    if isinstance(value, str):
        return check_name(field, value)
    whole = _to_integer(unbox(value))
    if whole is None:
        raise InputError(field, display(value), f"text of 1 to {LONGEST_NAME} characters, or an integer")
    return str(whole)


def _to_integer(value: Any) -> int | None:
    """The integer that a number is; None for booleans, fractions, and floats that may have been rounded."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | np.integer):
        whole = int(value)
        return whole if abs(whole) < 10**LONGEST_NAME else None
    if isinstance(value, float | np.floating | Decimal) and not is_missing(value):
        return int(value) if abs(float(value)) <= 2**53 and value == int(value) else None
    return None


TIME = "a number, or a date with its time and zone, such as 2026-03-01T12:00:00Z"


def check_time(field: str, value: object, allowed: str = TIME, zone: tzinfo | None = None) -> float:
    """Seconds since 1970: a number, a datetime with its zone, or such a text in ISO 8601.

    `zone` is that of times that say none; by default they are refused.
    """
    value = unbox(value)
    if not isinstance(value, str | datetime):
        return number(field, value, allowed)
    try:
        time = datetime.fromisoformat(value.strip()) if isinstance(value, str) else value
        time = time if time.tzinfo or zone is None else time.replace(tzinfo=zone)
        if time.tzinfo is None:
            text = time.isoformat()
            raise InputError(field, f"{text} has no time zone", allowed, f"{text}Z")
        return time.timestamp()
    except (OverflowError, OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(field, display(value), allowed) from None
