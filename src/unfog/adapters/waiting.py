"""Decisions that wait for their rewards, in tools that have no name for a decision.

Such a tool hands back the context with the reward, and nothing else. So a decision is kept under its reading.
Equal readings, which are common where a sensor gives whole numbers, are served in the order of their
decisions: first in, first out. A decision whose reward never comes stays first in its line until it is
forgotten, which happens to the oldest of all when there are too many. This is the rule for all our adapters.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

import numpy as np

from unfog import validation
from unfog.maths.arrays import Array

Item = TypeVar("Item")


class Waiting(Generic[Item]):
    """Lines of items, one for each reading."""

    def __init__(self, most: int) -> None:
        """Keep so many in all, the latest."""
        self.most = validation.count("remember", most)
        # Ordered dictionaries give up their first item at once; plain ones search for it.
        self._reading: OrderedDict[int, bytes] = OrderedDict()
        self._lines: dict[bytes, OrderedDict[int, Item]] = {}
        self._number = 0

    def add(self, reading: Array, item: Item) -> None:
        """At the end of its line."""
        name = _name(reading)
        self._reading[self._number] = name
        self._lines.setdefault(name, OrderedDict())[self._number] = item
        self._number += 1
        if len(self._reading) > self.most:
            self._remove(next(iter(self._reading)))

    def line(self, reading: Array) -> Iterator[Item]:
        """Those that wait for this reading's reward, the first one first."""
        return iter(self._lines.get(_name(reading), {}).values())

    def take(self, reading: Array, fits: Callable[[Item], bool] = lambda _: True) -> Item | None:
        """The first that fits; it waits no longer."""
        for number, item in self._lines.get(_name(reading), {}).items():
            if fits(item):
                self._remove(number)
                return item
        return None

    def __len__(self) -> int:
        return len(self._reading)

    def _remove(self, number: int) -> None:
        name = self._reading.pop(number)
        del self._lines[name][number]
        if not self._lines[name]:
            del self._lines[name]


def _name(reading: Array) -> bytes:
    """Equal numbers have equal names: there are many kinds of nan, and two zeros."""
    return np.where(np.isnan(reading), np.nan, reading + 0.0).tobytes()
