"""Executors: where batches of trials are played, and in which order."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from unfog.simulate.engines import Engine
from unfog.simulate.job import Job, Part, Tick


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
