"""Acknowledged means on the disk: the two mutants (no fsync; acknowledge before the commit) must fail here.

What is shown: SQLite is told to sync at each commit, `commit` waits for that, and the bytes that were synced
by the time of an acknowledgement, with any part of those that were not, open as a store that has the row.
Writes are seen where they leave the process, by a library between it and the system. What is not shown: that
the system and the disk do what fsync promises, and writes that are torn within themselves.
"""

import random
import sqlite3
import threading
from pathlib import Path

import pytest

from tests.live.faults import Disk
from tests.live.power import Record, images, restored, traced
from tests.live.rows import made
from unfog.live.errors import StoreError
from unfog.live.log import EventLog
from unfog.live.sqlite import SqliteBackend


def lost(folder: Path, done: list[Record]) -> tuple[int, int]:
    """Of all moments at which the power may go: how many there were, and at how many a row was lost."""
    moments = missing = 0
    for acknowledged, files in images(done, random.Random(1)):
        try:
            with EventLog(SqliteBackend(restored(files, folder / "cut"), "normal")) as log:
                keys = [row.key for row in log.read()]
        except StoreError:
            keys = []
        assert keys == [f"own-{i}" for i in range(len(keys))]
        moments += 1
        missing += len(keys) < len(acknowledged)
    return moments, missing


@pytest.mark.slow
def test_no_acknowledged_row_is_lost_when_the_power_goes(tmp_path: Path) -> None:
    moments, missing = lost(tmp_path, traced(tmp_path, "full", 12))
    assert moments > 200
    assert missing == 0


@pytest.mark.slow
def test_the_test_above_sees_what_is_not_synced(tmp_path: Path) -> None:
    """In normal mode, which does not promise it, rows are lost."""
    assert lost(tmp_path, traced(tmp_path, "normal", 12))[1] > 20


@pytest.mark.slow
def test_what_a_killed_process_left_is_on_the_disk_before_it_is_answered(tmp_path: Path) -> None:
    """Rows that were written but not synced can be read by the next process: it syncs them before it does."""
    written = [record for record in traced(tmp_path, "normal", 6) if record.kind != "A"]
    done = written + traced(tmp_path, "found", 0)
    assert [record.data for record in done if record.kind == "A"][5:] == [b"own-5\n"]
    assert lost(tmp_path, done)[1] == 0


def test_commit_returns_after_a_commit_that_syncs(tmp_path: Path) -> None:
    disk, returned, modes = Disk(), threading.Event(), []
    reached, go_on = threading.Event(), threading.Event()

    def at_commit(connection: sqlite3.Connection) -> None:
        modes.append(sqlite3.Connection.execute(connection, "PRAGMA synchronous").fetchone()[0])
        reached.set()
        assert go_on.wait(10)

    with EventLog(SqliteBackend(tmp_path / "walks.unfog", connect=disk.connect)) as log:
        ticket = log.add(made(log))

        def work() -> None:
            log.commit(ticket, log.epoch)
            returned.set()

        disk.at_commit = at_commit
        thread = threading.Thread(target=work)
        thread.start()
        assert reached.wait(10)
        assert (log.committed, returned.wait(0.05)) == (0, False)
        go_on.set()
        assert returned.wait(10)
        assert (log.committed, modes) == (1, [2])
        thread.join()
