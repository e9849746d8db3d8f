"""A plan: the arguments of a run, checked and cut into batches, before anything runs.

On the NumPy engine the size of batches changes no result: a trial's numbers depend on (seed, trial) alone, so
batches of any size, played anywhere, give the same bits.

Totals are stored for every trial at as many rounds as fit, always with the last one. Whether a trial's regret
still grows is seen by comparing the last quarter of its rounds with the one before: the rounds at which these
quarters begin and end are stored, however coarse the rest.
"""

import secrets
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from unfog.agents.agent import Agent
from unfog.agents.catalogue import Catalogue, select_rows, with_own
from unfog.features import FeatureMap
from unfog.maths.arrays import Ints
from unfog.simulation import engines, memory
from unfog.simulation.engines import Engine
from unfog.simulation.executors import MOST_WORKERS, Executor
from unfog.simulation.executors.local import Processes, Serial
from unfog.simulation.job import (
    DRAWS,
    SOON,
    SOON_COMPILED,
    Job,
    Part,
    Piece,
    Task,
    Tick,
    bearable,
    cut,
    grouped,
    precision_of,
    refuse,
)
from unfog.validation import InputError, check_contract, count, one_of
from unfog.worlds.problem import Problem

MOST_SEED = 2**64 - 1
MOST_TRIALS = 10**8
MOST_POINTS = 1000
MOST_CELLS = 32_000_000  # stored numbers in a run: 256 MB
MOST_STORED = 2**28  # 2 GB, if the number of points is given
MOST_MOMENTS = MOST_CELLS // 4  # numbers that moments over trials take, 64 MB
FINE_ENOUGH = 100  # points for a smooth curve
CURVES = 8  # losses of an agent, at most

Ends: TypeAlias = Callable[[int, int], Sequence[int]]
"""From all trials and the size of a piece to the numbers of trials after which the run may end: multiples of
the size, and all trials last."""


class Plan(NamedTuple):
    """The jobs of a run, their batches, and the engine and the executor that play them.

    >>> import unfog
    >>> from unfog.simulation import plan
    >>> problem = unfog.GaussianProblem(dim=2, actions=5)
    >>> work = plan([problem], ["unfog", "naive"], rounds=20, trials=200, seed=0)
    >>> work.engine.name, work.trials, work.total
    ('numpy', 200, 8000)
    """

    jobs: tuple[Job, ...]  # one for each problem, otherwise equal
    batches: tuple[tuple[range, ...], ...]  # of the trials of each job, for any number of workers
    engine: Engine
    reason: str  # for this engine
    executor: Executor
    ends: tuple[int, ...]  # numbers of trials after which it may end; the last one is all of them

    @property
    def trials(self) -> int:
        """The trials of every job."""
        return self.ends[-1]

    @property
    def total(self) -> int:
        """Agent-rounds, all trials counted."""
        return sum(len(job.agents) * job.rounds * self.trials for job in self.jobs)

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """All pieces to play."""
        return tuple(Piece(i, trials) for i, batches in enumerate(self.batches) for trials in batches)

    def work_of(self, piece: Piece) -> int:
        """The agent-rounds of a piece."""
        job = self.jobs[piece.setting]
        return len(job.agents) * job.rounds * len(piece.trials)

    def seconds(self, piece: Piece) -> float:
        """The estimated seconds that one process takes for a piece."""
        return self.engine.seconds(self.jobs[piece.setting], len(piece.trials))

    def results(self, pieces: Sequence[Piece], tick: Tick) -> Iterator[tuple[Task, Sequence[Part]]]:
        """Play these pieces; yield tasks with their results as they finish."""
        return self.in_stages([pieces], tick)

    def in_stages(
        self, stages: Iterable[Sequence[Piece]], tick: Tick
    ) -> Generator[tuple[Task, Sequence[Part]], None, None]:
        """Like `results`, but no task has pieces of two stages; stages do not wait for each other."""
        tasks = (task for stage in stages for task in grouped(stage, self.seconds, self.executor.workers))
        for task, parts in self.executor.run(self.engine, self.jobs, tasks, tick):
            for part in parts:
                _check_overflow(part)
            yield task, parts


