"""What a caller says of a context, coordinate by coordinate; and rows of values as columns of numbers.

    context = {"steps": 1200, "mood": Reading(0.6, sd=1.1), "day": Category(["am", "pm"]), "hour": Cycle(24)}

A number is how far one reading may be off by chance, as a standard deviation; with 0 the reading is exact.
What is None is not known, and may be learnt. A list of names says that all are exact. In JSON and TOML a
`Reading` is a table of its fields, or its number; a `Category` a list of its levels; a `Cycle` a table with
its period.

A reading has one column. A category has a column for each level, 1 for the level that it is and 0 for the
others: their slopes have one prior variance in common. A cycle of period P has two,
(cos 2 pi x / P, sin 2 pi x / P). Columns of one coordinate are a group (`ContextSpec.groups`).

Categories and cycles are exact, but may be missing. Then their law says what is believed of them: a category
with frequencies p has the mean p and the covariance diag(p) - p p', a cycle the mean and the covariance of
its two columns. The law follows from a `Tally` of what was seen, which is a state: `start`, `count` with each
encoded row, `law`. It begins with one observation: spread evenly over the levels, or around the circle.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from unfog import validation
from unfog._frames import read_row
from unfog.channel.channel import Channel, Units
from unfog.maths.arrays import Array, Ints
from unfog.validation import InputError, check_keywords, display, is_missing

OTHER = "other"
ALLOWED = (
    "a number: how far one reading may be off by chance, as a standard deviation (0: exact); a Reading, a"
    " Category or a Cycle; in a file also a table of a Reading's fields, or a list of levels"
)
SPREAD = "a positive number: the standard deviation of true contexts over people and times; None: learnt"
EXACT = 1e-12  # variance of the error of an exact column, relative to the column's own
RIDGE = 1e-8  # likewise what is added to the covariance of a category, since its columns sum to 1
LIKELY_FIELDS = {  # what misspelt fields of a reading most likely are
    "context_sd": "sd",
    "context_mean": "mean",
    "std": "sd",
    "noise": "noise_sd",
    "noise_cov": "noise_sd",
    "noise_var": "noise_sd",
    "bias": "bias_sd",
    "bias_cov": "bias_sd",
}
LIKELY_OPTIONS = {  # likewise, of what is said of a whole problem, but belongs to a coordinate
    name: f"Reading({field}=)"
    for name, field in (LIKELY_FIELDS | {one: one for one in ("noise_sd", "bias_sd", "between_sd")}).items()
}


@check_keywords
@dataclass(frozen=True)
class Reading:
    """A number that a sensor reads, in standard deviations; None: not known, learnt.

    Parameters
    ----------
    noise_sd : how far one reading may be off by chance; 0: exact.
    bias_sd : how far devices are off for good, each by its own offset.
    mean, sd : of true contexts, over people and times.
    between_sd : how far people's own means lie apart: a part of `sd`.

    >>> import unfog
    >>> unfog.Reading(1200, mean=7000, sd=2000)
    Reading(noise_sd=1200.0, bias_sd=None, mean=7000.0, sd=2000.0, between_sd=None)
    """

    noise_sd: float
    bias_sd: float | None = None
    mean: float | None = None
    sd: float | None = None
    between_sd: float | None = None

    def __post_init__(self) -> None:
        """Convert to floats; InputError for what is impossible."""
        self._set("noise_sd", _check_sd("noise_sd", self.noise_sd))
        for name in ("bias_sd", "between_sd"):
            if getattr(self, name) is not None:
                self._set(name, _check_sd(name, getattr(self, name)))
        if self.mean is not None:
            self._set("mean", validation.number("mean", self.mean, "a finite number; None: learnt"))
        if self.sd is not None:
            self._set("sd", _check_sd("sd", self.sd))
            if not self.sd:
                raise InputError("sd", self.sd, SPREAD)
        if self.sd is not None and self.between_sd is not None and self.sd < self.between_sd:
            allowed = f"at least between_sd, {self.between_sd:g}: people's own means are a part of it"
            raise InputError("sd", self.sd, allowed)

    def _set(self, name: str, value: float) -> None:
        object.__setattr__(self, name, value)

    def to_json(self) -> Any:
        """The number alone, or a table of the fields that are known."""
        known = {one.name: getattr(self, one.name) for one in fields(self)}
        known = {name: value for name, value in known.items() if value is not None}
        return known if len(known) > 1 else self.noise_sd


def _check_sd(field: str, value: object) -> float:
    """A standard deviation: zero or a positive number."""
    allowed = "zero or a positive number, a standard deviation"
    sd = validation.number(field, value, allowed)
    if sd < 0 or 0 < sd < np.sqrt(validation.SMALLEST):
        raise InputError(field, display(value), allowed)
    return sd


@check_keywords
@dataclass(frozen=True)
class Category:
    """One of several levels, which are texts or integers; exact, but may be missing.

    A level that is not listed is refused, or with `other` counts as the level "other".

    >>> import unfog
    >>> unfog.Category(["mon", "tue", 3]).levels
    ('mon', 'tue', '3')
    """

    levels: Sequence[str | int]
    other: bool = False

    def __post_init__(self) -> None:
        """Convert levels to text; InputError for fewer than two."""
        levels = validation.check_identifiers("levels", self.levels, validation.MOST_COORDINATES)
        validation.flag("other", self.other)
        object.__setattr__(self, "levels", tuple(levels))
        if len(self.columns) < 2:
            raise InputError("levels", display(levels), "two levels at least")

    @property
    def columns(self) -> tuple[str, ...]:
        """The levels, each with a column; last the one for all others, if there is one."""
        levels = tuple(str(level) for level in self.levels)
        return (*levels, OTHER) if self.other and OTHER not in levels else levels

    def index(self, field: str, value: object) -> int:
        """The index of a value's column."""
        level = validation.check_identifier(field, value)
        if level in self.columns:
            return self.columns.index(level)
        if not self.other:
            near = validation.nearest(level, self.columns)
            allowed = f"one of the levels: {', '.join(self.columns)}; others with other=True alone"
            raise InputError(field, display(value), allowed, near)
        return self.columns.index(OTHER)

    def to_json(self) -> Any:
        """A list of the levels; a table where there may be others."""
        return {"levels": list(self.levels), "other": True} if self.other else list(self.levels)


