"""The writer of a store: requests are processed one after another, many with one commit.

Requests wait in a bounded queue; when it is full they are refused before anything is decided. All waiting
requests are processed as a batch with one commit, and answered once it is durable.

Short work is done on the event loop itself, since two computing threads would keep taking the interpreter
from each other. Work that takes long or has to wait is done in a thread of the store, and so is every commit.
While that waits for the disk the loop reads further requests.

What counts as short is measured for each problem (`WorkTimes`), since it depends on its arms, coordinates and
agents, and on the machine. It is measured in processor time, which excludes other threads. Until there are
measurements, work counts as long.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter, thread_time
from typing import Any, NamedTuple

from unfog.live.errors import ImportInProgressError, StoreError
from unfog.live.processor import Batch as LogBatch
from unfog.live.processor import Processor
from unfog.serve.errors import busy, described

SHORT = 0.005  # seconds
SHARE = 0.2  # the weight of the newest time in the mean
MOST_AT_ONCE = 64  # requests with one commit: the next ones wait for it
log = logging.getLogger("unfog.serve")


class WorkTimes:
    """The moving average of the time that requests take, by problem."""

    def __init__(self) -> None:
        """No time is known yet."""
        self._means: dict[str, float] = {}

    def add(self, name: str, seconds: float) -> None:
        """Record the time of a request."""
        mean = self._means.get(name, seconds)
        self._means[name] = mean + SHARE * (seconds - mean)

    def is_short(self, name: str) -> bool:
        """Whether the next request is likely to be short."""
        return self._means.get(name, SHORT) < SHORT


class Waiting(NamedTuple):
    """A request in the queue, and the future of its answer."""

    work: Callable[[], Any]
    answer: "asyncio.Future[Any]"
    short: str | None  # its problem, if this kind of request is short; None if it takes long


class Batch(NamedTuple):
    """Requests processed together: answers or exceptions, and the commit that makes them durable."""

    answers: list[Any]
    gathered: LogBatch


class Writer:
    """The writer of one store. Used by the event loop alone."""

    def __init__(
        self, processor: Processor, size: int, committed: Callable[[float], None], *, local: bool
    ) -> None:
        """`size` is that of the queue; `committed` is called with the seconds that each commit took.

        `local`: whether the store is a file, so that short work needs nothing but the state in memory.
        """
        self._processor, self.trouble = processor, ""  # why the last commit failed
        self._size, self._on_commit, self._local = size, committed, local
        self._queue: deque[Waiting] = deque()
        self._closed, self._times = False, WorkTimes()
        self._thread = ThreadPoolExecutor(1, f"writer of {processor.log.backend.name}")
        self._task: asyncio.Task[None] | None = None
        self._snapshot_task: asyncio.Task[None] | None = None  # a snapshot that is being written

    def ask(self, work: Callable[[], Any], short: str | None = None) -> "asyncio.Future[Any]":
        """Put work into the queue; the future has the answer once it is durable."""
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
        """The number of waiting requests."""
        return len(self._queue)

    async def close(self) -> None:
        """Finish waiting work, accept no more, and stop the thread."""
        self._closed = True
        if self._task is not None:
            await self._task
        if self._snapshot_task is not None:
            await self._snapshot_task
        await asyncio.to_thread(self._thread.shutdown)

    async def _run(self) -> None:
        """Process batches until the queue is empty."""
        while self._queue:
            batch = [self._queue.popleft() for _ in range(min(len(self._queue), MOST_AT_ONCE))]
            _deliver(batch, await self._process(batch))
            if self._snapshot_task is None and self._processor.cache.is_due():
                self._snapshot_task = asyncio.create_task(self._snapshot())
        self._task = None

    async def _snapshot(self) -> None:
        """Write a snapshot in the background, from a copy; only making the copy takes the lock."""
        try:
            await asyncio.to_thread(self._processor.cache.save_if_due)
        except Exception as error:  # noqa: BLE001
            # Nothing is lost: a snapshot is only a cache of the log.
            log.error("a snapshot failed: %s", described(error))
        finally:
            self._snapshot_task = None

    async def _process(self, batch: list[Waiting]) -> list[Any]:
        """Process a batch; return durable answers, or exceptions in their place."""
        answers = list[Any]()
        try:
            outcome = self._do_now(batch) or await self._in_thread(self._do_all, batch)
            answers, started = outcome.answers, perf_counter()
            await self._in_thread(outcome.gathered.settle)
        except StoreError as error:  # it is not known what has been stored
            self._record_failure(error)
            return [one if isinstance(one, Exception) else error for one in answers] or [error] * len(batch)
        except Exception as error:  # noqa: BLE001
            log.error("a commit failed: %s", described(error))
            return [error] * len(batch)
        if outcome.gathered.some:  # otherwise nothing was written to the disk
            self.trouble = ""
            self._on_commit(perf_counter() - started)
        for one in answers:
            if isinstance(one, StoreError):
                self._record_failure(one)
        return answers

    def _record_failure(self, error: StoreError) -> None:
        if isinstance(error, ImportInProgressError) or self._processor.log.lost is not None:
            return  # the disk or database has not failed
        if not self.trouble:  # log it once: a failure may last
            log.error("the store failed: %s", described(error))
        self.trouble = str(error)

    async def prove(self) -> None:
        """After a failed commit, check whether the store can be written to again."""
        if not self.trouble or self._closed:
            return
        try:
            await self._in_thread(self._processor.cache.probe)
            self.trouble = ""
        except Exception as error:  # noqa: BLE001
            self.trouble = described(error)

    def _do_now(self, batch: list[Waiting]) -> Batch | None:
        """Process a batch on the event loop if all of it is short and no lock is held."""
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
        # The first request reads the log, which would distort the times.
        is_loaded = name is not None and self._processor.cache.is_loaded(name)
        try:
            return waiting.work()
        except Exception as error:  # noqa: BLE001
            return error  # raised again for the caller
        finally:
            if name is not None and is_loaded:
                self._times.add(name, thread_time() - started)

    async def _in_thread(self, work: Callable[..., Any], *args: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *args)


def _deliver(batch: list[Waiting], answers: list[Any]) -> None:
    for waiting, answer in zip(batch, answers, strict=True):
        if waiting.answer.done():  # the caller is gone
            continue
        if isinstance(answer, Exception):
            waiting.answer.set_exception(answer)
        else:
            waiting.answer.set_result(answer)
