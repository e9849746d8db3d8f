"""A record of one's own as a bandit: columns for time, noisy contexts and true ones, in the order of time.

The first `calibration` rows calibrate and the others are played, as worlds/record.py has it: each noisy
column is turned into the true one beside it by a line, contexts are counted in standard deviations of the
calibration, and rewards are simulated. A row that lacks a true value cannot be played and is left out, which
the world's note says; a noisy value that is missing is a coordinate that was lost.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from unfog import validation
from unfog.maths.arrays import Ints
from unfog.validation import InputError
from unfog.worlds.columns import column, numbers, times
from unfog.worlds.record import Record, Recorded

STRETCHES = 10  # that the calibration is cut into where no column says which rows may share a bias


@dataclass(frozen=True, kw_only=True, eq=False)
class Columns(Recorded):
    """A table whose columns are named; subclasses say where it is.

    `noisy` and `true` are names of columns, one for each coordinate, in the same order. `groups` names a
    column of labels: rows of one label may share a bias (weeks, devices, persons). Without it ten stretches
    of the calibration's length in rows do.
    """

    time: str = "time"
    noisy: list[str] | tuple[str, ...] = ()
    true: list[str] | tuple[str, ...] = ()
    groups: str = ""

    def __post_init__(self) -> None:
        """Check every field; the table is not needed for it."""
        for name in ("noisy", "true"):
            given = vars(self)[name]
            named = isinstance(given, list | tuple) and all(isinstance(one, str) and one for one in given)
            if not named or not given or len(set(given)) < len(given):
                raise InputError(name, given, "a list of names of columns, all different")
        if len(self.noisy) != len(self.true):
            raise InputError("noisy", list(self.noisy), f"as many columns as true, {len(self.true)}")
        for name in ("time", "groups"):
            if not isinstance(vars(self)[name], str):
                raise InputError(name, vars(self)[name], "the name of a column")
        super().__post_init__()

    @property
    def dim(self) -> int:
        """How many coordinates."""
        return len(self.true)

    @abstractmethod
    def _table(self) -> tuple[Mapping[str, Any], str]:
        """The columns, and what complaints call the table."""

    def record(self) -> Record:
        """The rows that have a true value for each coordinate."""
        table, source = self._table()
        true, raw = numbers(table, self.true, source), numbers(table, self.noisy, source)
        when = times(table, self.time, source)
        if not len(true) == len(raw) == len(when):
            raise InputError("data", f"{source} has columns of different lengths", "columns of one length")
        whole = np.asarray(np.isfinite(true).all(axis=1))
        if not whole.all():
            left_out = f"{(~whole).sum():,} of {len(whole):,} rows lack a true value and are left out"
            object.__setattr__(self, "note", left_out)
        labels = self._labels(table, source, whole)
        found = Record(true[whole], raw[whole], labels, when[whole])
        twice = (np.diff(found.times) == 0) & (np.diff(found.true, axis=0) != 0).any(axis=1)
        if twice.any() and not self.groups:
            problem = f"{source} has two true contexts at the time {found.times[np.argmax(twice)]:g}"
            raise InputError("data", problem, "one for each moment, or a column of groups")
        return found

    def _labels(self, table: Mapping[str, Any], source: str, whole: npt.NDArray[np.bool_]) -> Ints:
        """A number for each row's group."""
        if not self.groups:
            return np.arange(int(whole.sum())) // max(1, self.calibration // STRETCHES)
        given = np.array([str(one) for one in column(table, self.groups, source)])
        if len(given) != len(whole):
            raise InputError("data", f"{source} has columns of different lengths", "columns of one length")
        return np.unique(given[whole], return_inverse=True)[1]


@dataclass(frozen=True, kw_only=True, eq=False)
class RecordedProblem(Columns):
    """A record in memory: `data` is a data frame, or any mapping of names to columns.

    >>> import numpy as np
    >>> import unfog
    >>> rng = np.random.default_rng(0)
    >>> hours = np.arange(400.0)
    >>> true = np.sin(hours / 20) + 0.3 * rng.normal(size=400)
    >>> record = {"hour": hours, "read": true + 0.5 + 0.4 * rng.normal(size=400), "true": true}
    >>> problem = unfog.RecordedProblem(
    ...     data=record, time="hour", noisy=["read"], true=["true"], calibration=200, actions=4
    ... )
    >>> result = unfog.run(problem, agents=["temporal", "naive"], rounds=50, trials=20, seed=0)
    >>> result.regret.isel(round=-1).mean("trial").round(1).values.tolist()
    [2.1, 6.6]
    """

    data: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Check that there is a table, and every field."""
        validation.offering("data", self.data, _Table, "a data frame, or a mapping of names to columns")
        super().__post_init__()

    def _table(self) -> tuple[Mapping[str, Any], str]:
        return {str(name): self.data[name] for name in self.data}, "the table"


class _Table:
    """What a data frame and a mapping have in common."""

    def keys(self) -> Any:
        """The names of its columns."""
