"""Drafts of copies: each of its own, gone at the end, swept when their process is dead."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from unfog import _io

TOKEN = "0123456789abcdef"


def test_two_drafts_of_one_target_are_two_files_and_one_gets_the_name(tmp_path: Path) -> None:
    target = tmp_path / "copy.unfog"
    with _io.draft(target) as first, _io.draft(target) as second:
        assert first != second
        assert [one.stat().st_mode & 0o777 for one in (first, second)] == [0o600, 0o600]
        first.write_text("first")
        second.write_text("second")
        _io.appear(second, target)
        with pytest.raises(FileExistsError):
            _io.appear(first, target)
    assert os.listdir(tmp_path) == ["copy.unfog"]
    assert target.read_text() == "second"


def test_a_draft_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def fail() -> None:
        with _io.draft(tmp_path / "copy.unfog") as path:
            path.with_name(f"{path.name}-journal").touch()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert os.listdir(tmp_path) == []


def test_where_there_are_no_links_a_name_is_given_once_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    target = tmp_path / "copy.unfog"
    with _io.draft(target) as first, _io.draft(target) as second:
        first.write_text("first")
        _io.appear(first, target)
        with pytest.raises(FileExistsError):
            _io.appear(second, target)
    assert os.listdir(tmp_path) == ["copy.unfog"]
    assert target.read_text() == "first"


def test_what_dead_processes_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    gone = [f"a-{dead.pid}-{TOKEN}-backup", f"a-{dead.pid}-{TOKEN}-backup-journal"]
    gone += [f"a-{os.getpid()}-{TOKEN}-backup"]  # of one that had our number before us
    kept = [f"a-{os.getppid()}-{TOKEN}-backup", "a.unfog", "my-1-backup", f"b-{dead.pid}-{TOKEN}-backup"]
    for name in (*gone, *kept):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (0, 0))
    os.utime(tmp_path / kept[-1])  # it is being written: by one that cannot be seen from here
    with _io.draft(tmp_path / "a.unfog") as own:
        os.utime(own, (0, 0))
        _io.sweep(tmp_path)
        assert set(os.listdir(tmp_path)) == {*kept, own.name}
