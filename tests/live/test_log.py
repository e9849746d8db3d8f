"""The log's contract, on real files: rows queued, committed, found by key, read, kept and rewritten."""

import os
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.live.rows import contents, made, put, settings
from unfog.inputs import InputError
from unfog.live import log as module
from unfog.live import table
from unfog.live.errors import Conflict, Stale, StoreError
from unfog.live.file import File
from unfog.live.log import Log, Row
from unfog.live.recent import SIZE


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "walks.unfog"


def test_rows_come_back_as_they_were_written(path: Path) -> None:
    texts = ["{}", '{"name": "Zoë", "x": "0x1.8p+1"}', '"null\\u0000and more"', "x" * 100_000]
    rows = [Row(i + 1, "walks", "decide", None, None, 0.1 * i, text) for i, text in enumerate(texts)]
    with Log(File(path)) as log:
        assert (log.last, log.committed, log.time, log.names(), list(log.read())) == (0, 0, 0.0, [], [])
        log.commit(log.add(rows), log.epoch)
        assert list(log.read()) == rows
    assert contents(path) == rows
    assert os.listdir(path.parent) == [path.name]


def test_queued_rows_are_not_read_until_they_are_committed(path: Path) -> None:
    with Log(File(path)) as log:
        first = put(log, 2)
        queued = made(log, 3)
        ticket = log.add(queued)
        assert (ticket, log.last, log.committed, log.time) == (5, 5, 2, 5 / 8)
        assert list(log.read()) == first
        assert log.of("walks", "d4") == [queued[1]]
        log.commit(4, log.epoch)
        assert (log.committed, list(log.read())) == (5, first + queued)


def test_closing_commits_what_is_queued(path: Path) -> None:
    log = Log(File(path))
    rows = made(log, 3)
    log.add(rows)
    log.close()
    log.close()
    assert contents(path) == rows
    for use in (lambda: log.add(made(log)), lambda: log.find("walks", "k1"), lambda: log.read()):
        with pytest.raises(StoreError, match=r"walks.unfog cannot be used: it is closed; open it again"):
            use()


def test_the_file_goes_on_where_it_stopped(path: Path) -> None:
    for session in range(4):
        with Log(File(path)) as log:
            assert (log.last, log.committed, log.time) == (3 * session, 3 * session, 3 * session / 8)
            put(log, 3, f"p{session % 2}")
    with Log(File(path)) as log:
        assert log.names() == ["p0", "p1"]
        log.add(made(log, 1, "another"))
        assert log.names() == ["p0", "p1", "another"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"seq": 5}, "^seq: 5; allowed: 4, which follows the last row$"),
        ({"seq": 3}, "^seq: 3; allowed: 4"),
        ({"time": 0.1}, "^time: 0.1; allowed: at least 0.375"),
        ({"time": float("nan")}, "^time: nan; allowed"),
        ({"body": "\ud800"}, "^text: .*ud800.*; allowed: text that can be written as UTF-8$"),
        ({"body": "null\0"}, "^text: .*; allowed: text without NUL, which databases do not keep$"),
        ({"key": "k3"}, "^key: k3; allowed: a key that no other row of the problem has$"),
    ],
)
def test_rows_that_do_not_follow_are_refused_and_change_nothing(
    path: Path, change: dict[str, object], said: str
) -> None:
    with Log(File(path)) as log:
        rows = put(log, 3)
        row = made(log)[0]._replace(**change)  # type: ignore[arg-type]
        with pytest.raises(InputError, match=said):
            log.add([row])
        assert (log.last, log.time, list(log.read())) == (3, 3 / 8, rows)
        put(log)
    assert len(contents(path)) == 4


