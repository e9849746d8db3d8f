"""The past of a problem, or of one of its units, as a page shows it: plain values for JSON.

    points    decisions, evenly thinned, always with the newest
    worth     how much denoising helps where true contexts came: errors of noisy and denoised contexts
    rewards   means over stretches of decisions, with 95 % intervals; `shares` of the arms in each stretch
    shadow    what other agents would have earned, by inverse propensity; "" is the agent in charge
    tracks    how beliefs changed: live/monitoring.py

A reward is what was learnt of it: several rewards are combined as the terms say, and there is none while they
are waited for. Everything is in the caller's units. None means not known.

What another agent would have earned is estimated by the mean of r q / p: r is the reward of a decision, p and
q are the probabilities of its arm under the agent in charge and under the other one. The mean is unbiased if
p is above zero wherever q is. So a decision has no weight q / p where the other agent might have taken an arm
that could not be taken: one arm was frozen, or without a floor the agent was sure. For a forced arm p is the
probability that was told; without one the decision has no weight.

The newest decisions are kept in memory (`Ring`), each as a row of numbers (`row`), in arrays that grow and
drop what is old (`Columns`). A ring is read from the log when it is first needed, and later continues after
the last row it has read; decisions are not slowed down by it. The log is read a little at a time, since
commits wait meanwhile, and of a long log only the end is read. After an erasure or a failed commit the ring
is read anew.
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
from unfog.live.config import Terms
from unfog.live.log import Log
from unfog.live.monitoring import Track
from unfog.maths.arrays import Array, Ints
from unfog.maths.statistics import estimate, wilson_interval

TIME, UNIT, ARM, PROBABILITY, LOWEST, REWARD, FIRST = range(7)
"""Columns: seconds, places of unit and arm, probability of the arm, the smallest one, what was learnt."""

MOST = 200_000  # decisions that are kept
CHUNK = 1000  # rows of the log that are read at a time
FIRST_ROOM = 1024  # rows that there is room for at first
LATER = ("reward", "reveal", "void", "expire")  # what may be said of a decision
MOST_STRETCHES, LEAST_STRETCH = 60, 10  # in which rewards and shares are shown, and decisions in one
FIELDS = ("mean", "low", "high", "count")
Values = list[Any]


class Layout(NamedTuple):
    """Where things stand in a row: after the first columns, of each coordinate and of each shadow."""

    dim: int

    def of(self, part: int) -> slice:
        """The columns of the noisy (0), denoised (1) context, its deviation (2) and the truth (3)."""
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
    """What is known of a problem that its decisions do not say."""

    number: int  # of the next decision
    coordinates: tuple[str, ...]
    floor: float
    places: Mapping[str, int]  # of arms
    eras: Sequence[tuple[int, tuple[str, ...]]]  # arms that might be chosen, each from a decision on

    def choice(self, body: Mapping[str, Any]) -> Collection[str]:
        """The arms that might be chosen."""
        return body.get("arms") or self.eras[bisect_right(self.eras, body["number"], key=_first) - 1][1]


def _first(era: tuple[int, tuple[str, ...]]) -> int:
    return era[0]


class Columns:
    """Rows of so many numbers. They are counted from the first there ever was; the newest `most` are kept."""

    def __init__(self, width: int, most: int, first: int = 0) -> None:
        """None yet; the next is the row of this number."""
        self._data, self._most = np.empty((width, min(FIRST_ROOM, most))), most
        self._first, self._size = first, 0

    @property
    def first(self) -> int:
        """The number of the first row that is kept."""
        return self.next - min(self._size, self._most)

    @property
    def next(self) -> int:
        """The number of the row that comes next."""
        return self._first + self._size

    @property
    def kept(self) -> Array:
        """All that is kept, (width, n), to be read and written."""
        return self._data[:, self.first - self._first : self._size]

    def widen(self, more: int) -> None:
        """Add columns, of which nothing is known yet."""
        self._data = np.concatenate((self._data, np.full((more, self._data.shape[1]), np.nan)))

    def extend(self, rows: Sequence[Sequence[float]]) -> None:
        """More rows."""
        self._make_room(len(rows))
        self._data[:, self._size : self._size + len(rows)] = np.array(rows).T
        self._size += len(rows)

    def _make_room(self, more: int) -> None:
        """For so many rows; a quarter beyond what is kept, so that old ones are seldom let go of."""
        if self._size + more <= self._data.shape[1]:
            return
        kept = self.kept
        room = max(2 * kept.shape[1], kept.shape[1] + more)
        data = np.empty((len(self._data), min(room, self._most + self._most // 4 + more)))
        data[:, : kept.shape[1]] = kept
        self._data, self._first, self._size = data, self.first, kept.shape[1]


class Kept(NamedTuple):
    """The decisions that are kept, n of them, oldest first."""

    numbers: Ints  # (n,)
    data: Array  # (columns, n), as `Layout` has them
    layout: Layout
    units: list[str]
    shadows: dict[str, int]  # the places of those that there are columns of


class Ring:
    """The newest decisions of one problem, with what came of them. Threads may share it."""

    def __init__(self, log: Log, name: str, terms: Terms) -> None:
        """Nothing is read yet."""
        self._log, self._name, self._terms = log, name, terms
        self._layout, self._lock = Layout(len(terms.context)), threading.Lock()
        self._epoch = -1  # of the log, when this was begun
        self._begin(0)

    @contextmanager
    def filled(self, around: Around, upto: int) -> Iterator[Kept]:
        """What is kept then, without what was erased; others wait until it was looked at."""
        with self._lock:
            self._fill(around, upto)
            # Somebody else may have read on meanwhile: what came later is not for this caller.
            numbers = np.arange(self._columns.first, min(self._columns.next, around.number))
            data = self._columns.kept[:, : len(numbers)]
            there = ~np.isnan(data[TIME])
            if not there.all():
                data, numbers = data[:, there], numbers[there]
            yield Kept(numbers, data, self._layout, list(self._units), self._shadows)

    def _begin(self, number: int) -> None:
        """With the decision of this number."""
        self._units, self._shadows = dict[str, int](), dict[str, int]()
        self._columns = Columns(self._layout.width, MOST, number)
        self._mark = self._log.committed  # erasures up to here are done
        self._after = 0
        if number:
            first = f"{number}-{self._terms.uid[:8]}"
            rows = self._log.of(self._name, first)
            self._after = next(row.seq for row in rows if row.kind == "decide") - 1

    def _fill(self, around: Around, upto: int) -> None:
        first = max(around.number - MOST, 0)
        if self._epoch != self._log.epoch or self._columns.next < first:
            self._epoch = self._log.epoch
            self._begin(first)
        while self._after < upto:
            end = min(self._after + CHUNK, upto)
            rows = list(self._log.read(self._name, self._after, end))
            if any(row.kind == "erase" and row.seq > self._mark for row in rows):
                self._begin(first)
                continue
            self._take(around, rows)
            self._after = end

    def _take(self, around: Around, rows: Sequence[Row]) -> None:
        """Decisions first: what is said of one stands after it. Of rewards the last that is said holds."""
        bodies = json.loads(f"[{','.join(row.body for row in rows)}]")  # at once, which is faster
        events = list(zip(rows, bodies, strict=True))
        self._decided(around, [(row.time, body) for row, body in events if row.kind == "decide"])
        first, kept, paid = self._columns.first, self._columns.kept, dict[int, float]()
        for row, body in events:
            place = number_of(row.decision) - first if row.kind in LATER and row.decision else -1
            if place < 0:
                continue
            if row.kind == "reveal":
                self._revealed(kept[self._layout.of(3), place], body)
            elif (value := reward(row.kind, body)) is not None:
                paid[place] = value
        kept[REWARD, list(paid)] = list(paid.values())

    def _decided(self, around: Around, decided: Sequence[tuple[float, dict[str, Any]]]) -> None:
        units, shadows = self._units, self._shadows
        for name in dict.fromkeys(name for _, body in decided for name in body.get("shadow", ())):
            if name not in shadows:
                shadows[name] = len(shadows)
                self._columns.widen(2)
        found = []
        for time, body in decided:
            unit = units.setdefault(body.get("unit", ""), len(units))
            found.append(row(around, time, unit, body, shadows))
        if found:
            self._columns.extend(found)

    def _revealed(self, true: Array, body: dict[str, Any]) -> None:
        """A true context, also one that came late: the first that is said of a coordinate holds."""
        told = body.get("context", {})
        for i, name in enumerate(self._terms.context):
            if name in told and true[i] != true[i]:
                true[i] = told[name]


def row(
    around: Around, time: float, unit: int, body: Mapping[str, Any], shadows: Collection[str] = ()
) -> list[float]:
    """The row of a decision, with what these shadows did; of one that was erased there is nothing."""
    names = around.coordinates
    if body.get("erased"):
        return [nan] * (FIRST + 4 * len(names) + 2 * len(shadows))
    noisy, mean, sd, others = body["context"], body["denoised"], body["sd"], body.get("shadow", {})
    chance = body["probability"]
    return [
        time,
        unit,
        around.places.get(body["arm"], -1),
        nan if chance is None else chance,
        _lowest(around, body),
        nan,
        *[nan if noisy[name] is None else noisy[name] for name in names],
        *[mean[name] for name in names],
        *[sd[name] for name in names],
        *[nan] * len(names),
        *[x for name in shadows for x in _shadow(around, body, others.get(name))],
    ]


def _shadow(around: Around, body: Mapping[str, Any], shadow: Mapping[str, Any] | None) -> tuple[float, float]:
    return (nan, nan) if shadow is None else (agreement(body, shadow), weight(around, body, shadow))


def _lowest(around: Around, body: Mapping[str, Any]) -> float:
    """The smallest probability of an arm that might be chosen; not a number where somebody else chose."""
    if "forced" in body:
        return nan
    shares, arms = body["shares"], len(around.choice(body))
    floor = 0.0 if body.get("frozen") else around.floor
    least = min(shares.values()) if len(shares) == arms else 0.0
    return float(floor / arms + (1 - floor) * least)


def agreement(body: Mapping[str, Any], shadow: Mapping[str, Any]) -> float:
    """Whether a shadow took the same arm, 0 or 1; not a number where the agent did not choose freely."""
    free = "forced" not in body and not body.get("frozen")
    return float(shadow["arm"] == body["arm"]) if free else nan


def weight(around: Around, body: Mapping[str, Any], shadow: Mapping[str, Any]) -> float:
    """How much a decision counts for a shadow, q / p; not a number where it would mislead."""
    chance, arm, shares = body["probability"], body["arm"], shadow["shares"]
    choice = around.choice(body)
    if not chance:
        return nan
    if "forced" not in body:
        floor = 0.0 if body.get("frozen") else around.floor
        might = shares if around.floor == 0 else choice
        if not floor and any(body["shares"].get(name, 0.0) <= 0 for name in might):
            return nan
    if arm not in choice:
        return 0.0
    return float((around.floor / len(choice) + (1 - around.floor) * shares.get(arm, 0.0)) / chance)


def number_of(decision: str) -> int:
    """The number of a decision, from its id."""
    return int(decision.partition("-")[0])


def reward(kind: str, body: Mapping[str, Any]) -> float | None:
    """What an event makes the reward of its decision, not a number where it has none; None: nothing."""
    if kind == "void":
        return nan if body["outcome"] == "void" else None
    if kind == "expire":
        return body.get("value") if body["what"] == "reward" else None
    return body["value"] if body["outcome"] in ("learnt", "waits") else None


class Asked(NamedTuple):
    """What is to be shown, and what is known of it besides its decisions."""

    problem: str
    unit: str | None  # None: all
    points: int
    coordinates: Sequence[str]
    arms: Sequence[str]
    shadows: Sequence[str]
    binary: bool  # rewards are 0 or 1
    decisions: int | None  # in all; None: as many as are kept
    track: Track
    units: Units


def told(asked: Asked, kept: Kept) -> dict[str, Any]:
    """All that a page shows."""
    chosen = _chosen(asked.unit, kept)
    numbers = kept.numbers[chosen]
    rewards, shares = _stretches(asked, kept, chosen)
    return {
        "problem": asked.problem,
        "unit": asked.unit,
        "coordinates": list(asked.coordinates),
        "arms": list(asked.arms),
        "decisions": len(chosen) if asked.decisions is None else asked.decisions,
        "kept": len(chosen),
        "first_number": int(numbers[0]) if len(chosen) else None,
        "last_number": int(numbers[-1]) if len(chosen) else None,
        "shadows": list(asked.shadows),
        "points": _points(asked, kept, chosen[thinned(len(chosen), asked.points)]),
        "worth": _worth(asked, kept, chosen),
        "rewards": rewards,
        "shares": shares,
        "shadow": _shadows(asked, kept, chosen),
        "tracks": _tracks(asked),
    }


def _chosen(unit: str | None, kept: Kept) -> Ints:
    """The places of decisions that are asked for."""
    if unit is None:
        return np.arange(len(kept.numbers))
    if unit not in kept.units:
        return np.arange(0)
    return np.flatnonzero(kept.data[UNIT] == kept.units.index(unit))


def thinned(number: int, most: int) -> Ints:
    """At most `most` places, as evenly spread as can be, with the last among them."""
    if number <= most:
        return np.arange(number)
    if most == 1:
        return np.array([number - 1])
    return np.arange(most) * (number - 1) // (most - 1)


def _points(asked: Asked, kept: Kept, places: Ints) -> dict[str, Any]:
    data, layout = kept.data[:, places], kept.layout
    units = [kept.units[int(x)] or None for x in data[UNIT]]
    found: dict[str, Any] = {"number": kept.numbers[places].tolist(), "time": plain(data[TIME])}
    found["unit"] = units
    found |= {"arm": data[ARM].astype(int).tolist(), "probability": plain(data[PROBABILITY])}
    found |= {"lowest": plain(data[LOWEST]), "reward": plain(data[REWARD])}
    for part, name in enumerate(("noisy", "denoised", "sd", "true")):
        found[name] = _by_name(asked.coordinates, data[layout.of(part)])
    return found


def plain(values: Array) -> Values:
    """Numbers as JSON has them."""
    return [None if x != x else x for x in values.tolist()]


def _by_name(names: Sequence[str], values: Array) -> dict[str, Values]:
    """The values of each coordinate, from (d, n)."""
    return {name: plain(row) for name, row in zip(names, values, strict=True)}


def _worth(asked: Asked, kept: Kept, places: Ints) -> dict[str, Any]:
    """Root mean squared errors of noisy and denoised contexts, where the truth is known, nothing lost."""
    noisy, denoised, _, true = (kept.data[kept.layout.of(part)] for part in range(4))
    found = {}
    for i, name in enumerate(asked.coordinates):
        wrong, left = noisy[i, places] - true[i, places], denoised[i, places] - true[i, places]
        there = ~np.isnan(wrong)
        number = int(there.sum())
        before, after = (float(np.sqrt((x[there] ** 2).mean())) if number else None for x in (wrong, left))
        ratio = after / before if before and after is not None else None
        found[name] = {"revealed": number, "rmse_noisy": before, "rmse_denoised": after, "ratio": ratio}
    return found


def _stretches(asked: Asked, kept: Kept, places: Ints) -> tuple[dict[str, Any], dict[str, Any]]:
    """Rewards and shares of arms in stretches of as many decisions each."""
    number = min(max(len(places) // LEAST_STRETCH, 1), MOST_STRETCHES)
    parts = np.array_split(places, number) if len(places) else []
    middles = np.array([part[len(part) // 2] for part in parts], dtype=np.intp)
    where = {"number": kept.numbers[middles].tolist(), "time": kept.data[TIME, middles].tolist()}
    paid = [kept.data[REWARD, part] for part in parts]
    means = [mean(one[~np.isnan(one)], binary=asked.binary) for one in paid]
    rewards = {name: [one[name] for one in means] for name in FIELDS}
    counts = [_counts(kept.data[ARM, part], len(asked.arms)) / len(part) for part in parts]
    shares = {arm: [float(one[i]) for one in counts] for i, arm in enumerate(asked.arms)}
    return {**where, **rewards}, {**where, "arms": shares}


def _counts(arms: Array, number: int) -> Array:
    """How often each arm was chosen; those that came with a decision have no place."""
    return np.bincount(arms[arms >= 0].astype(np.intp), minlength=number).astype(np.float64)


def _shadows(asked: Asked, kept: Kept, places: Ints) -> dict[str, Any]:
    """The agent that is obeyed, and what others would have done."""
    rewards = kept.data[REWARD, places]
    own = mean(rewards[~np.isnan(rewards)], binary=asked.binary)
    agrees = 1.0 if len(places) else None
    found = {"": {"agreement": agrees, **own, "effective": float(own["count"])}}
    for name in asked.shadows:
        if name not in kept.shadows:
            same, weights = np.empty(0), np.full_like(rewards, np.nan)
        else:
            column = kept.layout.agrees(kept.shadows[name])
            same, weights = kept.data[column, places], kept.data[column + 1, places]
        same, judged = same[~np.isnan(same)], ~np.isnan(weights) & ~np.isnan(rewards)
        agreement = float(same.mean()) if len(same) else None
        found[name] = {"agreement": agreement, **weighted(rewards[judged], weights[judged])}
    return found


def _tracks(asked: Asked) -> dict[str, Any]:
    """Beliefs over time, in the caller's units."""
    track, units, names = asked.track, asked.units, asked.coordinates
    found: dict[str, Any] = {"number": track.number.astype(int).tolist(), "time": track.time.tolist()}
    found["bias"] = _by_name(names, (units.bias + track.bias * units.scale).T)
    found["bias_sd"] = _by_name(names, (track.bias_sd * units.scale).T)
    for name, values in (("z_square", track.z_square), ("e_value", track.e_value)):
        found[name] = None if values is None else _by_name(names, values.T)
    every = track.e_value_of_all
    return found | {"e_value_of_all": None if every is None else plain(every)}


def mean(values: Array, *, binary: bool = False) -> dict[str, Any]:
    """The mean of independent values with its interval, by the standard error; None is what is not known.

    Where they are 0 or 1 it is E. B. Wilson's interval, which says something also where all came out alike.
    """
    count = len(values)
    if not count:
        return _said(None, None, None, 0)
    found = estimate(values)
    if binary:
        return _said(found.mean, *wilson_interval(found.mean, count), count)
    return _said(found.mean, *(found.interval() if count > 1 else (None, None)), count)


def _said(*values: float | None) -> dict[str, Any]:
    return dict(zip(FIELDS, values, strict=True))


def weighted(rewards: Array, weights: Array) -> dict[str, Any]:
    """The mean of w r, by inverse propensity, and how many decisions its weights are worth."""
    squares = float((weights**2).sum())
    effective = float(weights.sum()) ** 2 / squares if squares else 0.0
    return {**mean(weights * rewards), "effective": effective}
