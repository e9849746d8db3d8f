"""Which decisions are open, and how long what is waited for of each may still come.

Rewards within `wait`, true contexts within `within`, both from the time of the decision, so that decisions
end their waiting in the order in which they were made.
"""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from unfog.live.opened import Open


class Windows:
    """Decisions by id, oldest first."""

    def __init__(self, wait: float | None, within: float | None) -> None:
        """None is open yet."""
        self._wait, self._within = wait, within
        self.open: dict[str, Open] = {}  # all of them
        # Ordered dictionaries, since their first entry is found at once also after many were taken away.
        self._waiting = OrderedDict[str, None]()  # their reward may come, and there is an end to that
        self._hidden = OrderedDict[str, None]()  # their true context may come, and an agent learns from it
        self.overdue: dict[str, None] = {}  # a reward awaits a context that can come no more
        self._recent: dict[str, list[str]] = {}  # of each unit, for agents that learn from a round again

    def enter(self, found: Open, hidden: bool, again: bool) -> None:
        """One more; whether someone learns from its true context, and from the round once more later."""
        self.open[found.id] = found
        if self._wait is not None:
            self._waiting[found.id] = None
        if hidden:
            self._hidden[found.id] = None
        if again:
            self._recent.setdefault(found.unit, []).append(found.id)

    def settle(self, found: Open) -> None:
        """Its reward is no longer waited for."""
        found.settled = True
        self._waiting.pop(found.id, None)

    def is_hidden(self, found: Open) -> bool:
        """Whether its true context may still come, to someone who learns from it."""
        return found.id in self._hidden

    def unpaid(self, time: float) -> Iterator[Open]:
        """Those whose wait for a reward is over at this time."""
        return self._past(self._waiting, self._wait, time)

    def unseen(self, time: float) -> Iterator[Open]:
        """Those whose true context is too late at this time."""
        return self._past(self._hidden, self._within, time)

    def _past(self, names: OrderedDict[str, None], span: float | None, time: float) -> Iterator[Open]:
        for name in names:
            if span is None or self.open[name].time + span > time:
                return
            yield self.open[name]

    def shut(self, found: Open) -> None:
        """Its true context is too late."""
        del self._hidden[found.id]

    def before(self, unit: str, rounds: int) -> Open | None:
        """The decision of a unit so many rounds before its last, where it is still open."""
        recent = self._recent.get(unit, ())
        return self.open.get(recent[-1 - rounds]) if len(recent) > rounds else None

    def forget(self, unit: str, rounds: int) -> list[Open]:
        """Decisions of a unit that are so many rounds ago, or more: they are not learnt from again."""
        recent = self._recent.get(unit, [])
        gone = [recent.pop(0) for _ in range(len(recent) - rounds)]
        return [self.open[name] for name in gone if name in self.open]

    def is_recent(self, found: Open) -> bool:
        """Whether it will be learnt from again."""
        return found.id in self._recent.get(found.unit, ())

    def close(self, found: Open) -> None:
        """Nothing can change it any more."""
        for names in (self.open, self._hidden, self.overdue):
            names.pop(found.id, None)

    def content(self) -> dict[str, Any]:
        """All of it, in nested values that do not change any more."""
        return {
            "open": [found.content() for found in self.open.values()],
            "waiting": list(self._waiting),
            "hidden": list(self._hidden),
            "overdue": list(self.overdue),
            "recent": {unit: [*names] for unit, names in self._recent.items()},
        }

    def fill(self, content: dict[str, Any]) -> None:
        """As they were."""
        self.open = {one[0]: Open.filled(one) for one in content["open"]}
        self._waiting, self._hidden = (OrderedDict.fromkeys(content[n]) for n in ("waiting", "hidden"))
        self.overdue, self._recent = dict.fromkeys(content["overdue"]), content["recent"]
