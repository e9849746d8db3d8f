"""Executors of this machine: one task after the other in this process, or tasks in worker processes.

Each worker has a pipe of its own. Nothing is shared that a killed worker could keep others waiting for: no
queue, no lock. Its end shows at its own pipe, even in the middle of an answer; the tasks that it had are
known, a new worker takes its place, and they are played again, `RETRIES` times.

Workers leave interrupts to their parent, which when it stops for whatever reason asks them to stop too, and
waits: they do so after the block of rounds at hand. They watch their parent, so that none outlives it when
that is killed.
"""

import itertools
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from queue import SimpleQueue
from typing import Any, NamedTuple

from unfog.simulation.engines import Engine
from unfog.simulation.executors import IN_FLIGHT, MOST_WORKERS, RETRIES, WorkerDiedError, enough, played
from unfog.simulation.job import Job, Part, Task, Tick
from unfog.validation import InputError, count

WATCH_SECONDS = 1.0
FAILED = 1  # the exit code of a process that an exception ended


@dataclass(frozen=True)
class Serial:
    """The executor that plays one task after the other, in this process.

    >>> import unfog
    >>> from unfog.simulation import simulate
    >>> problem = unfog.GaussianProblem(dim=2, actions=5)
    >>> from unfog.simulation.executors.local import Serial
    >>> simulate(problem, ["unfog"], rounds=20, trials=4, executor=Serial()).engine
    'numpy'
    """

    workers: int = 1
    here: int = 1

    def run(
        self, engine: Engine, jobs: Sequence[Job], tasks: Iterable[Task], tick: Tick
    ) -> Iterator[tuple[Task, Sequence[Part]]]:
        """Each task in its turn."""
        for task in tasks:
            yield task, played(engine, jobs, task, tick)


@dataclass(frozen=True)
class Processes:
    """The executor of so many worker processes. A single task is played in this process.

    >>> from unfog.simulation.executors.local import Processes
    >>> Processes(2)  # simulate(..., executor=Processes(2)), under if __name__ == "__main__":
    Processes(workers=2)
    """

    workers: int

    def __post_init__(self) -> None:
        """One or more."""
        count("workers", self.workers, most=MOST_WORKERS)

    @property
    def here(self) -> int:
        """All workers are processes of this machine."""
        return self.workers

    def run(
        self, engine: Engine, jobs: Sequence[Job], tasks: Iterable[Task], tick: Tick
    ) -> Iterator[tuple[Task, Sequence[Part]]]:
        """Each task with its curves, as they finish."""
        workers, coming = enough(tasks, self.workers)
        if workers < 2:
            return Serial().run(engine, jobs, coming, tick)
        refuse_what_cannot_travel(jobs, "workers", self.workers)
        packed = pickle.dumps((engine, tuple(jobs)))
        return _run_in_processes(packed, coming, workers, tick)


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
        """The workers that said something, or died, within so many seconds."""
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


def _run_in_processes(
    packed: bytes, tasks: Iterator[Task], workers: int, tick: Tick
) -> Iterator[tuple[Task, Sequence[Part]]]:
    """Tasks a few at a time; those that a dead worker took with it go to others, before all that come."""
    crew, progress, lost, again = Crew(packed, workers), _Progress(tick), Counter[Task](), deque[Task]()

    def following() -> Task | None:
        return again.popleft() if again else next(tasks, None)

    try:
        while True:
            with deaf_children():
                busy = crew.give(following)
            if not busy:
                return
            for worker in crew.with_news(0.1):
                answer = worker.answer()
                if answer is None:
                    again.extend(_lost(crew, worker, lost))
                elif answer.error is not None:
                    raise answer.error
                elif answer.parts:  # else it says that it is up
                    progress.count(worker, answer.rounds)
                    yield worker.tasks.popleft(), answer.parts
            progress.look(crew)
    finally:
        crew.leave()


def _lost(crew: Crew, worker: Worker, lost: Counter[Task]) -> list[Task]:
    """The tasks that a dead worker took with it. The one it was at is counted: too often, it ends the run.

    A worker that never was up, and was not killed, shows that none can start.
    """
    crew.bury(worker)
    if not worker.up and worker.process.exitcode == FAILED:
        allowed = "1, or call it under `if __name__ == '__main__':`; no worker process could start"
        raise InputError("workers", crew.most, allowed)
    lost.update(itertools.islice(worker.tasks, 1))
    if lost and max(lost.values()) > RETRIES:
        raise WorkerDiedError
    return list(worker.tasks)


class _Progress:
    """Rounds told of as they are played; those of a lost task are not told of twice."""

    def __init__(self, tick: Tick) -> None:
        """Nothing yet."""
        self.tick, self.told, self.finished = tick, 0, 0

    def count(self, worker: Worker, rounds: int) -> None:
        """A task is finished."""
        worker.finished += rounds
        self.finished += rounds

    def look(self, crew: Crew) -> None:
        """Tell what is new."""
        now = max(self.told, self.finished + crew.under_way)
        self.tick(now - self.told)
        self.told = now


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


def cores() -> int:
    """The processor cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not every system says
        return os.cpu_count() or 1
