"""What decides a result, and what an engine gives back."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, TypeAlias

import numpy as np

from unfog.agents.agent import Agent, refuse_misfit
from unfog.features import FeatureMap
from unfog.maths.arrays import Array, Ints
from unfog.theory import regret
from unfog.validation import InputError, nearest, shown
from unfog.worlds.problem import Problem

PRECISIONS = ("float32", "float64")
ALSO_CALLED = {"single": "float32", "double": "float64"}  # elsewhere, so that it may be tried here
DRAWS = ("device", "numpy")

Tick: TypeAlias = Callable[[int], None]
"""Told of agent-rounds done, all trials counted."""

Part: TypeAlias = dict[str, Array]
"""Cumulative losses of a batch by name, (agents, trials, grid), and under `MOMENTS` + name their mean over
the trials and sum of squared deviations, (agents, curve, 2), where the job has a curve."""

MOMENTS = "moments_"


def precision_of(field: str, value: object) -> str:
    """The name of a precision."""
    if isinstance(value, str) and value in PRECISIONS:
        return value
    meant = {name: name for name in PRECISIONS} | ALSO_CALLED
    near = meant[value] if isinstance(value, str) and value in meant else meant.get(nearest(value, meant), "")
    raise InputError(field, shown(value), ", ".join(PRECISIONS), near)


class Job(NamedTuple):
    """Everything that decides a result, but for the engine."""

    problem: Problem
    agents: tuple[Agent, ...]
    grid: Ints  # the rounds whose totals are kept for every trial; the last one is the horizon
    curve: Ints  # the rounds whose totals are kept as moments over trials; none where the grid is fine enough
    seed: int
    decompose: bool
    precision: str | None = None  # None: the engine's own
    draws: str = "device"  # where a compiled engine's random numbers come from
    batch: int = (
        0  # trials that a compiled program plays side by side: the same after a resume, for equal bits
    )

    @property
    def losses(self) -> tuple[str, ...]:
        """What is added up."""
        return regret.names(self.decompose, discrete=self.problem.discrete)

    @property
    def rounds(self) -> int:
        """The horizon."""
        return int(self.grid[-1])


def refuse(agent: Agent, problem: Problem, features: FeatureMap) -> None:
    """Complain of an agent that cannot play a problem, whose trials have features like these."""
    kind, partial, has_bias = problem.rewards.kind, problem.partial, problem.has_bias
    again = None if agent.revisits is None else agent.revisits[0]
    if again is not None and again.lag + problem.late >= again.window:
        what = f"{agent.name!r} with contexts {problem.late} rounds late"
        raise InputError("agents", what, "a lag that, with these rounds, is less than the window")
    world = {"partial": partial, "has_bias": has_bias, "asked": problem.asked}
    refuse_misfit(agent, problem.knowledge(), features, rewards=kind, **world)
    if problem.several > 1 and agent.looks_back is not None:
        whose = "looks back on past rounds as those of one unit, and there are several"
        why = f"the learner of {agent.name!r} {whose}"
        raise InputError("agents", why, "other learners, or tell_units = false")


SOUND = "features, numbers and settings with which it stays so"


def refuse_nonsense(agent: str, sound: bool) -> None:
    """An agent that has run off to infinity still chooses arms, and its regret looks like any other."""
    if not sound:
        raise InputError("agents", f"what {agent!r} believes of theta is not finite", SOUND)


@contextmanager
def regular(agent: str) -> Iterator[None]:
    """Numbers of a problem may be so far apart that matrices made of them have no inverse any more."""
    try:
        yield
    except np.linalg.LinAlgError as error:
        raise InputError("agents", f"what {agent!r} believes is singular ({error})", SOUND) from None
