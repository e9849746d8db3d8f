"""A disk that fails at any moment: the file is named, nothing is half-done, and the same command goes on."""

import builtins
import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.lab.test_storage_blocks import planned
from unfog._io import write_atomically
from unfog.cli import main
from unfog.lab import run_folder
from unfog.lab.baselines import folder as suites
from unfog.lab.baselines import report, suite
from unfog.lab.prepare import ExperimentPlan
from unfog.lab.run import keep, open_run
from unfog.simulation.engines import numpy as numpy_engine
from unfog.validation import InputError

CALLS = ("fsync", "replace", "rename", "mkdir")
FILES = ("curves.nc", "run.json", "spec.toml")
NAMELESS = ("fsync", "write")  # what is done to an open file: its errors do not name it


class Disk:
    """Counts what is asked of it under a folder, and fails once, at the n-th."""

    def __init__(self, folder: Path, fails: int = -1, code: int = errno.ENOSPC) -> None:
        self.folder, self.fails, self.code, self.asked = str(folder), fails, code, list[str]()

    def ask(self, what: str, path: Any = None) -> None:
        self.asked.append(what)
        if len(self.asked) - 1 == self.fails:
            named = () if what in NAMELESS else (str(path),)
            raise OSError(self.code, os.strerror(self.code), *named)

    def call(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def asking(*given: Any, **more: Any) -> Any:
            self.ask(name, given[0])
            return real(*given, **more)

        return asking

    def open(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def asking(path: Any, mode: str = "r", *given: Any, **more: Any) -> Any:
            if "w" not in mode or not str(path).startswith(self.folder):
                return real(path, mode, *given, **more)
            self.ask("open", path)
            return Opened(real(path, mode, *given, **more), self)

        return asking


class Opened:
    """A file of a disk; where that is full, half of what is written arrives."""

    def __init__(self, file: Any, disk: Disk) -> None:
        self.file, self.disk = file, disk

    def __enter__(self) -> "Opened":
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)

    def write(self, content: bytes) -> None:
        self.file.write(content[: len(content) // 2])
        self.file.flush()
        self.disk.ask("write")
        self.file.write(content[len(content) // 2 :])


@contextmanager
def on(disk: Disk) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in CALLS:
            patch.setattr(os, name, disk.call(name, getattr(os, name)))
        patch.setattr(builtins, "open", disk.open(builtins.open))
        yield


@pytest.fixture
def plan(monkeypatch: pytest.MonkeyPatch) -> ExperimentPlan:
    monkeypatch.setattr(numpy_engine, "BATCH_TRIALS", (2, 2))
    monkeypatch.setattr(run_folder, "code_hash", lambda _: "of code that stays as it is")
    return planned()


def content(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in FILES}


@pytest.mark.parametrize("fails", range(5))
def test_a_file_that_cannot_be_replaced_stays_as_it_was(fails: int, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"as it was")
    with on(Disk(tmp_path, fails)), pytest.raises(OSError, match="No space"):
        write_atomically(path, b"as it should be")
    replaced = fails == 4  # the folder could not be written out: the new file may be lost, not torn
    assert path.read_bytes() == (b"as it should be" if replaced else b"as it was")
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


@pytest.mark.slow
def test_a_run_whose_disk_fails(plan: ExperimentPlan, tmp_path: Path) -> None:
    """A file takes five moments: of three in a row one, so that all five are met."""
    run_on_a_failing_disk(plan, tmp_path, every=3)


@pytest.mark.soak
def test_a_run_whose_disk_fails_at_any_moment(plan: ExperimentPlan, tmp_path: Path) -> None:
    run_on_a_failing_disk(plan, tmp_path, every=1)


def run_on_a_failing_disk(plan: ExperimentPlan, tmp_path: Path, every: int) -> None:
    counted = Disk(tmp_path)
    with on(counted):
        keep(plan, tmp_path / "whole")
    whole, target = content(tmp_path / "whole"), tmp_path / "run"
    assert set(counted.asked) == {*CALLS, "open", "write"}
    assert len(counted.asked) > 40
    for n in range(0, len(counted.asked), every):
        with on(Disk(tmp_path, n, (errno.ENOSPC, errno.EIO)[n % 2])), pytest.raises(OSError) as failed:  # noqa: PT011
            keep(plan, target)
        assert failed.value.errno in (errno.ENOSPC, errno.EIO)
        assert str(failed.value.filename).startswith(str(tmp_path)), (n, counted.asked[n])
        assert not list(tmp_path.rglob("*.tmp"))
        if not target.exists():
            keep(plan, target)
        assert content(target) == whole
        with pytest.raises(InputError, match="exists already"):
            keep(plan, target)
        assert sorted(p.name for p in tmp_path.iterdir()) == ["run", "whole"]
        shutil.rmtree(target)


def suite_on_a_failing_disk(tmp_path: Path, every: int) -> int:
    """The same for a suite: at each moment, or at some."""
    told = suite.SuiteRequest(("missing",), ("linucb",), 3, 2)

    def play(where: Path) -> Any:
        return suite.compare(told, suite.claim(told, where, 1))

    counted = Disk(tmp_path)
    with on(counted):
        play(tmp_path / "whole")
    whole, target = suites.read(tmp_path / "whole"), tmp_path / "run"
    moments = range(0, len(counted.asked), every)
    for n in moments:
        with on(Disk(tmp_path, n, (errno.ENOSPC, errno.EIO)[n % 2])), pytest.raises(OSError) as failed:  # noqa: PT011
            play(target)
        assert str(failed.value.filename).startswith(str(tmp_path)), (n, counted.asked[n])
        try:
            assert suites.read(target) == whole
        except InputError:
            play(target)
        assert suites.read(target) == whole
        assert open_run(target / "missing").sizes["trial"] == 2
        shutil.rmtree(target)
    return len(moments)


@pytest.mark.soak
def test_a_suite_whose_disk_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "seconds", lambda *_, **__: 1e-6)
    assert suite_on_a_failing_disk(tmp_path, every=7) > 5


def test_the_command_says_which_file_and_leaves_with_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["run", "fig1-gaussian", "--rounds", "5", "--trials", "3", "--workers", "1", "--out", "run"]
    for fails, named in ((0, "run.partial:"), (5, "run.partial/run.json"), (8, "run.partial/block-0-0-0-3:")):
        with on(Disk(Path("run"), fails)), pytest.raises(SystemExit) as leaving:
            main(words)
        assert leaving.value.code == 1
        assert f"unfog: {named}" in capsys.readouterr().err
        assert not Path("run").exists()
    with pytest.raises(SystemExit) as leaving:
        main(words)
    assert leaving.value.code == 0
