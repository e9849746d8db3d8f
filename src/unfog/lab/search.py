"""The search for the number of trials, while pieces come in; what it costs is said before and on the way."""

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TypeAlias

from unfog.lab import until_said
from unfog.lab.prepare import Plan
from unfog.lab.until import Look, look
from unfog.simulation import Gathering
from unfog.simulation.job import Piece

Say: TypeAlias = Callable[[str], None]
"""Told a line."""


class Search:
    """Looks at each checkpoint in its turn, as soon as all pieces before it are there."""

    def __init__(self, plan: Plan, gathered: Gathering, there: Collection[Piece], say: Say) -> None:
        """`there` grows as pieces come; those in it now were played earlier."""
        self._plan, self._gathered, self._there, self._say = plan, gathered, there, say
        self._checkpoints = plan.work.ends
        self._stages = list(_stages(plan, self._checkpoints))
        self._earlier, self._worked = sum(map(plan.work.work_of, there)), 0  # agent-rounds
        self._passed, self._started = 0, time.perf_counter()
        self._expected = self._checkpoints[0]  # trials, as far as is known
        self.found: Look | None = None
        say(until_said.before(plan, self._checkpoints))

    def missing(self) -> Iterator[list[Piece]]:
        """What is to be played from each checkpoint to the next."""
        return ([piece for piece in stage if piece not in self._there] for stage in self._stages)

    def ended(self) -> bool:
        """Whether what is there is enough, or all there will be; later pieces are not looked at."""
        while self.found is None and all(piece in self._there for piece in self._stages[self._passed]):
            self._pass(self._checkpoints[self._passed])
        return self.found is not None

    def expects(self, worked: int) -> int:
        """All agent-rounds there will be, as far as is known; told of those played since it was last asked.

        Its pace is that of rounds, not of pieces: with workers, many pieces are half done at the first look.
        """
        self._worked += worked
        return self._plan.work.total // self._plan.work.trials * self._expected

    def _pass(self, trials: int) -> None:
        """Look, and decide."""
        run, budget = self._plan.spec.run, self._checkpoints[-1]
        assert run.until is not None  # or there is no search
        assert run.against is not None  # settled by prepare
        now = look(self._gathered, trials, run.agents, self._plan.labels, run.against)
        self._passed += 1
        if now.worst <= run.until or trials == budget:
            self.found, self._expected = now, trials
            self._say(until_said.ended(now, run.until))
            return
        needed = now.needed(run.until)
        self._expected = next((n for n in self._checkpoints if n >= max(needed, trials + 1)), budget)
        if self._passed > 1:
            self._say(until_said.again(now, needed, self._expected, self._seconds()))
            return
        self._say(until_said.first(now, run.until, needed, self._expected, run.rounds, self._seconds()))

    def _seconds(self) -> float | None:
        """How long it will take from here, at the pace since it started; None where nothing was played."""
        if not self._worked:
            return None
        left = self.expects(0) - self._earlier - self._worked
        return max(0, left) * (time.perf_counter() - self._started) / self._worked


def _stages(plan: Plan, checkpoints: Sequence[int]) -> Iterator[list[Piece]]:
    """The pieces from each checkpoint to the next, by trials first and then by setting."""
    rows, start = list(zip(*plan.work.batches, strict=True)), 0
    for last in checkpoints:
        stop = next((k for k in range(start, len(rows)) if rows[k][0].start >= last), len(rows))
        yield [Piece(setting, trials) for row in rows[start:stop] for setting, trials in enumerate(row)]
        start = stop