def plan(
    problems: Sequence[Problem],
    agents: Sequence[str | Agent],
    *,
    rounds: int,
    trials: int,
    seed: int | None,
    points: int | None = None,
    decompose: bool = True,
    engine: str = "numpy",
    precision: str | None = None,
    draws: str = "device",
    chunk: int | None = None,
    workers: int = 1,
    executor: Executor | None = None,
    ends: Ends | None = None,
    field: str = "agents",
) -> Plan:
    """Check everything, choose engine and executor, and cut the trials into batches.

    The problems share the storage. A run that may end early, after the numbers of trials that `ends` gives,
    is cut into small pieces, the same for all problems. `field` is what errors about agents call the
    argument. See `play` for the rest.

    >>> import unfog
    >>> from unfog.simulation import plan
    >>> problem = unfog.GaussianProblem(dim=2, actions=5)
    >>> work = plan([problem], ["unfog"], rounds=20, trials=200, seed=0, chunk=50)
    >>> [piece.trials for piece in work.pieces]
    [range(0, 50), range(50, 100), range(100, 150), range(150, 200)]
    """
    rounds, trials = count("rounds", rounds), count("trials", trials, most=MOST_TRIALS)
    seed = secrets.randbelow(MOST_SEED) if seed is None else count("seed", seed, 0, MOST_SEED)
    workers = workers if executor is None else _check_executor(executor).workers
    workers = count("workers", workers, most=MOST_WORKERS)
    points = None if points is None else count("points", points, most=MOST_POINTS)
    chunk = None if chunk is None else min(count("chunk", chunk), trials)
    rows = _choose_agents(problems, agents, field)
    grid = stored_rounds(rounds, trials, len(problems) * len(rows), points)
    curve = curve_rounds(rounds, grid, len(problems) * len(rows)) if points is None else grid[:0]
    check_storage(grid, trials, len(problems) * len(rows))
    name = engines.check_name(engine)
    precision = None if precision is None else precision_of("precision", precision)
    one_of("draws", draws, DRAWS)
    jobs = [Job(problem, rows, grid, curve, seed, decompose, precision, draws) for problem in problems]
    backend, reason = engines.choose(jobs, trials, workers, name)
    if executor is None:
        executor = Processes(workers) if workers > 1 and backend.shares_work else Serial()
    sizes = [chunk or _choose_size(backend, job, trials) for job in jobs]
    if ends is not None:
        sizes = [min(SOON if backend.shares_work else SOON_COMPILED, *sizes)] * len(jobs)
    stops = (trials,) if ends is None else tuple(ends(trials, sizes[0]))
    memory.refuse(jobs, backend, sizes, stops, executor)
    final = [
        job._replace(precision=backend.settle(precision), batch=n) for job, n in zip(jobs, sizes, strict=True)
    ]
    return Plan(tuple(final), tuple(cut(trials, n) for n in sizes), backend, reason, executor, stops)


def _check_executor(executor: Executor) -> Executor:
    check_contract("executor", executor, Executor, "Serial(), Processes(2), or one of your own")
    return executor


def _choose_size(engine: Engine, job: Job, trials: int) -> int:
    """The number of trials in a piece."""
    size = engine.batch(job, trials)
    return bearable(size, engine.seconds(job, size)) if engine.shares_work else size


def _choose_agents(
    problems: Sequence[Problem], agents: Sequence[str | Agent], field: str
) -> tuple[Agent, ...]:
    """The agents by name; raises unless all of them can play all problems."""
    for problem in problems:
        check_contract("problem", problem, Problem, "a world, such as unfog.GaussianProblem()")
    names, own = with_own(agents)
    rows = select_rows(
        names, field, Catalogue(problems[0].rewards.kind, own, problems[0].knowledge().beyond_moments)
    )
    for problem in problems:
        features = _make_features(problem)  # a world made from data may raise here
        for row in rows:
            refuse(row, problem, features)
    return tuple(rows)


def _make_features(problem: Problem) -> FeatureMap:
    """The features of a trial whose draws are all zero, enough to know their kind."""
    memory.refuse_truth(problem)
    specs = problem.truth_draws().items()
    return problem.truth({name: np.zeros((1, *draws.shape)) for name, draws in specs}).features


def stored_rounds(rounds: int, trials: int, agents: int, points: int | None = None) -> Ints:
    """Every round if that is affordable, otherwise evenly spaced ones and the ends of quarters.

    There are at most `points`. With one or two points, they are evenly spaced, without the quarters.
    """
    if points is None:
        points = min(MOST_POINTS, max(3, MOST_CELLS // (CURVES * trials * agents)))
    even, ends = _space_evenly(rounds, min(points, rounds)), np.asarray(quarters(rounds) or (), np.intp)
    if points < len(ends):
        return even
    union = np.union1d(even, ends)
    return union if len(union) <= points else np.union1d(_space_evenly(rounds, max(1, points - 2)), ends)


def _space_evenly(rounds: int, points: int) -> Ints:
    return np.unique(np.ceil(np.arange(1, points + 1) * (rounds / points) - 1e-9).astype(np.intp))


def quarters(rounds: int) -> tuple[int, int, int] | None:
    """The rounds after which the last two quarters begin and end, of equal length; None if that is 0."""
    length = rounds // 4
    return (rounds - 2 * length, rounds - length, rounds) if length else None


def check_storage(grid: Ints, trials: int, agents: int) -> None:
    """Raise if a run would store more than two gigabytes, even if the number of points is given."""
    each = CURVES * len(grid) * agents
    if each * trials > MOST_STORED:
        where = f"{trials} with {len(grid)} stored rounds of {agents} agents"
        raise InputError("trials", where, f"at most {MOST_STORED // each}, or fewer points")


def curve_rounds(rounds: int, grid: Ints, agents: int = 1) -> Ints:
    """The rounds of the moments over trials, for trials that are stored too coarsely to draw a curve.

    With very many agents, counted over all settings, they are fewer, or none if that gains nothing.
    """
    points = min(MOST_POINTS, MOST_MOMENTS // (2 * CURVES * agents))
    fine = len(grid) >= min(rounds, FINE_ENOUGH, points)
    return grid[:0] if fine else stored_rounds(rounds, 1, 1, points)


def _check_overflow(part: Part) -> None:
    """Raise if a loss is not finite: numbers of the problem or its features are too large."""
    for name, values in part.items():
        if not np.all(np.isfinite(values)):
            allowed = "numbers and features that do not overflow"
            raise InputError("problem", f"its {name} is not finite", allowed)
