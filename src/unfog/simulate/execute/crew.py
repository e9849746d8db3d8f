"""A pool of worker processes, and what happens inside one.

Workers leave interrupts to their parent, which when it stops for whatever reason asks them to stop too, and
waits: they do so after the block of rounds at hand. Killed, they might take a lock of the pool with them, and
the parent would wait for it for ever. They watch their parent, so that none outlives it when that is killed.

Where one worker dies the pool breaks, and all others are ended: a new crew shares no lock with the old.
"""

import multiprocessing
import os
import pickle
import signal
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from unfog.simulate.engines import Engine
from unfog.simulate.execute import played
from unfog.simulate.job import Job, Part
from unfog.simulate.tasks import Task

WATCH_SECONDS = 1.0
FAILED = 1  # the exit code of a process that an exception ended

Promise: TypeAlias = Future[tuple[list[Part], int]]
"""Of what a task gives, and of its agent-rounds."""


class Crew:
    """Worker processes that stand and fall together."""

    def __init__(self, packed: bytes, workers: int) -> None:
        """`packed` are the engine and the jobs, sent to each once; processes start with the first tasks."""
        context = multiprocessing.get_context("spawn")
        self.workers = workers
        self._shared = _Shared(context.Value("q", 0), context.RawValue("b", 0), context.Value("q", 0))
        self._pool = ProcessPoolExecutor(workers, context, _enlist, (self._shared, os.getpid(), packed))
        self._processes = self._pool._processes  # a pool that has left knows them no more

    def submit(self, task: Task) -> Promise:
        """A promise of what the task gives; of a pool that is broken already, one that is broken too."""
        try:
            return self._pool.submit(_serve, task)
        except BrokenProcessPool as error:
            failed: Promise = Future()
            failed.set_exception(error)
            return failed

    @property
    def done(self) -> int:
        """Agent-rounds played. Read without its lock, which a killed worker may have had."""
        return int(self._shared.done.get_obj().value)

    @property
    def started(self) -> int:
        """Workers that started; likewise."""
        return int(self._shared.enlisted.get_obj().value)

    @property
    def without_guard(self) -> bool:
        """Whether all ended at once, by themselves, as in a script that lacks `if __name__ == "__main__":`.

        One that was killed has a signal for its exit code. To be asked once they have left.
        """
        return self.started == 0 and any(one.exitcode == FAILED for one in self._processes.values())

    def leave(self) -> None:
        """Ask all to stop, and wait for them."""
        self._shared.stop.value = 1
        self._pool.shutdown(wait=True, cancel_futures=True)


def lost_with_worker(promise: Promise) -> bool:
    """Whether a finished promise came to nothing because a worker died."""
    return isinstance(promise.exception(), BrokenProcessPool)


class _Shared(NamedTuple):
    """What parent and workers have in common."""

    done: Any  # rounds
    stop: Any  # whether the parent wants no more
    enlisted: Any  # workers that started


_shared: Any = None  # set in worker processes only
_packed = b""  # engine and jobs, unpacked at the first task: what goes wrong there is heard of


class _StoppedError(Exception):
    """The parent wants no more of it."""


def _enlist(shared: _Shared, parent: int, packed: bytes) -> None:
    global _shared, _packed
    _shared, _packed = shared, packed
    with shared.enlisted.get_lock():
        shared.enlisted.value += 1
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    """End this process when its parent is gone."""
    while os.getppid() == parent:
        time.sleep(WATCH_SECONDS)
    os._exit(1)


def _serve(task: Task) -> tuple[list[Part], int]:
    played_here = 0

    def tick(rounds: int) -> None:
        nonlocal played_here
        played_here += rounds
        with _shared.done.get_lock():
            _shared.done.value += rounds
        if _shared.stop.value:
            raise _StoppedError

    return played(*unpacked(_packed), task, tick), played_here


@lru_cache(maxsize=1)
def unpacked(packed: bytes) -> tuple[Engine, Sequence[Job]]:
    """The engine and the jobs, as our own parent sent them."""
    engine, jobs = pickle.loads(packed)  # noqa: S301
    return engine, jobs
