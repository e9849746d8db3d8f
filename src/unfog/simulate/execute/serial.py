"""One batch after the other, in this process."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from unfog.simulate.engines import Engine
from unfog.simulate.job import Job, Part, Tick


@dataclass(frozen=True)
class Serial:
    """The executor."""

    workers: int = 1

    def run(
        self, engine: Engine, job: Job, pending: Sequence[range], tick: Tick
    ) -> Iterator[tuple[range, Part]]:
        """Each batch in its turn."""
        for trials in pending:
            yield trials, engine.run(job, trials, tick)
