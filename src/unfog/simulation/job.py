"""Jobs: what decides the result of a run, the random numbers it uses, and how its work is cut.

A `Job` holds everything that decides a result except the engine; a `Part` is what an engine gives back for
some of its trials. Worlds and learners take their random numbers from the streams of the run, so that a
trial's numbers depend on its seed, its number and their purpose, and on nothing else.

Work is cut into pieces, which decide bits, and tasks, which do not. A piece is some trials of one job, played
side by side. Its size follows from the job alone, so that moments over trials are added up in the same order
however many workers there are and whatever interrupts them. A task is what a worker is given at a time: as
many pieces as take about `AIM` seconds, so that sending it costs next to nothing, and little is lost with a
worker.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple, TypeAlias

import numpy as np

from unfog.agents.agent import Agent, refuse_misfit
from unfog.features import FeatureMap
from unfog.maths.arrays import Array, Ints
from unfog.maths.random import RoundDraws, generator
from unfog.theory import regret
from unfog.validation import InputError, nearest, shown
from unfog.worlds.problem import Draws, Emission, Problem, Truth

PRECISIONS = ("float32", "float64")
ALSO_CALLED = {"single": "float32", "double": "float64"}  # elsewhere, so that it may be tried here
DRAWS = ("device", "numpy")
MOMENTS = "moments_"
SOUND = "features, numbers and settings with which it stays so"

Tick: TypeAlias = Callable[[int], None]
"""Told of agent-rounds done, all trials counted."""

Part: TypeAlias = dict[str, Array]
"""Cumulative losses of a batch by name, (agents, trials, grid), and under `MOMENTS` + name their mean over
the trials and sum of squared deviations, (agents, curve, 2), where the job has a curve."""


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
    again = None if agent.can.revisit is None else agent.can.revisit[0]
    if again is not None and again.lag + problem.late >= again.window:
        what = f"{agent.name!r} with contexts {problem.late} rounds late"
        raise InputError("agents", what, "a lag that, with these rounds, is less than the window")
    world = {"partial": partial, "has_bias": has_bias, "asked": problem.asked}
    refuse_misfit(agent, problem.knowledge(), features, rewards=kind, **world)
    if problem.several > 1 and agent.can.look_back is not None:
        whose = "looks back on past rounds as those of one unit, and there are several"
        why = f"the learner of {agent.name!r} {whose}"
        raise InputError("agents", why, "other learners, or tell_units = false")


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


def truth_draws(seed: int, trials: Sequence[int], wanted: Mapping[str, Draws]) -> dict[str, Array]:
    """The draws that make the truth of each trial, (trials, *shape) by name."""
    return {
        name: np.stack([draws.of(generator(seed, trial, name)) for trial in trials])
        for name, draws in wanted.items()
    }


class Nature:
    """The world's own draws, round by round, whoever plays."""

    def __init__(self, problem: Problem, seed: int, trials: Sequence[int]) -> None:
        """Start at the first round."""
        self._normals = RoundDraws(seed, trials, "rounds", problem.round_normals())
        self._uniforms = RoundDraws(seed, trials, "revealed", reveal_uniforms(problem), law="uniform")

    def next(self, rounds: int) -> tuple[Array, Array]:
        """The draws of the next rounds: normals (trials, rounds, w), and uniforms for what is shown."""
        return self._normals.next(rounds), self._uniforms.next(rounds)


def reveal_uniforms(problem: Problem) -> int:
    """How many uniform numbers a round takes to say what is shown of its context."""
    return (1 + problem.knowledge().context_mean.shape[0]) if problem.chosen else 0


def emitted(problem: Problem, truth: Truth, normals: Array, uniforms: Array, number: Ints) -> Emission:
    """A round, with what will be shown of it."""
    emission = problem.emit(truth, normals, number)
    return emission._replace(revealed=problem.shown(uniforms, number)) if problem.chosen else emission


AIM = 2.0  # seconds of a task
LONGEST = 10.0  # seconds of a piece, where fewer trials side by side make it shorter
FEWEST = 25  # trials side by side, however long they take: fewer would take longer each
SOON = 100  # trials of a piece, at most, where a run may stop after any of them
SOON_COMPILED = 1000  # likewise, for an engine that plays more trials in about the same time
ROUNDS_OF_WORK = 4  # tasks for each worker at least, so that none waits long for the last of them


class Piece(NamedTuple):
    """Some trials of the job of one setting."""

    setting: int
    trials: range


Task: TypeAlias = tuple[Piece, ...]


def cut(trials: int, size: int) -> tuple[range, ...]:
    """All trials, so many at a time."""
    return tuple(range(first, min(first + size, trials)) for first in range(0, trials, size))


def bearable(size: int, seconds: float) -> int:
    """The size of a piece that would take so long, made smaller where it takes too long."""
    return size if seconds <= LONGEST else min(size, max(FEWEST, int(size * LONGEST / seconds)))


def grouped(pieces: Sequence[Piece], seconds: Callable[[Piece], float], workers: int) -> Iterator[Task]:
    """Pieces in their order, put together to tasks of about the same length."""
    lengths = [seconds(piece) for piece in pieces]
    aim = _aim(sum(lengths), workers)
    group, length = list[Piece](), 0.0
    for piece, more in zip(pieces, lengths, strict=True):
        if group and length + more > aim:
            yield tuple(group)
            group, length = [], 0.0
        group.append(piece)
        length += more
    if group:
        yield tuple(group)


def in_a_task(seconds: float, total: float, workers: int) -> int:
    """How many pieces of this length `grouped` puts together, where all pieces take `total` seconds."""
    return max(1, int(_aim(total, workers) / seconds))


def _aim(total: float, workers: int) -> float:
    return min(AIM, total / (ROUNDS_OF_WORK * workers))
