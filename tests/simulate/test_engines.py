"""The choice of an engine, and what each of them says when it cannot run."""

import subprocess
import sys

import pytest

from unfog.inputs import InputError
from unfog.simulate import engines, jax_engine, plan, simulate
from unfog.simulate.job import Job
from unfog.world.synthetic import GaussianProblem


def job(trials: int = 100, rounds: int = 1000, engine: str = "auto") -> Job:
    planned, _ = plan(GaussianProblem(), ["alg1"], rounds=rounds, trials=trials, seed=0)
    return planned._replace(engine=engine)


def test_small_jobs_stay_with_numpy_and_large_ones_compile() -> None:
    small = engines.resolve(job(), 100, workers=1)
    assert small.engine == "numpy"
    assert "jax on cpu about" in small.reason
    assert engines.resolve(job(), 100_000, workers=1).engine == "jax"


def test_a_gpu_is_taken_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    trials = 3000
    assert engines.resolve(job(), trials, workers=8).engine == "numpy"
    monkeypatch.setattr(jax_engine, "platform", lambda: "gpu")
    choice = engines.resolve(job(), 100 * trials, workers=8)
    assert choice.engine == "jax"
    assert "jax on gpu about" in choice.reason


def test_the_estimate_follows_the_work() -> None:
    cost = engines.COSTS["numpy"]
    base = cost.seconds(job(), 1000)
    assert cost.seconds(job(), 2000) == pytest.approx(2 * base)
    assert cost.seconds(job(rounds=3000), 1000) == pytest.approx(3 * base)
    assert cost.seconds(job(), 1000, processes=2) == pytest.approx(base / 2)


def test_auto_says_what_it_took() -> None:
    curves = simulate(GaussianProblem(dim=2, actions=3), ["alg1"], rounds=5, trials=3, engine="auto")
    assert curves.engine == "numpy"


def test_without_jax_auto_takes_numpy_and_jax_names_the_extra() -> None:
    code = (
        "import sys; sys.modules['jax'] = None\n"
        "from unfog.simulate import simulate\nfrom unfog.world.synthetic import GaussianProblem\n"
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
        "from unfog.simulate import simulate\nfrom unfog.world.synthetic import GaussianProblem\n"
        "p = GaussianProblem(dim=2, actions=3)\n"
        "for engine in ('numpy', 'jax'):\n"
        "    simulate(p, ['alg1'], rounds=3, trials=2, engine=engine)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_chip_is_refused_without_a_gpu() -> None:
    with pytest.raises(InputError, match=r"^engine: chip needs a GPU; allowed: numpy, jax, auto"):
        engines.resolve(job(engine="chip"), 100, workers=1)
