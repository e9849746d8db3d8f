"""Decisions for real: decide, reward, reveal, and nothing lost.

>>> import unfog
>>> store = unfog.live.open("walks.unfog")
>>> known = {"context_mean": [7000, 7], "context_cov": [4e6, 1]}  # what is usual
>>> known |= {"noise_cov": [1e6, 0.1], "bias_cov": [4e6, 0.1]}  # how far readings are off
>>> walks = store.problem("walks", context=["steps", "sleep"], arms=["send", "wait"], channel=known)
>>> d = walks.decide({"steps": 1648, "sleep": None}, unit="ann")
>>> walks.reward(d.id, 1.0).outcome
'learnt'
>>> store.close()
"""

from collections.abc import Callable
from pathlib import Path

from unfog.live.errors import (
    ConflictError,
    DecisionClosedError,
    NotFoundError,
    ServedElsewhereError,
    StoreError,
    StoreLockedError,
)
from unfog.live.log import EventLog
from unfog.live.problem import Problem
from unfog.live.requests import Decision, Receipt
from unfog.live.store import Store
from unfog.validation import InputError, check_keywords

__all__ = [
    "ConflictError",
    "Decision",
    "DecisionClosedError",
    "NotFoundError",
    "Problem",
    "Receipt",
    "ServedElsewhereError",
    "Store",
    "StoreError",
    "StoreLockedError",
    "open",
]


@check_keywords
def open(path: str | Path, *, sync: str = "full", clock: Callable[[], float] | None = None) -> Store:  # noqa: A001
    """Open a store, one file with many problems; it is created if it is not there.

    `sync="full"`: what is acknowledged outlives a power cut. `sync="normal"`: it outlives the death of the
    process, but a power cut may take the last moments with it; a decision then takes a fraction of the time.
    `clock` gives the time in seconds since 1970, where it is not to be the machine's.

    >>> import unfog
    >>> store = unfog.live.open("walks.unfog")
    >>> channel = {"context_mean": [7000], "context_cov": 4e6, "noise_cov": 1e6, "bias_cov": 4e6}
    >>> walks = store.problem("walks", context=["steps"], arms=["send", "wait"], channel=channel, seed=1)
    >>> d = walks.decide({"steps": 1648})
    >>> walks.reward(d.id, 1.0).outcome
    'learnt'
    >>> store.close()
    """
    if path == ":memory:":
        raise InputError("path", repr(path), "the name of a file; unfog.Bandit(...) decides in memory")
    from unfog.live.sqlite import SqliteBackend

    return Store(EventLog(SqliteBackend(path, sync)), clock)
