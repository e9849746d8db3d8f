"""The only loop: world, agent, world, for many trials at once."""

import secrets
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from unfog.agents.assemble import Agent, refuse_misfit
from unfog.agents.catalogue import Catalogue, named, with_own
from unfog.features import FeatureMap
from unfog.inputs import count
from unfog.maths.arrays import Array, Ints
from unfog.simulate import choice
from unfog.simulate.job import MOMENTS, Job, Part, Tick
from unfog.simulate.schedule import (
    CHIP_TRIALS,
    MOST_POINTS,
    batches,
    curve_rounds,
    refuse_too_much,
    results,
    stored_rounds,
)
from unfog.theory import regret
from unfog.worlds.problem import Problem

MOST_SEED = 2**64 - 1
MOST_TRIALS = 10**8


class Curves(NamedTuple):
    """Cumulative losses of every agent and trial at the stored rounds.

    Where trials are so many that single ones are stored coarsely, `mean` and `se` hold the mean over trials
    and its standard error at the rounds of `curve`; elsewhere they are empty.
    """

    agents: list[str]
    rounds: Ints  # (P,)
    values: dict[str, Array]  # name -> (agents, trials, P)
    curve: Ints  # (Q,)
    mean: dict[str, Array]  # name -> (agents, Q)
    se: dict[str, Array]  # name -> (agents, Q)
    engine: str
    why: str  # this engine
    seed: int


def simulate(
    problem: Problem,
    agents: Sequence[str | Agent] = ("alg1", "alg2", "naive", "oracle", "kk"),
    *,
    rounds: int = 1000,
    trials: int = 100,
    seed: int | None = 0,
    points: int | None = None,
    decompose: bool = True,
    engine: str = "numpy",
    precision: str | None = None,
    tape: str = "device",
    chunk: int | None = None,
    workers: int = 1,
    tick: Tick = lambda _: None,
) -> Curves:
    """Run every agent on the same `trials` worlds for `rounds` rounds.

    Agents are names of the catalogue or rows of your own. A `seed` of None is drawn anew; the result says it.
    `points` is how many rounds to store. `engine` is "numpy", "jax", "chip" (one GPU kernel, for the problems
    it serves) or "auto", which takes the one estimated to finish first; `precision` and `tape` are for
    compiled engines: float32 or float64, and "numpy" to feed them the NumPy engine's random numbers. `chunk`
    trials run side by side, in `workers` processes; neither changes a number on the NumPy engine. `tick` is
    told of rounds done.
    """
    job, parts = plan(
        problem,
        agents,
        rounds=rounds,
        trials=trials,
        seed=seed,
        points=points,
        decompose=decompose,
        engine=engine,
        precision=precision,
        tape=tape,
        chunk=chunk,
        workers=workers,
    )
    return gather(job, dict(results(job, parts, workers, tick)))


def plan(
    problem: Problem,
    agents: Sequence[str | Agent],
    *,
    rounds: int,
    trials: int,
    seed: int | None,
    points: int | None = None,
    decompose: bool = True,
    engine: str = "numpy",
    precision: str | None = None,
    tape: str = "device",
    chunk: int | None = None,
    workers: int = 1,
    settings: int = 1,
) -> tuple[Job, list[range]]:
    """Check everything, and cut the work into batches of trials; `settings` such jobs share the storage."""
    rounds, trials = count("rounds", rounds), count("trials", trials, most=MOST_TRIALS)
    seed = secrets.randbelow(MOST_SEED) if seed is None else count("seed", seed, 0, MOST_SEED)
    workers = count("workers", workers)
    points = None if points is None else count("points", points, most=MOST_POINTS)
    names, own = with_own(agents)
    rows = named(names, rows=Catalogue(problem.rewards.kind, own))
    features, known = _features(problem), problem.knowledge()
    kind, partial, has_bias = problem.rewards.kind, problem.partial, problem.has_bias
    for row in rows:
        refuse_misfit(row, known, features, rewards=kind, partial=partial, has_bias=has_bias)
    grid = stored_rounds(rounds, trials, settings * len(rows), points)
    curve = curve_rounds(rounds, grid) if points is None else grid[:0]
    refuse_too_much(grid, trials, settings * len(rows))
    job = Job(problem, rows, grid, curve, seed, decompose, engine, precision=precision, tape=tape)
    found = choice.resolve(job, trials, workers)
    job = job._replace(engine=found.engine, why=found.reason)
    parts = batches(job, trials, workers, None if chunk is None else count("chunk", chunk))
    whole = CHIP_TRIALS if job.engine == "chip" and chunk is None else len(parts[0])
    return job._replace(batch=whole), parts


def _features(problem: Problem) -> FeatureMap:
    """The map of a trial whose draws are all zero: good enough to see what kind it is."""
    wanted = problem.truth_draws().items()
    return problem.truth({name: np.zeros((1, *draws.shape)) for name, draws in wanted}).features


def gather(job: Job, parts: dict[range, Part]) -> Curves:
    """Batches put together in the order of their trials."""
    ordered = sorted(parts, key=lambda trials: trials.start)
    names = job.losses
    values = {name: np.concat([parts[trials][name] for trials in ordered], 1) for name in names}
    mean, se = {}, {}
    for name in names if len(job.curve) else ():
        counts = [len(trials) for trials in ordered]
        mean[name], se[name] = regret.pooled(counts, [parts[trials][MOMENTS + name] for trials in ordered])
    names_of_agents = [agent.name for agent in job.agents]
    return Curves(names_of_agents, job.grid, values, job.curve, mean, se, job.engine, job.why, job.seed)
