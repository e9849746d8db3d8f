"""The past of a problem, or of one of its units, as a page shows it: plain values for JSON.

    points    decisions, evenly thinned, always with the newest
    worth     how much denoising helps where true contexts came: errors of noisy and denoised contexts
    rewards   means over stretches of decisions, with 95 % intervals; `shares` of the arms in each stretch
    estimates what other agents would have earned, by inverse propensity; "" is the agent in charge
    tracks    how beliefs changed: live/monitoring.py

A reward is the one that was learnt: several rewards of a decision are combined as the terms say, and there is
none before the reward window is over. Everything is in the caller's units. None means not known.

What another agent would have earned is estimated by the mean of r q / p: r is the reward of a decision, p and
q are the probabilities of its arm under the agent in charge and under the other one. The mean is unbiased if
p is above zero wherever q is. So a decision has no weight q / p where the other agent might have taken an arm
that could not be taken: because one arm was pinned, or because epsilon was 0 and the agent was certain.
For an arm that somebody else chose p is the probability that the caller reported; without one the decision
has no weight.

The newest decisions are kept in memory (`RecentDecisions`), each as a row of numbers (`row`), in arrays that
grow and drop what is old (`Columns`). They are read from the log when they are first needed, and later
from the last row that was read on; decisions are not slowed down by it. The log is read a little at a
time, since commits wait meanwhile, and of a long log only the end is read. After an erasure or a failed
commit they are read anew.
"""

import json
import threading
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import nan
from typing import Any, NamedTuple

import numpy as np

from unfog.channel.channel import Units
from unfog.live.backend import Row
from unfog.live.config import ProblemConfig
from unfog.live.log import EventLog
from unfog.live.monitoring import Track
from unfog.maths.arrays import Array, Ints
from unfog.maths.statistics import estimate, wilson_interval

TIME, UNIT, ARM, PROBABILITY, LOWEST, REWARD, FIRST = range(7)
"""Columns: time, index of unit and arm, probability of the arm, the lowest of any arm, reward learnt."""

MOST = 200_000  # decisions in memory
CHUNK = 1000  # rows of the log that are read at a time
FIRST_CAPACITY = 1024  # rows
LATER = ("reward", "reveal", "cancel", "expire")  # kinds of events that follow a decision
MOST_STRETCHES, LEAST_STRETCH = 60, 10  # stretches of decisions, and decisions in each
FIELDS = ("mean", "low", "high", "count")
Values = list[Any]


class Layout(NamedTuple):
    """The layout of a row: the first columns, then those of each coordinate, then those of each shadow."""

    dim: int

    def of(self, part: int) -> slice:
        """The columns of the noisy (0) or denoised (1) context, its deviation (2) or the true one (3)."""
        start = FIRST + part * self.dim
        return slice(start, start + self.dim)

    @property
    def width(self) -> int:
        """The number of columns of a row without shadows."""
        return FIRST + 4 * self.dim

    def agrees(self, shadow: int) -> int:
        """The column that says whether a shadow took the same arm; the next has its weight."""
        return self.width + 2 * shadow


class Around(NamedTuple):
    """What the events of decisions do not say: arms, coordinates and epsilon of their problem."""

    number: int  # of the next decision
    coordinates: tuple[str, ...]
    epsilon: float
    arm_index: Mapping[str, int]
    eras: Sequence[tuple[int, tuple[str, ...]]]  # from each decision number on, the arms that may be chosen

    def choice(self, body: Mapping[str, Any]) -> Collection[str]:
        """The arms that could be chosen in a decision, from its event."""
        return body.get("arms") or self.eras[bisect_right(self.eras, body["number"], key=_first) - 1][1]


def _first(era: tuple[int, tuple[str, ...]]) -> int:
    return era[0]


