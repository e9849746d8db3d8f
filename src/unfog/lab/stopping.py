"""Runs with as many trials as needed: the target, when it is checked, and when a run may end.

For every setting and every agent but the reference, ratio = mean regret / mean regret of the reference after
the last round, over the same trials (maths/statistics.py). Trials are played until the standard error of
every ratio is at most the target, or until the budget is spent.

The errors are checked after 100 trials, then after half as many again, and so on, rounded up to whole
pieces. Each check uses all trials up to there and none beyond, so that where a run ends depends on its spec
alone, not on workers or interruptions.
"""

from collections.abc import Sequence
from math import ceil
from typing import NamedTuple

from unfog.maths.statistics import Quotient, quotient
from unfog.simulation import MOST_TRIALS, Gathering
from unfog.validation import InputError, count, nearest, positive

FEWEST = 100  # trials: of fewer, the standard error is itself too uncertain
BUDGET = 100_000  # trials, unless told
LARGEST = 1000.0  # the largest target for the standard error
USUAL = "oracle"  # the reference where none is named and it plays
LOSS = "regret"


class Look(NamedTuple):
    """The ratios over the first trials."""

    trials: int
    ratios: dict[str, Quotient]  # to the reference, by the name of the agent and its setting

    @property
    def hardest(self) -> str:
        """The agent and setting whose ratio has the largest standard error."""
        return max(self.ratios, key=lambda name: self.ratios[name].se)

    @property
    def worst(self) -> float:
        """The largest standard error."""
        return self.ratios[self.hardest].se

    def needed(self, until: float) -> int:
        """Trials after which every standard error would be small enough, as they shrink like 1 / sqrt(n)."""
        return ceil(self.trials * (self.worst / until) ** 2)


def check(until: float | None, against: str | None, budget: int) -> None:
    """Raise InputError if the search's arguments are invalid; `reference` checks that the reference plays."""
    if until is None:
        if against is not None:
            raise InputError("run.against", repr(against), "together with run.until alone")
        return
    if positive("run.until", until) > LARGEST:
        raise InputError("run.until", until, f"a positive number, at most {LARGEST:g}")
    count("run.trials", budget, FEWEST, MOST_TRIALS)


def reference(agents: Sequence[str], against: str | None) -> str:
    """The agent that others are divided by: the one named, or the usual one, or the first."""
    if len(agents) < 2:
        raise InputError("run.agents", ", ".join(agents), "two or more where run.until asks for ratios")
    if against is None:
        return USUAL if USUAL in agents else agents[0]
    if against not in agents:
        near = nearest(against, agents)
        raise InputError("run.against", f"{against!r} does not play", ", ".join(agents), near)
    return against


def checkpoints(budget: int, piece: int) -> list[int]:
    """The numbers of trials after which errors are checked: whole pieces, and the budget as the last."""
    numbers, target = list[int](), FEWEST
    while not numbers or numbers[-1] < budget:
        rounded = min(-(-target // piece) * piece, budget)
        numbers += [rounded] if rounded not in numbers[-1:] else []
        target += target // 2
    return numbers


def look(
    gathered: Gathering, trials: int, agents: Sequence[str], labels: Sequence[str], against: str
) -> Look:
    """The ratios over the first trials, all of whose pieces are there."""
    ratios = dict[str, Quotient]()
    for setting, label in enumerate(labels):
        regret = dict(zip(agents, gathered.final(setting, LOSS, trials), strict=True))
        mean = float(regret[against].mean())
        if mean <= 0:
            problem = f"the mean regret of {against + label!r} in {trials} trials is {mean:.3g}"
            raise InputError("run.against", problem, "an agent whose mean regret is positive")
        others = {name: values for name, values in regret.items() if name != against}
        ratios |= {name + label: quotient(values, regret[against]) for name, values in others.items()}
    return Look(trials, ratios)
