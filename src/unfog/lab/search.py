"""The search for the number of trials while pieces come in, and the lines that report it.

`Search` looks at each checkpoint (lab/stopping.py) as soon as its pieces are there. It reports the cost of
the first checkpoint beforehand, the expected total cost on the way, and how the search ended. The result has
the same in its attributes, in the summary and in the table.
"""

import json
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from unfog.lab.labels import labelled
from unfog.lab.prepare import ExperimentPlan
from unfog.lab.spec import RunSpec
from unfog.lab.stopping import Checkpoint, read_checkpoint
from unfog.lab.tables import GLUE, wrap
from unfog.simulation import Gathering
from unfog.simulation.job import Piece

UNITS = {"s": 1, "min": 60, "h": 3600}
OnMessage: TypeAlias = Callable[[str], None]
"""A function that is called with a line of text."""


class Search:
    """Looks at each checkpoint in its turn, as soon as all pieces before it are there."""

    def __init__(
        self, plan: ExperimentPlan, gathered: Gathering, finished: Collection[Piece], on_message: OnMessage
    ) -> None:
        """`finished` grows as pieces come; those in it now were played earlier."""
        self._plan, self._gathered, self._finished, self._on_message = plan, gathered, finished, on_message
        self._checkpoints = plan.work.ends
        self._stages = list(_split_stages(plan, self._checkpoints))
        self._earlier, self._worked = sum(map(plan.work.work_of, finished)), 0  # agent-rounds
        self._passed, self._started = 0, time.perf_counter()
        self._expected = self._checkpoints[0]  # trials, as far as is known
        self.end: Checkpoint | None = None
        on_message(describe_first_checkpoint(plan, self._checkpoints))

    def missing(self) -> Iterator[list[Piece]]:
        """What is to be played from each checkpoint to the next."""
        return ([piece for piece in stage if piece not in self._finished] for stage in self._stages)

    def ended(self) -> bool:
        """Whether the finished pieces are enough or the budget is spent; later pieces are ignored."""
        while self.end is None and all(piece in self._finished for piece in self._stages[self._passed]):
            self._check_next(self._checkpoints[self._passed])
        return self.end is not None

    def expects(self, worked: int) -> int:
        """Add agent-rounds that were played; return the total there will be, as far as is known.

        The pace is measured in rounds, not in pieces: with workers, many pieces are half done at the first
        checkpoint.
        """
        self._worked += worked
        return self._plan.work.total // self._plan.work.trials * self._expected

    def _check_next(self, trials: int) -> None:
        """Look at the next checkpoint and decide whether to go on."""
        run, max_trials = self._plan.spec.run, self._checkpoints[-1]
        assert run.target_se is not None  # or there is no search
        assert run.reference is not None  # settled by prepare
        current = read_checkpoint(self._gathered, trials, run.agents, self._plan.labels, run.reference)
        self._passed += 1
        if current.worst <= run.target_se or trials == max_trials:
            self.end, self._expected = current, trials
            self._on_message(ended(current, run.target_se))
            return
        needed = current.needed(run.target_se)
        self._expected = next((n for n in self._checkpoints if n >= max(needed, trials + 1)), max_trials)
        if self._passed > 1:
            self._on_message(again(current, needed, self._expected, self._seconds_left()))
            return
        self._on_message(
            first(current, run.target_se, needed, self._expected, run.rounds, self._seconds_left())
        )

    def _seconds_left(self) -> float | None:
        """Seconds left at the pace since the start; None if nothing has been played."""
        if not self._worked:
            return None
        rounds_left = self.expects(0) - self._earlier - self._worked
        return max(0, rounds_left) * (time.perf_counter() - self._started) / self._worked


def _split_stages(plan: ExperimentPlan, checkpoints: Sequence[int]) -> Iterator[list[Piece]]:
    """The pieces from each checkpoint to the next, by trials first and then by setting."""
    rows, start = list(zip(*plan.work.batches, strict=True)), 0
    for last in checkpoints:
        stop = next((k for k in range(start, len(rows)) if rows[k][0].start >= last), len(rows))
        yield [Piece(setting, trials) for row in rows[start:stop] for setting, trials in enumerate(row)]
        start = stop


