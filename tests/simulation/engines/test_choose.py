"""The choice of an engine, and what each of them says when it cannot run."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import unfog
from unfog.lab.prepare import prepare
from unfog.lab.spec import parse
from unfog.simulation import Plan, engines, plan, play
from unfog.simulation.engines import cuda as cuda_engine
from unfog.simulation.engines import jax as jax_engine
from unfog.validation import InputError
from unfog.worlds.synthetic import GaussianProblem


def work(trials: int = 100, engine: str = "auto", workers: int = 1, precision: str | None = None) -> Plan:
    settings: Any = {"rounds": 1000, "seed": 0, "points": 1}
    return plan(
        [GaussianProblem()],
        ["alg1"],
        trials=trials,
        engine=engine,
        workers=workers,
        precision=precision,
        **settings,
    )


def test_small_jobs_stay_with_numpy_and_large_ones_compile() -> None:
    small = work()
    assert small.engine.name == "numpy"
    assert "numba about" in small.reason
    assert "jax on cpu about" in small.reason
    assert work(100_000).engine.name == "numba"


@pytest.mark.parametrize("workers", [1, 16, 64])
def test_a_gpu_is_taken_for_a_million_trials(workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax_engine, "platform", lambda: "gpu")
    chosen = work(10**6, workers=workers)
    assert chosen.engine.name == "cuda"
    assert "jax on gpu about" in chosen.reason


def test_one_engine_serves_a_whole_sweep_and_the_spec_names_it() -> None:
    sweep = {"problem": {"kind": "gaussian", "dim": 1}, "sweep": {"actions": [2, 300]}}
    spec = parse({**sweep, "run": {"rounds": 4, "trials": 2, "agents": ["alg1"], "engine": "auto"}})
    data = unfog.run(spec)
    assert json.loads(data.attrs["spec"])["run"]["engine"] == "numpy"
    assert data.attrs["engine"].startswith("numpy: estimated to finish first (numpy about ")


def test_float32_is_asked_of_jax() -> None:
    chosen = work(3, precision="float32")
    assert chosen.engine.name == "jax"
    assert "precision: float32; allowed: float64 on the numpy engine" in chosen.reason


def test_the_precision_that_runs_is_stored() -> None:
    spec = parse({"problem": {"kind": "gaussian"}, "run": {"engine": "jax"}})
    assert prepare(spec).spec.run.precision == "float64"


def test_more_than_two_gigabytes_are_refused() -> None:
    with pytest.raises(
        InputError, match=r"^trials: 1000000 with 1000 stored rounds of 1 agents; allowed: at most 33554"
    ):
        plan([GaussianProblem()], ["alg1"], rounds=1000, trials=10**6, seed=0, points=1000)


def test_a_compiled_batch_fits_whatever_the_features() -> None:
    for dim in (5, 100):
        chosen = plan(
            [GaussianProblem(dim=dim, actions=10)], ["alg1"], rounds=2, trials=10**5, seed=0, engine="jax"
        )
        [planned], [parts] = chosen.jobs, chosen.batches
        assert 8 * 2 * (3 * dim) ** 2 * len(parts[0]) <= 2**29
        assert planned.batch == len(parts[0])


def test_auto_says_what_it_took() -> None:
    curves = play(GaussianProblem(dim=2, actions=3), ["alg1"], rounds=5, trials=3, engine="auto")
    assert curves.engine == "numpy"
    assert "jax on cpu about" in curves.why


@pytest.mark.slow
def test_without_jax_auto_takes_numpy_and_jax_names_the_extra() -> None:
    code = (
        "import sys; sys.modules['jax'] = None\n"
        "from unfog.simulation import play\nfrom unfog.worlds.synthetic import GaussianProblem\n"
        "p = GaussianProblem(dim=2, actions=3)\n"
        "assert play(p, ['alg1'], rounds=5, trials=3, engine='auto').engine == 'numpy'\n"
        "from unfog.cli import main; main(['run', 'fig1-gaussian', '--trials', '1', '--engine', 'jax'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.strip().endswith("pip install 'unfog[jax]', or in a clone pip install '.[jax]'")


@pytest.mark.slow
def test_the_numeric_core_runs_with_numpy_alone() -> None:
    code = (
        "import sys\n"
        "class Only:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        top = name.split('.')[0]\n"
        "        if top in ('pydantic', 'typer', 'rich', 'scipy', 'xarray', 'matplotlib', 'sklearn'):\n"
        "            raise ImportError(f'{name} is not allowed here')\n"
        "sys.meta_path.insert(0, Only())\n"
        "from unfog.simulation import play\nfrom unfog.worlds.synthetic import GaussianProblem\n"
        "p = GaussianProblem(dim=2, actions=3)\n"
        "for engine in ('numpy', 'jax'):\n"
        "    play(p, ['alg1'], rounds=3, trials=2, engine=engine)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_kernel_is_refused_without_a_gpu() -> None:
    with pytest.raises(InputError, match=r"^engine: cuda needs a GPU; allowed: numpy, numba, jax, auto"):
        work(engine="cuda")


def test_the_kernel_plays_in_its_own_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_engine, "on_host", lambda: True)
    spec = parse({"problem": {"kind": "gaussian"}, "run": {"engine": "cuda", "agents": ["alg1"]}})
    ready = prepare(spec)
    assert (ready.spec.run.engine, ready.spec.run.precision) == ("cuda", "float32")
    assert ready.work.engine.packages == ("jax",)


def test_every_engine_says_who_it_is() -> None:
    for name in engines.NAMES:
        check_every_engine_says_who_it_is(name)


def check_every_engine_says_who_it_is(name: str) -> None:
    found = engines.engine(name)
    assert found.name == name
    assert found.label.startswith(name)
    assert engines.engine(name) is found


def test_names_of_engines_are_compared_nowhere_else() -> None:
    source = Path(unfog.__file__).parent
    names = "|".join([*engines.NAMES, engines.AUTO])
    pattern = re.compile(rf"""(?:[=!]=|\bin)\s*[(\[{{]?\s*["'](?:{names})["']|["'](?:{names})["']\s*[=!]=""")
    own = source / "simulation" / "engines"
    found = [
        f"{path.relative_to(source)}: {line.strip()}"
        for path in sorted(source.rglob("*.py"))
        if own not in path.parents
        for line in path.read_text("utf-8").splitlines()
        if pattern.search(line)
    ]
    assert found == []
    assert pattern.search('if job.engine != "numpy":')
