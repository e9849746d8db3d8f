"""Run folders: the same bytes however a run was made, nothing lost, nothing half-written."""

import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unfog
from tests.each import each
from unfog.lab import run_folder, storage
from unfog.lab import spec as spec_module
from unfog.lab.prepare import prepare
from unfog.lab.run import keep, open_run
from unfog.lab.spec import Spec, load, parse, to_toml
from unfog.simulation.engines import numpy as numpy_engine
from unfog.simulation.plan import CURVES, MOST_CELLS, stored_rounds
from unfog.theory.regret import names
from unfog.validation import InputError


def small(**changes: object) -> Spec:
    run = {"rounds": 40, "trials": 12, "agents": ["alg1", "naive"], **changes}
    return parse({"problem": {"kind": "gaussian", "dim": 2, "actions": 5}, "run": run}, "small")


def test_dataset_has_the_promised_shape() -> None:
    data = unfog.run(small())
    assert dict(data.sizes) == {"agent": 2, "trial": 12, "round": 40}
    assert tuple(data) == names(True)
    assert list(data["agent"].values) == ["alg1", "naive"]
    assert list(data["round"].values[[0, -1]]) == [1, 40]
    assert np.all(np.diff(data["regret"].values, axis=-1) >= -1e-12)


def test_a_folder_gives_back_what_was_run(tmp_path: Path) -> None:
    made = unfog.run(small(), out=tmp_path / "run")
    fresh = unfog.run(small())
    assert made.drop_attrs().equals(fresh.drop_attrs())
    assert made.attrs["spec"] == fresh.attrs["spec"]
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == [
        "curves.nc",
        "run.json",
        "spec.toml",
        "timing.json",
    ]
    assert [p.name for p in tmp_path.iterdir()] == ["run"]
    assert load(tmp_path / "run/spec.toml").run == small().run


def test_spec_survives_the_round_trip_through_toml(tmp_path: Path) -> None:
    spec = load("gaussian-correlated")
    (tmp_path / "again.toml").write_text(to_toml(spec), "utf-8")
    again = load(tmp_path / "again.toml")
    assert again.model_dump(exclude={"name"}) == spec.model_dump(exclude={"name"})
    assert "action_law" in prepare(parse({"problem": {"kind": "gaussian"}})).spec.problem


def contents(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.name != "timing.json"}


