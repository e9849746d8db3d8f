"""The only loop: world, agent, world, for many trials at once."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from unfog.agents.agent import Agent
from unfog.agents.catalogue import AGENTS, named
from unfog.arrays import Array, Ints
from unfog.inputs import InputError, count
from unfog.simulate.schedule import Job, Tick, batches, results, stored_rounds
from unfog.world.problem import Problem

MOST_SEED = 2**64 - 1


class Curves(NamedTuple):
    """Cumulative losses of every agent and trial at the stored rounds."""

    agents: list[str]
    rounds: Ints  # (P,)
    values: dict[str, Array]  # name -> (agents, trials, P)


def simulate(
    problem: Problem,
    agents: Sequence[str | Agent] = ("alg1", "alg2", "naive", "oracle", "kk"),
    *,
    rounds: int = 1000,
    trials: int = 100,
    seed: int = 0,
    points: int | None = None,
    decompose: bool = True,
    chunk: int | None = None,
    workers: int = 1,
    tick: Tick = lambda _: None,
) -> Curves:
    """Run every agent on the same `trials` worlds for `rounds` rounds.

    Agents are names of the catalogue or rows of your own. `points` is how many rounds to store, `chunk` how
    many trials run side by side; neither it nor `workers` changes a number. `tick` is told of rounds done.
    """
    job, parts = plan(
        problem,
        agents,
        rounds=rounds,
        trials=trials,
        seed=seed,
        points=points,
        decompose=decompose,
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
    seed: int,
    points: int | None = None,
    decompose: bool = True,
    chunk: int | None = None,
    workers: int = 1,
) -> tuple[Job, list[range]]:
    """Check everything, and cut the work into batches of trials."""
    rounds, trials = count("rounds", rounds), count("trials", trials)
    seed, workers = count("seed", seed, 0, MOST_SEED), count("workers", workers)
    points = None if points is None else count("points", points)
    rows = _rows(agents)
    grid = stored_rounds(rounds, trials, len(rows), points)
    job = Job(problem, rows, grid, seed, decompose)
    return job, batches(job, trials, workers, None if chunk is None else count("chunk", chunk))


def _rows(agents: Sequence[str | Agent]) -> list[Agent]:
    """Names looked up in the catalogue, rows of one's own as they are; each name once."""
    if isinstance(agents, str) or not all(isinstance(agent, str | Agent) for agent in agents):
        raise InputError("agents", repr(agents), "a list of names or of rows")
    own = {agent.name: agent for agent in agents if isinstance(agent, Agent)}
    return named(
        [agent if isinstance(agent, str) else agent.name for agent in agents], rows={**AGENTS, **own}
    )


def gather(job: Job, parts: dict[range, dict[str, Array]]) -> Curves:
    """Batches put together in the order of their trials."""
    ordered = [parts[trials] for trials in sorted(parts, key=lambda trials: trials.start)]
    values = {name: np.concat([part[name] for part in ordered], 1) for name in ordered[0]}
    return Curves([agent.name for agent in job.agents], job.grid, values)
