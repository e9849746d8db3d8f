"""The contract of a log, on real files and in a real PostgreSQL: rows queued, committed, found, rewritten."""

import threading
from pathlib import Path

import pytest

from tests.live.places import Database, Files, Ground, contents
from tests.live.rows import made, put
from unfog.live import log as module
from unfog.live.backend import Row
from unfog.live.errors import ConflictError, KeyForgottenError, StoreError
from unfog.live.log import SIZE, EventLog
from unfog.validation import InputError


@pytest.fixture(params=["file", "postgres"])
def ground(request: pytest.FixtureRequest, tmp_path: Path) -> Ground:
    if request.param == "file":
        return Files(tmp_path / "walks.unfog")
    return Database(request.getfixturevalue("postgres"))


def test_rows_come_back_as_they_were_written(ground: Ground) -> None:
    texts = ["{}", '{"name": "Zoë", "x": "0x1.8p+1"}', '"null\\u0000and more"', "x" * 100_000]
    rows = [Row(i + 1, "walks", "decide", None, None, 0.1 * i, text) for i, text in enumerate(texts)]
    with ground.open() as log:
        assert (log.last, log.committed, log.names(), list(log.read())) == (0, 0, [], [])
        log.commit(log.add(rows), log.epoch)
        assert list(log.read()) == rows
    assert contents(ground) == rows


def test_queued_rows_are_not_read_until_they_are_committed(ground: Ground) -> None:
    with ground.open() as log:
        first = put(log, 2)
        queued = made(log, 3)
        ticket = log.add(queued)
        assert (ticket, log.last, log.committed, log.time_of("walks")) == (5, 5, 2, 5 / 8)
        assert list(log.read()) == first
        assert log.of("walks", "d4") == [queued[1]]
        log.commit(4, log.epoch)
        assert (log.committed, list(log.read())) == (5, first + queued)


def test_closing_commits_what_is_queued(ground: Ground) -> None:
    log = ground.open()
    rows = made(log, 3)
    log.add(rows)
    log.close()
    log.close()
    assert contents(ground) == rows
    for use in (lambda: log.add(made(log)), lambda: log.find("walks", "k1"), lambda: log.read()):
        with pytest.raises(StoreError, match=r"walks.* cannot be used: it is closed; open it again"):
            use()


def test_the_file_goes_on_where_it_stopped(ground: Ground) -> None:
    for session in range(4):
        with ground.open() as log:
            assert (log.last, log.committed, log.time_of("walks")) == (
                3 * session,
                3 * session,
                3 * session / 8,
            )
            put(log, 3)
    with ground.open() as log:
        assert log.names() == ["walks"]
        assert [row.seq for row in log.read()] == list(range(1, 13))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"seq": 5}, "^seq: 5; allowed: 4, which follows the last row$"),
        ({"seq": 3}, "^seq: 3; allowed: 4"),
        ({"time": 0.1}, "^time: 0.1; allowed: at least 0.375"),
        ({"time": float("nan")}, "^time: nan; allowed"),
        ({"key": "k3"}, "^key: k3; allowed: a key that no other row of the problem has$"),
    ],
)
def test_rows_that_do_not_follow_are_refused_and_change_nothing(
    ground: Ground, change: dict[str, object], said: str
) -> None:
    with ground.open() as log:
        rows = put(log, 3)
        row = made(log)[0]._replace(**change)  # type: ignore[arg-type]
        with pytest.raises(InputError, match=said):
            log.add([row])
        assert (log.last, log.time_of("walks"), list(log.read())) == (3, 3 / 8, rows)
        put(log)
    assert len(contents(ground)) == 4