def interrupt_after(batches: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a run save so many batches, then fail as a full disk would."""
    save, count = storage.Partial.save, iter(range(10**6))

    def failing(self: storage.Partial, *given: object) -> None:
        if next(count) >= batches:
            raise OSError(28, "No space left on device")
        save(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(storage.Partial, "save", failing)


@pytest.mark.parametrize("finished", [0, 1, 3])
def test_an_interrupted_run_ends_with_the_same_bytes(
    finished: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(prepare(small()), tmp_path / "whole")
    monkeypatch.setattr(numpy_engine, "BATCH_TRIALS", (3, 3))
    with monkeypatch.context() as trouble:
        interrupt_after(finished, trouble)
        with pytest.raises(OSError, match="No space"):
            keep(prepare(small()), tmp_path / "broken")
    assert not (tmp_path / "broken").exists()
    assert len(list((tmp_path / "broken.partial").glob("block-*"))) == finished
    played: list[int] = []
    engine = numpy_engine.Numpy.run

    def watched(self: Any, job: Any, trials: Any, tick: Any) -> Any:
        played.extend(trials)
        return engine(self, job, trials, tick)

    monkeypatch.setattr(numpy_engine.Numpy, "run", watched)
    done: list[tuple[int, int]] = []
    keep(prepare(small()), tmp_path / "broken", progress=lambda now, total: done.append((now, total)))
    assert played == list(range(3 * finished, 12))
    assert done[-1] == (2 * 40 * 12,) * 2
    assert contents(tmp_path / "broken") == contents(tmp_path / "whole")
    assert not (tmp_path / "broken.partial").exists()


@pytest.mark.slow
def test_a_killed_process_is_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        "from pathlib import Path\nfrom unfog.lab.run import keep\nfrom unfog.lab.spec import load\n"
        "from unfog.lab.prepare import prepare\n"
        "from unfog.simulation.engines import numpy as engine\nengine.BATCH_TRIALS = (1, 2)\n"
        "keep(prepare(load('fig1-gaussian', {'rounds': 300, 'trials': 14})), Path('killed'))"
    )
    process = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path)
    deadline = time.monotonic() + 60
    # The last of three may be half-written.
    while len(list(tmp_path.glob("killed.partial/block-*"))) < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "killed").exists()
    assert len(list(tmp_path.glob("killed.partial/block-*"))) >= 2
    monkeypatch.setattr(numpy_engine, "BATCH_TRIALS", (1, 2))
    plan, told = prepare(load("fig1-gaussian", {"rounds": 300, "trials": 14})), list[int]()
    with storage.claimed(plan, tmp_path / "killed", tmp_path) as partial:
        assert len(list(partial.blocks(plan.work.jobs))) >= 2
    keep(plan, tmp_path / "killed", progress=lambda done, total: told.append(done))
    assert told[0] >= 2 * plan.work.work_of(plan.work.pieces[0])  # found, not played
    keep(plan, tmp_path / "whole")
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")


def test_workers_do_not_change_a_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(prepare(small()), tmp_path / "one")
    monkeypatch.setattr(numpy_engine, "BATCH_TRIALS", (1, 5))
    done = []
    keep(prepare(small(), workers=2), tmp_path / "two", progress=lambda now, total: done.append((now, total)))
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    assert done[-1] == (2 * 40 * 12,) * 2


def test_a_damaged_batch_is_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(prepare(small()), tmp_path / "whole")
    monkeypatch.setattr(numpy_engine, "BATCH_TRIALS", (3, 3))
    with monkeypatch.context() as trouble:
        interrupt_after(3, trouble)
        with pytest.raises(OSError, match="No space"):
            keep(prepare(small()), tmp_path / "hurt")
    victim = tmp_path / "hurt.partial/block-0-3-0-6"
    content = bytearray(victim.read_bytes())
    content[len(content) // 2] ^= 1
    victim.write_bytes(content)
    keep(prepare(small()), tmp_path / "hurt")
    assert contents(tmp_path / "hurt") == contents(tmp_path / "whole")


def test_a_stray_file_among_the_batches_is_left_alone(tmp_path: Path) -> None:
    with storage.claimed(prepare(small()), tmp_path / "run", tmp_path) as partial:
        (partial.folder / "stray").write_bytes(b"?")
        assert list(partial.blocks(prepare(small()).work.jobs)) == []
        assert (partial.folder / "stray").exists()


def test_an_edited_spec_is_refused(tmp_path: Path) -> None:
    keep(prepare(small()), tmp_path / "run")
    spec = tmp_path / "run/spec.toml"
    spec.write_text(spec.read_text().replace("rounds = 40", "rounds = 41"))
    with pytest.raises(InputError, match=r"spec\.toml.* is damaged"):
        open_run(tmp_path / "run")


def test_an_unfinished_run_is_called_so(tmp_path: Path) -> None:
    with (
        storage.claimed(prepare(small()), tmp_path / "run", tmp_path) as partial,
        pytest.raises(InputError, match="unfinished"),
    ):
        open_run(partial.folder)


def test_a_stored_spec_repeats_the_run_to_the_byte(tmp_path: Path) -> None:
    keep(prepare(small()), tmp_path / "first")
    keep(prepare(load(tmp_path / "first/spec.toml")), tmp_path / "second")
    assert contents(tmp_path / "first") == contents(tmp_path / "second")


@each("out", [".", "", "/", "afile/x", "x" * 300, "afile"])
def test_folders_that_cannot_be_made_are_refused(
    out: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("afile").write_text("here")
    with pytest.raises(InputError, match=r"^out: "):
        keep(prepare(small()), Path(out))
    assert [p.name for p in tmp_path.iterdir()] == ["afile"]


@each("name", ["../evil", "/abs", "", "a b", ".hidden", "a\x00b", "x" * 81])
def test_names_that_are_paths_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=r"^name: "):
        parse({"name": name, "problem": {"kind": "gaussian"}})


def test_a_title_of_any_characters_survives(tmp_path: Path) -> None:
    title = 'Größe "π" \x7f \\ $\\frac{$ 日本'
    spec = parse({"title": title, "problem": {"kind": "gaussian"}})
    (tmp_path / "again.toml").write_text(to_toml(spec), "utf-8")
    assert load(tmp_path / "again.toml").title == title


def test_a_sweep_shares_the_storage() -> None:
    sweep = {"actions": [2, 3, 4, 5]}
    spec = parse(
        {"problem": {"kind": "gaussian", "dim": 1}, "run": {"trials": 3000, "rounds": 1000}, "sweep": sweep}
    )
    jobs = prepare(spec).work.jobs
    assert len(jobs) == 4
    assert len(jobs[0].grid) * 3000 * 5 * 4 * CURVES <= MOST_CELLS


def test_losses_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    def odd(action: np.ndarray, context: np.ndarray) -> np.ndarray:
        return np.where(action > 1.5, np.nan, action * context)

    with pytest.raises(InputError, match=r"problem\.reward.*finite"):
        unfog.run(
            unfog.GaussianProblem(dim=1, actions=30, features=unfog.features.quadrature(odd, 1)),
            rounds=20,
            trials=5,
        )


def test_damaged_results_are_refused(tmp_path: Path) -> None:
    keep(prepare(small()), tmp_path / "run")
    curves = tmp_path / "run/curves.nc"
    whole = curves.read_bytes()
    rng = np.random.default_rng(0)
    for position in rng.integers(0, len(whole), 200):
        hurt = bytearray(whole)
        hurt[position] ^= 1 << int(rng.integers(8))
        curves.write_bytes(hurt)
        with pytest.raises(InputError, match="damaged"):
            open_run(tmp_path / "run")
    curves.write_bytes(whole[:-1])
    with pytest.raises(InputError, match="damaged"):
        open_run(tmp_path / "run")


def claim(folder: Path, spec: Spec) -> Path:
    with storage.claimed(prepare(spec), None, folder) as partial:
        return partial.target


def test_other_code_or_spec_never_mixes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = claim(tmp_path, small())
    assert claim(tmp_path, small()) == target == tmp_path / "small-001"
    assert claim(tmp_path, small(seed=1)) == tmp_path / "small-002"
    monkeypatch.setattr(run_folder, "code_hash", lambda _: "other code")
    assert claim(tmp_path, small()) == tmp_path / "small-003"
    with pytest.raises(InputError, match="another unfinished run"):
        keep(prepare(small()), target)


HELPER = """
from dataclasses import dataclass
from unfog.agents.learn import Conjugate

@dataclass(frozen=True, kw_only=True)
class Mine(Conjugate):
    name = "mine"
"""
OWN = {
    "test_parts_of_mine.py": HELPER,
    "test_mine.py": "from dataclasses import replace\nfrom test_parts_of_mine import Mine\nimport unfog\n"
    "agent = replace(unfog.AGENTS['alg1'], learner=Mine())\n",
    "test_package/__init__.py": "",
    "test_package/numbers.py": "",
    "test_package/maps.py": "from unfog.features.quadratic import quadratic as mine\n",
}


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of modules of one's own: an agent with a part from beside it, and features in a package."""
    folder = tmp_path / "own"
    for name, code in OWN.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(code)
    monkeypatch.syspath_prepend(folder)
    yield folder
    for name in ("test_parts_of_mine", "test_mine", "test_package.maps", "test_package"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("changed", [*OWN, None])
@pytest.mark.parametrize("swept", [False, True])
def test_other_code_of_ones_own_never_mixes(
    changed: str | None, swept: bool, own: Path, tmp_path: Path
) -> None:
    features = "test_package.maps:mine"
    told = {"sweep": {"features": ["quadratic", features]}} if swept else {}
    world = {"kind": "gaussian", "dim": 2, "actions": 5} | ({} if swept else {"features": features})
    run = {"rounds": 5, "trials": 4, "agents": ["test_mine:agent"]}
    spec = parse({"problem": world, "run": run, **told}, "small")
    runs = tmp_path / "runs"
    assert claim(runs, spec) == claim(runs, spec) == runs / "small-001"
    if changed is not None:
        (own / changed).write_text(OWN[changed] + "\n# other code\n")
    assert claim(runs, spec) == runs / ("small-001" if changed is None else "small-002")


def test_the_hash_is_of_the_numeric_code(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = run_folder.code_hash()
    for name in run_folder.NUMERIC:
        monkeypatch.setattr(
            run_folder, "NUMERIC", tuple(other for other in run_folder.NUMERIC if other != name)
        )
        assert run_folder.code_hash() != whole
        monkeypatch.undo()


def test_the_import_contract_is_about_the_same_packages() -> None:
    settings = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))
    [core] = [c for c in settings["tool"]["importlinter"]["contracts"] if "NumPy alone" in c["name"]]
    told = {
        f"unfog.{name.removesuffix('.py').replace('/', '.')}"
        for name in run_folder.NUMERIC
        if "lab/" not in name
    }
    assert set(core["source_modules"]) == told | {"unfog.theory.mismatch"}


@pytest.mark.slow
def test_runs_at_the_same_time_take_different_folders(tmp_path: Path) -> None:
    with (
        storage.claimed(prepare(small()), None, tmp_path) as first,
        storage.claimed(prepare(small()), None, tmp_path) as second,
    ):
        assert (first.target.name, second.target.name) == ("small-001", "small-002")
    code = "from unfog.cli import main; main(['run', 'fig1-gaussian', '--trials', '20', '--rounds', '50'])"
    started = [subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path) for _ in range(2)]
    assert [process.wait() for process in started] == [0, 0]
    assert sorted(p.name for p in (tmp_path / "runs").iterdir()) == [f"fig1-gaussian-00{n}" for n in (1, 2)]