@check_keywords
@dataclass(frozen=True)
class Cycle:
    """A number that begins again after a period, such as an hour of the day; exact, but may be missing.

    >>> import unfog
    >>> unfog.Cycle(24)
    Cycle(period=24.0)
    """

    period: float

    def __post_init__(self) -> None:
        """Convert to a float; InputError for what is no period."""
        allowed = "a positive number, after which values begin again, such as 24 for hours"
        period = validation.number("period", self.period, allowed)
        if period < validation.SMALLEST:
            raise InputError("period", display(self.period), allowed)
        object.__setattr__(self, "period", period)

    def to_json(self) -> Any:
        """A table with the period."""
        return {"period": self.period}


Coordinate: TypeAlias = Reading | Category | Cycle
FIELDS = {kind: [one.name for one in fields(kind)] for kind in (Reading, Category, Cycle)}


class Encoded(NamedTuple):
    """A row as numbers."""

    values: Array  # (D,)  NaN where missing
    mask: Array  # (D,)  1 where there is a value, 0 where it is missing


class Tally(NamedTuple):
    """What was seen of categories and cycles, a number for each column; the columns of readings stay 0."""

    rows: Array  # (D,)  in which there was a value
    total: Array  # (D,)  the sum of the column
    square: Array  # (D,)  of a cycle's two columns: the sums of cos^2, and of cos sin


class Law(NamedTuple):
    """The mean and the covariance of true columns; NaN for readings whose mean or sd is not known."""

    mean: Array  # (D,)
    cov: Array  # (D, D)