def test_others_write_while_somebody_reads(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK", 5)
    with ground.open() as log:
        rows = put(log, 23)
        seen = []
        for row in log.read():
            seen.append(row)
            put(log)
        assert seen == rows


def test_a_key_is_found_in_the_file_and_in_memory(ground: Ground) -> None:
    with ground.open() as log:
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
    with ground.open() as log:
        assert log.find("walks", "k3") == (queued[0], 3)
        with pytest.raises(KeyForgottenError):
            log.recent("walks", "k3", 2)


def test_what_is_forgotten_is_said_to_be(ground: Ground) -> None:
    with ground.open("normal") as log:
        put(log, 10)
        queued = made(log, SIZE + 50)
        log.add(queued)
        assert log.recent("walks", "k11", 10) == queued[0]  # nothing that waits is ever forgotten
        log.commit(log.last, log.epoch)
        put(log)
        with pytest.raises(KeyForgottenError):
            log.recent("walks", "k11", 10)
        row, mark = log.find("walks", "k11")
        assert (row, log.recent("walks", "k11", mark)) == (queued[0], None)


def test_the_same_key_twice_in_one_call_is_a_conflict(ground: Ground) -> None:
    with ground.open() as log:
        rows = [row._replace(key="same") for row in made(log, 2)]
        with pytest.raises(ConflictError, match=r"a key for each row"):
            log.add(rows)
        log.commit(log.add([rows[0], rows[1]._replace(key="another")]), log.epoch)


def test_snapshots_two_newest(ground: Ground) -> None:
    with ground.open() as log:
        put(log, 9)
        assert log.snapshot("walks") is None
        for seq in (3, 5, 9, 7):
            log.keep("walks", seq, f"f{seq}", bytes([seq]) * 1000)
        assert log.snapshot("walks") == (9, "f9", bytes([9]) * 1000)
        assert ground.said(log, "SELECT seq FROM snapshot ORDER BY seq") == [(7,), (9,)]
    with ground.open() as log:
        ground.said(log, "UPDATE snapshot SET checksum = checksum + 1 WHERE seq = 9")
        assert log.snapshot("walks") == (7, "f7", bytes([7]) * 1000)
        log.discard("walks")
        assert (log.snapshot("walks"), log.snapshot("other")) == (None, None)
        log.keep("walks", 9, "f", b"")
        assert log.snapshot("walks") == (9, "f", b"")


def test_a_snapshot_is_kept_after_the_rows_that_it_stands_for(ground: Ground) -> None:
    log = ground.open()
    log.add(made(log, 4))
    log.keep("walks", 4, "f", b"blob")
    assert log.committed == 4
    log.close()


def test_eight_threads_are_durable_in_order_and_once(ground: Ground) -> None:
    acknowledged: list[tuple[int, str]] = []
    guard = threading.Lock()

    def work(log: EventLog, name: int) -> None:
        for i in range(60):
            with guard:
                row = made(log)[0]._replace(key=f"{name}-{i}")
                ticket, epoch = log.add([row]), log.epoch
            log.commit(ticket, epoch)
            assert log.committed >= ticket
            acknowledged.append((ticket, f"{name}-{i}"))

    with ground.open() as log:
        threads = [threading.Thread(target=work, args=(log, name)) for name in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = contents(ground)
    assert [row.seq for row in found] == list(range(1, 481))
    assert sorted(acknowledged) == [(row.seq, row.key) for row in found]


def test_rows_are_rewritten_and_others_appended_at_once(ground: Ground) -> None:
    with ground.open() as log:
        rows = put(log, 6)
        clean = [row._replace(key=None, body="{}") for row in rows[1:3]]
        log.rewrite([*clean, *made(log)])
        assert log.find("walks", "k2") == (None, 7)
        with pytest.raises(KeyForgottenError):
            log.recent("walks", "k2", 0)
        found = list(log.read())
        assert found[:6] == [rows[0], *clean, *rows[3:]]
        rows = found + put(log)
    assert contents(ground) == rows
    assert len(rows) == 8


def test_damage_is_seen(ground: Ground) -> None:
    with ground.open() as log:
        put(log, 5)
        ground.said(log, "UPDATE event SET body = '{}' WHERE seq = 3")
        with pytest.raises(StoreError, match=r"row 3 is damaged"):
            list(log.read())
        with pytest.raises(StoreError, match=r"row 3 is damaged"):
            log.find("walks", "k3")
        ground.said(log, "DELETE FROM event WHERE seq = 3")
        with pytest.raises(StoreError, match=r"rows are missing after row 0"):
            list(log.read("walks"))


def test_times_come_back_to_the_bit(ground: Ground) -> None:
    with ground.open() as log:
        times = [5e-324, 0.1, 1e9 + 1 / 3, 1.7976931348623157e308]
        rows = [Row(i, "walks", "decide", None, None, time, "{}") for i, time in enumerate(times, 1)]
        log.commit(log.add(rows), log.epoch)
        assert [row.time.hex() for row in log.read()] == [time.hex() for time in times]
    assert contents(ground) == rows
