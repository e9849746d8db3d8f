"""Unfinished folders: whose they are, and what a kill at any moment leaves."""

import json
import multiprocessing
import os
import shutil
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.lab.test_storage_blocks import planned, stopped
from unfog._io import seal
from unfog.cli import main
from unfog.lab import run_folder, storage
from unfog.lab.prepare import ExperimentPlan, prepare
from unfog.lab.run import keep, open_run
from unfog.lab.spec import parse
from unfog.simulation.engines import numpy as numpy_engine
from unfog.simulation.executors import WorkerDiedError, local
from unfog.validation import InputError

FILES = ("curves.nc", "run.json", "spec.toml")


@pytest.fixture
def plan(monkeypatch: pytest.MonkeyPatch) -> ExperimentPlan:
    monkeypatch.setattr(numpy_engine, "BATCH_TRIALS", (2, 2))
    return planned()


def content(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in FILES}


def found(plan: ExperimentPlan, target: Path) -> int:
    """How many pieces a run would find done."""
    with storage.claimed(plan, target, target.parent) as partial:
        return len(list(partial.blocks(plan.work.jobs)))


@pytest.mark.parametrize("hurt", [b"", b"{}", b'{"layout": 2}', "whole/timing.json", "whole/run.json"])
def test_an_unfinished_folder_whose_run_json_is_damaged_is_refused_by_name(
    hurt: bytes | str, plan: ExperimentPlan, tmp_path: Path
) -> None:
    keep(plan, tmp_path / "whole")
    folder = stopped(plan, tmp_path / "run", 2)
    before = found(plan, tmp_path / "run")
    whole = (folder / "run.json").read_bytes()
    (folder / "run.json").write_bytes(hurt if isinstance(hurt, bytes) else (tmp_path / hurt).read_bytes())
    with pytest.raises(InputError, match=r"^out: .*run\.json' is damaged.*remove the unfinished run"):
        keep(plan, tmp_path / "run")
    (folder / "run.json").write_bytes(whole)
    assert found(plan, tmp_path / "run") == before > 0


def test_only_a_run_that_was_never_interrupted_says_how_long_it_took(
    plan: ExperimentPlan, tmp_path: Path
) -> None:
    assert (run_folder.seconds(keep(plan, tmp_path / "whole")) or 0.0) > 0
    stopped(plan, tmp_path / "run", 2)
    assert run_folder.seconds(keep(plan, tmp_path / "run")) is None