@dataclass(frozen=True)
class ContextSpec:
    """The coordinates of a context by name, in the order of their columns.

    >>> from unfog.channel.context import Category, read_context
    >>> spec = read_context("context", {"steps": 1200, "weekday": Category(["mon", "tue"])})
    >>> spec.columns
    ('steps', 'weekday=mon', 'weekday=tue')
    >>> spec.encode({"steps": None, "weekday": "tue"}).mask.tolist()
    [0.0, 1.0, 1.0]
    """

    coordinates: Mapping[str, Coordinate]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of coordinates."""
        return tuple(self.coordinates)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The names of columns."""
        return tuple(column for name, one in self.coordinates.items() for column in _columns_of(name, one))

    @cached_property
    def slices(self) -> dict[str, slice]:
        """The columns of each coordinate."""
        sizes = [len(_columns_of(name, one)) for name, one in self.coordinates.items()]
        ends = np.cumsum(sizes).tolist()
        return {name: slice(end - size, end) for name, size, end in zip(self.names, sizes, ends, strict=True)}

    @cached_property
    def groups(self) -> Ints:
        """For each column the index of its coordinate: slopes of one group have one prior variance, (D,)."""
        sizes = [part.stop - part.start for part in self.slices.values()]
        return np.repeat(np.arange(len(sizes)), sizes)

    @property
    def readings(self) -> tuple[str, ...]:
        """The coordinates that are neither categories nor cycles; each has one column, of its own name."""
        return tuple(name for name, one in self.coordinates.items() if isinstance(one, Reading))

    @property
    def exact(self) -> tuple[str, ...]:
        """The coordinates that are read without error, as far as the caller says."""
        return tuple(name for name, one in self.coordinates.items() if _is_exact(one))

    def is_known(self, name: str) -> bool:
        """Whether the caller says all that a channel has of this coordinate."""
        return not _find_unknown(self.coordinates[name])

    def to_json(self) -> dict[str, Any]:
        """A table by name, from which `read_context` makes the same again."""
        return {name: one.to_json() for name, one in self.coordinates.items()}

    def encode(self, row: Any, field: str = "context", *, partial: bool = False) -> Encoded:
        """A row as numbers: a mapping, a row of a frame, a Series, or values in order.

        None, NaN, pandas.NA and null are missing. With `partial`, coordinates that are not named are, too.
        """
        raw = read_row(field, row, self.names, partial=partial)
        values = np.full(len(self.columns), np.nan)
        for name, value in raw.items():
            if not is_missing(value):
                values[self.slices[name]] = _encode(f"{field}.{name}", self.coordinates[name], value)
        return Encoded(values, (~np.isnan(values)).astype(np.float64))

    def decode_row(self, values: Array) -> dict[str, Any]:
        """The values of an encoded row, (D,), by coordinate; None for what was missing."""
        return {
            name: None if np.isnan(values[part]).any() else _decode_value(one, values[part])
            for (name, one), part in zip(self.coordinates.items(), self.slices.values(), strict=True)
        }

    def decode(self, mean: Array, cov: Array) -> tuple[dict[str, Any], dict[str, Any]]:
        """What is believed of the columns, (D,) and (D, D), as people read it: values, and their sds.

        A category has the probabilities of its levels, a cycle its value.
        """
        beliefs = {
            name: _decode(one, mean[part], cov[part, part])
            for (name, one), part in zip(self.coordinates.items(), self.slices.values(), strict=True)
        }
        return {name: value for name, (value, _) in beliefs.items()}, {
            name: sd for name, (_, sd) in beliefs.items()
        }

    def start(self) -> Tally:
        """The tally before anything was seen."""
        return Tally(*(np.zeros(len(self.columns)) for _ in Tally._fields))

    def count(self, tally: Tally, row: Encoded) -> Tally:
        """The tally with one more row."""
        values, square = np.where(row.mask == 1, row.values, 0.0), np.zeros_like(tally.square)
        for name, one in self.coordinates.items():
            if isinstance(one, Cycle):
                part = self.slices[name]
                square[part] = values[part][0] * values[part]
        seen = np.array([not isinstance(self.coordinates[self.names[i]], Reading) for i in self.groups])
        return Tally(tally.rows + seen * row.mask, tally.total + seen * values, tally.square + square)

    def law(self, tally: Tally | None = None) -> Law:
        """The law of true columns: of readings as the caller says, of the others from what was seen."""
        tally = self.start() if tally is None else tally
        size = len(self.columns)
        mean, cov = np.zeros(size), np.zeros((size, size))
        for name, one in self.coordinates.items():
            part = self.slices[name]
            mean[part], cov[part, part] = _law(one, Tally(*(array[part] for array in tally)))
        return Law(mean, cov)

    def to_channel(self, tally: Tally | None = None, field: str = "context") -> Channel:
        """The channel, where the caller says all of it; InputError for the first number that is missing.

        `between_sd` is not a part of it. Exact columns have a noise and a bias that are as good as none.
        """
        noise, bias = np.zeros(len(self.columns)), np.zeros(len(self.columns))
        mean, cov = self.law(tally)
        for name, one in self.coordinates.items():
            part = self.slices[name]
            if isinstance(one, Reading):
                _check_known(f"{field}.{name}", one)
                noise[part], bias[part] = one.noise_sd**2, (one.bias_sd or 0.0) ** 2
            elif isinstance(one, Category):
                cov[part, part] += (
                    RIDGE * np.trace(cov[part, part]) / len(one.columns) * np.eye(len(mean[part]))
                )
        least = EXACT * self._variances(cov)
        return Channel(
            mean,
            cov,
            np.diag(np.maximum(noise, least)),
            np.diag(np.maximum(bias, least)),
            np.zeros_like(mean),
        )

    def to_partial_channel(self) -> Channel:
        """What the caller says of readings; moments that they do not say are not numbers.

        Categories and cycles are exact, and their law is to be learnt.
        """
        mean, variance, noise, bias, person = (np.full(len(self.columns), np.nan) for _ in range(5))
        for name, one in self.coordinates.items():
            part = self.slices[name]
            noise[part] = one.noise_sd**2 if isinstance(one, Reading) else 0.0
            if _is_exact(one):
                bias[part] = 0.0
            if isinstance(one, Reading):
                for moment, value in ((variance, one.sd), (bias, one.bias_sd), (person, one.between_sd)):
                    if value is not None:
                        moment[part] = value**2
                if one.mean is not None:
                    mean[part] = one.mean
        covs = np.diag(variance), np.diag(noise), np.diag(bias)
        return Channel(mean, *covs, np.zeros_like(mean), person_cov=np.diag(person))

    @property
    def effect_groups(self) -> tuple[int, ...]:
        """For an intercept and a slope on each column, which of them share a prior variance."""
        return (0, *(1 + self.groups).tolist())

    def to_units(self, channel: Channel) -> Units:
        """Units in which the columns of a group have mean 0, and mean variance 1.

        One scale for all columns of a group: scaled one by one, rare levels would have larger slopes.
        """
        return Units(channel.context_mean, np.sqrt(self._variances(channel.context_cov)), channel.bias)

    def _variances(self, cov: Array) -> Array:
        """The mean variance of each column's group, (D,)."""
        means = np.bincount(self.groups, np.diag(cov)) / np.bincount(self.groups)
        return np.asarray(means[self.groups])