def test_reading_by_problem_in_chunks(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK", 7)
    with Log(File(path)) as log:
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


def test_others_write_while_somebody_reads(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK", 5)
    with Log(File(path)) as log:
        rows = put(log, 23)
        seen = []
        for row in log.read():
            seen.append(row)
            put(log)
        assert seen == rows


def test_a_key_is_found_in_the_file_and_in_memory(path: Path) -> None:
    with Log(File(path)) as log:
        first = put(log, 2)
        queued = made(log, 1)
        log.add(queued)
        assert log.find("walks", "k2") == (first[1], 2)
        assert log.find("walks", "k3") == (None, 2)
        assert log.find("other", "k2") == (None, 2)
        assert log.recent("walks", "k3", 2) == queued[0]
        assert log.recent("walks", "k2", 2) is None
        assert log.recent("walks", "k2", 1) == first[1]
        assert log.recent("other", "k3", 2) is None
    with Log(File(path)) as log:
        assert log.find("walks", "k3") == (queued[0], 3)
        with pytest.raises(Stale):
            log.recent("walks", "k3", 2)


def test_what_is_forgotten_is_said_to_be(path: Path) -> None:
    with Log(File(path, "normal")) as log:
        put(log, 10)
        queued = made(log, SIZE + 50)
        log.add(queued)
        assert log.recent("walks", "k11", 10) == queued[0]  # nothing that waits is ever forgotten
        log.commit(log.last, log.epoch)
        put(log)
        with pytest.raises(Stale):
            log.recent("walks", "k11", 10)
        row, mark = log.find("walks", "k11")
        assert (row, log.recent("walks", "k11", mark)) == (queued[0], None)


def test_the_same_key_twice_in_one_call_is_a_conflict(path: Path) -> None:
    with Log(File(path)) as log:
        rows = [row._replace(key="same") for row in made(log, 2)]
        with pytest.raises(Conflict, match=r"a key for each row"):
            log.add(rows)
        log.add([rows[0], rows[1]._replace(problem="other")])


def test_snapshots_two_newest(path: Path) -> None:
    with Log(File(path)) as log:
        put(log, 9)
        assert log.snapshot("walks") is None
        for seq in (3, 5, 9, 7):
            log.keep("walks", seq, f"f{seq}", bytes([seq]) * 1000)
        log.keep("other", 2, "f", b"")
        assert log.snapshot("walks") == (9, "f9", bytes([9]) * 1000)
        assert isinstance(log.place, File)
        kept = log.place.alone.execute("SELECT seq FROM snapshot WHERE problem = 'walks' ORDER BY seq")
        assert kept.fetchall() == [(7,), (9,)]
    with Log(File(path)) as log:
        assert isinstance(log.place, File)
        log.place.alone.execute("UPDATE snapshot SET blob = x'09' WHERE seq = 9")
        assert log.snapshot("walks") == (7, "f7", bytes([7]) * 1000)
        log.discard("walks")
        assert (log.snapshot("walks"), log.snapshot("other")) == (None, (2, "f", b""))


def test_a_snapshot_is_kept_after_the_rows_that_it_stands_for(path: Path) -> None:
    log = Log(File(path))
    log.add(made(log, 4))
    log.keep("walks", 4, "f", b"blob")
    assert log.committed == 4
    log.close()


def test_settings_of_the_connection(path: Path) -> None:
    wanted = {
        "journal_mode": "wal",
        "locking_mode": "exclusive",
        "secure_delete": 1,
        "application_id": 0x756E666F,
        "user_version": 2,
    }
    for sync, code in (("full", 2), ("normal", 1)):
        with Log(File(path, sync)) as log:
            assert settings(log) == {"synchronous": code, **wanted}
    with pytest.raises(InputError, match=r"^sync: 'off'; allowed: full, normal$"):
        Log(File(path, "off"))


def test_eight_threads_are_durable_in_order_and_once(path: Path) -> None:
    acknowledged: list[tuple[int, str]] = []
    guard = threading.Lock()

    def work(log: Log, name: int) -> None:
        for i in range(60):
            with guard:
                row = made(log)[0]._replace(key=f"{name}-{i}")
                ticket, epoch = log.add([row]), log.epoch
            log.commit(ticket, epoch)
            assert log.committed >= ticket
            acknowledged.append((ticket, f"{name}-{i}"))

    with Log(File(path)) as log:
        threads = [threading.Thread(target=work, args=(log, name)) for name in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = contents(path)
    assert [row.seq for row in found] == list(range(1, 481))
    assert sorted(acknowledged) == [(row.seq, row.key) for row in found]


def test_one_transaction_serves_all_who_wait(path: Path) -> None:
    """While one thread is in its commit the rows of others queue up, and the next commit takes them all."""
    with Log(File(path)) as log:
        tickets = [log.add(made(log)) for _ in range(50)]
        commits: list[str] = []
        assert isinstance(log.place, File)
        log.place.alone.set_trace_callback(commits.append)
        for ticket in tickets:
            log.commit(ticket, log.epoch)
        assert commits.count("COMMIT") == 1


def test_erased_text_is_nowhere_in_the_file(path: Path) -> None:
    secret = "steps of Ann"
    log = Log(File(path))
    put(log, 40)
    rows = made(log, 5, text=f'{{"secret": "{secret}"}}')
    log.commit(log.add([row._replace(key=f"{secret} {row.seq}") for row in rows]), log.epoch)
    put(log, 40)
    mark = log.committed
    clean = [row._replace(key=None, body="{}") for row in rows]
    marker = [Row(log.last + 1, "walks", "erase", None, None, log.time, "{}")]
    log.rewrite(clean + marker)
    beside = [path, path.with_name("walks.unfog-wal")]
    assert all(secret.encode() not in file.read_bytes() for file in beside)
    assert log.find("walks", f"{secret} 41") == (None, mark + 1)
    with pytest.raises(Stale):
        log.recent("walks", f"{secret} 41", 40)
    put(log)
    log.close()
    found = contents(path)
    assert found[40:45] == clean
    assert found[85] == marker[0]
    assert [row.seq for row in found] == list(range(1, 88))


def test_only_keys_and_bodies_are_rewritten(path: Path) -> None:
    with Log(File(path)) as log:
        rows = put(log, 3)
        for change in (
            {"kind": "reward"},
            {"time": 7.0},
            {"problem": "other"},
            {"decision": None},
            {"seq": 0},
        ):
            with pytest.raises(InputError, match=r"^seq: .*a row that is there, with its problem"):
                log.rewrite([rows[1]._replace(**change), *made(log)])
        assert (list(log.read()), log.last) == (rows, 3)


def test_a_rewriting_that_was_cut_short_is_finished_at_the_next_opening(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA secure_delete = OFF")  # so that what is dropped stays in the file
        connection.execute("CREATE TABLE old AS SELECT 'secret' || body FROM event")
        connection.execute("DROP TABLE old")
        raise sqlite3.OperationalError("no space to rebuild it")

    with Log(File(path)) as log:
        rows = put(log, 50)
        with monkeypatch.context() as patch:
            patch.setattr(table, "rebuild", failing)
            with pytest.raises(
                StoreError, match=r"rewritten, but their old text may still be in the file: .*no space"
            ):
                log.rewrite([rows[0]._replace(body="{}")])
        assert next(log.read()).body == "{}"
    assert b"secret" in path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(table, "rebuild", failing)
        with pytest.warns(UserWarning, match=r"erased text may still be in the file: .*no space"):
            Log(File(path)).close()
    assert [row.seq for row in contents(path)] == list(range(1, 51))
    assert b"secret" not in path.read_bytes()


FORK = """
import os, sys
from unfog.live.file import File
from unfog.live.log import Log, Row
log = Log(File(sys.argv[1]))
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
