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
MOST = 100_000  # trials, by default
LARGEST = 1000.0  # the largest target for the standard error
USUAL = "oracle"  # the reference where none is named and it plays
LOSS = "regret"


class Checkpoint(NamedTuple):
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

    def needed(self, target_se: float) -> int:
        """Trials after which every standard error would be small enough, as they shrink like 1 / sqrt(n)."""
        return ceil(self.trials * (self.worst / target_se) ** 2)


def check_target(target_se: float | None, reference: str | None, max_trials: int) -> None:
    """Raise InputError if the search's arguments are invalid; `choose_reference` checks the reference."""
    if target_se is None:
        if reference is not None:
            raise InputError("run.reference", repr(reference), "together with run.target_se alone")
        return
    if positive("run.target_se", target_se) > LARGEST:
        raise InputError("run.target_se", target_se, f"a positive number, at most {LARGEST:g}")
    count("run.trials", max_trials, FEWEST, MOST_TRIALS)


def choose_reference(agents: Sequence[str], reference: str | None) -> str:
    """The agent that others are divided by: the one named, or the usual one, or the first."""
    if len(agents) < 2:
        raise InputError("run.agents", ", ".join(agents), "two or more where run.target_se asks for ratios")
    if reference is None:
        return USUAL if USUAL in agents else agents[0]
    if reference not in agents:
        near = nearest(reference, agents)
        raise InputError("run.reference", f"{reference!r} does not play", ", ".join(agents), near)
    return reference


def checkpoints(max_trials: int, piece: int) -> list[int]:
    """The numbers of trials after which errors are checked: whole pieces, and the budget as the last."""
    numbers, target = list[int](), FEWEST
    while not numbers or numbers[-1] < max_trials:
        rounded = min(-(-target // piece) * piece, max_trials)
        numbers += [rounded] if rounded not in numbers[-1:] else []
        target += target // 2
    return numbers


def read_checkpoint(
    gathered: Gathering, trials: int, agents: Sequence[str], labels: Sequence[str], reference: str
) -> Checkpoint:
    """The ratios over the first trials, all of whose pieces are there."""
    ratios = dict[str, Quotient]()
    for setting, label in enumerate(labels):
        regret = dict(zip(agents, gathered.final(setting, LOSS, trials), strict=True))
        mean = float(regret[reference].mean())
        if mean <= 0:
            problem = f"the mean regret of {reference + label!r} in {trials} trials is {mean:.3g}"
            raise InputError("run.reference", problem, "an agent whose mean regret is positive")
        others = {name: values for name, values in regret.items() if name != reference}
        ratios |= {name + label: quotient(values, regret[reference]) for name, values in others.items()}
    return Checkpoint(trials, ratios)