def test_a_second_writer_is_kept_out(tmp_path: Path) -> None:
    first = storage.Partial(tmp_path / "run", prepare(small()))
    first.open()
    with first.locked(), pytest.raises(InputError, match="being written"):
        keep(prepare(small()), tmp_path / "run")


def test_a_run_says_how_it_was_made(tmp_path: Path) -> None:
    keep(prepare(small(seed=3)), tmp_path / "run")
    facts = json.loads((tmp_path / "run/run.json").read_bytes())
    assert facts["seed"] == 3
    assert facts["versions"]["numpy"] == np.__version__
    assert facts["versions"]["unfog"] == unfog.__version__


def test_a_run_says_the_versions_that_made_its_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "scikit-learn" not in run_folder.manifest(prepare(small()))["versions"]
    monkeypatch.setattr(spec_module.KINDS["gaussian"], "packages", ("scikit-learn",))
    assert "scikit-learn" in run_folder.manifest(prepare(small()))["versions"]
    assert spec_module.KINDS["movielens"].packages == ("scikit-learn",)


def test_long_horizons_store_thinned_curves() -> None:
    stored = stored_rounds(10_000, 10_000, agents=5)
    assert stored[-1] == 10_000
    assert 50 <= len(stored) <= 10_000
    assert 5 * 10_000 * len(stored) * CURVES * 8 <= 2**31 // 4
    thin, full = unfog.run(small(points=7)), unfog.run(small())
    assert thin["round"].values.tolist() == [8, 16, 20, 24, 30, 32, 40]
    np.testing.assert_array_equal(thin["regret"].values, full["regret"].sel(round=thin["round"]).values)


