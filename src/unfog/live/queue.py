"""The log as memory has it: rows that wait for their commit, and the numbers of those that are committed.

`epoch` counts failures. What was built on rows of an epoch that has ended must be dropped; for threads that
still wait for a row of it, it is remembered up to which row the file has it.
"""

import threading
from collections.abc import Mapping, Sequence
from math import isfinite

from unfog.live.errors import StoreError
from unfog.live.place import Row, Tail
from unfog.live.recent import Recent
from unfog.validation import InputError

ENDED = 1000  # epochs whose end is remembered


class Queue:
    """Rows on their way to the place called `name`. No method touches the disk."""

    def __init__(self, name: str, only: str | None = None) -> None:
        """`only`: the problem whose rows alone are taken."""
        self.name, self._only = name, only
        self.last = self.committed = self.epoch = 0
        self.time = 0.0  # the latest of all rows
        self._times: dict[str, float] = {}  # of the last row of each problem
        self.tails: Mapping[str, Tail] = {}  # of the problems that have committed rows, in order
        self.unusable = ""  # why nothing can be added
        self._rows: list[Row] = []
        self._recent = Recent()
        self._ended: dict[int, tuple[int | None, str]] = {}  # up to which row an epoch was kept, and why
        self._lock = threading.Lock()

    def names(self) -> list[str]:
        """The problems, in the order of their first rows."""
        with self._lock:
            return list(dict.fromkeys([*self.tails, *(row.problem for row in self._rows)]))

    def time_of(self, problem: str) -> float:
        """That of its last row."""
        return self._times.get(problem, 0.0)

    def add(self, rows: Sequence[Row], epoch: int | None) -> int:
        """Queue rows that follow the last one; the number of the last of them."""
        with self._lock:
            if self.unusable:
                raise StoreError(f"{self.name} cannot be used: {self.unusable}; nothing was changed")
            if epoch is not None and epoch != self.epoch:
                raise StoreError(
                    f"{self.name}: rows before these were not kept; nothing was changed; ask again"
                )
            self._refuse_others(rows)
            times = check(rows, self.last, self._times)
            self._recent.check(rows)
            self._rows.extend(rows)
            self._recent.add(rows, self.committed)
            self._times |= times
            self.last, self.time = rows[-1].seq, max(self.time, *times.values())
            return self.last

    def _refuse_others(self, rows: Sequence[Row]) -> None:
        for row in rows if self._only is not None else ():
            if row.problem != self._only:
                raise InputError("problem", repr(row.problem), f"{self._only!r}, which alone is kept here")

    def recent(self, problem: str, key: str, mark: int) -> Row | None:
        """The row with this key after `mark`."""
        with self._lock:
            return self._recent.find(problem, key, mark)

    def rows(self) -> list[Row]:
        """Those that wait."""
        with self._lock:
            return list(self._rows)

    def done(self, rows: Sequence[Row], tails: Mapping[str, Tail]) -> None:
        """These, the first that waited, are committed."""
        with self._lock:
            del self._rows[: len(rows)]
            self.tails = tails
            self.committed = rows[-1].seq if rows else self.committed

    def drop(self, why: str) -> None:
        """End the epoch: the rows that wait were not kept, as far as is known."""
        with self._lock:
            self.unusable = why
            self._ended[self.epoch] = (None, why)
            self.epoch += 1  # before `committed` changes, see `is_done`
            self._rows.clear()
            self.last = self.committed
            self._recent.start(self.committed)

    def load(self, tails: Mapping[str, Tail], last: int, time: float) -> None:
        """Take what the file says; epochs whose end was not known have it now."""
        with self._lock:
            self.tails, self.last, self.committed, self.time = tails, last, last, time
            self._times = {name: tail.time for name, tail in tails.items()}
            self._recent.start(last)
            self._end(last)
            self.unusable = ""

    def lose(self, why: str, kept: int | None) -> None:
        """Never take a row again; the last that was kept is known, or not."""
        with self._lock:
            self.unusable = why
            self._end(kept)

    def _end(self, last: int | None) -> None:
        for epoch, (kept, why) in self._ended.items():
            self._ended[epoch] = (last if kept is None else kept, why)
        for epoch in list(self._ended)[:-ENDED]:
            del self._ended[epoch]

    def forget(self) -> None:
        """The file was rewritten: rows in memory may not be as they were."""
        with self._lock:
            self._recent.start(self.committed)

    def is_done(self, ticket: int, epoch: int) -> bool:
        """Whether the row is known to be durable."""
        # In this order: `committed` passes a row of an ended epoch only after `epoch` was raised.
        return ticket <= self.committed and epoch == self.epoch

    def kept(self, ticket: int, epoch: int) -> bool | None:
        """Whether a row that was queued is durable, or lost; None while that is not known."""
        with self._lock:
            if epoch == self.epoch:
                return True if ticket <= self.committed else None
            last, _ = self._ended.get(epoch, (0, ""))
            return None if last is None else ticket <= last

    def is_open(self, epoch: int) -> bool:
        """Whether the end of this epoch is not known yet."""
        return epoch in self._ended and self._ended[epoch][0] is None

    def why(self, epoch: int) -> str:
        """What ended an epoch."""
        return self._ended[epoch][1]

    def settle(self, ticket: int, epoch: int) -> None:
        """Return where the row is kept, else say what became of it."""
        kept, why = self._ended.get(epoch, (0, "its epoch is long over"))
        if epoch == self.epoch:
            kept, why = self.committed, "there is no such row"
        if kept is None and ticket > self.committed:
            said = f"it is not known whether row {ticket} was kept: {why}"
            raise StoreError(f"{self.name}: {said}; to ask again with the same key tells")
        if kept is not None and ticket > kept:
            raise StoreError(f"{self.name}: row {ticket} was not kept: {why}; nothing was changed")


def check(rows: Sequence[Row], last: int, times: Mapping[str, float]) -> dict[str, float]:
    """Refuse rows that do not follow the last, go back in the time of their problem, or cannot be written.

    The times of the last row of each of their problems.
    """
    if not rows:
        raise InputError("rows", "none", "at least one row")
    found: dict[str, float] = {}
    for row in rows:
        if row.seq != last + 1:
            raise InputError("seq", row.seq, f"{last + 1}, which follows the last row")
        before = found.get(row.problem, times.get(row.problem, 0.0))
        if not isfinite(row.time) or row.time < before:
            raise InputError("time", row.time, f"at least {before}, the time of the problem's last row")
        for text in (row.problem, row.kind, row.decision or "", row.key or "", row.body):
            if "\0" in text or not text.isascii():
                _check_text(text)
        last, found[row.problem] = row.seq, row.time
    return found


def _check_text(text: str) -> None:
    """One text that cannot be written would take the rows of others down with it."""
    if "\0" in text:
        raise InputError("text", ascii(text), "text without NUL, which databases do not keep")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError("text", ascii(text), "text that can be written as UTF-8") from error
