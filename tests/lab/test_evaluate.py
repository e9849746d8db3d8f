"""The file of a live store, as `unfog.evaluate` opens it."""

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.live.ground import opened, problem
from unfog.lab.evaluate import read_log
from unfog.live import StoreLockedError
from unfog.validation import InputError


def test_an_empty_file_is_refused_and_stays_empty(tmp_path: Path) -> None:
    path = tmp_path / "e.unfog"
    path.touch()
    with pytest.raises(InputError, match=r"^log: e.unfog is empty; allowed: a live store, as unfog.live"):
        read_log(path)
    assert [one.name for one in tmp_path.iterdir()] == ["e.unfog"]
    assert path.stat().st_size == 0


def test_a_store_in_use_can_be_exported(tmp_path: Path) -> None:
    """Held by this process, and by another one."""
    path = tmp_path / "test.unfog"
    with opened(tmp_path) as store:
        walks = problem(store)
        walks.reward(walks.decide([0.5, 1.0]).id, 1.0)
        with pytest.raises(StoreLockedError, match=r"held by this process already; .* what its holder has"):
            read_log(path)
    connect = f"import sqlite3; c = sqlite3.connect({str(path)!r}, isolation_level=None)"
    lock = "c.execute('PRAGMA locking_mode = EXCLUSIVE'); c.execute('BEGIN EXCLUSIVE')"
    with subprocess.Popen(
        [sys.executable, "-c", f"{connect}; {lock}; print('held', flush=True); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(StoreLockedError, match=r"held by another process; .* with what store.export"):
            read_log(path)
        other.communicate("\n")
    assert read_log(path).reward.tolist() == [1.0]


def test_what_sqlite_alone_has_made_is_read_to_the_end(tmp_path: Path) -> None:
    path = tmp_path / "other.unfog"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE t (x)")
    other.close()
    before = path.read_bytes()
    with pytest.raises(Exception, match="is a database of another program"):
        read_log(path)
    assert path.read_bytes() == before
