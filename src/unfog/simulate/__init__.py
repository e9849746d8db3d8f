"""The only loop: world, agent, world, for many trials at once."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from unfog.agents.assemble import Agent
from unfog.maths.arrays import Array, Ints
from unfog.simulate.execute import Executor
from unfog.simulate.job import MOMENTS, Part, Tick
from unfog.simulate.plan import MOST_SEED, MOST_TRIALS, Plan, plan
from unfog.theory import regret
from unfog.worlds.problem import Problem

__all__ = ["MOST_SEED", "MOST_TRIALS", "Curves", "Plan", "gather", "plan", "simulate"]


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
    draws: str = "device",
    chunk: int | None = None,
    workers: int = 1,
    executor: Executor | None = None,
    tick: Tick = lambda _: None,
) -> Curves:
    """Run every agent on the same `trials` worlds for `rounds` rounds.

    Agents are names of the catalogue or rows of your own. A `seed` of None is drawn anew; the result says it.
    `points` is how many rounds to store. `engine` is "numpy", "numba" (compiled, for CPUs),
    "jax", "pallas" (one GPU kernel, for the problems it serves) or "auto", which takes the one estimated to
    finish first; `precision` and `draws` are
    for compiled engines: float32 or float64, and "numpy" to feed them the NumPy engine's random numbers.
    `chunk` trials run side by side, in `workers` processes if the engine gains by it, or wherever `executor`
    has them run; none of it changes a number on the NumPy engine. `tick` is told of rounds done.
    """
    work = plan(
        [problem],
        agents,
        rounds=rounds,
        trials=trials,
        seed=seed,
        points=points,
        decompose=decompose,
        engine=engine,
        precision=precision,
        draws=draws,
        chunk=chunk,
        workers=workers,
        executor=executor,
    )
    return gather(work, 0, dict(work.results(0, work.batches[0], tick)))


def gather(work: Plan, index: int, parts: dict[range, Part]) -> Curves:
    """The batches of a job put together in the order of their trials."""
    job, ordered = work.jobs[index], sorted(parts, key=lambda trials: trials.start)
    values = {name: np.concat([parts[trials][name] for trials in ordered], 1) for name in job.losses}
    mean, se = {}, {}
    for name in job.losses if len(job.curve) else ():
        counts = [len(trials) for trials in ordered]
        mean[name], se[name] = regret.pooled(counts, [parts[trials][MOMENTS + name] for trials in ordered])
    names = [agent.name for agent in job.agents]
    return Curves(names, job.grid, values, job.curve, mean, se, work.engine.name, work.reason, job.seed)
