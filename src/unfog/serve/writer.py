"""One thread that does all that is asked of a store, many things with one commit.

Requests wait in a queue that is bounded: past that they are refused before anything is decided. The thread
takes what waits, does it inside `store.together()`, so that one commit serves all, and answers when that
commit is durable. While it waits for the disk, other threads read what comes next.
"""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from time import perf_counter
from typing import Any, NamedTuple

from unfog.live import Store
from unfog.live.errors import StoreError
from unfog.serve.mistakes import told
from unfog.serve.refusals import busy

MOST_AT_ONCE = 64  # how many share a commit: what is asked next waits for them
log = logging.getLogger("unfog.serve")


class Waiting(NamedTuple):
    """One thing that was asked for, and who waits for it."""

    work: Callable[[], Any]
    answer: "asyncio.Future[Any]"


class Writer:
    """The thread of a store. `ask` is called by the event loop alone."""

    def __init__(self, store: Store, size: int, committed: Callable[[float], None]) -> None:
        """Start it, with a queue of this size; `committed` is told how long each commit took."""
        self.store, self.trouble = store, ""  # why the last commit failed
        self._size, self._committed = size, committed
        self._queue: deque[Waiting] = deque()
        self._some = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name=f"writer of {store}", daemon=True)
        self._thread.start()

    def ask(self, work: Callable[[], Any]) -> "asyncio.Future[Any]":
        """Have it done; the answer comes once it is durable."""
        answer = asyncio.get_running_loop().create_future()
        with self._some:
            if self._closed:
                raise busy("The service is stopping; nothing was done.")
            if len(self._queue) >= self._size:
                raise busy(f"{self._size} requests wait already; nothing was done.")
            self._queue.append(Waiting(work, answer))
            self._some.notify()
        return answer

    def close(self) -> None:
        """Do what waits, take no more, and end."""
        with self._some:
            self._closed = True
            self._some.notify()
        self._thread.join()

    def _run(self) -> None:
        while batch := self._next():
            answers = self._done(batch)
            loop = batch[0].answer.get_loop()
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(_deliver, batch, answers)
            with suppress(StoreError):  # a snapshot is a cache
                self.store.snapshot_if_due()

    def _next(self) -> list[Waiting]:
        """All that waits, at most so many; nothing at the end."""
        with self._some:
            while not self._queue and not self._closed:
                self._some.wait()
            return [self._queue.popleft() for _ in range(min(len(self._queue), MOST_AT_ONCE))]

    def _done(self, batch: list[Waiting]) -> list[Any]:
        """Answers, or the errors in their place."""
        answers: list[Any] = []
        started = perf_counter()
        try:
            with self.store.together():
                answers += [_tried(waiting.work) for waiting in batch]
                started = perf_counter()
            self.trouble = ""
        except StoreError as error:  # the commit failed: of all that was done nothing is known to be kept
            if not self.trouble:  # once: it may go on for long
                log.error("a commit failed: %s", told(error))
            self.trouble = str(error)
            return [one if isinstance(one, Exception) else error for one in answers] or [error] * len(batch)
        except Exception as error:  # noqa: BLE001
            log.error("a commit failed: %s", told(error))
            return [error] * len(batch)
        self._committed(perf_counter() - started)
        return answers


def _tried(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except Exception as error:  # noqa: BLE001
        return error  # it is raised again where it was asked for


def _deliver(batch: list[Waiting], answers: list[Any]) -> None:
    for waiting, answer in zip(batch, answers, strict=True):
        if waiting.answer.done():  # whoever asked has gone
            continue
        if isinstance(answer, Exception):
            waiting.answer.set_exception(answer)
        else:
            waiting.answer.set_result(answer)
