"""Whose an unfinished folder is: run.json has the word, then the blocks, and no guess is made."""

from pathlib import Path

import pytest

from tests.lab.test_storage_blocks import planned, stopped
from unfog._io import digest
from unfog.lab.prepare import Plan
from unfog.lab.run_folder import manifest
from unfog.lab.storage import owners, stated
from unfog.simulation.engines import numpy as numpy_engine


@pytest.fixture(name="plan")
def _plan(monkeypatch: pytest.MonkeyPatch) -> Plan:
    monkeypatch.setattr(numpy_engine, "BATCH_TRIALS", (2, 2))
    return planned()


def test_run_json_says_it_and_without_it_every_block(plan: Plan, tmp_path: Path) -> None:
    folder, run = stopped(plan, tmp_path / "run", 2), digest(manifest(plan))
    assert (stated(folder), owners(folder)) == (run, {run})
    (folder / "run.json").write_bytes(b"?")
    assert (stated(folder), owners(folder)) == (None, {run})
    (folder / "run.json").unlink()
    [first, *rest] = sorted(folder.glob("block-*"))
    assert owners(folder) == {run}
    for path in rest:
        path.unlink()
    first.write_bytes(first.read_bytes()[:-1])
    assert owners(folder) == set()  # a damaged block is nobody's


def test_blocks_of_two_runs_have_two_owners(plan: Plan, tmp_path: Path) -> None:
    folder, other = stopped(plan, tmp_path / "run", 1), planned(seed=1)
    (folder / "run.json").unlink()
    for path in stopped(other, tmp_path / "other", 1).glob("block-*"):
        (folder / f"{path.name}-again").write_bytes(path.read_bytes())
    assert owners(folder) == {digest(manifest(one)) for one in (plan, other)}


def test_what_we_never_make_is_somebody_elses(tmp_path: Path) -> None:
    for name in ("lock", "final", "block-0-0-0-2.tmp"):
        (tmp_path / name).touch()
    assert owners(tmp_path) == set()
    (tmp_path / "thesis.txt").touch()
    assert owners(tmp_path) == {"thesis.txt"}
