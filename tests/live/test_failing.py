"""Disks that fail or are full: a clear error, the old state or the new one, and afterwards it works again."""

import contextlib
import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.live.faults import Disk
from tests.live.power import shim
from tests.live.rows import WRITER, contents, made, put
from unfog.live.backend import Row
from unfog.live.errors import StoreError
from unfog.live.log import EventLog
from unfog.live.sqlite import SqliteBackend


def commit(log: EventLog) -> None:
    log.commit(log.add(made(log, 2)), log.epoch)


def keep(log: EventLog) -> None:
    log.keep("walks", 3, "f", b"blob")


def rewrite(log: EventLog) -> None:
    first = next(log.read(upto=1))
    log.rewrite([first._replace(body="{}", key=None), *made(log)])


def expected(do: Callable[[EventLog], None], rows: list[Row], log: EventLog) -> list[Row]:
    """The rows as they are if it was done."""
    if do is commit:
        return rows + made(log, 2)
    return rows if do is keep else [rows[0]._replace(body="{}", key=None), *rows[1:], *made(log)]


def tried(path: Path, do: Callable[[EventLog], None], first: int, times: int, late: bool) -> bool:
    """One call on a disk that fails `times` times from its first-th statement on; whether it got so far."""
    disk = Disk()
    path.unlink(missing_ok=True)
    with EventLog(SqliteBackend(path, "normal", connect=disk.connect)) as log:
        old = put(log, 3)
        new, said = expected(do, old, log), ""
        disk.fail(range(first, first + times), late)
        try:
            do(log)
        except StoreError as error:
            said = str(error)
        reached = disk.calls >= first
        disk.fail(())
        found = list(log.read())
        assert found == new if not said else found in (old, new)
        assert "nothing was changed" not in said or found == old
        assert "\n" not in said
        assert "disk I/O error" in said or not said
        last = put(log)
    assert contents(path) == found + last
    return reached


@pytest.mark.slow
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("do", [commit, keep, rewrite])
def test_every_statement_fails_in_turn(tmp_path: Path, do: Callable[[EventLog], None], late: bool) -> None:
    path, first = tmp_path / "walks.unfog", 1
    while tried(path, do, first, 1, late):
        for times in (2, 5, 14, 100):
            tried(path, do, first, times, late)
        first += 1
    assert first > 3


def test_every_statement_of_an_opening_fails_in_turn(tmp_path: Path) -> None:
    path, first = tmp_path / "walks.unfog", 1
    with EventLog(SqliteBackend(path)) as log:
        rows = put(log, 3)
    while True:
        disk = Disk()
        disk.fail([first])
        try:
            EventLog(SqliteBackend(path, connect=disk.connect)).close()
        except StoreError as error:
            assert "disk I/O error" in str(error)  # noqa: PT017
        else:
            break
        assert contents(path) == rows
        first += 1
    assert first > 10


def test_an_interruption_is_a_failure_too(tmp_path: Path) -> None:
    """Ctrl-C in the middle of a commit, or just after it."""
    for late in (False, True):
        disk = Disk()
        disk.error = KeyboardInterrupt
        with EventLog(SqliteBackend(tmp_path / f"{late}.unfog", connect=disk.connect)) as log:
            rows = put(log, 2)
            disk.fail([3], late)
            with pytest.raises(KeyboardInterrupt):
                put(log)
            assert log.epoch == 1
            assert len(list(log.read())) == log.last == 2 + late
            assert list(log.read(upto=2)) == rows
            put(log)


def test_a_row_of_an_epoch_that_has_ended_is_not_taken_for_another(tmp_path: Path) -> None:
    """Numbers of rows that were never kept are given out again; who waits for the old one is not told yes."""
    disk = Disk()
    with EventLog(SqliteBackend(tmp_path / "walks.unfog", connect=disk.connect)) as log:
        put(log, 2)
        ticket, epoch = log.add(made(log)), log.epoch
        log.add(made(log))
        disk.fail([2])
        with pytest.raises(StoreError, match=r"row 4 was not kept: the disk failed .*; nothing was changed$"):
            log.commit(4, epoch)
        assert (log.last, log.committed, log.epoch) == (2, 2, epoch + 1)
        with pytest.raises(StoreError, match=r"rows before these were not kept; nothing was changed"):
            log.add(made(log), epoch)
        put(log, 3)
        with pytest.raises(StoreError, match=r"row 3 was not kept"):
            log.commit(ticket, epoch)
        log.commit(2, epoch)  # it was there before the failure


