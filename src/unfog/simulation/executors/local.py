"""Executors of this machine: one task after the other in this process, or tasks in worker processes.

Each worker has a pipe of its own. Workers share no queue and no lock, which one that is killed could keep
from the others. If a worker dies, even in the middle of an answer, its pipe closes; a new worker takes its
place, and its tasks are played again, up to `RETRIES` times.

Workers leave interrupts to their parent. When the parent stops for whatever reason, it asks them to stop and
waits until they do, after the current block of rounds. They watch their parent, so that none outlives it if
it is killed.
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
FAILED = 1  # the exit code of a process that ended with an exception


@dataclass(frozen=True)
class Serial:
    """The executor that plays one task after the other, in this process.

    >>> import unfog
    >>> from unfog.simulation import play
    >>> problem = unfog.GaussianProblem(dim=2, actions=5)
    >>> from unfog.simulation.executors.local import Serial
    >>> play(problem, ["unfog"], rounds=20, trials=4, executor=Serial()).engine
    'numpy'
    """

    workers: int = 1
    here: int = 1

    def run(
        self, engine: Engine, jobs: Sequence[Job], tasks: Iterable[Task], tick: Tick
    ) -> Iterator[tuple[Task, Sequence[Part]]]:
        """Play one task after the other."""
        for task in tasks:
            yield task, played(engine, jobs, task, tick)


@dataclass(frozen=True)
class Processes:
    """The executor of so many worker processes. A single task is played in this process.

    >>> from unfog.simulation.executors.local import Processes
    >>> Processes(2)  # play(..., executor=Processes(2)), under if __name__ == "__main__":
    Processes(workers=2)
    """

    workers: int

    def __post_init__(self) -> None:
        """Check the number of workers."""
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
    """What a worker sends: the results of a task, an error, or nothing when it has started."""

    parts: Sequence[Part] = ()
    rounds: int = 0
    error: BaseException | None = None


class Worker:
    """A worker process, its tasks, oldest first, and its progress."""

    def __init__(self, packed: bytes, stop: Any) -> None:
        """Start the process; `packed` are the engine and the jobs."""
        context = multiprocessing.get_context("spawn")
        self.pipe, remote = context.Pipe()
        self.tasks, self.finished, self.up = deque[Task](), 0, False
        self._done = context.RawValue("q", 0)
        args = (remote, self._done, stop, os.getpid(), packed)
        self.process = context.Process(target=_work, args=args)
        self.process.start()
        remote.close()  # so that the worker's own end is the only one: with it, the pipe ends

    @property
    def under_way(self) -> int:
        """Agent-rounds played of its unfinished tasks."""
        return max(0, int(self._done.value) - self.finished)

    def give(self, task: Task) -> None:
        """Send a task; one sent to a dead worker is recovered with its others."""
        self.tasks.append(task)
        with suppress(OSError):
            self.pipe.send(task)

    def answer(self) -> Answer | None:
        """The next answer; None if the worker has died."""
        try:
            answer: Answer = self.pipe.recv()
        except (EOFError, OSError):
            return None
        self.up = True
        return answer

    def leave(self) -> None:
        """Close the pipe, which ends the worker, and wait for it."""
        self.pipe.close()
        self.process.join()


class WorkerPool:
    """Worker processes, started as there are tasks for them."""

    def __init__(self, packed: bytes, workers: int) -> None:
        """No worker is started yet."""
        self.packed, self.most, self.workers = packed, workers, list[Worker]()
        self._stop = multiprocessing.get_context("spawn").RawValue("b", 0)

    def give(self, following: Callable[[], Task | None]) -> bool:
        """Hand out tasks, one to each worker before any has two; return whether any worker has one."""
        for depth in range(IN_FLIGHT):
            for i in range(self.most):
                if i < len(self.workers) and len(self.workers[i].tasks) > depth:
                    continue
                task = following()
                if task is None:
                    return any(worker.tasks for worker in self.workers)
                if i == len(self.workers):
                    self.workers.append(Worker(self.packed, self._stop))
                self.workers[i].give(task)
        return True

    def poll(self, seconds: float) -> list[Worker]:
        """The workers that have answered, or died, within so many seconds."""
        pipes: dict[Any, Worker] = {worker.pipe: worker for worker in self.workers}
        return [pipes[pipe] for pipe in wait(list(pipes), seconds)]

    def remove(self, worker: Worker) -> None:
        """Remove a dead worker; another may take its place."""
        worker.leave()
        self.workers.remove(worker)

    @property
    def under_way(self) -> int:
        """Agent-rounds played of all unfinished tasks."""
        return sum(worker.under_way for worker in self.workers)

    def leave(self) -> None:
        """Ask all workers to stop, and wait for them."""
        self._stop.value = 1
        for worker in self.workers:
            worker.leave()


def _run_in_processes(
    packed: bytes, tasks: Iterator[Task], workers: int, tick: Tick
) -> Iterator[tuple[Task, Sequence[Part]]]:
    """Play tasks, a few at a time; those of a dead worker are played again first."""
    pool, progress = WorkerPool(packed, workers), _Progress(tick)
    losses, retries = Counter[Task](), deque[Task]()

    def following() -> Task | None:
        return retries.popleft() if retries else next(tasks, None)

    try:
        while True:
            with deaf_children():
                busy = pool.give(following)
            if not busy:
                return
            for worker in pool.poll(0.1):
                answer = worker.answer()
                if answer is None:
                    retries.extend(_recover_tasks(pool, worker, losses))
                elif answer.error is not None:
                    raise answer.error
                elif answer.parts:  # an empty answer: the worker has started
                    progress.count(worker, answer.rounds)
                    yield worker.tasks.popleft(), answer.parts
            progress.report(pool)
    finally:
        pool.leave()


def _recover_tasks(pool: WorkerPool, worker: Worker, losses: Counter[Task]) -> list[Task]:
    """The tasks of a dead worker. One that too many workers died of raises an error.

    A worker that failed before it had started shows that none can start.
    """
    pool.remove(worker)
    if not worker.up and worker.process.exitcode == FAILED:
        allowed = "1, or call it under `if __name__ == '__main__':`; no worker process could start"
        raise InputError("workers", pool.most, allowed)
    losses.update(itertools.islice(worker.tasks, 1))
    if losses and max(losses.values()) > RETRIES:
        raise WorkerDiedError
    return list(worker.tasks)


class _Progress:
    """Reports rounds as they are played, and those of a repeated task only once."""

    def __init__(self, tick: Tick) -> None:
        """No rounds are played yet."""
        self.tick, self.reported, self.finished = tick, 0, 0

    def count(self, worker: Worker, rounds: int) -> None:
        """Count a finished task."""
        worker.finished += rounds
        self.finished += rounds

    def report(self, pool: WorkerPool) -> None:
        """Report the rounds since the last report."""
        now = max(self.reported, self.finished + pool.under_way)
        self.tick(now - self.reported)
        self.reported = now


class _StoppedError(Exception):
    """The parent has asked the worker to stop."""


def _work(pipe: Connection, done: Any, stop: Any, parent: int, packed: bytes) -> None:
    """Play tasks in a worker process until the pipe closes or the parent asks to stop."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    coming = SimpleQueue[Task | None]()
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()
    threading.Thread(target=_hear, args=(pipe, coming), daemon=True).start()
    with suppress(OSError, _StoppedError):
        pipe.send(Answer())
        while (task := coming.get()) is not None:
            pipe.send(_answer(task, packed, done, stop))


def _hear(pipe: Connection, coming: "SimpleQueue[Task | None]") -> None:
    """Read tasks from the pipe into a queue, and put None at its end.

    This happens in a thread of its own: if a parent that sends a large task and a worker that sends a large
    answer both waited for the other to read, they would wait for ever.
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
    """Play a task; an exception becomes an answer."""
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
    """The engine and the jobs that the parent process sent."""
    engine, jobs = pickle.loads(packed)  # noqa: S301
    return engine, jobs


@contextmanager
def deaf_children() -> Iterator[None]:
    """Processes started in here ignore interrupts: children inherit their parent's blocked signals."""
    if sys.platform == "win32":  # it has no signal masks
        yield
        return
    resource_tracker.ensure_running()  # it would unblock interrupts in the thread that starts it
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def refuse_what_cannot_travel(jobs: Sequence[Job], field: str, value: object, instead: str = "1") -> None:
    """Raise if something cannot be pickled; the error names `field`, and allows `instead`, this process."""
    problems = {id(job.problem): job.problem for job in jobs}
    parts = [("a problem", problem) for problem in problems.values()]
    for name, one in [*parts, *((repr(agent.name), agent) for agent in jobs[0].agents)]:
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
