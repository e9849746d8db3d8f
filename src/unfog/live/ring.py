"""The newest decisions of a problem with what came of them, in memory: what a page shows of the past.

A ring is made from the log when it is first asked for, and goes on from the last row that it has read. It
costs deciding nothing. The log is read a little at a time, since commits wait meanwhile, and of a long log
only the end. After an erasure, and after a commit that failed, it is made anew.
"""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from unfog.live import joined
from unfog.live.columns import Columns
from unfog.live.joined import Around, Layout
from unfog.live.log import Log, Row
from unfog.live.terms import Terms
from unfog.maths.arrays import Array, Ints

MOST = 200_000  # decisions
CHUNK = 1000  # rows of the log that are read at a time
LATER = ("reward", "reveal", "void", "expire")  # what may be said of a decision


class Kept(NamedTuple):
    """The decisions that are kept, n of them, oldest first."""

    numbers: Ints  # (n,)
    data: Array  # (columns, n): live/joined.py
    layout: Layout
    units: list[str]
    shadows: dict[str, int]  # the places of those that there are columns of


class Ring:
    """Of one problem. Threads may share it."""

    def __init__(self, log: Log, name: str, terms: Terms) -> None:
        """Nothing is read yet."""
        self._log, self._name, self._terms = log, name, terms
        self._layout, self._lock = Layout(len(terms.context)), threading.Lock()
        self._epoch = -1  # of the log, when this was begun
        self._begin(0)

    def fill(self, around: Around, upto: int) -> None:
        """Read the log up to this row; whoever was interrupted goes on from there."""
        with self._lock:
            self._fill(around, upto)

    @contextmanager
    def filled(self, around: Around, upto: int) -> Iterator[Kept]:
        """What is kept then, without what was erased; others wait until it was looked at."""
        with self._lock:
            self._fill(around, upto)
            # Somebody else may have read on meanwhile: what came later is not for this caller.
            numbers = np.arange(self._columns.first, min(self._columns.next, around.number))
            data = self._columns.kept[:, : len(numbers)]
            there = ~np.isnan(data[joined.TIME])
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
            place = joined.number_of(row.decision) - first if row.kind in LATER and row.decision else -1
            if place < 0:
                continue
            if row.kind == "reveal":
                self._revealed(kept[self._layout.of(3), place], body)
            elif (value := joined.reward(row.kind, body)) is not None:
                paid[place] = value
        kept[joined.REWARD, list(paid)] = list(paid.values())

    def _decided(self, around: Around, decided: Sequence[tuple[float, dict[str, Any]]]) -> None:
        units, shadows = self._units, self._shadows
        for name in dict.fromkeys(name for _, body in decided for name in body.get("shadow", ())):
            if name not in shadows:
                shadows[name] = len(shadows)
                self._columns.widen(2)
        found = []
        for time, body in decided:
            unit = units.setdefault(body.get("unit", ""), len(units))
            found.append(joined.row(around, time, unit, body, shadows))
        if found:
            self._columns.extend(found)

    def _revealed(self, true: Array, body: dict[str, Any]) -> None:
        """A true context, also one that came late: the first that is said of a coordinate holds."""
        told = body.get("context", {})
        for i, name in enumerate(self._terms.context):
            if name in told and true[i] != true[i]:
                true[i] = told[name]
