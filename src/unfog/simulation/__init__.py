"""Simulated runs: many trials of agents on the same worlds, side by side, with nothing written to disk."""

from collections.abc import Sequence

from unfog.agents.agent import Agent
from unfog.simulation.executors import Executor
from unfog.simulation.job import Tick
from unfog.simulation.plan import MOST_SEED, MOST_TRIALS, Plan, plan
from unfog.simulation.results import Curves, Gathering
from unfog.validation import flag
from unfog.worlds.problem import Problem

__all__ = ["MOST_SEED", "MOST_TRIALS", "Curves", "Gathering", "Plan", "plan", "play"]


def play(
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

    Agents are names of the catalogue or instances of `Agent`. With `seed=None` a seed is drawn; the result
    has it. `points` is how many rounds to store. `engine` is "numpy", "numba" (compiled, for CPUs), "jax",
    "cuda" (one GPU kernel, for the problems it supports) or "auto", which takes the one estimated to finish
    first; `precision` and `draws` are for compiled engines: float32 or float64, and "numpy" to give them
    the NumPy engine's random numbers. `chunk` trials run side by side, in `workers` processes if that makes
    the engine faster, or wherever `executor` runs them; none of it changes a number on the NumPy engine.
    `tick` is called with the agent-rounds done since its last call.

    >>> import unfog
    >>> from unfog.simulation import play
    >>> problem = unfog.GaussianProblem(dim=2, actions=5)
    >>> curves = play(problem, ["unfog", "naive"], rounds=50, trials=20, seed=0)
    >>> curves.values["regret"].shape  # agents, trials, stored rounds
    (2, 20, 50)
    >>> curves.values["regret"][:, :, -1].mean(1).round(1).tolist()
    [4.4, 8.0]
    """
    flag("decompose", decompose)
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
    gathered = Gathering(work)
    for task, parts in work.results(work.pieces, tick):
        for piece, part in zip(task, parts, strict=True):
            gathered.add(piece, part)
    return gathered.curves(0)
