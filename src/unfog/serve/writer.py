"""The writer of a store: requests are done in turn, many with one commit.

Requests wait in a bounded queue; when it is full they are refused before anything is decided. All that wait
are taken together and done, one commit serves all of them, and they are answered once it is durable.

Short work is done on the event loop itself: two threads that compute take the interpreter from each other at
every step. What takes long or has to wait is done in a thread of the store, and so is every commit. While
that waits for the disk the loop reads further requests.

What counts as short is measured for each problem (`Lengths`), since it depends on its arms, coordinates and
agents, and on the machine. It is measured in processor time, which does not count what others take. Until
something is known work counts as long.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter, thread_time
from typing import Any, NamedTuple

from unfog.live.errors import Reserved, StoreError
from unfog.live.processor import Gathered, Processor
from unfog.serve.errors import busy, described

SHORT = 0.005  # seconds
SHARE = 0.2  # of the newest in the mean
MOST_AT_ONCE = 64  # how many share a commit: what is asked next waits for them
log = logging.getLogger("unfog.serve")


class Lengths:
    """The mean of each problem's newest work, by name."""

    def __init__(self) -> None:
        """Nothing is known."""
        self._means: dict[str, float] = {}

    def add(self, name: str, seconds: float) -> None:
        """Work that was done."""
        before = self._means.get(name, seconds)
        self._means[name] = before + SHARE * (seconds - before)

    def is_short(self, name: str) -> bool:
        """Whether what comes next will be done soon."""
        return self._means.get(name, SHORT) < SHORT


class Waiting(NamedTuple):
    """One thing that was asked for, and who waits for it."""

    work: Callable[[], Any]
    answer: "asyncio.Future[Any]"
    short: str | None  # the problem that it is about, where it is short if others of that problem are


class Batch(NamedTuple):
    """What was done together: answers, or errors in their place; and what is to be made durable."""

    answers: list[Any]
    gathered: Gathered


class Writer:
    """The writer of one store. Used by the event loop alone."""

    def __init__(
        self, processor: Processor, size: int, committed: Callable[[float], None], *, local: bool
    ) -> None:
        """With a queue of this size; `committed` is told how long each commit took.

        `local`: whether it is a file, so that what is remembered of it is all that short work needs.
        """
        self._processor, self.trouble = processor, ""  # why the last commit failed
        self._size, self._on_commit, self._local = size, committed, local
        self._queue: deque[Waiting] = deque()
        self._closed, self._times = False, Lengths()
        self._thread = ThreadPoolExecutor(1, f"writer of {processor.log.backend.name}")
        self._task: asyncio.Task[None] | None = None
        self._snapshot_task: asyncio.Task[None] | None = None  # a snapshot that is being written

    def ask(self, work: Callable[[], Any], short: str | None = None) -> "asyncio.Future[Any]":
        """Have it done; the answer comes once it is durable."""
        if self._closed:
            raise busy("The service is stopping; nothing was done.")
        if len(self._queue) >= self._size:
            raise busy(f"{self._size} requests wait already; nothing was done.")
        loop = asyncio.get_running_loop()
        answer = loop.create_future()
        self._queue.append(Waiting(work, answer, short))
        if self._task is None:
            self._task = loop.create_task(self._run())
        return answer

    @property
    def waiting(self) -> int:
        """How many requests wait."""
        return len(self._queue)

    async def close(self) -> None:
        """Do what waits, take no more, and end."""
        self._closed = True
        if self._task is not None:
            await self._task
        if self._snapshot_task is not None:
            await self._snapshot_task
        await asyncio.to_thread(self._thread.shutdown)

    async def _run(self) -> None:
        """Until nothing waits."""
        while self._queue:
            batch = [self._queue.popleft() for _ in range(min(len(self._queue), MOST_AT_ONCE))]
            _deliver(batch, await self._process(batch))
            if self._snapshot_task is None and self._processor.cache.is_due():
                self._snapshot_task = asyncio.create_task(self._snapshot())
        self._task = None

    async def _snapshot(self) -> None:
        """Beside everything else: it is written from a copy, and only to make that takes the lock."""
        try:
            await asyncio.to_thread(self._processor.cache.save_if_due)
        except Exception as error:  # noqa: BLE001
            log.error(
                "a snapshot failed: %s", described(error)
            )  # it is a cache: all that was asked for is done
        finally:
            self._snapshot_task = None

    async def _process(self, batch: list[Waiting]) -> list[Any]:
        """Answers that are durable, or the errors in their place."""
        answers = list[Any]()
        try:
            outcome = self._do_now(batch) or await self._in_thread(self._do_all, batch)
            answers, started = outcome.answers, perf_counter()
            await self._in_thread(outcome.gathered.settle)
        except StoreError as error:  # of all that was done nothing is known to be kept
            self._record_failure(error)
            return [one if isinstance(one, Exception) else error for one in answers] or [error] * len(batch)
        except Exception as error:  # noqa: BLE001
            log.error("a commit failed: %s", described(error))
            return [error] * len(batch)
        if outcome.gathered.some:  # else it says nothing of the disk
            self.trouble = ""
            self._on_commit(perf_counter() - started)
        for one in answers:
            if isinstance(one, StoreError):
                self._record_failure(one)
        return answers

    def _record_failure(self, error: StoreError) -> None:
        if isinstance(error, Reserved) or self._processor.log.lost is not None:
            return  # it says nothing of disk or database
        if not self.trouble:  # once: it may go on for long
            log.error("the store failed: %s", described(error))
        self.trouble = str(error)

    async def prove(self) -> None:
        """Where the last commit failed, see whether another one would."""
        if not self.trouble or self._closed:
            return
        try:
            await self._in_thread(self._processor.cache.probe)
            self.trouble = ""
        except Exception as error:  # noqa: BLE001
            self.trouble = described(error)

    def _do_now(self, batch: list[Waiting]) -> Batch | None:
        """Done here and now, if it is short and need not wait for anybody."""
        if not self._local or not all(one.short and self._is_short(one.short) for one in batch):
            return None
        if self._processor.log.busy or not self._processor.lock.acquire(blocking=False):
            return None
        try:
            return self._do_all(batch)
        finally:
            self._processor.lock.release()

    def _is_short(self, name: str) -> bool:
        return self._processor.cache.is_loaded(name) and self._times.is_short(name)

    def _do_all(self, batch: list[Waiting]) -> Batch:
        with self._processor.gathered() as gathered:
            return Batch([self._try_one(waiting) for waiting in batch], gathered)

    def _try_one(self, waiting: Waiting) -> Any:
        name, started = waiting.short, thread_time()
        # To read a log takes long, once.
        is_loaded = name is not None and self._processor.cache.is_loaded(name)
        try:
            return waiting.work()
        except Exception as error:  # noqa: BLE001
            return error  # it is raised again where it was asked for
        finally:
            if name is not None and is_loaded:
                self._times.add(name, thread_time() - started)

    async def _in_thread(self, work: Callable[..., Any], *args: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *args)


def _deliver(batch: list[Waiting], answers: list[Any]) -> None:
    for waiting, answer in zip(batch, answers, strict=True):
        if waiting.answer.done():  # whoever asked has gone
            continue
        if isinstance(answer, Exception):
            waiting.answer.set_exception(answer)
        else:
            waiting.answer.set_result(answer)