def test_what_is_not_known_is_said_and_found_out_later(tmp_path: Path) -> None:
    disk = Disk()
    with EventLog(SqliteBackend(tmp_path / "walks.unfog", connect=disk.connect)) as log:
        put(log, 2)
        ticket, epoch = log.add(made(log)), log.epoch
        disk.fail(
            range(3, 1000), late=True
        )  # the commit is done, but says that it failed, and so does all else
        with pytest.raises(
            StoreError, match=r"not known whether row 3 was kept: .*; retry with the same idempotency key"
        ):
            log.commit(ticket, epoch)
        with pytest.raises(StoreError, match=r"cannot be used: the disk failed .*; nothing was changed$"):
            log.add(made(log))
        disk.fail(())
        log.commit(ticket, epoch)
        row, _ = log.find("walks", "k3")
        assert row is not None
        assert log.last == 3
        put(log)


def test_threads_on_a_disk_that_fails_now_and_then(tmp_path: Path) -> None:
    path, chance = tmp_path / "walks.unfog", random.Random(2)
    disk, guard, kept, refused = Disk(), threading.Lock(), {}, set()

    def work(log: EventLog, name: int) -> None:
        for i in range(40):
            key = f"{name}-{i}"
            try:
                with guard:
                    epoch = log.epoch
                    ticket = log.add([made(log)[0]._replace(key=key)], epoch)
                log.commit(ticket, epoch)
                kept[key] = ticket
            except StoreError as error:
                if "nothing was changed" in str(error):
                    refused.add(key)
                with contextlib.suppress(StoreError):  # then the next one tries
                    list(log.read(after=log.committed))

    with EventLog(SqliteBackend(path, "normal", connect=disk.connect)) as log:
        disk.fail({chance.randrange(2000) for _ in range(150)})
        threads = [threading.Thread(target=work, args=(log, name)) for name in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        disk.fail(())
        found = {row.key: row.seq for row in log.read()}
    assert {key: found.get(key) for key in kept} == kept
    assert not refused & set(found)
    assert len(refused) > 10
    assert sorted(found.values()) == list(range(1, len(found) + 1))


def test_a_full_disk(tmp_path: Path) -> None:
    with EventLog(SqliteBackend(tmp_path / "walks.unfog")) as log:
        rows = put(log, 3)
        assert isinstance(log.backend, SqliteBackend)
        log.backend.alone.execute("PRAGMA max_page_count = 20")
        with pytest.raises(
            StoreError, match=r"row 503 was not kept: the disk is full \(.*\); nothing was changed$"
        ):
            put(log, 500)
        assert list(log.read()) == rows
        rows += put(log, 500)  # the new connection has no such limit
    assert contents(tmp_path / "walks.unfog") == rows


@pytest.mark.parametrize("limit", [60_000, 100_000, 300_000])
def test_a_file_that_may_not_grow(tmp_path: Path, limit: int) -> None:
    path = tmp_path / "walks.unfog"
    command = [sys.executable, str(WRITER), str(path), "starve", str(limit)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    error, numbers, last = done.stdout.splitlines()
    assert error.startswith("walks.unfog: ")
    assert "not kept: the disk failed (SQLite says: disk I/O error)" in error or "not known" in error
    kept, there = map(int, numbers.split())
    assert kept <= there <= kept + 1
    assert [row.key for row in contents(path)] == [f"s{i}" for i in range(1, int(last) + 1)]
    assert int(last) == there + 1


@pytest.mark.slow
def test_every_write_sync_and_rename_fails_in_turn(tmp_path: Path) -> None:
    """At the system calls: the writer checks after each that what was acknowledged is there, and what was not
    is not, or was said not to be known.
    """
    command = [sys.executable, str(WRITER), str(tmp_path / "walks.unfog"), "faults", "400"]
    environment = {"LD_PRELOAD": str(shim(tmp_path))}
    done = subprocess.run(
        command, env=os.environ | environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.stderr == ""
    told = [line.split() for line in done.stdout.splitlines()]
    assert len(told) > 20
    assert {words[1] for words in told} >= {"refused", "done"}


def test_a_file_that_is_moved_away_takes_no_rows(tmp_path: Path) -> None:
    path, away = tmp_path / "walks.unfog", tmp_path / "away"
    with EventLog(SqliteBackend(path)) as log:
        rows = put(log, 2)
        path.rename(away)
        with pytest.raises(StoreError, match=r"was moved or taken away while it was open"):
            put(log)
        assert not path.exists()
        with pytest.raises(StoreError, match=r"was moved or taken away while it was open"):
            log.find("walks", "k1")
        away.rename(path)
        assert list(log.read()) == rows
        rows += put(log)
    assert contents(path) == rows


def test_a_write_ahead_log_that_is_removed_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "walks.unfog"
    with EventLog(SqliteBackend(path)) as log:
        rows = put(log, 5)
        path.with_name("walks.unfog-wal").unlink()
        with pytest.raises(StoreError, match=r"walks.unfog-wal was moved or taken away while it was open"):
            put(log)
        assert list(log.read()) == rows
        rows += put(log)
    assert contents(path) == rows
