"""Events of this process by problem, kind and outcome, counted once they are durable.

A row is queued first, and its commit may fail: then it was never written down, and is not counted.
"""

import threading
from collections import Counter, deque
from typing import TypeAlias

from unfog.live.log import Log

Labels: TypeAlias = tuple[str, str, str]  # problem, kind and outcome


class Counted:
    """May be used from any thread."""

    def __init__(self, log: Log) -> None:
        """Nothing yet."""
        self._log, self._lock = log, threading.Lock()
        self._waiting: deque[tuple[int, int, Labels]] = deque()  # numbers of rows, and their epochs
        self._counts: Counter[Labels] = Counter()

    def add(self, seq: int, epoch: int, labels: Labels) -> None:
        """A row was queued."""
        with self._lock:
            self._waiting.append((seq, epoch, labels))
            self._settle()

    def counts(self) -> Counter[Labels]:
        """Of all rows that are durable by now."""
        with self._lock:
            self._settle()
            return self._counts.copy()

    def _settle(self) -> None:
        while self._waiting:
            seq, epoch, labels = self._waiting[0]
            kept = self._log.kept(seq, epoch)
            if kept is None:
                return
            self._counts[labels] += kept
            self._waiting.popleft()
