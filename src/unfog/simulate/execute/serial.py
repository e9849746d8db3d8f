"""One task after the other, in this process."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from unfog.simulate.engines import Engine
from unfog.simulate.execute import played
from unfog.simulate.job import Job, Part, Tick
from unfog.simulate.tasks import Task


@dataclass(frozen=True)
class Serial:
    """The executor.

    >>> import unfog
    >>> from unfog.simulate import simulate
    >>> problem = unfog.GaussianProblem(dim=2, actions=5)
    >>> from unfog.simulate.execute.serial import Serial
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
