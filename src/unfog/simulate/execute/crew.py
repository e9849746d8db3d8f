"""Worker processes, each with a pipe of its own, and what happens inside one.

Nothing is shared that a killed worker could keep others waiting for: no queue, no lock. Its end shows at its
own pipe, even in the middle of an answer; the tasks that it had are known, and a new worker takes its place.

Workers leave interrupts to their parent, which when it stops for whatever reason asks them to stop too, and
waits: they do so after the block of rounds at hand. They watch their parent, so that none outlives it when
that is killed.
"""

import multiprocessing
import os
import pickle
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from multiprocessing.connection import Connection, wait
from queue import SimpleQueue
from typing import Any, NamedTuple

from unfog.simulate.engines import Engine
from unfog.simulate.execute import IN_FLIGHT, played
from unfog.simulate.job import Job, Part
from unfog.simulate.tasks import Task

WATCH_SECONDS = 1.0
FAILED = 1  # the exit code of a process that an exception ended


class Answer(NamedTuple):
    """What a worker says of a task, or that it is up."""

    parts: Sequence[Part] = ()
    rounds: int = 0
    error: BaseException | None = None


class Worker:
    """A process, the tasks that it was given, oldest first, and how far it is."""

    def __init__(self, packed: bytes, stop: Any) -> None:
        """Started; `packed` are the engine and the jobs."""
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.tasks, self.finished, self.up = deque[Task](), 0, False
        self._done = context.RawValue("q", 0)
        told = (theirs, self._done, stop, os.getpid(), packed)
        self.process = context.Process(target=_work, args=told)
        self.process.start()
        theirs.close()  # so that the worker's own end is the only one: with it, the pipe ends

    @property
    def under_way(self) -> int:
        """Agent-rounds played of tasks that are not finished."""
        return max(0, int(self._done.value) - self.finished)

    def give(self, task: Task) -> None:
        """One task more; a dead worker takes it as well, and loses it with the others."""
        self.tasks.append(task)
        with suppress(OSError):
            self.pipe.send(task)

    def answer(self) -> Answer | None:
        """The next one; None from a worker that died."""
        try:
            found: Answer = self.pipe.recv()
        except (EOFError, OSError):
            return None
        self.up = True
        return found

    def leave(self) -> None:
        """Wait for its end; it hears that nobody listens any more."""
        self.pipe.close()
        self.process.join()


class Crew:
    """So many workers, started as there are tasks for them."""

    def __init__(self, packed: bytes, workers: int) -> None:
        """Nobody yet."""
        self.packed, self.most, self.workers = packed, workers, list[Worker]()
        self._stop = multiprocessing.get_context("spawn").RawValue("b", 0)

    def give(self, following: Callable[[], Task | None]) -> bool:
        """Tasks for all, one each before anybody has two; whether anybody has any."""
        for depth in range(IN_FLIGHT):
            for place in range(self.most):
                if place < len(self.workers) and len(self.workers[place].tasks) > depth:
                    continue
                task = following()
                if task is None:
                    return any(worker.tasks for worker in self.workers)
                if place == len(self.workers):
                    self.workers.append(Worker(self.packed, self._stop))
                self.workers[place].give(task)
        return True

    def with_news(self, seconds: float) -> list[Worker]:
        """Those who said something, or died, in so long a time."""
        pipes: dict[Any, Worker] = {worker.pipe: worker for worker in self.workers}
        return [pipes[pipe] for pipe in wait(list(pipes), seconds)]

    def bury(self, worker: Worker) -> None:
        """Make room for another in its place."""
        worker.leave()
        self.workers.remove(worker)

    @property
    def under_way(self) -> int:
        """Agent-rounds played of tasks that are not finished."""
        return sum(worker.under_way for worker in self.workers)

    def leave(self) -> None:
        """Ask all to stop, and wait for them."""
        self._stop.value = 1
        for worker in self.workers:
            worker.leave()


class _StoppedError(Exception):
    """The parent wants no more of it."""


def _work(pipe: Connection, done: Any, stop: Any, parent: int, packed: bytes) -> None:
    """Tasks, until there are no more or the parent wants no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    coming = SimpleQueue[Task | None]()
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()
    threading.Thread(target=_hear, args=(pipe, coming), daemon=True).start()
    with suppress(OSError, _StoppedError):
        pipe.send(Answer())
        while (task := coming.get()) is not None:
            pipe.send(_answer(task, packed, done, stop))


def _hear(pipe: Connection, coming: "SimpleQueue[Task | None]") -> None:
    """Take tasks off the pipe at any time, None at its end.

    A parent that waits until a large task is through hears no answer: were the worker to wait until that is
    heard, both would wait for ever.
    """
    with suppress(EOFError, OSError):
        while True:
            coming.put(pipe.recv())
    coming.put(None)


def _watch(parent: int) -> None:
    """End this process when its parent is gone."""
    while os.getppid() == parent:
        time.sleep(WATCH_SECONDS)
    os._exit(1)


def _answer(task: Task, packed: bytes, done: Any, stop: Any) -> Answer:
    """What the task gives, or why it gives nothing."""
    before = done.value

    def tick(rounds: int) -> None:
        done.value += rounds
        if stop.value:
            raise _StoppedError

    try:
        return Answer(played(*unpacked(packed), task, tick), done.value - before)
    except _StoppedError:
        raise
    except Exception as error:  # noqa: BLE001 - it is raised again by the parent
        return Answer(error=error)


@lru_cache(maxsize=1)
def unpacked(packed: bytes) -> tuple[Engine, Sequence[Job]]:
    """The engine and the jobs, as our own parent sent them."""
    engine, jobs = pickle.loads(packed)  # noqa: S301
    return engine, jobs
