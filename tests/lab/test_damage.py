"""Damage to any file of a run, a suite or a cache is refused by name, or made good to the same bytes."""

import hashlib
import logging
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.damage import Kept
from tests.lab.test_storage_blocks import stopped
from unfog.lab import run_folder, storage
from unfog.lab.baselines import folder as suites
from unfog.lab.baselines import report, suite
from unfog.lab.datasets import files, movielens
from unfog.lab.prepare import ExperimentPlan, prepare
from unfog.lab.run import keep, open_run
from unfog.lab.spec import parse
from unfog.simulation.engines import numpy as numpy_engine
from unfog.validation import InputError

FILES = ("curves.nc", "run.json", "spec.toml")
RATINGS = np.arange(24.0).reshape(4, 6) % 5


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Many small runs of the same code: no waiting for the disk, and hashes of the code taken once."""
    made, code, find = dict[int, tuple[Any, ExperimentPlan]](), run_folder.code_hash(), run_folder.manifest
    monkeypatch.setattr(run_folder, "code_hash", lambda *_: code)
    monkeypatch.setattr(suites, "code_hash", lambda *_: code)
    monkeypatch.setattr(storage, "manifest", lambda plan: made.setdefault(id(plan), (find(plan), plan))[0])
    monkeypatch.setattr("os.fsync", lambda _: None)
    monkeypatch.setattr(numpy_engine, "BATCH_TRIALS", (1, 1))
    monkeypatch.setattr(report, "seconds", lambda *_, **__: 1e-6)
    logging.getLogger("unfog.lab").setLevel(logging.ERROR)
    yield
    logging.getLogger("unfog.lab").setLevel(logging.NOTSET)


def planned(seed: int = 0) -> ExperimentPlan:
    run = {"rounds": 3, "trials": 4, "agents": ["naive"], "seed": seed}
    return prepare(parse({"problem": {"kind": "gaussian", "dim": 1, "actions": 3}, "run": run}, "small"))


def finished_folders(folder: Path, times: int, seed: int = 0) -> None:
    """No damage to a finished folder is read."""
    rng = np.random.default_rng(seed)
    keep(planned(), folder / "run")
    keep(planned(1), folder / "other")
    kept, other = Kept(folder / "run"), Kept(folder / "other")
    for _ in range(times):
        victim = kept.hurt(rng, [other])
        with pytest.raises(InputError) as complaint:
            run_folder.read(folder / "run")
        whole = victim == "run.json" and (folder / "run/run.json").read_bytes() == other.files[Path(victim)]
        assert ("curves.nc" if whole else victim) in str(complaint.value), (victim, str(complaint.value))
        kept.put_back()
    assert open_run(folder / "run").sizes["trial"] == 4


def unfinished_folders(folder: Path, times: int, seed: int = 0) -> int:
    """After any damage the run goes on to the same bytes, or its run.json is refused by name."""
    rng, plan, another = np.random.default_rng(seed), planned(), 0
    keep(plan, folder / "whole")
    whole = {name: (folder / "whole" / name).read_bytes() for name in FILES}
    other = Kept(stopped(planned(1), folder / "other", 3))
    partial = stopped(plan, folder / "run", 3)
    (partial / "block-0-3-0-4.tmp").write_bytes(b"half a block")
    shutil.copytree(folder / "whole", partial / "final")
    kept = Kept(partial)
    for _ in range(times):
        victim = kept.hurt(rng, [other])
        if victim == "run.json":
            foreign = (partial / victim).read_bytes() == other.files[Path(victim)]
            with pytest.raises(InputError, match="another unfinished run" if foreign else "is damaged"):
                keep(plan, folder / "run")
            another += foreign
        else:
            keep(plan, folder / "run")
            assert {name: (folder / "run" / name).read_bytes() for name in FILES} == whole, victim
            assert not partial.exists()
            shutil.rmtree(folder / "run")
        kept.put_back()
    return another


def suite_folders(out: Path, times: int, seed: int = 0) -> None:
    """A damaged suite is refused by name, and made good by the same command or refused by name by it, too."""
    rng = np.random.default_rng(seed)
    told = suite.SuiteRequest(("missing", "drift"), ("linucb",), 3, 2)
    another = told._replace(seed=1)
    for one, name in ((told, "suite"), (another, "another")):
        suite.compare(one, suite.claim(one, out / name, 1))
    whole = suites.read(out / "suite")
    kept, other = Kept(out / "suite"), Kept(out / "another")
    unfinished = {n: c for n, c in kept.files.items() if n.parts[0] not in ("table.json", "table.txt")}
    for turn in range(times):
        done = turn % 2 == 0
        victim = (kept if done else _part(kept, unfinished)).hurt(rng, [other])
        if "/" in victim:
            with pytest.raises(InputError):
                run_folder.read((out / "suite" / victim).parent)
        if done:
            with pytest.raises(InputError, match="damaged"):
                suites.read(out / "suite")
        if victim == "suite.json":
            with pytest.raises(InputError, match=r"^(run|out): "):
                suite.compare(told, suite.claim(told, out / "suite", 1))
        else:
            assert suite.compare(told, suite.claim(told, out / "suite", 1)) == whole, victim
        kept.put_back()


def _part(kept: Kept, files: dict[Path, bytes]) -> Kept:
    """The folder with these files alone."""
    kept.files, before = files, kept.files
    kept.put_back()
    found = Kept(kept.folder)
    kept.files = before
    return found


def caches(place: Path, times: int, seed: int = 0) -> None:
    """Factors that were changed are found anew; a data file that was changed is refused."""
    rng = np.random.default_rng(seed)
    right = movielens.cached(RATINGS, 2, 2, place / "factors")
    kept = Kept(place / "factors")
    for _ in range(times // 2):
        kept.hurt(rng)
        found = movielens.cached(RATINGS, 2, 2, place / "factors")
        assert all(np.array_equal(a, b) for a, b in zip(found, right, strict=True))
        kept.put_back()
    content = rng.bytes(200) + b"\n"
    small = files.DATASETS["movielens"]._replace(sha256=hashlib.sha256(content).hexdigest(), file="a/b")
    files.put(place / "data/a/b", content)
    kept = Kept(place / "data")
    for _ in range(times // 2):
        kept.hurt(rng)
        files._is_right.cache_clear()  # files here change faster than the clock of the disk
        with pytest.raises(InputError, match=r"^data: a/b "):
            files.check(small, place / "data/a/b")
        kept.put_back()


def test_a_damaged_finished_run_is_refused_by_name(tmp_path: Path) -> None:
    finished_folders(tmp_path, 250)


def test_a_damaged_unfinished_run_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    unfinished_folders(tmp_path, 40)


@pytest.mark.soak
def test_a_damaged_suite_is_refused_or_made_good(tmp_path: Path) -> None:
    suite_folders(tmp_path, 12)


@pytest.mark.soak
def test_a_damaged_cache_is_not_believed(tmp_path: Path) -> None:
    caches(tmp_path, 40)
