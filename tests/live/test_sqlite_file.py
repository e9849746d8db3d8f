"""What may be opened, and what is refused with a sentence."""

import os
import sqlite3
from pathlib import Path

import pytest

from tests.live.rows import contents, put
from unfog.live.errors import StoreError
from unfog.live.log import EventLog
from unfog.live.sqlite import SqliteBackend
from unfog.live.sqlite_file import plain
from unfog.validation import InputError


def database(path: Path, *statements: str) -> bytes:
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()
    return path.read_bytes()


def refused(path: Path, said: str) -> None:
    with pytest.raises(StoreError, match=said) as caught:
        EventLog(SqliteBackend(path))
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


@pytest.mark.parametrize(("version", "writer"), [(2, "unfog 0.2 or older"), (4, "a newer unfog")])
def test_another_version(tmp_path: Path, version: int, writer: str) -> None:
    path = tmp_path / "walks.unfog"
    with EventLog(SqliteBackend(path)) as log:
        put(log)
    before = database(path, "PRAGMA journal_mode = DELETE", f"PRAGMA user_version = {version}")
    message = f"has version {version}, written by {writer}; allowed: version 3; open it with the unfog that"
    refused(path, message)
    assert (path.read_bytes(), os.listdir(tmp_path)) == (before, ["walks.unfog"])


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
            EventLog(SqliteBackend(name))


def test_an_empty_file_and_one_whose_creation_was_cut_short_become_stores(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("")
    database(tmp_path / "begun", "PRAGMA journal_mode = WAL")
    for name in ("empty", "begun"):
        with EventLog(SqliteBackend(tmp_path / name)) as log:
            rows = put(log, 2)
        assert contents(tmp_path / name) == rows


def test_a_file_that_takes_the_place_of_another_while_it_is_opened(tmp_path: Path) -> None:
    """As when somebody puts a copy in its place: the lock on the old file is worth nothing."""
    path, other = tmp_path / "walks.unfog", tmp_path / "other.unfog"
    with EventLog(SqliteBackend(path)) as log:
        put(log, 5)
    with EventLog(SqliteBackend(other)) as log:
        rows = put(log, 9)

    def connect(place: Path) -> sqlite3.Connection:
        connection = plain(place)
        if other.exists():
            other.replace(path)
        return connection

    with EventLog(SqliteBackend(path, connect=connect)) as log:
        assert list(log.read()) == rows
        rows += put(log)
    assert contents(path) == rows


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_new_store_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "walks.unfog"
    with EventLog(SqliteBackend(path)) as log:
        put(log)
        log.backup(tmp_path / "copy.unfog")
        assert {mode(one) for one in tmp_path.glob("*.unfog*") if "holder" not in one.name} == {0o600}


@pytest.mark.parametrize("before", [0o644, 0o600, 0o660])
def test_a_file_that_is_there_keeps_its_mode(tmp_path: Path, before: int) -> None:
    path = tmp_path / "walks.unfog"
    with EventLog(SqliteBackend(path)) as log:
        put(log)
    path.chmod(before)
    with EventLog(SqliteBackend(path)) as log:
        put(log)
        assert mode(path) == before