class Columns:
    """The newest `most` of a series of rows, stored as columns. All rows ever added are numbered."""

    def __init__(self, width: int, most: int, first: int = 0) -> None:
        """Start without rows; the first to come has this number."""
        self._data, self._most = np.empty((width, min(FIRST_CAPACITY, most))), most
        self._first, self._size = first, 0

    @property
    def first(self) -> int:
        """The number of the oldest row."""
        return self.next - min(self._size, self._most)

    @property
    def next(self) -> int:
        """The number of the next row."""
        return self._first + self._size

    @property
    def kept(self) -> Array:
        """The newest rows as a view, (width, n), that may be changed."""
        return self._data[:, self.first - self._first : self._size]

    def widen(self, more: int) -> None:
        """Add columns of NaN."""
        self._data = np.concatenate((self._data, np.full((more, self._data.shape[1]), np.nan)))

    def extend(self, rows: Sequence[Sequence[float]]) -> None:
        """Append rows."""
        self._grow(len(rows))
        self._data[:, self._size : self._size + len(rows)] = np.array(rows).T
        self._size += len(rows)

    def _grow(self, more: int) -> None:
        """Make room for `more` rows, and a quarter of `most` besides, so that old ones are dropped rarely."""
        if self._size + more <= self._data.shape[1]:
            return
        rows = self.kept
        capacity = max(2 * rows.shape[1], rows.shape[1] + more)
        data = np.empty((len(self._data), min(capacity, self._most + self._most // 4 + more)))
        data[:, : rows.shape[1]] = rows
        self._data, self._first, self._size = data, self.first, rows.shape[1]


class Kept(NamedTuple):
    """The newest n decisions, oldest first."""

    numbers: Ints  # (n,)
    data: Array  # (columns, n), as `Layout` has them
    layout: Layout
    units: list[str]
    shadows: dict[str, int]  # the index of each shadow that has columns


class RecentDecisions:
    """The newest decisions of one problem with their rewards and true contexts. Threads may share it."""

    def __init__(self, log: EventLog, name: str, terms: ProblemConfig) -> None:
        """Start empty; the log is read when the decisions are needed."""
        self._log, self._name, self._terms = log, name, terms
        self._layout, self._lock = Layout(len(terms.context)), threading.Lock()
        self._epoch = -1  # of the log when it was last read from the start
        self._restart(0)

    @contextmanager
    def filled(self, around: Around, upto: int) -> Iterator[Kept]:
        """The newest decisions up to the row `upto`, without erased ones; other threads wait meanwhile."""
        with self._lock:
            self._read_log(around, upto)
            # Another thread may have read further meanwhile: this caller does not know those decisions.
            numbers = np.arange(self._columns.first, min(self._columns.next, around.number))
            data = self._columns.kept[:, : len(numbers)]
            present = ~np.isnan(data[TIME])
            if not present.all():
                data, numbers = data[:, present], numbers[present]
            yield Kept(numbers, data, self._layout, list(self._units), self._shadows)

    def _restart(self, number: int) -> None:
        """Forget everything, and begin with the decision of this number."""
        self._units, self._shadows = dict[str, int](), dict[str, int]()
        self._columns = Columns(self._layout.width, MOST, number)
        self._erased_upto = self._log.committed  # rows read from now on reflect erasures up to here
        self._read_upto = 0
        if number:
            first = f"{number}-{self._terms.uid[:8]}"
            rows = self._log.of(self._name, first)
            self._read_upto = next(row.seq for row in rows if row.kind == "decide") - 1

    def _read_log(self, around: Around, upto: int) -> None:
        """Read the rows up to `upto` that were not read yet."""
        first = max(around.number - MOST, self._log.backend.first_decision)
        if self._epoch != self._log.epoch or self._columns.next < first:
            self._epoch = self._log.epoch
            self._restart(first)
        while self._read_upto < upto:
            end = min(self._read_upto + CHUNK, upto)
            rows = list(self._log.read(self._name, self._read_upto, end))
            if any(row.kind == "erase" and row.seq > self._erased_upto for row in rows):
                self._restart(first)
                continue
            self._add_events(around, rows)
            self._read_upto = end

    def _add_events(self, around: Around, rows: Sequence[Row]) -> None:
        """Add decisions first, since reports come after them. Of several rewards the last one counts."""
        bodies = json.loads(f"[{','.join(row.body for row in rows)}]")  # all at once is faster
        events = list(zip(rows, bodies, strict=True))
        self._add_decisions(around, [(row.time, body) for row, body in events if row.kind == "decide"])
        first, data, rewards = self._columns.first, self._columns.kept, dict[int, float]()
        for row, body in events:
            index = number_of(row.decision) - first if row.kind in LATER and row.decision else -1
            if index < 0:
                continue
            if row.kind == "reveal":
                self._add_context(data[self._layout.of(3), index], body)
            elif (value := reward(row.kind, body)) is not None:
                rewards[index] = value
        data[REWARD, list(rewards)] = list(rewards.values())

    def _add_decisions(self, around: Around, decisions: Sequence[tuple[float, dict[str, Any]]]) -> None:
        units, shadows = self._units, self._shadows
        for name in dict.fromkeys(name for _, body in decisions for name in body.get("shadows", ())):
            if name not in shadows:
                shadows[name] = len(shadows)
                self._columns.widen(2)
        rows = []
        for time, body in decisions:
            unit = units.setdefault(body.get("unit", ""), len(units))
            rows.append(row(around, time, unit, body, shadows))
        if rows:
            self._columns.extend(rows)

    def _add_context(self, true: Array, body: dict[str, Any]) -> None:
        """Add a true context, even a late one; the first value of each coordinate counts."""
        context = body.get("context", {})
        for i, name in enumerate(self._terms.context):
            if name in context and true[i] != true[i]:
                true[i] = context[name]


def row(
    around: Around, time: float, unit: int, body: Mapping[str, Any], shadows: Collection[str] = ()
) -> list[float]:
    """The row of a decision and of what these shadows did; all NaN if it was erased."""
    names = around.coordinates
    if body.get("erased"):
        return [nan] * (FIRST + 4 * len(names) + 2 * len(shadows))
    noisy, mean, sd, choices = body["context"], body["denoised"], body["sd"], body.get("shadows", {})
    chance = body["probability"]
    return [
        time,
        unit,
        around.arm_index.get(body["arm"], -1),
        nan if chance is None else chance,
        _lowest_probability(around, body),
        nan,
        *[nan if noisy[name] is None else noisy[name] for name in names],
        *[mean[name] for name in names],
        *[sd[name] for name in names],
        *[nan] * len(names),
        *[x for name in shadows for x in _compare_shadow(around, body, choices.get(name))],
    ]


def _compare_shadow(
    around: Around, body: Mapping[str, Any], shadow: Mapping[str, Any] | None
) -> tuple[float, float]:
    return (nan, nan) if shadow is None else (agreement(body, shadow), weight(around, body, shadow))


def _lowest_probability(around: Around, body: Mapping[str, Any]) -> float:
    """The lowest probability of any arm that could be chosen; NaN if somebody else chose."""
    if "logged_arm" in body:
        return nan
    probabilities, arms = body["agent_probabilities"], len(around.choice(body))
    epsilon = 0.0 if body.get("pinned") else around.epsilon
    lowest = min(probabilities.values()) if len(probabilities) == arms else 0.0
    return float(epsilon / arms + (1 - epsilon) * lowest)


def agreement(body: Mapping[str, Any], shadow: Mapping[str, Any]) -> float:
    """Whether a shadow took the same arm, 0 or 1; NaN if the agent did not choose freely."""
    free = "logged_arm" not in body and not body.get("pinned")
    return float(shadow["arm"] == body["arm"]) if free else nan


def weight(around: Around, body: Mapping[str, Any], shadow: Mapping[str, Any]) -> float:
    """The weight of a decision for a shadow, q / p; NaN where it would mislead."""
    chance, arm, probabilities = body["probability"], body["arm"], shadow["agent_probabilities"]
    choice = around.choice(body)
    if not chance:
        return nan
    if "logged_arm" not in body:
        epsilon = 0.0 if body.get("pinned") else around.epsilon
        might = probabilities if around.epsilon == 0 else choice
        if not epsilon and any(body["agent_probabilities"].get(name, 0.0) <= 0 for name in might):
            return nan
    if arm not in choice:
        return 0.0
    return float((around.epsilon / len(choice) + (1 - around.epsilon) * probabilities.get(arm, 0.0)) / chance)


def number_of(decision: str) -> int:
    """The number of a decision, from its id."""
    return int(decision.partition("-")[0])


def reward(kind: str, body: Mapping[str, Any]) -> float | None:
    """The reward of a decision after this event, NaN if it has none; None if the event does not change it."""
    if kind == "cancel":
        return nan if body["outcome"] == "cancelled" else None
    if kind == "expire":
        return body.get("value") if body["expired"] == "reward" else None
    return body["value"] if body["outcome"] in ("learnt", "waits") else None


class HistoryQuery(NamedTuple):
    """What a page asks for, and what it needs besides the decisions."""

    problem: str
    unit: str | None  # None: all
    points: int
    coordinates: Sequence[str]
    arms: Sequence[str]
    shadows: Sequence[str]
    binary: bool  # rewards are 0 or 1
    decisions: int | None  # in all; None: as many as are in memory
    track: Track
    units: Units


def summarise(query: HistoryQuery, recent: Kept) -> dict[str, Any]:
    """Everything that a page shows."""
    indices = _select_unit(query.unit, recent)
    numbers = recent.numbers[indices]
    rewards, shares = _summarise_stretches(query, recent, indices)
    return {
        "problem": query.problem,
        "unit": query.unit,
        "coordinates": list(query.coordinates),
        "arms": list(query.arms),
        "decisions": len(indices) if query.decisions is None else query.decisions,
        "kept": len(indices),
        "first_number": int(numbers[0]) if len(indices) else None,
        "last_number": int(numbers[-1]) if len(indices) else None,
        "shadows": list(query.shadows),
        "points": _list_points(query, recent, indices[thinned(len(indices), query.points)]),
        "worth": _measure_denoising(query, recent, indices),
        "rewards": rewards,
        "shares": shares,
        "estimates": _estimate_shadows(query, recent, indices),
        "tracks": _list_tracks(query),
    }


def _select_unit(unit: str | None, recent: Kept) -> Ints:
    """The indices of the decisions of a unit; None: of all."""
    if unit is None:
        return np.arange(len(recent.numbers))
    if unit not in recent.units:
        return np.arange(0)
    return np.flatnonzero(recent.data[UNIT] == recent.units.index(unit))


def thinned(count: int, most: int) -> Ints:
    """At most `most` of `count` indices, as evenly spread as possible, always with the last."""
    if count <= most:
        return np.arange(count)
    if most == 1:
        return np.array([count - 1])
    return np.arange(most) * (count - 1) // (most - 1)


def _list_points(query: HistoryQuery, recent: Kept, indices: Ints) -> dict[str, Any]:
    data, layout = recent.data[:, indices], recent.layout
    units = [recent.units[int(x)] or None for x in data[UNIT]]
    points: dict[str, Any] = {"number": recent.numbers[indices].tolist(), "time": plain(data[TIME])}
    points["unit"] = units
    points |= {"arm": data[ARM].astype(int).tolist(), "probability": plain(data[PROBABILITY])}
    points |= {"lowest": plain(data[LOWEST]), "reward": plain(data[REWARD])}
    for part, name in enumerate(("noisy", "denoised", "sd", "true")):
        points[name] = _map_by_name(query.coordinates, data[layout.of(part)])
    return points


def plain(values: Array) -> Values:
    """Numbers for JSON: None instead of NaN."""
    return [None if x != x else x for x in values.tolist()]


def _map_by_name(names: Sequence[str], values: Array) -> dict[str, Values]:
    """The values of each coordinate, from (d, n)."""
    return {name: plain(row) for name, row in zip(names, values, strict=True)}


def _measure_denoising(query: HistoryQuery, recent: Kept, indices: Ints) -> dict[str, Any]:
    """Root mean squared errors of noisy and denoised contexts, where truth and reading are known."""
    noisy, denoised, _, true = (recent.data[recent.layout.of(part)] for part in range(4))
    worth = {}
    for i, name in enumerate(query.coordinates):
        errors = noisy[i, indices] - true[i, indices], denoised[i, indices] - true[i, indices]
        known = ~np.isnan(errors[0])
        count = int(known.sum())
        before, after = (float(np.sqrt((x[known] ** 2).mean())) if count else None for x in errors)
        ratio = after / before if before and after is not None else None
        worth[name] = {"revealed": count, "rmse_noisy": before, "rmse_denoised": after, "ratio": ratio}
    return worth


def _summarise_stretches(
    query: HistoryQuery, recent: Kept, indices: Ints
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Mean rewards and shares of arms in stretches of equally many decisions."""
    count = min(max(len(indices) // LEAST_STRETCH, 1), MOST_STRETCHES)
    parts = np.array_split(indices, count) if len(indices) else []
    middles = np.array([part[len(part) // 2] for part in parts], dtype=np.intp)
    middle = {"number": recent.numbers[middles].tolist(), "time": recent.data[TIME, middles].tolist()}
    rewards_by_part = [recent.data[REWARD, part] for part in parts]
    means = [mean(part[~np.isnan(part)], binary=query.binary) for part in rewards_by_part]
    rewards = {name: [part[name] for part in means] for name in FIELDS}
    shares_by_part = [_count_arms(recent.data[ARM, part], len(query.arms)) / len(part) for part in parts]
    shares = {arm: [float(part[i]) for part in shares_by_part] for i, arm in enumerate(query.arms)}
    return {**middle, **rewards}, {**middle, "arms": shares}


def _count_arms(arms: Array, number: int) -> Array:
    """How often each arm was chosen; those that came with a decision have no index and do not count."""
    return np.bincount(arms[arms >= 0].astype(np.intp), minlength=number).astype(np.float64)


def _estimate_shadows(query: HistoryQuery, recent: Kept, indices: Ints) -> dict[str, Any]:
    """The mean reward of the agent in charge, and what each shadow would have earned."""
    rewards = recent.data[REWARD, indices]
    own = mean(rewards[~np.isnan(rewards)], binary=query.binary)
    own_agreement = 1.0 if len(indices) else None
    estimates = {"": {"agreement": own_agreement, **own, "effective": float(own["count"])}}
    for name in query.shadows:
        if name not in recent.shadows:
            agreements, weights = np.empty(0), np.full_like(rewards, np.nan)
        else:
            column = recent.layout.agrees(recent.shadows[name])
            agreements, weights = recent.data[column, indices], recent.data[column + 1, indices]
        agreements, usable = agreements[~np.isnan(agreements)], ~np.isnan(weights) & ~np.isnan(rewards)
        agreement = float(agreements.mean()) if len(agreements) else None
        estimates[name] = {"agreement": agreement, **weighted(rewards[usable], weights[usable])}
    return estimates


def _list_tracks(query: HistoryQuery) -> dict[str, Any]:
    """Beliefs over time, in the caller's units."""
    track, units, names = query.track, query.units, query.coordinates
    tracks: dict[str, Any] = {"number": track.number.astype(int).tolist(), "time": track.time.tolist()}
    tracks["bias"] = _map_by_name(names, (units.bias + track.bias * units.scale).T)
    tracks["bias_sd"] = _map_by_name(names, (track.bias_sd * units.scale).T)
    for name, values in (("z_square", track.z_square), ("e_value", track.e_value)):
        tracks[name] = None if values is None else _map_by_name(names, values.T)
    overall = track.e_value_of_all
    return tracks | {"e_value_of_all": None if overall is None else plain(overall)}


def mean(values: Array, *, binary: bool = False) -> dict[str, Any]:
    """The mean of independent values with its interval, by the standard error; None where it is not known.

    For values of 0 or 1 it is E. B. Wilson's interval, which has a width even if all values are equal.
    """
    count = len(values)
    if not count:
        return _name_fields(None, None, None, 0)
    result = estimate(values)
    if binary:
        return _name_fields(result.mean, *wilson_interval(result.mean, count), count)
    return _name_fields(result.mean, *(result.interval() if count > 1 else (None, None)), count)


def _name_fields(*values: float | None) -> dict[str, Any]:
    return dict(zip(FIELDS, values, strict=True))


def weighted(rewards: Array, weights: Array) -> dict[str, Any]:
    """The mean of w r, by inverse propensity, and how many decisions its weights are worth."""
    squares = float((weights**2).sum())
    effective = float(weights.sum()) ** 2 / squares if squares else 0.0
    return {**mean(weights * rewards), "effective": effective}
