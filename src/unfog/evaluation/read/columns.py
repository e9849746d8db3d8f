"""Which column of a table is what: as arguments, or in a few lines of TOML.

    context = ["steps_today", "sleep_hours"]     reward = "walked"
    arm = "message"                              probability = "p"

What is not said is looked for under the names that `unfog live table` writes: `context.<name>`,
`true.<name>`, arm, reward, probability, time, unit; and `probability.<arm>` for those of every arm.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple

from unfog import _io
from unfog.evaluation.read.refusals import WITHOUT
from unfog.validation import InputError, shown

ONE = ("arm", "reward", "time", "unit")


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Names of columns; None for those that are called as usual, or are not there.

    `true` has a column for each coordinate, in the order of `context`, or is a mapping from columns of the
    context to columns of the truth. `probabilities` is a mapping from arms to columns. `probability` is a
    column, or a number where all arms were drawn evenly.
    """

    context: Sequence[str] | None = None
    arm: str | None = None
    reward: str | None = None
    probability: str | float | None = None
    true: Sequence[str] | Mapping[str, str] | None = None
    time: str | None = None
    unit: str | None = None
    probabilities: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse what is no name."""
        for name in ONE:
            if not isinstance(getattr(self, name), str | None):
                raise InputError(f"columns.{name}", shown(getattr(self, name)), "the name of a column")
        if isinstance(self.context, str) or isinstance(self.true, str):
            one = "context" if isinstance(self.context, str) else "true"
            raise InputError(f"columns.{one}", shown(getattr(self, one)), "a list of names of columns")


class Found(NamedTuple):
    """Columns that are there."""

    coordinates: tuple[str, ...]
    context: tuple[str, ...]
    true: dict[str, str]  # by coordinate
    arm: str
    reward: str
    probability: str | float | None  # None: it follows from those of all arms
    probabilities: dict[str, str]  # by arm
    time: str | None
    unit: str | None

    @property
    def numbers(self) -> list[str]:
        """Those that hold numbers."""
        own = [self.probability] if isinstance(self.probability, str) else []
        return [*self.context, *self.true.values(), *self.probabilities.values(), *own, self.reward]

    @property
    def texts(self) -> list[str]:
        """Those that hold names, or times."""
        return [name for name in (self.arm, self.time, self.unit) if name is not None]

    @property
    def called(self) -> dict[str, str]:
        """What fields of the log are called, for complaints."""
        names = {f"true.{one}": column for one, column in self.true.items()}
        names |= {f"context.{one}": c for one, c in zip(self.coordinates, self.context, strict=True)}
        own = {"probability": self.probability} if isinstance(self.probability, str) else {}
        return {**names, **own, "reward": self.reward, "time": self.time or "time"}


def from_toml(path: str | Path) -> Columns:
    """The columns that a file says, at its top or in a table `columns`."""
    told = _io.toml("columns", path, "a file of TOML")
    return from_mapping(told.get("columns", told))


def from_mapping(told: Mapping[str, Any]) -> Columns:
    """The same, of a mapping."""
    known = [one.name for one in fields(Columns)]
    if not isinstance(told, Mapping):
        raise InputError("columns", shown(told), f"a table of {', '.join(known)}")
    for name in told:
        if name not in known:
            raise InputError(f"columns.{name}", "no such field", ", ".join(known))
    return Columns(**told)


def found(columns: Columns, names: Sequence[str], coordinates: Sequence[str] | None = None) -> Found:
    """What of a table's columns is what; refused where one is missing, with those that there are."""
    if not names:
        raise InputError("log", "no columns", "a header with their names, then a row for each decision")
    for place, name in enumerate(names):
        if name in names[:place]:
            raise InputError(str(name), "two columns of this name", "each column once")
    context = _context(columns, names, coordinates)
    called = tuple(name.removeprefix("context.") for name in context) if coordinates is None else coordinates
    if len(called) != len(context):
        raise InputError("coordinates", shown(coordinates), f"a name for each of {', '.join(context)}")
    every = dict(columns.probabilities) or {
        name.removeprefix("probability."): name for name in names if name.startswith("probability.")
    }
    for column in every.values():
        there(names, "probabilities", column)
    one = {name: _column(names, name, getattr(columns, name), name in ("arm", "reward")) for name in ONE}
    return Found(
        tuple(called),
        context,
        _true(columns, names, context, called),
        str(one["arm"]),
        str(one["reward"]),
        _probability(columns, names, every),
        every,
        one["time"],
        one["unit"],
    )


def there(names: Sequence[str], field_: str, column: object) -> str:
    """A column that is there."""
    if not isinstance(column, str) or column not in names:
        raise InputError(field_, f"no column {column!r}", f"one of: {', '.join(map(str, names)) or 'none'}")
    return column


def _column(names: Sequence[str], field_: str, told: str | None, needed: bool) -> str | None:
    if told is None and not needed and field_ not in names:
        return None
    return there(names, field_, field_ if told is None else told)


def _context(columns: Columns, names: Sequence[str], coordinates: Sequence[str] | None) -> tuple[str, ...]:
    if columns.context is not None:
        wanted = list(columns.context)
    elif coordinates is not None:
        wanted = [one if f"context.{one}" not in names else f"context.{one}" for one in coordinates]
    else:
        wanted = [name for name in names if str(name).startswith("context.")]
    if not wanted:
        allowed = f"columns context.<name>; or say which they are, out of: {', '.join(map(str, names))}"
        raise InputError("context", "no columns", allowed)
    return tuple(there(names, "context", one) for one in wanted)


def _true(
    columns: Columns, names: Sequence[str], context: Sequence[str], called: Sequence[str]
) -> dict[str, str]:
    """The columns of true contexts, by coordinate."""
    told, by_name = columns.true, {**dict(zip(context, called, strict=True)), **{one: one for one in called}}
    if told is None:
        return {one: f"true.{one}" for one in called if f"true.{one}" in names}
    if not isinstance(told, Mapping):
        if len(told) != len(context):
            allowed = f"a column for each of {', '.join(context)}; or a mapping from them"
            raise InputError("columns.true", shown(list(told)), allowed)
        told = dict(zip(context, told, strict=True))
    for one in told:
        if one not in by_name:
            raise InputError("columns.true", shown(one), f"columns of the context: {', '.join(context)}")
    return {by_name[one]: there(names, "true", column) for one, column in told.items()}


def _probability(columns: Columns, names: Sequence[str], every: Mapping[str, str]) -> str | float | None:
    told = columns.probability
    if isinstance(told, int | float) and not isinstance(told, bool):
        return float(told)
    if told is None and "probability" not in names:
        if every:
            return None
        raise InputError("probability", f"no such column among {', '.join(map(str, names))}", WITHOUT)
    return there(names, "probability", "probability" if told is None else told)
