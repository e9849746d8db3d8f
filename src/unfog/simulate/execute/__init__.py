"""Executors: where tasks are played, and in which order."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from unfog.simulate.engines import Engine
from unfog.simulate.job import Job, Part, Tick
from unfog.simulate.tasks import Task

IN_FLIGHT = 2  # tasks for each worker that are under way at a time: the next one waits where it is needed
MOST_WORKERS = 10_000  # of a cluster; this machine starts no more than there are tasks
RETRIES = 3  # times a task is played again whose worker died: more often, and it is the task that kills


class WorkerDiedError(RuntimeError):
    """A worker process is gone: killed, or out of memory. What was finished before is kept.

    Where no worker ever started, the calling script most likely lacks `if __name__ == "__main__":`, and that
    is bad input, an InputError.

    >>> from unfog.simulate.execute import WorkerDiedError
    >>> print(WorkerDiedError())
    a worker process died, possibly for lack of memory
    """

    def __init__(self, what: str = "a worker process died, possibly for lack of memory") -> None:
        """Say it in words; who knows the exit code may say more."""
        super().__init__(what)


class Executor(Protocol):
    """A way to get tasks played by an engine. Any engine goes with any executor.

    Tasks are taken from their iterator a few for each worker at a time, and results are handed on at once, so
    that any number of them can pass through.

    >>> from unfog.simulate.execute import Executor
    >>> from unfog.simulate.execute.processes import Processes
    >>> one: Executor = Processes(2)
    >>> one.workers, one.here
    (2, 2)
    """

    @property
    def workers(self) -> int:
        """How many tasks are played at a time."""
        ...

    @property
    def here(self) -> int:
        """How many processes of this machine play them: their memory is this machine's."""
        ...

    def run(
        self, engine: Engine, jobs: Sequence[Job], tasks: Iterable[Task], tick: Tick
    ) -> Iterator[tuple[Task, Sequence[Part]]]:
        """Each task with what the engine gave for its pieces, as they finish."""
        ...


def enough(tasks: Iterable[Task], workers: int) -> tuple[int, Iterator[Task]]:
    """How many workers, of so many, there is something to do for; and the tasks, the first of them taken."""
    coming = iter(tasks)
    first = list(itertools.islice(coming, workers))
    return len(first), itertools.chain(first, coming)


def played(engine: Engine, jobs: Sequence[Job], task: Task, tick: Tick) -> list[Part]:
    """What a worker does with a task, wherever it is."""
    return [engine.run(jobs[piece.setting], piece.trials, tick) for piece in task]
