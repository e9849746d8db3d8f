"""Memory before work starts: refusals by the fields to blame, and the estimate against measured peaks."""

import json
import subprocess
import sys
import tracemalloc
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import unfog
from unfog.lab.stopping import checkpoints
from unfog.simulation import Gathering, engines, memory, plan
from unfog.simulation.engines import NAMES, MemoryTerm, engine
from unfog.simulation.job import MOMENTS
from unfog.simulation.player import played
from unfog.validation import InputError


def told(monkeypatch: pytest.MonkeyPatch, amount: str) -> None:
    monkeypatch.setenv("UNFOG_MEMORY", amount)


def refused(problem: Any, agents: tuple[str, ...] = ("alg1",), **run: Any) -> InputError:
    with pytest.raises(InputError) as found:
        plan([problem], agents, **{"rounds": 10, "trials": 10, "seed": 0, **run})
    return found.value


def test_the_peak_is_what_stays_and_the_largest_stretch() -> None:
    terms = [
        MemoryTerm("a", (), 1, 10),
        MemoryTerm("b", (), 5, when="start"),
        MemoryTerm("c", (), 2, 7, when="round"),
    ]
    assert engines.peak(terms, 1) == 1 + 10 + 9
    assert engines.peak(terms, 4) == 4 + 10 + 20
    assert engines.for_each(terms) == 6


# What the machine has no say in: every one of these takes more than 4 GB.
TOO_LARGE: list[tuple[Any, dict[str, Any], str]] = [
    (lambda: unfog.GaussianProblem(dim=300, actions=10**6), {}, "problem.actions, problem.dim"),
    (
        lambda: unfog.GaussianProblem(dim=300, actions=5, drift_cov=0.1, drift_rounds=10**6),
        {},
        "problem.drift_rounds, problem.dim",
    ),
    (lambda: unfog.LogisticProblem(), {"rounds": 10**7}, "rounds, problem.actions, problem.dim"),
    (lambda: unfog.GaussianProblem(), {"chunk": 10**6, "trials": 10**6}, "chunk"),
    (lambda: unfog.GaussianProblem(), {"workers": 10**4, "trials": 10**7}, "workers"),
]


def test_what_cannot_fit_is_refused_by_the_fields_to_blame(monkeypatch: pytest.MonkeyPatch) -> None:
    for problem, run, field in TOO_LARGE:
        check_what_cannot_fit_is_refused_by_the_fields_to_blame(problem, run, field, monkeypatch)


