"""Tasks in worker processes. What a dead worker had is played again, `RETRIES` times, by new ones."""

import itertools
import os
import pickle
import signal
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import resource_tracker

from unfog.inputs import InputError, count
from unfog.simulate.engines import Engine
from unfog.simulate.execute import IN_FLIGHT, MOST_WORKERS, RETRIES, WorkerDiedError, enough
from unfog.simulate.execute.crew import Crew, Promise, lost_with_worker
from unfog.simulate.execute.serial import Serial
from unfog.simulate.job import Job, Part, Tick
from unfog.simulate.tasks import Task


@dataclass(frozen=True)
class Processes:
    """The executor. A single task is played in this process."""

    workers: int

    def __post_init__(self) -> None:
        """One or more."""
        count("workers", self.workers, most=MOST_WORKERS)

    @property
    def here(self) -> int:
        """All of them."""
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


def _run_in_processes(
    packed: bytes, tasks: Iterator[Task], workers: int, tick: Tick
) -> Iterator[tuple[Task, Sequence[Part]]]:
    """Tasks a few at a time; those that a dead worker took with it go to new workers, before all others."""
    crew, progress, lost = Crew(packed, workers), _Progress(tick), Counter[Task]()
    waiting = dict[Promise, Task]()
    try:
        while True:
            coming = itertools.islice(tasks, IN_FLIGHT * workers - len(waiting))
            with deaf_children():
                waiting |= {crew.submit(task): task for task in coming}
            if not waiting:
                return
            finished, _ = wait(waiting, timeout=0.1, return_when=FIRST_COMPLETED)
            progress.look(crew)
            for promise in [one for one in finished if not lost_with_worker(one)]:
                parts, rounds = promise.result()
                progress.finished += rounds
                yield waiting.pop(promise), parts
            if any(promise in waiting for promise in finished):
                again = _lost(waiting, lost, crew)
                crew, tasks = Crew(packed, workers), itertools.chain(again, tasks)
                progress.start_again(waiting)
    finally:
        crew.leave()


def _lost(waiting: dict[Promise, Task], lost: Counter[Task], crew: Crew) -> list[Task]:
    """The tasks that a dead worker took with it, out of those waited for; one lost too often ends the run.

    A pool breaks whole, so that which of them the worker had is not known: all are counted.
    """
    wait(waiting)
    again = [waiting.pop(promise) for promise in list(waiting) if lost_with_worker(promise)]
    crew.leave()
    if not lost and crew.without_guard:
        allowed = "1, or call it under `if __name__ == '__main__':`; no worker process could start"
        raise InputError("workers", crew.workers, allowed) from None
    lost.update(again)
    if max(lost.values()) > RETRIES:
        raise WorkerDiedError
    return again


class _Progress:
    """Rounds told of as they are played; those of a lost task are not told of twice."""

    def __init__(self, tick: Tick) -> None:
        """Nothing yet."""
        self.tick, self.told = tick, 0
        self.finished = 0  # rounds of finished tasks
        self.before = 0  # likewise, when the workers at hand started

    def look(self, crew: Crew) -> None:
        """Tell what is new."""
        now = max(self.told, self.before + crew.done)
        self.tick(now - self.told)
        self.told = now

    def start_again(self, left: Iterable[Promise]) -> None:
        """New workers count from nothing; what is left of the old ones is finished."""
        self.before = self.finished + sum(promise.result()[1] for promise in left)


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
