"""What is remembered of a problem, held against its log, while others go on deciding.

The lock is taken only to note what is remembered, and up to which row of the log it goes. Rows up to there
are then folded without it. What comes meanwhile is neither in what was noted nor in what is folded.

Rows up to there may still change: a unit may be erased, a commit may fail. Then what is remembered was
dropped as well, which shows, and it is done again.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from unfog import _codec
from unfog.live import snapshot
from unfog.live.errors import StoreError
from unfog.live.log import Row
from unfog.live.replay import Replayed, folded, verified
from unfog.live.state import State

if TYPE_CHECKING:
    from unfog.live.remembered import Remembered

TRIES = 3


class Held(NamedTuple):
    """What was remembered at a moment."""

    state: State  # it goes on changing
    told: dict[str, Any]  # all that it held, which does not
    upto: int  # the last row that is in it
    epoch: int  # of the log


def replayed(store: "Remembered", name: str, verify: bool) -> Replayed:
    """What a replay of one problem finds; what is remembered is put right where the log says otherwise."""
    for _ in range(TRIES):
        held = store.held(name)
        try:
            state, found = _read(store, name, held, verify)
        except StoreError:
            if store.holds(name, held) or store.log.closed:
                raise
            continue  # it was read while it changed
        if _codec.digest(held.told) == snapshot.digest(state):
            return found
        if store.put_right(name, held, state, found.events):
            return found._replace(same=False)
    raise StoreError(f"the log of {name!r} was changed {TRIES} times while it was read; ask again")


def _read(store: "Remembered", name: str, held: Held, verify: bool) -> tuple[State, Replayed]:
    made = store.made(name)
    if not verify:
        return folded(made, _rows(store, name, held))
    erasures = [row.seq for row in _rows(store, name, held) if row.kind == "erase"]
    return verified(made, _rows(store, name, held), max(erasures, default=0))


def _rows(store: "Remembered", name: str, held: Held) -> Iterator[Row]:
    """Of the log up to there; no more of them once it is closed, so that nobody waits for who reads."""
    for row in store.log.read(name, upto=held.upto):
        if store.log.closed:
            raise StoreError(f"{store.log.place.name} was closed while the log of {name!r} was read")
        yield row