def check_what_cannot_fit_is_refused_by_the_fields_to_blame(
    problem: Any, run: dict[str, Any], field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told(monkeypatch, "4GB")
    error = refused(problem(), **run)
    assert error.field == field
    assert "4 GB" in error.allowed


def test_the_message_has_the_values_and_the_amounts(monkeypatch: pytest.MonkeyPatch) -> None:
    told(monkeypatch, "9.3GB")
    words = str(refused(unfog.GaussianProblem(dim=300, actions=10**6)))
    assert words.startswith(
        "problem.actions, problem.dim: 1000000, 300: the features of all actions take 4.81 GB"
    )
    assert words.endswith("UNFOG_MEMORY, 9.3 GB")


def test_stored_curves_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    told(monkeypatch, "200MB")
    assert refused(unfog.GaussianProblem(), rounds=1000, trials=10**5).field == "trials, points"


def test_a_prior_that_does_not_fit_is_refused_before_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    told(monkeypatch, "4GB")
    with pytest.raises(InputError, match=r"^actions, dim: the prior of 1001000 features takes"):
        unfog.GaussianProblem(dim=1000, actions=1000, features="per_arm")


def test_a_complaint_about_several_fields_has_a_table_before_each() -> None:
    found = InputError.prefixed("problem", InputError("actions, dim", 1, "less"))
    assert found.field == "problem.actions, problem.dim"


def test_more_memory_lets_it_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = unfog.GaussianProblem(dim=50, actions=20_000)
    told(monkeypatch, "90MB")
    assert refused(problem).field == "problem.actions"
    told(monkeypatch, "1GB")
    assert plan([problem], ["alg1"], rounds=10, trials=10, seed=0).total == 100


def test_many_trials_and_rounds_are_estimated_below_two_gigabytes() -> None:
    for name in ("numpy", "jax"):
        work = plan([unfog.GaussianProblem()], AGENTS, rounds=10_000, trials=10_000, seed=0, engine=name)
        assert estimated(work).total < 2e9


AGENTS = ("alg1", "alg2", "naive", "oracle", "kk")


def estimated(work: Any) -> memory.Memory:
    sizes = [len(batches[0]) for batches in work.batches]
    return memory.estimate(work.jobs, work.engine, sizes, work.ends, work.executor)


def test_more_trials_take_more_memory() -> None:
    for name in NAMES:
        check_more_trials_take_more_memory(name)


def check_more_trials_take_more_memory(name: str) -> None:
    job = plan([unfog.GaussianProblem()], ["alg1"], rounds=10, trials=10, seed=0).jobs[0]
    terms = engine(name).terms(job)
    assert engines.peak(terms, 2000) > engines.peak(terms, 10)


WORLDS: dict[str, Any] = {"empirical": {"prior_contexts": 50}, "mixture": {"prior_noisy_contexts": 200}}


def test_covariances_are_declared_as_they_are() -> None:
    """Those of trials' own, those that all share, and those that stay the same."""
    for name in [
        *AGENTS,
        "unfog",
        "adaptive",
        "gaps",
        "late",
        "unknown-noise",
        "robust",
        "empirical",
        "mixture",
    ]:
        check_covariances_are_declared_as_they_are(name)


def check_covariances_are_declared_as_they_are(name: str) -> None:
    problem = unfog.GaussianProblem(dim=3, actions=4, **WORLDS.get(name, {}))
    agent = plan([problem], [name], rounds=5, trials=3, seed=0).jobs[0].agents[0]
    found = [decision.context.cov for _, decision in played(problem, agent, 3, range(2), 0)]
    assert (found[-1].ndim == 3) == (agent.denoiser.squares > 0)
    assert (found[0] is found[-1]) == agent.denoiser.settled


MEASURE = """
import json, sys
import unfog
from unfog.worlds.temporal import TemporalProblem
from unfog.simulation import play
kind, fields, run = json.loads(sys.argv[1])
kinds = {"gaussian": unfog.GaussianProblem, "logistic": unfog.LogisticProblem, "temporal": TemporalProblem}
play(kinds[kind](**fields), **run)
# The peak since this program began: getrusage would count that of the process it was forked from.
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def case(kind: str = "gaussian", agents: str = "alg1", *, rounds: int = 3, trials: int, **rest: Any) -> Any:
    """A case, its trials side by side unless told; fields of a run are those that are not the world's."""
    run: dict[str, Any] = {
        name: rest.pop(name) for name in ("engine", "points", "chunk", "draws") if name in rest
    }
    run = {"agents": agents.split(), "rounds": rounds, "trials": trials, "chunk": trials, **run}
    return kind, rest, run


GRID = [case(trials=1)]  # the quick one
SLOW = [
    case(trials=1, dim=100, actions=30_000),
    case(trials=20, dim=10, drift_cov=0.1, drift_rounds=30_000),
    case(trials=300, dim=10, actions=10, prior_contexts=10_000, agents="empirical"),
    case(trials=1000, rounds=300, points=300, chunk=250),
    case(trials=200, kind="logistic", dim=20, actions=10, rounds=60, agents="alg1-lmc:steps=1"),
    case(trials=50, dim=100, actions=10, engine="jax"),
]
SOAK = [
    case(trials=2, dim=5, actions=40_000, agents="unfog"),
    case(trials=50, dim=100, actions=10),
    case(trials=25, dim=100, actions=10, agents="alg1 alg2 naive oracle kk"),
    case(trials=100, dim=10, actions=10, units=100, rounds=20),
    case(trials=30, kind="temporal", dim=10, actions=10, path_rounds=10_000),
    case(trials=50, dim=5, actions=40_000, engine="jax"),
    case(trials=2, dim=500, actions=20_000),
    case(trials=8, dim=500, actions=10),
    case(trials=1, dim=500, actions=10, agents="oracle"),
    case(trials=100, dim=100, agents="unfog"),
    case(trials=20, dim=10, actions=1000, features="per_arm"),
    case(trials=50, dim=40, actions=10, rounds=130, missing=0.3, agents="gaps"),
    case(trials=50, dim=40, actions=10, rounds=130, agents="adaptive"),
    case(trials=50, dim=40, actions=10, rounds=130, agents="coupled"),
    case(trials=50, dim=10, actions=10, rounds=30, units=50, agents="adaptive"),
    case(trials=50, dim=30, actions=10, rounds=250, reveal_delay=200, agents="late"),
    case(trials=150, dim=10, actions=10, rounds=130, tails=5),
    case(
        trials=100, kind="logistic", dim=20, actions=10, rounds=600, agents="alg1-lmc:steps=1", engine="jax"
    ),
    case(trials=100, dim=100, actions=10, agents="unfog", engine="jax"),
    case(trials=3, dim=100, actions=50_000, agents="unfog", engine="jax"),
    case(trials=20, dim=10, drift_cov=0.1, drift_rounds=50_000, engine="jax"),
    case(trials=2000, rounds=1000, points=500, engine="jax"),
    case(trials=2, dim=500, actions=10, engine="jax"),
    case(trials=500, rounds=2000, draws="numpy", points=10, engine="jax"),
]
KINDS: dict[str, Any] = {
    "gaussian": unfog.GaussianProblem,
    "logistic": unfog.LogisticProblem,
    "temporal": unfog.TemporalProblem,
}


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the peak is counted in other units")
@pytest.mark.parametrize(
    ("kind", "fields", "run"),
    [
        *GRID,
        *(pytest.param(*one, marks=pytest.mark.slow) for one in SLOW),
        *(pytest.param(*one, marks=pytest.mark.soak) for one in SOAK),
    ],
)
def test_the_estimate_is_within_a_factor_of_two_of_the_measured_peak(
    kind: str, fields: dict[str, Any], run: dict[str, Any]
) -> None:
    told = json.dumps([kind, fields, run])
    done = subprocess.run([sys.executable, "-c", MEASURE, told], capture_output=True, text=True, check=True)
    work = plan([KINDS[kind](**fields)], seed=0, **run)
    ratio = estimated(work).total / (1024 * int(done.stdout))
    assert 1 / 2 < ratio < 2


def test_workers_of_a_sweep_share_the_pieces_of_all_settings() -> None:
    worlds = [unfog.GaussianProblem(dim=dim) for dim in (2, 3, 4)]
    work = plan(worlds, ["alg1"], rounds=10, trials=10, seed=0, workers=2)
    assert [len(batches) for batches in work.batches] == [1, 1, 1]
    assert estimated(work).workers == 2
    alone = plan(worlds[:1], ["alg1"], rounds=10, trials=10, seed=0, workers=2)
    assert estimated(alone).workers == 1


COMMAND = """
import json, sys
import unfog
fields, run = json.loads(sys.argv[1])
unfog.run(unfog.GaussianProblem(**fields), seed=0, **run)
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the peak is counted in other units")
@pytest.mark.parametrize(
    ("fields", "run"),
    [
        ({}, {"agents": ["alg1"], "rounds": 10, "trials": 20, "engine": "numpy"}),
        pytest.param(
            {},
            {"agents": ["alg1"], "rounds": 10, "trials": 20, "engine": "numba"},
            marks=pytest.mark.soak,
        ),
        (
            {"units": 1000, "dim": 20, "actions": 10},
            {"agents": ["adaptive"], "rounds": 2, "trials": 30, "engine": "numpy"},
        ),
    ],
    ids=["small", "compiled", "units"],
)
def test_so_it_is_with_all_that_the_lab_imports(fields: dict[str, Any], run: dict[str, Any]) -> None:
    told = json.dumps([fields, run])
    done = subprocess.run([sys.executable, "-c", COMMAND, told], capture_output=True, text=True, check=True)
    ratio = estimated(plan([unfog.GaussianProblem(**fields)], seed=0, **run)).total / (
        1024 * int(done.stdout)
    )
    assert 1 / 2 < ratio < 2


@pytest.mark.parametrize("until", [False, True])
def test_moments_of_thousands_of_pieces_are_counted(until: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes 112 kB, all of them 224 MB: what is pooled takes their place as they come."""
    monkeypatch.setattr(
        import_module("unfog.simulation.plan"), "MOST_CELLS", 8 * 4000 * 4
    )  # few rounds of single trials
    ends = checkpoints if until else None
    work = plan([unfog.GaussianProblem()], ["alg1"], rounds=1000, trials=4000, chunk=2, seed=0, ends=ends)
    job, pieces = work.jobs[0], list(work.pieces)
    assert (len(job.curve), len(pieces), len(work.ends) > 1) == (1000, 2000, until)
    rng = np.random.default_rng(0)
    order = np.argsort(np.arange(len(pieces)) + 4 * rng.random(len(pieces)))
    tracemalloc.start()
    try:
        gathered = Gathering(work)
        for place in order:
            values = {name: np.ones((1, 2, len(job.grid))) for name in job.losses}
            moments = {MOMENTS + name: np.ones((1, 1000, 2)) for name in job.losses}
            gathered.add(pieces[place], values | moments)
        gathered.curves(0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < estimated(work).stored < 20e6
