"""The search for the number of trials while pieces come in, and what is said of it.

`Search` looks at each checkpoint (lab/stopping.py) as soon as its pieces are there. It says what the first
look costs before it, what the whole will cost on the way, and how it came out. The result says it again: in
its attributes, in the summary and in the table.
"""

import json
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from unfog.lab.labels import labelled
from unfog.lab.prepare import Plan
from unfog.lab.spec import RunSpec
from unfog.lab.stopping import Look, look
from unfog.lab.tables import GLUE, wrap
from unfog.simulation import Gathering
from unfog.simulation.job import Piece

UNITS = {"s": 1, "min": 60, "h": 3600}
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
        say(before(plan, self._checkpoints))

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
            self._say(ended(now, run.until))
            return
        needed = now.needed(run.until)
        self._expected = next((n for n in self._checkpoints if n >= max(needed, trials + 1)), budget)
        if self._passed > 1:
            self._say(again(now, needed, self._expected, self._seconds()))
            return
        self._say(first(now, run.until, needed, self._expected, run.rounds, self._seconds()))

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


def before(plan: Plan, checkpoints: Sequence[int]) -> str:
    """What the first look costs, as the engine estimates it."""
    work, first = plan.work, checkpoints[0]
    seconds = sum(work.engine.seconds(job, first, work.executor.workers) for job in work.jobs)
    most = f"; {checkpoints[-1]:,} trials at most" if len(checkpoints) > 1 else ", all there may be"
    return f"first {first:,} trials of {plan.spec.run.rounds} rounds: {duration(seconds)}{most}"


def first(now: Look, until: float, needed: int, expected: int, rounds: int, left: float | None) -> str:
    """What it will cost in all, by the first look."""
    hardest = f"the hardest: {labelled(now.hardest)}, now {now.worst:.3g}"
    time = "" if left is None else f"; {duration(left)}"
    if needed > expected:
        would = f"about {rough(needed)} trials of {rounds} rounds would be needed for every standard error"
        reach = now.worst * (now.trials / expected) ** 0.5
        return f"{would} below {until:g} ({hardest}); the budget is {expected:,}, for about {reach:.2g}{time}"
    told = f"about {rough(expected)} trials of {rounds} rounds for every standard error below {until:g}"
    return f"{told} ({hardest}){time}"


def again(now: Look, needed: int, expected: int, left: float | None) -> str:
    """What it will cost in all, by a later look: in short."""
    most = ", the budget" if needed > expected else ""
    time = "" if left is None else f"; {duration(left)} left"
    worst = f"{labelled(now.hardest)} {now.worst:.3g}"
    return f"{now.trials:,} trials: {worst}; about {rough(expected)} in all{most}{time}"


def ended(now: Look, until: float) -> str:
    """How it came out."""
    largest = f"the largest standard error is {now.worst:.3g} ({labelled(now.hardest)})"
    if now.worst <= until:
        return f"{now.trials:,} trials: {largest}"
    return f"the budget of {now.trials:,} trials was reached; {largest}"


def rough(number: int) -> str:
    """A number of which two digits are known."""
    unit = max(1, 10 ** (len(str(number)) - 2))
    return f"{round(number / unit) * unit:,}"


def duration(seconds: float) -> str:
    """A time of which little is known."""
    if seconds < 1:
        return "less than a second"
    unit, length = next((u, n) for u, n in UNITS.items() if seconds < 90 * n or u == "h")
    return f"about {seconds / length:.{int(length > 1 and seconds < 10 * length)}f} {unit}"


def attributes(now: Look, run: RunSpec) -> dict[str, Any]:
    """What the result says of it: the number of trials, and as JSON what was asked for and what came out."""
    asked = {"se": run.until, "against": run.against, "budget": run.trials}
    ratios = {name: one._asdict() for name, one in now.ratios.items()}
    return {"trials_found": now.trials, "until": json.dumps({**asked, "ratios": ratios})}


def facts(attrs: Mapping[str, Any]) -> dict[str, Any]:
    """For the summary; nothing where the number of trials was told."""
    if "until" not in attrs:
        return {}
    return {"trials_found": int(attrs["trials_found"]), "until": json.loads(attrs["until"])}


def found(facts: Mapping[str, Any]) -> list[str]:
    """The line of a table that says how the number of trials was found."""
    if "until" not in facts:
        return []
    told, trials = facts["until"], f"{facts['trials_found']:,}"
    worst = max(told["ratios"], key=lambda name: told["ratios"][name]["se"])
    largest = told["ratios"][worst]["se"]
    if largest <= told["se"]:
        line = f"{trials} found for a standard error of {told['se']:g} of each ratio to {told['against']}"
    else:
        short = f"the largest standard error of a ratio to {told['against']} is {largest:.3g}"
        short += f" ({labelled(worst)})"
        line = f"{trials}, the budget; {short}, above {told['se']:g}"
    return wrap(f"trials: {line}")


def ratios(facts: Mapping[str, Any], width: float) -> list[str]:
    """All ratios with `width` standard errors, for below a table."""
    if "until" not in facts:
        return []
    told = facts["until"]
    each = [
        f"{labelled(name)} {one['value']:.3f} ± {width * one['se']:.3f}"
        for name, one in told["ratios"].items()
    ]
    return wrap(f"ratio to {told['against']}: {', '.join(one.replace(' ', GLUE) for one in each)}", "  ")