def read_context(field: str, value: Any) -> ContextSpec:
    """What a caller says of a context: a mapping by name, a list of names that are all exact, or a spec."""
    if isinstance(value, ContextSpec):
        return value
    if value is None:
        raise InputError(field, "missing", f"a mapping from names of coordinates, to each {ALLOWED}")
    names = validation.check_coordinates(field, value)
    if not isinstance(value, Mapping):
        return ContextSpec(dict.fromkeys(names, Reading(0.0)))
    spec = ContextSpec({name: _read_coordinate(f"{field}.{name}", value[name]) for name in names})
    columns = spec.columns
    if len(columns) > validation.MOST_COORDINATES:
        raise InputError(field, f"{len(columns)} columns", f"{validation.MOST_COORDINATES} at most")
    if len(set(columns)) < len(columns):
        again = next(one for i, one in enumerate(columns) if one in columns[:i])
        raise InputError(field, f"two columns {again!r}", "names that columns of another have not")
    return spec


def _read_coordinate(field: str, value: Any) -> Coordinate:
    if isinstance(value, Reading | Category | Cycle):
        return value
    try:
        if isinstance(value, Mapping):
            return _read_table(value)
        if isinstance(value, list | tuple):
            return Category(value)
    except InputError as error:
        raise InputError.prefixed(field, error) from None
    sd = validation.number(field, value, ALLOWED)
    if sd < 0:
        raise InputError(field, display(value), ALLOWED)
    return Reading(sd)


def _read_table(table: Mapping[str, Any]) -> Coordinate:
    """A coordinate from a table of its fields: those of a category or a cycle if it has one of them."""
    kind = next((kind for kind in (Category, Cycle) if _is_of_kind(table, kind)), Reading)
    names = FIELDS[kind]
    for name in table:
        if name not in names:
            near = LIKELY_FIELDS.get(name) if kind is Reading else None
            raise InputError(str(name), "no such field", ", ".join(names), near)
    if names[0] not in table:
        raise InputError(names[0], "missing", f"a table with {', '.join(names)}")
    return kind(**table)


