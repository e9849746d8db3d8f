"""What may be opened, what is refused with a sentence, and the way from version 1 to this one."""

import os
import sqlite3
from pathlib import Path

import pytest

from tests.live.rows import contents, put, version_1
from unfog.live.backend import Row
from unfog.live.errors import StoreError
from unfog.live.log import Log
from unfog.live.sqlite import File
from unfog.live.sqlite_file import plain
from unfog.validation import InputError

OLD = [
    Row(1, "walks", "problem", None, None, 1.5, '{"arms": ["send", "wait"]}'),
    Row(2, "shop", "problem", None, None, 1.5, "{}"),
    Row(3, "walks", "decide", "a", "ann", 2.0, '{"name": "Zoë"}'),
    Row(4, "shop", "decide", "b", "ann", 2.25, "{}"),
    Row(5, "walks", "reward", "a", None, 3.0, '{"reward": 1.0}'),
]


def database(path: Path, *statements: str) -> bytes:
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()
    return path.read_bytes()


def refused(path: Path, said: str) -> None:
    with pytest.raises(StoreError, match=said) as caught:
        Log(File(path))
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("Dear diary, " * 1000)
    before = path.read_bytes()
    refused(path, "cannot be opened: it is no store of unfog .SQLite says: file is not a database.$")
    assert (path.read_bytes(), os.listdir(tmp_path)) == (before, ["notes.txt"])


def test_a_database_of_another_program(tmp_path: Path) -> None:
    path = tmp_path / "mail.db"
    before = database(path, "CREATE TABLE mail (x)", "PRAGMA user_version = 2")
    refused(
        path, r"is a database of another program \(application id 0x0\); allowed: a store of unfog, or a file"
    )
    assert (path.read_bytes(), os.listdir(tmp_path)) == (before, ["mail.db"])


def test_a_newer_version(tmp_path: Path) -> None:
    path = tmp_path / "walks.unfog"
    with Log(File(path)) as log:
        put(log)
    before = database(path, "PRAGMA journal_mode = DELETE", "PRAGMA user_version = 3")
    refused(path, "has version 3, written by a newer unfog; allowed: versions 1 to 2; install a newer unfog")
    assert path.read_bytes() == before


def test_places_where_no_store_can_be(tmp_path: Path) -> None:
    refused(tmp_path, "cannot be opened: it is a folder; allowed: a file$")
    refused(tmp_path / "no" / "walks.unfog", "cannot be opened: there is no folder .*no$")
    (tmp_path / "file").write_text("")
    refused(tmp_path / "file" / "walks.unfog", "cannot be opened: there is no folder")
    os.mkfifo(tmp_path / "pipe")
    refused(tmp_path / "pipe", "cannot be opened: it is no ordinary file; allowed: a file$")
    refused(tmp_path / ("x" * 300), "cannot be opened: File name too long$")
    for name in ("", "a\0b", 7, None):
        with pytest.raises(InputError, match=r"^path: .*; allowed: the name of a file$"):
            Log(File(name))


def test_an_empty_file_and_one_whose_creation_was_cut_short_become_stores(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("")
    database(tmp_path / "begun", "PRAGMA journal_mode = WAL")
    for name in ("empty", "begun"):
        with Log(File(tmp_path / name)) as log:
            rows = put(log, 2)
        assert contents(tmp_path / name) == rows


@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_version_1_is_upgraded(tmp_path: Path, journal: str) -> None:
    path = tmp_path / "walks.unfog"
    version_1(path, OLD, journal)
    with Log(File(path)) as log:
        assert list(log.read()) == OLD
        assert (log.names(), log.last, log.time) == (["walks", "shop"], 5, 3.0)
        assert log.of("walks", "a") == [OLD[2], OLD[4]]
        assert log.find("shop", "ann") == (OLD[3], 5)
        assert list(log.read("walks")) == [OLD[0], OLD[2], OLD[4]]
        assert log.snapshot("walks") is None
        put(log, 2, "shop")
    assert (len(contents(path)), os.listdir(tmp_path)) == (7, ["walks.unfog"])


def test_version_1_with_rows_in_its_write_ahead_log(tmp_path: Path) -> None:
    path = tmp_path / "walks.unfog"
    version_1(path, OLD[:4])
    connection = sqlite3.connect(path)
    connection.execute("INSERT INTO event VALUES (?, ?, ?, ?, ?, ?, ?)", OLD[4])
    connection.commit()
    for name in ("walks.unfog", "walks.unfog-wal"):
        (tmp_path / f"copy-{name}").write_bytes((tmp_path / name).read_bytes())
    connection.close()
    path = tmp_path / "copy-walks.unfog"
    assert (tmp_path / "copy-walks.unfog-wal").stat().st_size > 0
    assert contents(path) == OLD


@pytest.mark.parametrize("failing", ["replace", "fsync"])
def test_an_upgrade_that_fails_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    path = tmp_path / "walks.unfog"
    version_1(path, OLD, "delete")
    (tmp_path / "walks.unfog-upgrade").write_text("left by one that was killed")
    before = path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(os, failing, fail)
        refused(path, "could not be brought from version 1 to version 2: .*; the file is as it was$")
    assert (path.read_bytes(), os.listdir(tmp_path)) == (before, ["walks.unfog"])
    assert contents(path) == OLD


def test_a_damaged_version_1_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "walks.unfog"
    rows = [Row(i, "walks", "decide", None, None, 1.0, "x" * 3000) for i in range(1, 30)]
    version_1(path, rows, "delete")
    content = path.read_bytes()
    path.write_bytes(content[: 4096 * 15] + b"\xff" * 4096 + content[4096 * 16 :])
    before = path.read_bytes()
    refused(path, "could not be brought from version 1 to version 2: the file is damaged")
    assert path.read_bytes() == before


def test_a_file_that_takes_the_place_of_another_while_it_is_opened(tmp_path: Path) -> None:
    """As when another process upgrades it: the lock on the old file is worth nothing."""
    path, other = tmp_path / "walks.unfog", tmp_path / "other.unfog"
    version_1(path, OLD)
    with Log(File(other)) as log:
        rows = put(log, 9)

    def connect(place: Path) -> sqlite3.Connection:
        connection = plain(place)
        if other.exists():
            other.replace(path)
        return connection

    with Log(File(path, connect=connect)) as log:
        assert list(log.read()) == rows
        rows += put(log)
    assert contents(path) == rows


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_new_store_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "walks.unfog"
    with Log(File(path)) as log:
        put(log)
        log.backup(tmp_path / "copy.unfog")
        assert {mode(one) for one in tmp_path.glob("*.unfog*") if "holder" not in one.name} == {0o600}


@pytest.mark.parametrize("before", [0o644, 0o600, 0o660])
def test_a_file_that_is_there_keeps_its_mode(tmp_path: Path, before: int) -> None:
    path = tmp_path / "walks.unfog"
    version_1(path, OLD)
    path.chmod(before)
    for _ in range(2):  # the first time it is upgraded
        with Log(File(path)):
            assert mode(path) == before
