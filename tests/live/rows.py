"""Rows to put into a log, stores that were killed or copied, and what they hold."""

import shutil
import subprocess
import sys
from pathlib import Path

from unfog.live.backend import Row
from unfog.live.log import EventLog
from unfog.live.sqlite import SqliteBackend

WRITER = Path(__file__).with_name("writer.py")
TEXT = '{"note": "' + "the context of a walk " * 20 + '"}'


def made(log: EventLog, count: int = 1, problem: str = "walks", text: str = TEXT) -> list[Row]:
    """Rows that follow the last one of a log, each with a decision and a key of its own."""
    numbers = range(log.last + 1, log.last + 1 + count)
    return [
        Row(n, problem, "decide", f"d{n}", f"k{n}", max(n / 8, log.time_of(problem)), text) for n in numbers
    ]


def put(log: EventLog, count: int = 1, problem: str = "walks") -> list[Row]:
    """One commit of new rows."""
    rows = made(log, count, problem)
    log.commit(log.add(rows), log.epoch)
    return rows


def contents(path: Path) -> list[Row]:
    """What a log has that is opened anew."""
    with EventLog(SqliteBackend(path, "normal")) as log:
        return list(log.read())


def settings(log: EventLog) -> dict[str, object]:
    """What SQLite says of the connection that commits."""
    assert isinstance(log.backend, SqliteBackend)
    names = ("synchronous", "journal_mode", "locking_mode", "secure_delete", "application_id", "user_version")
    return {name: log.backend.alone.execute(f"PRAGMA {name}").fetchone()[0] for name in names}


def killed_store(folder: Path, commits: int) -> Path:
    """A store whose holder was killed after so many commits: its last rows are in the write-ahead log."""
    folder.mkdir()
    path = folder / "walks.unfog"
    with EventLog(SqliteBackend(path)) as log:
        put(log, 3)
    command = [sys.executable, str(WRITER), str(path), "commits", str(commits)]
    subprocess.run(command, check=False, capture_output=True, timeout=60)
    assert path.with_name("walks.unfog-wal").stat().st_size > 0
    return path


def copied(path: Path, to: Path) -> Path:
    """A store and what lies beside it, in a folder of its own."""
    if to.exists():
        shutil.rmtree(to)
    shutil.copytree(path.parent, to)
    return to / path.name