def _is_of_kind(table: Mapping[str, Any], kind: type[Category | Cycle]) -> bool:
    """Whether a table has a field of this kind, or one that is misspelt and no other's."""
    if not {*FIELDS[kind]}.isdisjoint(table):
        return True
    others = [name for name in table if name not in FIELDS[Reading] and name not in LIKELY_FIELDS]
    return any(validation.nearest(str(name), FIELDS[kind]) for name in others)


def _columns_of(name: str, one: Coordinate) -> tuple[str, ...]:
    if isinstance(one, Reading):
        return (name,)
    if isinstance(one, Cycle):
        return f"{name}.cos", f"{name}.sin"
    return tuple(f"{name}={level}" for level in one.columns)


def _is_exact(one: Coordinate) -> bool:
    return not isinstance(one, Reading) or (one.noise_sd == 0 and not one.bias_sd)


def _encode(field: str, one: Coordinate, value: Any) -> Array:
    """The columns of one value."""
    if isinstance(one, Category):
        return np.eye(len(one.columns))[one.index(field, value)]
    number = validation.number(field, value, "a finite number, or None where it was lost")
    if isinstance(one, Reading):
        return np.array([number])
    angle = 2 * np.pi * (number % one.period) / one.period
    return np.array([np.cos(angle), np.sin(angle)])


def _decode(one: Coordinate, mean: Array, cov: Array) -> tuple[Any, Any]:
    """What is believed of one coordinate, and its standard deviation."""
    sds = np.sqrt(np.maximum(np.diag(cov), 0.0))
    if isinstance(one, Reading):
        return float(mean[0]), float(sds[0])
    if isinstance(one, Cycle):
        return _decode_cycle(one.period, mean, cov)
    weights = np.maximum(mean, 0.0)
    shares = weights / weights.sum() if weights.sum() > 0 else np.full(len(mean), 1 / len(mean))
    return dict(zip(one.columns, shares.tolist(), strict=True)), dict(
        zip(one.columns, sds.tolist(), strict=True)
    )


def _decode_value(one: Coordinate, columns: Array) -> Any:
    """The value that has these columns."""
    if isinstance(one, Category):
        return one.columns[int(np.argmax(columns))]
    return float(columns[0]) if isinstance(one, Reading) else _to_cycle(one.period, *columns)


def _to_cycle(period: float, cos: float, sin: float) -> float:
    """The value of a cycle, without the error of rounding."""
    return float(np.round(np.arctan2(sin, cos) / (2 * np.pi) % 1, 14) % 1 * period)


def _decode_cycle(period: float, mean: Array, cov: Array) -> tuple[float, float]:
    """The value, and its standard deviation to first order; at most that of the uniform distribution."""
    cos, sin = mean
    across = np.array([-sin, cos])
    length, variance = float(across @ across), max(float(across @ cov @ across), 0.0)
    spread, most = period / (2 * np.pi) * np.sqrt(variance), period / np.sqrt(12)
    return _to_cycle(period, cos, sin), float(spread / length if spread < most * length else most)


def _law(one: Coordinate, seen: Tally) -> tuple[Array, Array]:
    """The mean and the covariance of a coordinate's columns."""
    if isinstance(one, Reading):
        mean = np.nan if one.mean is None else one.mean
        return np.array([mean]), np.array([[np.nan if one.sd is None else one.sd**2]])
    size = len(seen.rows)
    weight = 1 + seen.rows[0]
    if isinstance(one, Category):
        shares = (seen.total + 1 / size) / weight
        return shares, np.diag(shares) - shares[:, None] * shares
    mean, (square, cross) = seen.total / weight, seen.square
    second = np.array([[square + 0.5, cross], [cross, seen.rows[0] - square + 0.5]]) / weight
    return mean, second - mean[:, None] * mean


def _check_known(field: str, one: Reading) -> None:
    """Raise InputError for the first number of a reading that the caller does not say."""
    name = _find_unknown(one)
    if name:
        allowed = f"Reading({one.noise_sd:g}, {name}=…): a channel needs all of mean, sd and bias_sd"
        raise InputError(f"{field}.{name}", "not given", allowed)


def _find_unknown(one: Coordinate) -> str:
    """The first number of a reading that the caller does not say, and that a channel needs; else empty."""
    if not isinstance(one, Reading):
        return ""
    needed = ("mean", "sd") if _is_exact(one) else ("mean", "sd", "bias_sd")
    return next((name for name in needed if getattr(one, name) is None), "")
