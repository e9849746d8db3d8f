"""Executors: any engine goes with any of them, and gives the same numbers."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from tests.problems import random_problem
from unfog.agents.assemble import Agent
from unfog.agents.choose.ucb import Ucb
from unfog.agents.denoise.robust import Robust
from unfog.agents.learn.hetero import Hetero
from unfog.features.quadrature import quadrature
from unfog.inputs import InputError
from unfog.simulate import Curves, plan, simulate
from unfog.simulate.execute.processes import Processes
from unfog.simulate.execute.serial import Serial
from unfog.worlds.gaussian import GaussianProblem

PROBLEM = random_problem(seed=12, dim=2, actions=3)
MINE = Agent("mine", Robust(), Hetero(), Ucb(), "", "")


def run(agents: Any = (MINE,), **settings: Any) -> Curves:
    return simulate(PROBLEM, agents, **{"rounds": 12, "trials": 6, "chunk": 3, "seed": 3} | settings)


@pytest.mark.parametrize("engine", ["numpy", "jax"])
def test_any_engine_runs_in_processes(engine: str) -> None:
    done: list[int] = []
    alone = run(engine=engine, executor=Serial())
    shared = run(engine=engine, executor=Processes(2), tick=done.append)
    assert sum(done) == 12 * 6
    assert alone.values.keys() == shared.values.keys()
    for loss, values in alone.values.items():
        assert np.array_equal(shared.values[loss], values), loss


@pytest.mark.parametrize(
    ("engine", "workers", "executor"),
    [("numpy", 1, Serial()), ("numpy", 2, Processes(2)), ("jax", 1, Serial()), ("jax", 2, Serial())],
)
def test_workers_are_for_engines_that_gain_by_them(engine: str, workers: int, executor: Any) -> None:
    work = plan([PROBLEM], ["alg1"], rounds=5, trials=4, seed=0, engine=engine, workers=workers)
    assert work.executor == executor


@dataclass(frozen=True, kw_only=True)
class Local(Ucb):
    """A chooser that refuses to travel."""

    def __reduce__(self) -> Any:
        raise TypeError("not I")


def test_what_cannot_travel_is_refused_by_name() -> None:
    stuck = replace(MINE, name="stuck", chooser=Local())
    with pytest.raises(InputError, match=r"^workers: 2; allowed: 1 for 'stuck' that cannot be sent .*not I"):
        run([stuck], workers=2)
    assert run([stuck]).agents == ["stuck"]
    assert run([stuck], workers=2, chunk=6).agents == ["stuck"]  # one batch stays here
    problem = GaussianProblem(dim=1, actions=3, features=quadrature(lambda a, c: a * c, 1))
    with pytest.raises(InputError, match=r"^workers: 2; allowed: 1 for a problem that cannot be sent"):
        simulate(problem, [MINE], rounds=3, trials=4, chunk=2, workers=2)
