"""The choice of an engine, and what each of them says when it cannot run."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import unfog
from unfog.inputs import InputError
from unfog.lab.run import settled
from unfog.lab.spec import parse
from unfog.simulate import choice as engines
from unfog.simulate import plan, simulate
from unfog.simulate.engines import jax as jax_engine
from unfog.simulate.job import Job
from unfog.worlds.gaussian import GaussianProblem


def job(trials: int = 100, rounds: int = 1000, engine: str = "auto") -> Job:
    planned, _ = plan(GaussianProblem(), ["alg1"], rounds=rounds, trials=trials, seed=0)
    return planned._replace(engine=engine)


def test_small_jobs_stay_with_numpy_and_large_ones_compile() -> None:
    small = engines.resolve(job(), 100, workers=1)
    assert small.engine == "numpy"
    assert "jax on cpu about" in small.reason
    assert engines.resolve(job(), 100_000, workers=1).engine == "jax"


@pytest.mark.parametrize("workers", [1, 16, 64])
def test_a_gpu_is_taken_for_a_million_trials(workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax_engine, "platform", lambda: "gpu")
    choice = engines.resolve(job(), 10**6, workers)
    assert choice.engine == "jax"
    assert "jax on gpu about" in choice.reason


def test_the_estimate_follows_the_work() -> None:
    cost = engines.COSTS["numpy"]
    base = cost.seconds(job(), 1000)
    assert cost.seconds(job(), 2000) == pytest.approx(2 * base)
    assert cost.seconds(job(rounds=3000), 1000) == pytest.approx(3 * base)
    assert cost.seconds(job(), 1000, processes=2) == pytest.approx(base / 2)
    assert cost.seconds(job(), 50, processes=64) == pytest.approx(cost.seconds(job(), 50))


RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"


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
            row["trials"],
            row["dim"],
            row["arms"],
            pace(row),
        )
        for row in rows
    ]
    fast = [row for row in gpu["rows"] if row.get("precision") == "float32"]
    return found + [("jax on gpu", row["trials"], 5, 40, 1e6 * row["M_rounds_per_s"][1]) for row in fast]


def pace(row: Any) -> float:
    return float(row["rounds_per_s"]["median"])


@pytest.mark.parametrize(("cost", "trials", "dim", "arms", "speed"), measured())
def test_the_estimate_is_within_a_factor_of_three_of_what_was_measured(
    cost: str, trials: int, dim: int, arms: int, speed: float
) -> None:
    planned, _ = plan(GaussianProblem(dim=dim, actions=arms), ["alg1"], rounds=1000, trials=trials, seed=0)
    warm = engines.COSTS[cost]._replace(start=0.0)
    assert 1 / 3 < warm.seconds(planned, trials) / (1000 * trials / speed) < 3


# How much longer than alg1 rounds take: processor time of the NumPy engine, 250 trials, d = 5, K = 40.
FACTORS = {
    "alg1-hetero": 1.2,
    "alg1-exact-smoothing": 2.8,
    "alg1-exact-joint": 31.6,
    "unfog": 1.3,
    "gaps": 1.9,
    "late": 5.6,
    "unknown-noise": 22.7,
    "drift": 1.3,
    "robust": 4.3,
}


@pytest.mark.parametrize("name", FACTORS)
def test_agents_that_take_longer_are_estimated_to(name: str) -> None:
    planned, _ = plan(GaussianProblem(), [name], rounds=1000, trials=250, seed=0)
    factor = engines.COSTS["numpy"].seconds(planned, 250) / engines.COSTS["numpy"].seconds(job(), 250)
    assert 0.6 < factor / FACTORS[name] < 1.7


def test_nodes_cost() -> None:
    few, many = (
        engines.COSTS["numpy"].seconds(plan(GaussianProblem(), [name], rounds=9, trials=9, seed=0)[0], 9)
        for name in ("alg1-exact-joint:nodes=8", "alg1-exact-joint:nodes=64")
    )
    assert 5 < many / few < 8


def test_one_engine_serves_a_whole_sweep_and_the_spec_names_it() -> None:
    sweep = {"problem": {"kind": "gaussian", "dim": 1}, "sweep": {"actions": [2, 300]}}
    spec = parse({**sweep, "run": {"rounds": 4, "trials": 2, "agents": ["alg1"], "engine": "auto"}})
    data = unfog.run(spec)
    assert json.loads(data.attrs["spec"])["run"]["engine"] == "numpy"
    assert data.attrs["engine"].startswith("numpy: numpy would take about")


def test_float32_is_asked_of_jax() -> None:
    choice = engines.resolve(job()._replace(precision="float32"), 3, workers=1)
    assert choice == ("jax", "numpy has no float32")


def test_the_precision_that_runs_is_stored() -> None:
    spec, _ = settled(parse({"problem": {"kind": "gaussian"}, "run": {"engine": "jax"}}))
    assert spec.run.precision == "float64"


def test_more_than_two_gigabytes_are_refused() -> None:
    with pytest.raises(
        InputError, match=r"^trials: 1000000 with 1000 stored rounds of 1 agents; allowed: at most 44739"
    ):
        plan(GaussianProblem(), ["alg1"], rounds=1000, trials=10**6, seed=0, points=1000)


def test_a_compiled_batch_fits_whatever_the_features() -> None:
    for dim in (5, 100):
        planned, parts = plan(
            GaussianProblem(dim=dim, actions=10), ["alg1"], rounds=2, trials=10**5, seed=0, engine="jax"
        )
        assert 8 * 4 * (3 * dim) ** 2 * len(parts[0]) <= 2**29
        assert planned.batch == len(parts[0])


def test_auto_says_what_it_took() -> None:
    curves = simulate(GaussianProblem(dim=2, actions=3), ["alg1"], rounds=5, trials=3, engine="auto")
    assert curves.engine == "numpy"
    assert "jax on cpu about" in curves.why


def test_without_jax_auto_takes_numpy_and_jax_names_the_extra() -> None:
    code = (
        "import sys; sys.modules['jax'] = None\n"
        "from unfog.simulate import simulate\nfrom unfog.worlds.gaussian import GaussianProblem\n"
        "p = GaussianProblem(dim=2, actions=3)\n"
        "assert simulate(p, ['alg1'], rounds=5, trials=3, engine='auto').engine == 'numpy'\n"
        "from unfog.cli import main; main(['run', 'fig1-gaussian', '--trials', '1', '--engine', 'jax'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.strip().endswith("pip install 'unfog[jax]'")


def test_the_numeric_core_runs_with_numpy_alone() -> None:
    code = (
        "import sys\n"
        "class Only:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        top = name.split('.')[0]\n"
        "        if top in ('pydantic', 'typer', 'rich', 'scipy', 'xarray', 'matplotlib', 'sklearn'):\n"
        "            raise ImportError(f'{name} is not allowed here')\n"
        "sys.meta_path.insert(0, Only())\n"
        "from unfog.simulate import simulate\nfrom unfog.worlds.gaussian import GaussianProblem\n"
        "p = GaussianProblem(dim=2, actions=3)\n"
        "for engine in ('numpy', 'jax'):\n"
        "    simulate(p, ['alg1'], rounds=3, trials=2, engine=engine)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_chip_is_refused_without_a_gpu() -> None:
    with pytest.raises(InputError, match=r"^engine: chip needs a GPU; allowed: numpy, jax, auto"):
        engines.resolve(job(engine="chip"), 100, workers=1)
