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
        """Decisions first: what is said of one stands after it."""
        decided = [(row, json.loads(row.body)) for row in rows if row.kind == "decide"]
        if decided:
            self._decided(around, decided)
        self._came(
            [row for row in rows if row.kind in ("reward", "void", "expire") and self._place(row) >= 0]
        )
        for row in rows:
            if row.kind == "reveal" and (place := self._place(row)) >= 0:
                self._revealed(place, json.loads(row.body))

    def _place(self, row: Row) -> int:
        """Of the decision that a row is about; below zero where it is not kept."""
        return joined.number_of(row.decision or "") - self._columns.first

    def _decided(self, around: Around, decided: Sequence[tuple[Row, dict[str, Any]]]) -> None:
        units = self._units
        found = []
        for row, body in decided:
            unit = units.setdefault(body.get("unit", ""), len(units))
            found.append(joined.row(around, row.time, unit, body))
            for name in body.get("shadow", ()):
                if name not in self._shadows:
                    self._shadows[name] = len(self._shadows)
                    self._columns.widen(2)
        start = self._columns.next
        self._columns.extend(found)
        for number, (_, body) in enumerate(decided, start):
            for name, one in body.get("shadow", {}).items():
                column, place = self._layout.agrees(self._shadows[name]), number - self._columns.first
                said = joined.agreement(body, one), joined.weight(around, body, one)
                self._columns.kept[column : column + 2, place] = said

    def _came(self, rows: Sequence[Row]) -> None:
        """Rewards: the last that is said of a decision holds."""
        said = [(self._place(row), joined.reward(row.kind, json.loads(row.body))) for row in rows]
        news = {place: value for place, value in said if value is not None}
        self._columns.kept[joined.REWARD, list(news)] = list(news.values())

    def _revealed(self, place: int, body: dict[str, Any]) -> None:
        """True contexts, those that came late as well: the first that is said of a coordinate holds."""
        true = self._columns.kept[self._layout.of(3), place]
        for i, name in enumerate(self._terms.context):
            value = body.get("context", {}).get(name)
            if value is not None and np.isnan(true[i]):
                true[i] = value
