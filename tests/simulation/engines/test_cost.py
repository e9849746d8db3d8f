"""The engines' estimates: they follow the work, and what was measured."""

import json
from pathlib import Path
from typing import Any

import pytest

from unfog.simulation import plan
from unfog.simulation.engines import Cost
from unfog.simulation.engines import cuda as cuda_engine
from unfog.simulation.engines import jax as jax_engine
from unfog.simulation.engines import numpy as numpy_engine
from unfog.simulation.engines.numba import engine as numba_engine
from unfog.simulation.engines.numba import support
from unfog.simulation.job import Job
from unfog.worlds.synthetic import GaussianProblem

COSTS = {
    "numpy": numpy_engine.COST,
    "numba on cpu": numba_engine.COST,
    "jax on cpu": jax_engine.COSTS["cpu"],
    "jax on gpu": jax_engine.COSTS["gpu"],
    "one kernel": cuda_engine.COST,
}


def job(name: str = "alg1", rounds: int = 1000, **fields: Any) -> Job:
    return plan([GaussianProblem(**fields)], [name], rounds=rounds, trials=250, seed=0).jobs[0]


def test_the_estimate_follows_the_work() -> None:
    cost = numpy_engine.COST
    base = cost.seconds(job(), 1000)
    assert cost.seconds(job(), 2000) == pytest.approx(2 * base)
    assert cost.seconds(job(rounds=3000), 1000) == pytest.approx(3 * base)
    assert cost.seconds(job(), 1000, processes=2) == pytest.approx(base / 2)
    assert cost.seconds(job(), 50, processes=64) == pytest.approx(cost.seconds(job(), 50))


RESULTS = Path(__file__).parents[3] / "benchmarks" / "results"


def measured() -> list[Any]:
    """Engine, agent, trials, d, K and measured seconds for a round, of every row of the committed results."""
    cpu, gpu = (json.loads((RESULTS / name).read_text()) for name in ("cpu.json", "gpu.json"))
    rows = [
        row
        for table in ("engines", "agents", "arms", "dim")
        for row in cpu[table]
        if row["engine"] != "plain"
    ]
    found = [
        (
            f"{row['engine']} on cpu".replace("numpy on cpu", "numpy"),
            row["agent"],
            row["trials"],
            row["dim"],
            row["arms"],
            float(row["rounds_per_s"]["median"]),
        )
        for row in rows
    ]
    where = {"jax": "jax on gpu", "cuda": "one kernel"}
    fast = [row for row in gpu["rows"] if row.get("precision", "float32") == "float32"]
    return found + [
        (where[row["engine"]], row["agent"], row["trials"], 5, 40, 1e6 * row["M_rounds_per_s"][1])
        for row in fast
    ]


def test_the_estimate_is_within_a_factor_of_three_of_what_was_measured() -> None:
    for cost, agent, trials, dim, arms, speed in measured():
        check_the_estimate_is_within_a_factor_of_three_of_what_was_measured(
            cost, agent, trials, dim, arms, speed
        )


def check_the_estimate_is_within_a_factor_of_three_of_what_was_measured(
    cost: str, agent: str, trials: int, dim: int, arms: int, speed: float
) -> None:
    warm: Cost = COSTS[cost]._replace(start=0.0)
    work = job(agent, dim=dim, actions=arms)
    estimate = warm.seconds(work, trials)
    if cost == "numba on cpu":  # those without a kernel, and denoisers, take as long as with NumPy
        able, _ = support.split(work)
        estimate = numba_engine.ENGINE.seconds(work, trials) - len(able) * numba_engine.COST.start
    assert 1 / 3 < estimate / (1000 * trials / speed) < 3


# How much longer than alg1 rounds take: processor time of the NumPy engine, 250 trials, d = 5, K = 40.
FACTORS = {
    "alg1-hetero": 1.2,
    "alg1-exact-smoothing": 2.8,
    "alg1-exact-joint": 31.6,
    "unfog": 1.3,
    "coupled": 3.0,
    "gaps": 1.9,
    "late": 3.3,
    "unknown-noise": 6.1,
    "drift": 1.3,
    "robust": 4.3,
}


def test_agents_that_take_longer_are_estimated_to() -> None:
    for name in FACTORS:
        check_agents_that_take_longer_are_estimated_to(name)


def check_agents_that_take_longer_are_estimated_to(name: str) -> None:
    factor = numpy_engine.COST.seconds(job(name), 250) / numpy_engine.COST.seconds(job(), 250)
    assert 0.6 < factor / FACTORS[name] < 1.7


def test_nodes_cost() -> None:
    few, many = (
        numpy_engine.COST.seconds(job(name, rounds=9), 9)
        for name in ("alg1-exact-joint:nodes=8", "alg1-exact-joint:nodes=64")
    )
    assert 5 < many / few < 8
