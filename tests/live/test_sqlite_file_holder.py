"""One store, one holder: others are told who it is."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.live.rows import WRITER, contents, put
from unfog.live.errors import StoreLockedError
from unfog.live.log import EventLog
from unfog.live.sqlite import SqliteBackend

OPEN = """
import sys
from unfog.live.sqlite import SqliteBackend
from unfog.live.log import EventLog
EventLog(SqliteBackend(sys.argv[1]))
"""


def holding(path: Path, port: int = 0) -> subprocess.Popen[str]:
    command = [sys.executable, str(WRITER), str(path), "hold", str(port)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_second_process_is_told_who_holds_it(tmp_path: Path) -> None:
    path = tmp_path / "walks.unfog"
    with holding(path, 8123) as process:
        since = r"since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC"
        who = rf"process {process.pid} {since}"
        where = "it can be reached at http://127.0.0.1:8123: ask it there with --url http://127.0.0.1:8123"
        with pytest.raises(StoreLockedError, match=rf"^walks.unfog is held by {who}; {where}$"):
            EventLog(SqliteBackend(path))
        with pytest.raises(StoreLockedError, match=str(process.pid)):
            EventLog(SqliteBackend(path))
        (tmp_path / "walks.unfog-holder").write_text('{"pid": 1')  # it is not written whole yet
        with pytest.raises(StoreLockedError, match=r"^walks.unfog is held by another process; close"):
            EventLog(SqliteBackend(path))
    put_and_close(path)


def test_a_killed_holder_is_no_holder(tmp_path: Path) -> None:
    path = tmp_path / "walks.unfog"
    with holding(path) as process:
        os.kill(process.pid, signal.SIGKILL)
    assert (tmp_path / "walks.unfog-holder").exists()
    put_and_close(path)
    assert os.listdir(tmp_path) == ["walks.unfog"]


def put_and_close(path: Path) -> None:
    with EventLog(SqliteBackend(path)) as log:
        rows = put(log, 2)
    assert contents(path) == rows


def test_the_same_process_is_refused_and_keeps_its_lock(tmp_path: Path) -> None:
    """Opening the file once more in the same process must not drop the lock that keeps others out."""
    path = tmp_path / "walks.unfog"
    (tmp_path / "link").symlink_to(path)
    with EventLog(SqliteBackend(path)) as log:
        put(log)
        for name in ("walks.unfog", "link", "../" + tmp_path.name + "/walks.unfog"):
            with pytest.raises(
                StoreLockedError, match=r"^walks.unfog is held by this process already; close"
            ):
                EventLog(SqliteBackend(tmp_path / name))
        done = subprocess.run([sys.executable, "-c", OPEN, str(path)], capture_output=True, text=True)
        assert f"StoreLockedError: walks.unfog is held by process {os.getpid()} since" in done.stderr
        put(log)
    assert len(contents(path)) == 2


def test_a_log_that_nobody_closed_holds_nothing_once_it_is_gone(tmp_path: Path) -> None:
    log = EventLog(SqliteBackend(tmp_path / "walks.unfog"))
    assert isinstance(log.backend, SqliteBackend)
    log.backend.alone.close()
    del log
    put_and_close(tmp_path / "walks.unfog")


MINE = """
import sys
from unfog.live.sqlite import SqliteBackend
from unfog.live.log import EventLog
log = EventLog(SqliteBackend(sys.argv[1]))
print("mine", flush=True)
sys.stdin.read()
"""


def test_of_many_that_open_at_once_one_holds_it(tmp_path: Path) -> None:
    command = [sys.executable, "-c", MINE, str(tmp_path / "walks.unfog")]
    pipe = subprocess.PIPE
    many = [subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) for _ in range(4)]
    said = [process.stdout.readline() for process in many if process.stdout is not None]
    errors = [process.communicate("")[1] for process in many]
    assert sorted(said) == [""] * 3 + ["mine\n"]
    assert sum("StoreLockedError: walks.unfog is held by " in error for error in errors) == 3