def test_a_folder_that_another_takes_away_before_it_is_locked_is_made_again(
    plan: ExperimentPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, gone = storage.Partial.open, list[Path]()

    def robbed(partial: storage.Partial) -> None:
        opened(partial)
        if not gone:
            gone.append(partial.folder)
            partial.folder.rmdir()

    monkeypatch.setattr(storage.Partial, "open", robbed)
    assert keep(plan, tmp_path / "run") == tmp_path / "run"
    assert gone == [tmp_path / "run.partial"]


def test_a_folder_of_somebody_else_is_left_alone(plan: ExperimentPlan, tmp_path: Path) -> None:
    folder = tmp_path / "run.partial"
    folder.mkdir()
    (folder / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match="another unfinished run"):
        keep(plan, tmp_path / "run")
    assert (folder / "thesis.txt").exists()


def test_an_unfinished_run_of_another_layout_is_refused_by_name(plan: ExperimentPlan, tmp_path: Path) -> None:
    folder = tmp_path / "run.partial"
    folder.mkdir()
    old = {**dict.fromkeys(run_folder.ENTRIES, ""), "versions": {"unfog": "0.1.0"}}
    (folder / "run.json").write_text(json.dumps(old, indent=2, sort_keys=True) + "\n")
    (folder / "block-0-0-0-2").write_bytes(b"as it was then")
    with pytest.raises(InputError, match=r"was made by unfog 0\.1\.0, in layout 1; allowed: layout 3$"):
        keep(plan, tmp_path / "run")
    assert (folder / "block-0-0-0-2").exists()
    assert keep(plan, runs=tmp_path) == tmp_path / "small-001"


def test_halves_are_cleared_away(plan: ExperimentPlan, tmp_path: Path) -> None:
    keep(plan, tmp_path / "whole")
    folder = stopped(plan, tmp_path / "run", 1)
    (folder / "block-0-2-0-4.tmp").write_bytes(b"half a block")
    (folder / "run.json.tmp").mkdir()
    shutil.copytree(tmp_path / "whole", folder / "final")
    (folder / "final/curves.nc").write_bytes(b"half of the curves")
    with storage.claimed(plan, tmp_path / "run", tmp_path):
        left = {path.name.partition("-")[0] for path in folder.iterdir()}
        assert left == {"block", "lock", "run.json"}
    keep(plan, tmp_path / "run")
    assert content(tmp_path / "run") == content(tmp_path / "whole")


def killed_after_the_rename(plan: ExperimentPlan, target: Path | None, runs: Path, kept: str = "*") -> None:
    """The result is in place, and what it was made of is still there, or what a kill left of that."""

    def killed(folder: Path, **_: Any) -> None:
        for path in folder.iterdir():
            if not path.match(kept):
                path.unlink()
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("shutil.rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            keep(plan, target, runs=runs)


@pytest.mark.parametrize("kept", ["*", "run.json", "lock"])
def test_what_stays_beside_a_finished_run_is_cleared_away(
    kept: str, plan: ExperimentPlan, tmp_path: Path
) -> None:
    runs, told = tmp_path / "runs", tmp_path / "told"
    killed_after_the_rename(plan, told, runs, kept)
    killed_after_the_rename(plan, None, runs, kept)
    assert sorted(p.name for p in runs.iterdir()) == ["small-001", "small-001.partial"]
    assert content(told) == content(runs / "small-001")
    assert open_run(told).sizes["trial"] == 4
    with pytest.raises(InputError, match="exists already"):
        keep(plan, told)
    assert keep(plan, runs=runs) == runs / "small-002"
    assert sorted(p.name for p in runs.iterdir()) == ["small-001", "small-002"]
    assert not (tmp_path / "told.partial").exists()


def test_so_is_what_stays_of_a_run_that_found_its_number_of_trials(tmp_path: Path) -> None:
    run = {"rounds": 3, "trials": 200, "agents": ["alg1", "oracle"], "target_se": 0.5}
    plan = prepare(parse({"problem": {"kind": "gaussian", "dim": 1, "actions": 3}, "run": run}, "small"))
    killed_after_the_rename(plan, tmp_path / "run", tmp_path)
    assert b'"trials_found": 100' in (tmp_path / "run/run.json").read_bytes()
    assert run_folder.read(tmp_path / "run").identity == run_folder.manifest(plan)
    assert (tmp_path / "run.partial").exists()
    with pytest.raises(InputError, match="exists already"):
        keep(plan, tmp_path / "run")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_only_what_is_of_the_finished_run_is_cleared_away(plan: ExperimentPlan, tmp_path: Path) -> None:
    other = stopped(planned(seed=1), tmp_path / "run", 1)
    other.rename(tmp_path / "aside")
    keep(plan, tmp_path / "run")
    (tmp_path / "aside").rename(other)
    for path in (other, tmp_path / "run.partial/run.json"):
        with pytest.raises(InputError, match="exists already"):
            keep(plan, tmp_path / "run")
        assert other.exists()
        if path.is_dir():
            (other / "run.json").write_bytes(seal({"layout": 9}))


@pytest.mark.slow
def test_a_worker_that_is_killed_takes_nothing_finished_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numpy_engine, "BATCH_TRIALS", (2, 2))
    monkeypatch.setattr(local, "RETRIES", 0)  # the first death ends it
    run = {"rounds": 800, "trials": 24, "agents": ["alg1", "naive"]}
    spec = parse({"problem": {"kind": "gaussian", "dim": 2, "actions": 4}, "run": run}, "small")
    keep(prepare(spec), tmp_path / "whole")
    folder = tmp_path / "run.partial"

    def kill(done: int, total: int) -> None:
        if any(folder.glob("block-*")):
            for worker in multiprocessing.active_children()[:1]:
                with suppress(ProcessLookupError):  # it went by itself
                    os.kill(worker.pid or 0, signal.SIGKILL)

    with pytest.raises(WorkerDiedError, match="a worker process died"):
        keep(prepare(spec, workers=2), tmp_path / "run", progress=kill)
    assert 0 < found(prepare(spec), tmp_path / "run") < 12
    keep(prepare(spec), tmp_path / "run")
    assert content(tmp_path / "run") == content(tmp_path / "whole")


def test_the_command_says_in_one_line_that_a_worker_died(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def died(*_: Any, **__: Any) -> None:
        raise WorkerDiedError("a worker process died, perhaps for lack of memory")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("unfog.lab.run.play", died)
    with pytest.raises(SystemExit) as leaving:
        main(["run", "fig1-gaussian", "--trials", "2", "--rounds", "2", "--workers", "1"])
    assert leaving.value.code == 1
    assert capsys.readouterr().err.endswith("lack of memory; the same command goes on where it stopped\n")
