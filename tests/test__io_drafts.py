"""Drafts: each a file of its own, gone at the end."""

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from unfog import _io


def test_two_drafts_of_one_target_are_two_files_and_one_gets_the_name(tmp_path: Path) -> None:
    target = tmp_path / "copy.unfog"
    with _io.temporary_file(target) as first, _io.temporary_file(target) as second:
        assert first != second
        assert [one.stat().st_mode & 0o777 for one in (first, second)] == [0o600, 0o600]
        first.write_text("first")
        second.write_text("second")
        _io.publish(second, target)
        with pytest.raises(FileExistsError):
            _io.publish(first, target)
    assert os.listdir(tmp_path) == ["copy.unfog"]
    assert target.read_text() == "second"


def test_a_draft_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def fail() -> None:
        with _io.temporary_file(tmp_path / "copy.unfog"):
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
    with _io.temporary_file(target) as first, _io.temporary_file(target) as second:
        first.write_text("first")
        _io.publish(first, target)
        with pytest.raises(FileExistsError):
            _io.publish(second, target)
    assert os.listdir(tmp_path) == ["copy.unfog"]
    assert target.read_text() == "first"


def test_a_file_has_the_mode_that_is_asked_for(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        _io.write_atomically(tmp_path / "for all", b"x")
        _io.write_atomically(tmp_path / "mine", iter([b"x", b"y"]), _io.PRIVATE)
    finally:
        os.umask(before)
    assert {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {
        "for all": 0o644,
        "mine": 0o600,
    }
    assert (tmp_path / "mine").read_bytes() == b"xy"


def test_many_that_write_one_file_at_once_leave_one_of_theirs(tmp_path: Path) -> None:
    path = tmp_path / "file"

    def write(part: int) -> None:
        for _ in range(20):
            _io.write_atomically(path, bytes([part]) * 100_000)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    assert len(set(path.read_bytes())) == 1
    assert os.listdir(tmp_path) == ["file"]
