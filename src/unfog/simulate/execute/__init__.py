"""Executors: where batches of trials are played, and in which order."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from unfog.simulate.engines import Engine
from unfog.simulate.job import Job, Part, Tick


class WorkerDiedError(RuntimeError):
    """A worker process is gone: killed, or out of memory. What was finished before is kept.

    `concurrent.futures` says BrokenProcessPool in two cases. Where no worker ever came to its first batch the
    calling script most likely lacks `if __name__ == "__main__":`, so that each worker, importing it, failed
    to start workers of its own: that is bad input, an InputError of the field `workers`. Where some worker
    had begun, it was ended from outside, and that is this error. `multiprocessing.Process.exitcode` of the
    pool's processes tells them apart, too: 1 where the import failed, minus the signal's number (-9) where
    one was killed.
    """

    def __init__(self, what: str = "a worker process died, possibly for lack of memory") -> None:
        """Say it in words; who knows the exit code may say more."""
        super().__init__(what)


class Executor(Protocol):
    """A way to get batches played by an engine. Any engine goes with any executor."""

    @property
    def workers(self) -> int:
        """How many batches are played at a time."""
        ...

    def run(
        self, engine: Engine, job: Job, pending: Sequence[range], tick: Tick
    ) -> Iterator[tuple[range, Part]]:
        """Each batch with what the engine gave, as they finish."""
        ...
