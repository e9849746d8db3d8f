"""A recorded channel as a bandit: contexts and readings are rows of data in time order, rewards simulated.

The first rows calibrate: sensors are turned into contexts by a line each (`affine`), and what agents are told
of contexts, noise and bias is `calibrate` of these rows alone. The rest is played: round t of a trial that
starts at row `first` is row (first + t) mod n, at the time of that row, which goes on where the record is
begun again (worlds/contexts.py). A context is 1 in the calibration's mean and moves by 1 with each of its
standard deviations; scores are (a * c)'theta*.

The true context is in the data and the bias is not: regret is against c_t. To see what a departure from the
Gaussian model costs, contexts or errors can be drawn from the model instead, in the same units.

Agents are told the time constants that were fitted to the calibration rows, once for the same rows. If these
rows do not suffice, agents are told of no time. Contexts or errors that are drawn from the calibrated model
are independent of time, and agents are told so.

A record of one's own (`Columns`) is a table with columns for time, noisy contexts and true ones. A row that
lacks a true value cannot be played and is left out, which the world's note says; a noisy value that is
missing is a coordinate that was lost.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from unfog import validation
from unfog._table import Column, check_there, check_times, columns, text
from unfog.channel.calibration import Calibration, affine, calibrate
from unfog.channel.dynamics import Dynamics, Moving, without_time
from unfog.features.link import Identity, Rewards
from unfog.maths.arrays import Array, Ints
from unfog.validation import InputError, Numbers, check_keywords
from unfog.worlds import measurement
from unfog.worlds.composed import LAWS, Composed, Noisy, Parts, arms, described
from unfog.worlds.contexts import Contexts, RecordTime, Rows, assumed_law
from unfog.worlds.measurement import make_measurement

SOURCES = ("data", "gaussian")
LEVEL = 1.0  # the mean context: at 0, arms would be alike to an agent that knows the mean alone
STRETCHES = 10  # into which the calibration is cut if no column says which rows may share a bias
EMPTY = frozenset(
    case(word) for word in ("", "na", "nan", "none", "null") for case in (str.lower, str.upper, str.title)
)
HOUR = 3600.0  # seconds
FINITE = "a finite number, or nothing where it is not known"


class Record(NamedTuple):
    """Pairs in the order of time, none missing."""

    true: Array  # (n, d)
    raw: Array  # (n, d)  the sensor readings, in units of their own
    groups: Ints  # (n,)   pairs that may share a bias: weeks
    times: Array  # (n,)   never going back


@check_keywords
@dataclass(frozen=True, kw_only=True, eq=False)
class Recorded(Composed):
    """The bandit over a record, which subclasses give: `record()`, asked for once, when first needed.

    The first `calibration` rows calibrate. `contexts` and `channel` say where contexts and errors come from:
    "data" or "gaussian", the calibrated model. With `hindsight` the calibration is of the rows played
    instead: what pairs from all of them would have told. Other fields are those of `GaussianProblem`.
    """

    calibration: int = 1000
    contexts: str = "data"
    channel: str = "data"
    hindsight: bool = False
    actions: int | Array = 40
    action_law: str = "normal"
    prior_mean: Numbers = 0.0
    prior_cov: Numbers = 0.25
    reward_var: float = 1.0
    has_bias = False

    def __post_init__(self) -> None:
        """Check every field; the record is not needed for it."""
        validation.count("calibration", self.calibration, self.dim + 1)
        validation.one_of("contexts", self.contexts, SOURCES)
        validation.one_of("channel", self.channel, SOURCES)
        validation.flag("hindsight", self.hindsight)
        zero, one = np.zeros(self.dim), np.eye(self.dim)
        unseen = Calibration(zero, one, zero, one, one, 0, zero[None])
        self._make_parts(unseen, zero[None], zero[None], np.zeros(1))
        measurement.check_knowledge(self)

    @property
    @abstractmethod
    def dim(self) -> int:
        """How many coordinates; known before the record is read."""

    @abstractmethod
    def record(self) -> Record:
        """Read the record."""

    @property
    def rewards(self) -> Rewards:
        """Scores plus noise; known before the record is read."""
        return Identity()

    def _compose(self) -> Parts:
        record = self.record()
        calibration, contexts, noisy = calibrated(record, self.calibration, self.hindsight)
        rest = slice(self.calibration, None)
        first = slice(self.calibration)
        dynamics, why = None, "agents are told of no time: they calibrate in hindsight"
        if not self.hindsight:
            dynamics, why = fitted_dynamics(noisy[first], contexts[first], record.times[first])
        if why:
            object.__setattr__(self, "note", "; ".join(filter(None, (self.note, why))))
        return self._make_parts(
            calibration, contexts[rest], (noisy - contexts)[rest], record.times[rest], dynamics
        )

    def _make_parts(
        self,
        calibration: Calibration,
        rows: Array,
        errors: Array,
        times: Array,
        dynamics: Dynamics | None = None,
    ) -> Parts:
        """The world of a calibration and the rows to play, (n, d), at these times (n,)."""
        payoff = Noisy(validation.positive("reward_var", self.reward_var))
        arm_set = arms(self.actions, self.action_law, "product", self.dim)
        laws = {name: getattr(calibration, name) for name in LAWS}
        known = described(self.dim, arm_set.one(), payoff, self.prior_mean, self.prior_cov, **laws)
        dynamics = drawn(dynamics, calibration, self.contexts != "data", self.channel != "data")
        known = known._replace(sample=calibration.contexts, dynamics=dynamics)
        contexts: Contexts = Rows(rows) if self.contexts == "data" else assumed_law(known)
        recorded = errors if self.channel == "data" else None
        return Parts(
            known, contexts, make_measurement(self, known, recorded), arm_set, payoff, RecordTime(times)
        )


@check_keywords
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
            names = vars(self)[name]
            is_list = isinstance(names, list | tuple) and all(isinstance(one, str) and one for one in names)
            if not is_list or not names or len(set(names)) < len(names):
                raise InputError(name, names, "a list of names of columns, all different")
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
    def _table(self) -> tuple[Mapping[str, Any], Sequence[int] | None, str]:
        """The columns, the numbers of the rows (None: from 1), and the name of the table in errors."""

    def _columns(self) -> dict[str, Column]:
        """Read the columns that the fields name."""
        table, rows, source = self._table()
        fields = [("time", self.time), *(("noisy", one) for one in self.noisy)]
        fields += [*(("true", one) for one in self.true), *([("groups", self.groups)] if self.groups else [])]
        names = [check_there(table, field, name, source) for field, name in fields]
        return columns(table, names, word=f"{source}, row", rows=rows, empty=EMPTY)

    def record(self) -> Record:
        """The rows that have a true value for each coordinate."""
        table = self._columns()
        true, raw = (_matrix([table[name] for name in names]) for names in (self.true, self.noisy))
        all_times = times(table[self.time])
        is_complete = np.asarray(np.isfinite(true).all(axis=1))
        if not is_complete.all():
            left_out = (
                f"{(~is_complete).sum():,} of {len(is_complete):,} rows lack a true value and are left out"
            )
            object.__setattr__(self, "note", left_out)
        labels = np.arange(int(is_complete.sum())) // max(1, self.calibration // STRETCHES)
        if self.groups:
            group_names = np.array([text(one) for one in table[self.groups].cells.tolist()])
            labels = np.unique(group_names[is_complete], return_inverse=True)[1]
        record = Record(true[is_complete], raw[is_complete], labels, all_times[is_complete])
        conflicts = (np.diff(record.times) == 0) & (np.diff(record.true, axis=0) != 0).any(axis=1)
        if conflicts.any() and not self.groups:
            at = int(np.argmax(conflicts)) + 1
            actual = f"two true contexts at the time {record.times[at]:g}"
            raise InputError(
                table[self.time].kept(is_complete).at(at), actual, "one a moment, or a column of groups"
            )
        return record


@check_keywords
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
        validation.check_contract("data", self.data, _Table, "a data frame, or a mapping of names to columns")
        super().__post_init__()

    def _table(self) -> tuple[Mapping[str, Any], None, str]:
        return {str(name): self.data[name] for name in self.data}, None, "data"


class _Table:
    """The common protocol of data frames and mappings."""

    def keys(self) -> Any:
        """The names of its columns."""


def calibrated(record: Record, calibration: int, hindsight: bool = False) -> tuple[Calibration, Array, Array]:
    """The calibration, and all contexts and noisy contexts in its units, without the mean error."""
    rows = len(record.true)
    if calibration >= rows:
        raise InputError("calibration", calibration, f"fewer than the record's {rows} rows")
    first = record.true[:calibration]
    contexts = LEVEL + (record.true - first.mean(axis=0)) / first.std(axis=0, ddof=1)
    known = slice(calibration, None) if hindsight else slice(calibration)
    if len(set(record.groups[known])) < 2:
        where = "after" if hindsight else "in"
        problem = f"{calibration}, {where} which all rows are of one group"
        raise InputError("calibration", problem, "a stretch over two groups (weeks) or more")
    noisy = affine(record.raw[known], contexts[known]).contexts(record.raw)
    fit = calibrate(noisy[known], contexts[known], groups=record.groups[known])
    return fit, contexts, noisy - fit.bias


def fitted_dynamics(noisy: Array, true: Array, times: Array) -> tuple[Dynamics | None, str]:
    """The dynamics of pairs (n, d) at these times (n,); or None, and why."""
    return _fit_dynamics(noisy.tobytes(), true.tobytes(), times.tobytes(), true.shape[1])


@lru_cache(maxsize=32)
def _fit_dynamics(noisy: bytes, true: bytes, times: bytes, dim: int) -> tuple[Dynamics | None, str]:
    first, second = (np.frombuffer(x).reshape(-1, dim) for x in (noisy, true))
    try:
        return calibrate(first, second, times=np.frombuffer(times)).dynamics, ""
    except InputError as error:  # too few rows, or several devices at one moment
        return None, f"agents are told of no time, which the calibration does not show ({error})"


def drawn(
    dynamics: Dynamics | None, calibration: Calibration, contexts: bool, errors: bool
) -> Dynamics | None:
    """The dynamics of a world in which contexts, or errors, are drawn independently."""
    if dynamics is None or not (contexts or errors):
        return dynamics
    plain = without_time(calibration.context_cov, calibration.noise_cov, calibration.bias_cov)
    if contexts:
        dynamics = dynamics._replace(fast=plain.fast, level=None, periods=(), cycles=None)
    if errors:
        dynamics = dynamics._replace(bias=Moving(calibration.bias_cov, np.inf), error=None, white=plain.white)
    return dynamics


def _matrix(parts: Sequence[Column]) -> Array:
    """Columns as a matrix (n, d), NaN where a value is missing."""
    matrix = np.stack([part.numbers() for part in parts], axis=1)
    for row, j in np.argwhere(np.isinf(matrix))[:1].tolist():
        raise InputError(parts[j].at(row), f"{matrix[row, j]}", FINITE)
    return matrix


def times(column: Column) -> Array:
    """The times (n,), never going back: numbers as they are, dates as hours since the first."""
    values = column.times()
    check_times(values, column.where, column.name, column.cells)
    return (values - values[:1]) / HOUR if column.dated else values
