"""Batches of trials in worker processes.

Workers leave interrupts to their parent, which when it stops for whatever reason asks them to stop too, and
waits: they do so after the block of rounds at hand. Killed, they might take a lock of the pool with them, and
the parent would wait for it for ever. They watch their parent, so that none outlives it when that is killed.
"""

import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from unfog.inputs import InputError, count
from unfog.simulate.engines import Engine
from unfog.simulate.execute.serial import Serial
from unfog.simulate.job import Job, Part, Tick

WATCH_SECONDS = 1.0


@dataclass(frozen=True)
class Processes:
    """The executor. A single batch is played in this process."""

    workers: int

    def __post_init__(self) -> None:
        """One or more."""
        count("workers", self.workers)

    def run(
        self, engine: Engine, job: Job, pending: Sequence[range], tick: Tick
    ) -> Iterator[tuple[range, Part]]:
        """Each batch with its curves, as they finish."""
        some = min(self.workers, len(pending))
        if some < 2:
            return Serial().run(engine, job, pending, tick)
        _refuse_what_cannot_travel(job, self.workers)
        return _run_in_processes(engine, job, pending, some, tick)


def _run_in_processes(
    engine: Engine, job: Job, pending: Sequence[range], workers: int, tick: Tick
) -> Iterator[tuple[range, Part]]:
    context = multiprocessing.get_context("spawn")
    done, stop = context.Value("q", 0), context.Value("b", 0)
    pool = ProcessPoolExecutor(workers, context, _enlist, (done, stop, os.getpid()))
    try:
        with _deaf_children():
            waiting = {pool.submit(_serve, engine, job, trials): trials for trials in pending}
        yield from _collect(waiting, done, tick)
    except BrokenProcessPool:
        allowed = "1, or call it under `if __name__ == '__main__':`; a worker process died"
        raise InputError("workers", workers, allowed) from None
    finally:
        stop.value = 1
        pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _deaf_children() -> Iterator[None]:
    """Processes started in here never hear of an interrupt: children block what their parent blocks."""
    if sys.platform == "win32":  # it has no such masks
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _refuse_what_cannot_travel(job: Job, workers: int) -> None:
    what = {"a problem": job.problem, **{repr(agent.name): agent for agent in job.agents}}
    for name, one in what.items():
        try:
            pickle.dumps(one)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            allowed = f"1 for {name} that cannot be sent to another process ({error})"
            raise InputError("workers", workers, allowed) from None


def _collect(waiting: dict[Future[Part], range], done: Any, tick: Tick) -> Iterator[tuple[range, Part]]:
    seen = 0
    while waiting:
        finished, _ = wait(waiting, timeout=0.1, return_when=FIRST_COMPLETED)
        total = done.value
        tick(total - seen)
        seen = total
        for future in finished:
            yield waiting.pop(future), future.result()


_done: Any = None  # set in worker processes only: the rounds done, shared with the parent
_stop: Any = None  # and whether it wants them to stop


class _StoppedError(Exception):
    """The parent wants no more of it."""


def _enlist(done: Any, stop: Any, parent: int) -> None:
    global _done, _stop
    _done, _stop = done, stop
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    """End this process when its parent is gone."""
    while os.getppid() == parent:
        time.sleep(WATCH_SECONDS)
    os._exit(1)


def _serve(engine: Engine, job: Job, trials: range) -> Part:
    def tick(rounds: int) -> None:
        with _done.get_lock():
            _done.value += rounds
        if _stop.value:
            raise _StoppedError

    return engine.run(job, trials, tick)


def cores() -> int:
    """The processor cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not every system says
        return os.cpu_count() or 1
