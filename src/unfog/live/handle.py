"""A problem of a store, and how each of its verbs goes: live/store.py does it and writes it down."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from unfog import validation
from unfog.live import answers
from unfog.live.answers import Receipt
from unfog.live.log import Row
from unfog.live.state import State
from unfog.live.terms import Terms
from unfog.live.turn import Done, Event, Turn, Work

if TYPE_CHECKING:
    from unfog.live.store import Store


class Handle:
    """The name of a problem, and the store that has it."""

    def __init__(self, store: "Store", name: str, terms: Terms, note: str) -> None:
        """As the store has it."""
        self.store, self.name, self.terms, self.note = store, name, terms, note

    def __repr__(self) -> str:
        """Name, agent and what there is to know."""
        said = f": {self.note}" if self.note else ""
        return f"<live problem {self.name!r}, agent {self.terms.agent!r}{said}>"

    def _act(
        self, kind: str, decision: str | None, key: str | None, request: Mapping[str, Any], work: Work
    ) -> Done:
        key = None if key is None else validation.check_name("key", key)
        return self.store.act(Turn(self.name, kind, decision, key, request, work))

    def _report(
        self, kind: str, decision: str | None, key: str | None, request: Mapping[str, Any], work: Work
    ) -> Receipt:
        done = self._act(kind, decision, key, request, work)
        return answers.receipt(done.seq, done.body["outcome"])

    def _rows(self, decision: str) -> Callable[[], Sequence[Row]]:
        return lambda: self.store.log.of(self.name, decision)

    def _applied(
        self, state: State, kind: str, decision: str | None, body: dict[str, Any], now: float
    ) -> Event:
        state.apply(kind, decision, body, now)
        return Event(decision, body)
