"""Jobs: what determines the result of a run, the random numbers it uses, and how its work is cut.

A `Job` holds everything that determines a result except the engine; a `Part` is what an engine returns for
some of its trials. Worlds and learners take their random numbers from the streams of the run, so that a
trial's numbers depend on its seed, its number and their purpose, and on nothing else.

Work is cut into pieces, which affect the last bits of a result, and tasks, which do not. A piece is some
trials of one job, played side by side. Its size follows from the job alone, so that moments over trials are
added up in the same order, whatever the number of workers and the interruptions. A task is what a worker gets
at a time: as many pieces as take about `AIM` seconds, so that the cost of sending it is negligible, and
little is lost if the worker dies.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple, TypeAlias

import numpy as np

from unfog.agents.agent import Agent, check_fit
from unfog.features import FeatureMap
from unfog.maths.arrays import Array, Ints
from unfog.maths.random import RoundDraws, generator
from unfog.theory import regret
from unfog.validation import InputError, display, nearest
from unfog.worlds.problem import Draws, Emission, Problem, Truth

PRECISIONS = ("float32", "float64")
ALSO_CALLED = {"single": "float32", "double": "float64"}  # names in other libraries, for suggestions
DRAWS = ("device", "numpy")
MOMENTS = "moments_"
SOUND = "features, numbers and settings with which it stays so"

Tick: TypeAlias = Callable[[int], None]
"""Called with the number of agent-rounds done since the last call, all trials counted."""

Part: TypeAlias = dict[str, Array]
"""Cumulative losses of a batch by name, (agents, trials, grid), and under `MOMENTS` + name their mean over
the trials and sum of squared deviations, (agents, curve, 2), where the job has a curve."""


def precision_of(field: str, value: object) -> str:
    """Return the name of a precision, or raise."""
    if isinstance(value, str) and value in PRECISIONS:
        return value
    names = {name: name for name in PRECISIONS} | ALSO_CALLED
    near = names[value] if isinstance(value, str) and value in names else names.get(nearest(value, names), "")
    raise InputError(field, display(value), ", ".join(PRECISIONS), near)


class Job(NamedTuple):
    """Everything that determines a result, except the engine."""

    problem: Problem
    agents: tuple[Agent, ...]
    grid: Ints  # the rounds whose totals are stored for every trial; the last one is the horizon
    curve: Ints  # the rounds whose moments over trials are stored; none if the grid is fine enough
    seed: int
    decompose: bool
    precision: str | None = None  # None: the engine's own
    draws: str = "device"  # where a compiled engine's random numbers come from
    batch: int = 0  # trials side by side in a compiled program: the same after a resume, for equal bits

    @property
    def losses(self) -> tuple[str, ...]:
        """The names of the losses that are added up."""
        return regret.names(self.decompose, discrete=self.problem.discrete)

    @property
    def rounds(self) -> int:
        """The horizon."""
        return int(self.grid[-1])


def refuse(agent: Agent, problem: Problem, features: FeatureMap) -> None:
    """Raise if an agent cannot play a problem whose trials have features like these."""
    kind, partial, has_bias = problem.rewards.kind, problem.partial, problem.has_bias
    revisit = None if agent.can.revisit is None else agent.can.revisit[0]
    if revisit is not None and revisit.lag + problem.reveal_delay >= revisit.window:
        value = f"{agent.name!r} with contexts {problem.reveal_delay} rounds late"
        raise InputError("agents", value, "a lag that, with these rounds, is less than the window")
    world = {"partial": partial, "has_bias": has_bias, "on_request": problem.on_request}
    check_fit(agent, problem.knowledge(), features, rewards=kind, **world)
    if problem.several > 1 and agent.can.look_back is not None:
        reason = "looks back on past rounds as those of one unit, and there are several"
        value = f"the learner of {agent.name!r} {reason}"
        raise InputError("agents", value, "other learners, or observe_units = false")


def refuse_nonsense(agent: str, sound: bool) -> None:
    """Raise if a belief is not finite: the agent would go on, and its regret would look like any other."""
    if not sound:
        raise InputError("agents", f"what {agent!r} believes of theta is not finite", SOUND)


@contextmanager
def regular(agent: str) -> Iterator[None]:
    """Turn the error for a singular matrix, from badly scaled numbers, into an InputError."""
    try:
        yield
    except np.linalg.LinAlgError as error:
        raise InputError("agents", f"what {agent!r} believes is singular ({error})", SOUND) from None


def truth_draws(seed: int, trials: Sequence[int], specs: Mapping[str, Draws]) -> dict[str, Array]:
    """The draws that determine the truth of each trial, (trials, *shape) by name."""
    return {
        name: np.stack([draws.of(generator(seed, trial, name)) for trial in trials])
        for name, draws in specs.items()
    }


class Nature:
    """The world's draws, round by round, which are the same for all agents."""

    def __init__(self, problem: Problem, seed: int, trials: Sequence[int]) -> None:
        """Start at the first round."""
        self._normals = RoundDraws(seed, trials, "rounds", problem.round_normals())
        self._uniforms = RoundDraws(seed, trials, "revealed", reveal_uniforms(problem), law="uniform")

    def next(self, rounds: int) -> tuple[Array, Array]:
        """The draws of the next rounds: normals (trials, rounds, w), and uniforms for what is revealed."""
        return self._normals.next(rounds), self._uniforms.next(rounds)