def test_problems_made_in_python(tmp_path: Path) -> None:
    plain = unfog.GaussianProblem(dim=2, actions=5)
    kept = unfog.run(plain, rounds=40, trials=12, agents=["alg1", "naive"], out=tmp_path / "run")
    assert kept.drop_attrs().equals(unfog.run(small()).drop_attrs())
    odd = unfog.GaussianProblem(dim=2, actions=5, features=unfog.features.quadratic)
    same = unfog.run(odd, rounds=40, trials=12, agents=["alg1", "naive"])
    assert same.drop_attrs().equals(kept.drop_attrs())
    with pytest.raises(InputError, match="out"):
        unfog.run(odd, out=tmp_path / "other")


def test_agents_of_ones_own(tmp_path: Path) -> None:
    mine = replace(unfog.AGENTS["alg1"], name="mine")
    data = unfog.run(small(), agents=[mine, "naive"])
    same = unfog.run(small())
    assert list(data["agent"].values) == ["mine", "naive"]
    assert np.array_equal(data["regret"].values, same["regret"].values)
    assert "mine" in unfog.table(data)
    with pytest.raises(InputError, match=r"^out: .*name it module:name"):
        unfog.run(small(), agents=[mine], out=tmp_path / "run")
    with pytest.raises(InputError, match="a list of names or of rows"):
        unfog.run(small(), agents="alg1")