def describe_first_checkpoint(plan: ExperimentPlan, checkpoints: Sequence[int]) -> str:
    """A line on what the first checkpoint costs, as the engine estimates it."""
    work, first = plan.work, checkpoints[0]
    seconds = sum(work.engine.seconds(job, first, work.executor.workers) for job in work.jobs)
    most = f"; {checkpoints[-1]:,} trials at most" if len(checkpoints) > 1 else ", all there may be"
    return f"first {first:,} trials of {plan.spec.run.rounds} rounds: {duration(seconds)}{most}"


def first(
    current: Checkpoint, target_se: float, needed: int, expected: int, rounds: int, seconds_left: float | None
) -> str:
    """A line on what the search will cost in all, after the first checkpoint."""
    hardest = f"the hardest: {labelled(current.hardest)}, now {current.worst:.3g}"
    time = "" if seconds_left is None else f"; {duration(seconds_left)}"
    if needed > expected:
        requirement = (
            f"about {rough(needed)} trials of {rounds} rounds would be needed for every standard error"
        )
        reach = current.worst * (current.trials / expected) ** 0.5
        limit = f"the budget is {expected:,}, for about {reach:.2g}"
        return f"{requirement} below {target_se:g} ({hardest}); {limit}{time}"
    estimate = (
        f"about {rough(expected)} trials of {rounds} rounds for every standard error below {target_se:g}"
    )
    return f"{estimate} ({hardest}){time}"


def again(current: Checkpoint, needed: int, expected: int, seconds_left: float | None) -> str:
    """A short line on what the search will cost in all, after a later checkpoint."""
    most = ", the budget" if needed > expected else ""
    time = "" if seconds_left is None else f"; {duration(seconds_left)} left"
    worst = f"{labelled(current.hardest)} {current.worst:.3g}"
    return f"{current.trials:,} trials: {worst}; about {rough(expected)} in all{most}{time}"


def ended(current: Checkpoint, target_se: float) -> str:
    """A line on how the search ended."""
    largest = f"the largest standard error is {current.worst:.3g} ({labelled(current.hardest)})"
    if current.worst <= target_se:
        return f"{current.trials:,} trials: {largest}"
    return f"the budget of {current.trials:,} trials was reached; {largest}"


def rough(number: int) -> str:
    """A number rounded to two digits."""
    unit = max(1, 10 ** (len(str(number)) - 2))
    return f"{round(number / unit) * unit:,}"


def duration(seconds: float) -> str:
    """A duration as text, roughly."""
    if seconds < 1:
        return "less than a second"
    unit, length = next((u, n) for u, n in UNITS.items() if seconds < 90 * n or u == "h")
    return f"about {seconds / length:.{int(length > 1 and seconds < 10 * length)}f} {unit}"


def attributes(current: Checkpoint, run: RunSpec) -> dict[str, Any]:
    """The attributes of the result: the number of trials, and as JSON the request and the ratios."""
    request = {"target_se": run.target_se, "reference": run.reference, "max_trials": run.trials}
    ratios = {name: ratio._asdict() for name, ratio in current.ratios.items()}
    return {"trials_found": current.trials, "search": json.dumps({**request, "ratios": ratios})}


def facts(attrs: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the summary; empty if the number of trials was fixed in advance."""
    if "search" not in attrs:
        return {}
    return {"trials_found": int(attrs["trials_found"]), "search": json.loads(attrs["search"])}


def describe_search(facts: Mapping[str, Any]) -> list[str]:
    """The line of a table that says how the number of trials was found."""
    if "search" not in facts:
        return []
    request, trials = facts["search"], f"{facts['trials_found']:,}"
    worst = max(request["ratios"], key=lambda name: request["ratios"][name]["se"])
    largest = request["ratios"][worst]["se"]
    if largest <= request["target_se"]:
        target = f"a standard error of {request['target_se']:g}"
        line = f"{trials} found for {target} of each ratio to {request['reference']}"
    else:
        short = f"the largest standard error of a ratio to {request['reference']} is {largest:.3g}"
        short += f" ({labelled(worst)})"
        line = f"{trials}, the budget; {short}, above {request['target_se']:g}"
    return wrap(f"trials: {line}")


def ratios(facts: Mapping[str, Any], width: float) -> list[str]:
    """All ratios with `width` standard errors, for below a table."""
    if "search" not in facts:
        return []
    request = facts["search"]
    texts = [
        f"{labelled(name)} {ratio['value']:.3f} ± {width * ratio['se']:.3f}"
        for name, ratio in request["ratios"].items()
    ]
    return wrap(
        f"ratio to {request['reference']}: {', '.join(text.replace(' ', GLUE) for text in texts)}", "  "
    )
