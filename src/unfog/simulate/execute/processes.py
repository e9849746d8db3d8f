"""Tasks in worker processes. What a dead worker had is played again, `RETRIES` times, by new ones."""

import itertools
import os
import pickle
import signal
import sys
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import resource_tracker

from unfog.simulate.engines import Engine
from unfog.simulate.execute import MOST_WORKERS, RETRIES, WorkerDiedError, enough
from unfog.simulate.execute.crew import FAILED, Crew, Worker
from unfog.simulate.execute.serial import Serial
from unfog.simulate.job import Job, Part, Tick
from unfog.simulate.tasks import Task
from unfog.validation import InputError, count


@dataclass(frozen=True)
class Processes:
    """The executor. A single task is played in this process.

    >>> from unfog.simulate.execute.processes import Processes
    >>> Processes(2)  # simulate(..., executor=Processes(2)), under if __name__ == "__main__":
    Processes(workers=2)
    """

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
