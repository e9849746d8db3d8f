"""Tasks in worker processes.

Workers leave interrupts to their parent, which when it stops for whatever reason asks them to stop too, and
waits: they do so after the block of rounds at hand. Killed, they might take a lock of the pool with them, and
the parent would wait for it for ever. They watch their parent, so that none outlives it when that is killed.
"""

import itertools
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing import resource_tracker
from typing import Any, NamedTuple

from unfog.inputs import InputError, count
from unfog.simulate.engines import Engine
from unfog.simulate.execute import IN_FLIGHT, WorkerDiedError, played
from unfog.simulate.execute.serial import Serial
from unfog.simulate.job import Job, Part, Tick
from unfog.simulate.tasks import Task

WATCH_SECONDS = 1.0


@dataclass(frozen=True)
class Processes:
    """The executor. A single task is played in this process."""

    workers: int

    def __post_init__(self) -> None:
        """One or more."""
        count("workers", self.workers)

    @property
    def here(self) -> int:
        """All of them."""
        return self.workers

    def run(
        self, engine: Engine, jobs: Sequence[Job], tasks: Iterable[Task], tick: Tick
    ) -> Iterator[tuple[Task, Sequence[Part]]]:
        """Each task with its curves, as they finish."""
        coming = iter(tasks)
        first = list(itertools.islice(coming, self.workers))
        if min(self.workers, len(first)) < 2:
            return Serial().run(engine, jobs, itertools.chain(first, coming), tick)
        refuse_what_cannot_travel(jobs, "workers", self.workers)
        packed = pickle.dumps((engine, tuple(jobs)))
        return _run_in_processes(packed, itertools.chain(first, coming), len(first), tick)


def _run_in_processes(
    packed: bytes, tasks: Iterator[Task], workers: int, tick: Tick
) -> Iterator[tuple[Task, Sequence[Part]]]:
    context = multiprocessing.get_context("spawn")
    shared = _Shared(*(context.Value(kind, 0) for kind in "qbq"))
    pool = ProcessPoolExecutor(workers, context, _enlist, (shared, os.getpid(), packed))
    try:
        yield from _collect(pool, tasks, IN_FLIGHT * workers, shared.done, tick)
    except BrokenProcessPool:
        if shared.enlisted.value == 0:
            allowed = "1, or call it under `if __name__ == '__main__':`; no worker process could start"
            raise InputError("workers", workers, allowed) from None
        raise WorkerDiedError from None
    finally:
        shared.stop.value = 1
        pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def deaf_children() -> Iterator[None]:
    """Processes started in here never hear of an interrupt: children block what their parent blocks."""
    if sys.platform == "win32":  # it has no such masks
        yield
        return
    resource_tracker.ensure_running()  # it would unblock interrupts in the thread that starts it
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def refuse_what_cannot_travel(jobs: Sequence[Job], field: str, value: object, instead: str = "1") -> None:
    """Complain, of this field, about what no other process could be given; `instead` would keep it here."""
    problems = {id(job.problem): job.problem for job in jobs}
    what = [("a problem", problem) for problem in problems.values()]
    for name, one in [*what, *((repr(agent.name), agent) for agent in jobs[0].agents)]:
        try:
            pickle.dumps(one)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            allowed = f"{instead} for {name} that cannot be sent to another process ({error})"
            raise InputError(field, value, allowed) from None


def _collect(
    pool: ProcessPoolExecutor, tasks: Iterator[Task], room: int, done: Any, tick: Tick
) -> Iterator[tuple[Task, Sequence[Part]]]:
    waiting, seen = dict[Future[list[Part]], Task](), 0
    while True:
        with deaf_children():
            waiting |= {
                pool.submit(_serve, task): task for task in itertools.islice(tasks, room - len(waiting))
            }
        if not waiting:
            return
        finished, _ = wait(waiting, timeout=0.1, return_when=FIRST_COMPLETED)
        total = done.value
        tick(total - seen)
        seen = total
        for future in finished:
            yield waiting.pop(future), future.result()


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


def _serve(task: Task) -> list[Part]:
    def tick(rounds: int) -> None:
        with _shared.done.get_lock():
            _shared.done.value += rounds
        if _shared.stop.value:
            raise _StoppedError

    return played(*unpacked(_packed), task, tick)


@lru_cache(maxsize=1)
def unpacked(packed: bytes) -> tuple[Engine, Sequence[Job]]:
    """The engine and the jobs, as our own parent sent them."""
    engine, jobs = pickle.loads(packed)  # noqa: S301
    return engine, jobs


def cores() -> int:
    """The processor cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not every system says
        return os.cpu_count() or 1
