"""A log in a file: many problems in one, what stands on the disk, forks, copies."""

import contextlib
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.rows import contents, made, put, settings
from unfog.live import log as module
from unfog.live import sqlite
from unfog.live.backend import Row
from unfog.live.errors import KeyForgottenError, StoreError
from unfog.live.log import EventLog
from unfog.live.sqlite import SqliteBackend
from unfog.validation import InputError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "walks.unfog"


def test_reading_by_problem_in_chunks(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK", 7)
    with EventLog(SqliteBackend(path)) as log:
        rows = [row for i in range(30) for row in put(log, 1 + i % 3, f"p{i % 4}")]
        assert list(log.read()) == rows
        for name in log.names():
            own = [row for row in rows if row.problem == name]
            assert list(log.read(name)) == own
            for after in (0, 1, 13, 29, 57, 60):
                assert list(log.read(name, after)) == [row for row in own if row.seq > after]
                assert list(log.read(name, after, 40)) == [row for row in own if after < row.seq <= 40]
        assert list(log.read(upto=9)) == rows[:9]
        assert list(log.read("nobody")) == []


def test_the_problems_of_a_file_in_the_order_of_their_first_rows(path: Path) -> None:
    for session in range(4):
        with EventLog(SqliteBackend(path)) as log:
            put(log, 3, f"p{session % 2}")
    with EventLog(SqliteBackend(path)) as log:
        assert log.names() == ["p0", "p1"]
        log.add(made(log, 1, "another"))
        assert log.names() == ["p0", "p1", "another"]
        log.keep("p0", 3, "f", b"")
        log.keep("p1", 3, "g", b"")
        log.discard("p1")
        assert (log.snapshot("p0"), log.snapshot("p1")) == ((3, "f", b""), None)
        rows = [row._replace(key="same") for row in made(log, 2)]
        log.add([rows[0], rows[1]._replace(problem="other")])  # keys are a problem's own
    assert os.listdir(path.parent) == [path.name]


def test_settings_of_the_connection(path: Path) -> None:
    wanted = {
        "journal_mode": "wal",
        "locking_mode": "exclusive",
        "secure_delete": 1,
        "application_id": 0x756E666F,
        "user_version": 3,
    }
    for sync, code in (("full", 2), ("normal", 1)):
        with EventLog(SqliteBackend(path, sync)) as log:
            assert settings(log) == {"synchronous": code, **wanted}
    with pytest.raises(InputError, match=r"^sync: 'off'; allowed: full, normal$"):
        EventLog(SqliteBackend(path, "off"))


def test_one_transaction_serves_all_who_wait(path: Path) -> None:
    """While one thread is in its commit the rows of others queue up, and the next commit takes them all."""
    with EventLog(SqliteBackend(path)) as log:
        tickets = [log.add(made(log)) for _ in range(50)]
        commits: list[str] = []
        assert isinstance(log.backend, SqliteBackend)
        log.backend.alone.set_trace_callback(commits.append)
        for ticket in tickets:
            log.commit(ticket, log.epoch)
        assert commits.count("COMMIT") == 1


def test_erased_text_is_nowhere_in_the_file(path: Path) -> None:
    secret = "steps of Ann"
    log = EventLog(SqliteBackend(path))
    put(log, 40)
    rows = made(log, 5, text=f'{{"secret": "{secret}"}}')
    log.commit(log.add([row._replace(key=f"{secret} {row.seq}") for row in rows]), log.epoch)
    put(log, 40)
    mark = log.committed
    clean = [row._replace(key=None, body="{}") for row in rows]
    marker = [Row(log.last + 1, "walks", "erase", None, None, log.time_of("walks"), "{}")]
    log.rewrite(clean + marker)
    beside = [path, path.with_name("walks.unfog-wal")]
    assert all(secret.encode() not in file.read_bytes() for file in beside)
    assert log.find("walks", f"{secret} 41") == (None, mark + 1)
    with pytest.raises(KeyForgottenError):
        log.recent("walks", f"{secret} 41", 40)
    put(log)
    log.close()
    found = contents(path)
    assert found[40:45] == clean
    assert found[85] == marker[0]
    assert [row.seq for row in found] == list(range(1, 88))


def test_a_rewriting_that_was_cut_short_is_finished_at_the_next_opening(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(file: SqliteBackend) -> None:
        connection = file.alone
        connection.execute("PRAGMA secure_delete = OFF")  # so that what is dropped stays in the file
        connection.execute("CREATE TABLE old AS SELECT 'secret' || body FROM event")
        connection.execute("DROP TABLE old")
        raise sqlite3.OperationalError("no space to rebuild it")

    with EventLog(SqliteBackend(path)) as log:
        rows = put(log, 50)
        with monkeypatch.context() as patch:
            patch.setattr(SqliteBackend, "rebuild", failing)
            with pytest.raises(
                StoreError, match=r"rewritten, but their old text may still be in the file: .*no space"
            ):
                log.rewrite([rows[0]._replace(body="{}")])
        assert next(log.read()).body == "{}"
    assert b"secret" in path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(SqliteBackend, "rebuild", failing)
        with pytest.warns(UserWarning, match=r"erased text may still be in the file: .*no space"):
            EventLog(SqliteBackend(path)).close()
    assert [row.seq for row in contents(path)] == list(range(1, 51))
    assert b"secret" not in path.read_bytes()


FORK = """
import os, sys
from unfog.live.sqlite import SqliteBackend
from unfog.live.backend import Row
from unfog.live.log import EventLog
log = EventLog(SqliteBackend(sys.argv[1]))
def put():
    log.commit(log.add([Row(log.last + 1, "p", "x", None, None, 1.0, "{}")]), log.epoch)
put()
child = os.fork()
if child == 0:
    try:
        put()
    except Exception as error:
        print(error)
    log.close()
    sys.exit(0)  # with all that an interpreter does at its end
os.waitpid(child, 0)
put()
os._exit(0)  # nothing is closed
"""


def test_a_forked_child_leaves_the_log_to_its_parent(path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", FORK, str(path)], capture_output=True, text=True, check=True)
    assert "which alone may use it; nothing was changed" in done.stdout
    assert done.stderr == ""
    assert len(contents(path)) == 2


def test_a_copy_of_a_store_that_is_written_meanwhile(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others commit between its steps, and what they commit before the end is in the copy as well."""
    monkeypatch.setattr(sqlite, "PAGES", 3)
    monkeypatch.setattr(sqlite, "REST", 0.002)
    copy, during = path.with_name("copy.unfog"), []
    with EventLog(SqliteBackend(path)) as log:
        put(log, 200)
        log.add(made(log))

        def write() -> None:
            while not copy.exists():
                during.append(put(log)[0].seq)

        thread = threading.Thread(target=write)
        thread.start()
        log.backup(copy)
        thread.join()
        rows = list(log.read())
        taken = contents(copy)
        assert during[5] <= len(taken)
        assert taken == rows[: len(taken)]
        with pytest.raises(InputError, match=r"^path: .*; allowed: a file that does not exist yet$"):
            log.backup(copy)
    assert sorted(os.listdir(path.parent)) == [copy.name, path.name]
    with EventLog(SqliteBackend(copy)) as log:
        put(log)


def test_a_copy_that_cannot_be_made_leaves_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "PAGES", 1)
    copy = path.with_name("copy.unfog")
    with EventLog(SqliteBackend(path)) as log:
        rows = put(log, 50)

        @contextlib.contextmanager
        def failed() -> Iterator[None]:
            log.backend.close_connection()
            yield

        with pytest.raises(StoreError, match=r"^there is no copy at .*: the store failed meanwhile"):
            log.backend.backup(copy, failed)
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            with pytest.raises(StoreError, match=r"^there is no copy at .*: the disk is full$"):
                log.backup(copy)
        with pytest.raises(InputError, match=r"^path: .*; allowed: a file in a folder that is there$"):
            log.backup(path / "no" / "folder")
        assert [name for name in os.listdir(path.parent) if "copy" in name] == []
        assert list(log.read()) == rows


def full(descriptor: int) -> None:
    raise OSError(28, "No space left on device")