def reveal_uniforms(problem: Problem) -> int:
    """How many uniform numbers a round needs to decide what is revealed of its context."""
    return (1 + problem.knowledge().context_mean.shape[0]) if problem.has_reveal_mask else 0


def emitted(problem: Problem, truth: Truth, normals: Array, uniforms: Array, number: Ints) -> Emission:
    """What a world emits in a round, with what will be revealed of its context."""
    emission = problem.emit(truth, normals, number)
    return (
        emission._replace(revealed=problem.reveal_mask(uniforms, number))
        if problem.has_reveal_mask
        else emission
    )


AIM = 2.0  # seconds of a task
LONGEST = 10.0  # seconds of a piece; a longer one gets fewer trials
FEWEST = 25  # trials side by side, however long they take: fewer would be less efficient
SOON = 100  # trials of a piece, at most, in a run that may stop early
SOON_COMPILED = 1000  # likewise, for an engine that plays many trials in about the same time
ROUNDS_OF_WORK = 4  # tasks for each worker at least, so that none waits long for the last ones


class Piece(NamedTuple):
    """Some trials of the job of one setting."""

    setting: int
    trials: range


Task: TypeAlias = tuple[Piece, ...]


def cut(trials: int, size: int) -> tuple[range, ...]:
    """All trials in ranges of this size."""
    return tuple(range(first, min(first + size, trials)) for first in range(0, trials, size))


def bearable(size: int, seconds: float) -> int:
    """The size of a piece that takes so many seconds, reduced if that is too long."""
    return size if seconds <= LONGEST else min(size, max(FEWEST, int(size * LONGEST / seconds)))


def grouped(pieces: Sequence[Piece], seconds: Callable[[Piece], float], workers: int) -> Iterator[Task]:
    """Group pieces in their order into tasks of about the same length."""
    times = [seconds(piece) for piece in pieces]
    aim = _target_seconds(sum(times), workers)
    group, total = list[Piece](), 0.0
    for piece, time in zip(pieces, times, strict=True):
        if group and total + time > aim:
            yield tuple(group)
            group, total = [], 0.0
        group.append(piece)
        total += time
    if group:
        yield tuple(group)


def in_a_task(seconds: float, total: float, workers: int) -> int:
    """How many pieces of so many seconds `grouped` puts into a task, if all pieces take `total` seconds."""
    return max(1, int(_target_seconds(total, workers) / seconds))


def _target_seconds(total: float, workers: int) -> float:
    return min(AIM, total / (ROUNDS_OF_WORK * workers))
