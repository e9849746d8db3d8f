"""A baseline's batched round against a plain NumPy step of the same baseline, written from its formulas.

The plain ones are those of tests/agents/baselines, which choose the same arms. Each test there hands an
agent, a problem and a plain baseline to `compare`; here that call is caught, and both are timed on that
problem: the plain one a trial at a time, the other in a batch of 100 trials. Neither is charged for what
the world does.
"""

import inspect
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

from tests.agents.baselines import plain
from tests.agents.baselines.plain import Shown

from benchmarks.wording import ROOT
from unfog.agents.agent import Agent
from unfog.agents.baselines import BASELINES
from unfog.lab.baselines import report
from unfog.maths.arrays import Array
from unfog.worlds.problem import Emission, Problem

FOLDER = ROOT / "tests" / "agents" / "baselines"


class Pair(NamedTuple):
    """What a test compares."""

    agent: Agent
    problem: Problem
    plain: Callable[[int], Shown]


class _CaughtError(Exception):
    """The test need not go on."""


class _Timed:
    """A plain baseline with a watch."""

    def __init__(self, baseline: Shown) -> None:
        self.baseline, self.seconds = baseline, 0.0

    def choose(self, rows: Array, normals: Array, seen: Emission) -> int | list[int]:
        began = time.perf_counter()
        arm = self.baseline.choose(rows, normals, seen)
        self.seconds += time.perf_counter() - began
        return arm

    def learn(self, arm: int, rows: Array, reward: float, seen: Emission) -> None:
        began = time.perf_counter()
        self.baseline.learn(arm, rows, reward, seen)
        self.seconds += time.perf_counter() - began


def pairs() -> dict[str, Pair]:
    """The first pair of every baseline that has one, by its name."""
    found: dict[str, Pair] = {}
    for path in sorted(FOLDER.glob("test_*.py")):
        module = import_module(f"tests.agents.baselines.{path.stem}")
        for pair in _caught(module):
            found.setdefault(pair.agent.name.partition(":")[0], pair)
    return {name: found[name] for name in BASELINES if name in found}


def _caught(module: ModuleType) -> Iterator[Pair]:
    """What each test of a module hands to `compare`; a test that needs fixtures is left."""
    names = vars(module)
    if "compare" not in names:
        return
    caught = list[Pair]()

    def compare(agent: Agent, problem: Problem, baseline: Callable[[int], Shown], **_: Any) -> None:
        caught.append(Pair(agent, problem, baseline))
        raise _CaughtError

    original, names["compare"] = names["compare"], compare
    try:
        tests = [test for name, test in names.items() if name.startswith("test_")]
        for test in [test for test in tests if " compare(" in inspect.getsource(test)]:
            for arguments in _arguments(test):
                try:
                    test(**arguments)
                except (_CaughtError, AssertionError):
                    continue
    finally:
        names["compare"] = original
    yield from caught


def _arguments(test: Any) -> list[dict[str, Any]]:
    """Those of a test's parameters; none where it needs something else."""
    wanted = set(inspect.signature(test).parameters)
    if not wanted:
        return [{}]
    marks = [mark for mark in getattr(test, "pytestmark", []) if mark.name == "parametrize"]
    if len(marks) != 1:
        return []
    given, values = marks[0].args[:2]
    names = [name.strip() for name in given.split(",")] if isinstance(given, str) else list(given)
    rows = [value if len(names) > 1 else (value,) for value in values]
    return [dict(zip(names, row, strict=True)) for row in rows] if set(names) == wanted else []


def measure(pair: Pair, rounds: int, repeats: int = 2) -> dict[str, float]:
    """Microseconds of a trial's round: plain, and in a batch of 100 trials; the least of the repeats."""
    alone, batch = list[float](), list[float]()
    for _ in range(repeats):
        timed = list[_Timed]()

        def watched(trial: int, timed: list[_Timed] = timed) -> Shown:
            timed.append(_Timed(pair.plain(trial)))
            return timed[-1]

        trials = (0, 1, 2)
        plain.compare(pair.agent, pair.problem, watched, rounds=rounds, trials=trials)
        alone.append(1e6 * sum(one.seconds for one in timed) / (rounds * len(trials)))
        batch.append(1e6 * report.seconds(pair.agent, pair.problem, rounds=rounds, trials=100))
    return {"plain_us": min(alone), "batch_us": min(batch), "ratio": min(batch) / min(alone)}


def measured(rounds: int = 40) -> dict[str, dict[str, Any]]:
    """Every baseline that has a plain implementation; a test that a plain one fails says so there."""
    found = dict[str, dict[str, Any]]()
    for name, pair in pairs().items():
        try:
            found[name] = measure(pair, rounds)
        except AssertionError as error:
            found[name] = {"error": str(error).splitlines()[0] if str(error) else "they differ"}
    return found
