"""Files that were cut or changed: what was committed, or a prefix of it, or an error, never anything else."""

import random
import sqlite3
from pathlib import Path

import pytest

from tests.live.cuts import cut, opened, tail
from tests.live.rows import contents, copied, killed_store, put
from unfog.live.backend import Row
from unfog.live.errors import StoreError
from unfog.live.log import EventLog
from unfog.live.sqlite import SqliteBackend

STEP = 997


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with twelve commits in its write-ahead log, none of them in the file itself."""
    return killed_store(tmp_path_factory.mktemp("killed") / "store", 12)


@pytest.fixture(scope="module")
def whole(killed: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    return contents(copied(killed, tmp_path_factory.mktemp("whole") / "copy"))


@pytest.mark.slow
def test_a_cut_write_ahead_log_gives_a_prefix(killed: Path, whole: list[Row], tmp_path: Path) -> None:
    wal = killed.with_name("walks.unfog-wal")
    found = cut(killed, "-wal", tail(wal, STEP), tmp_path / "copy")
    lengths = [len(rows) for rows in found if rows is not None]
    assert len(lengths) == len(found) > 60
    assert [rows for rows in found if rows != whole[: len(rows or [])]] == []
    assert lengths == sorted(lengths)
    assert len(set(lengths)) > 3
    assert cut(killed, "-wal", [wal.stat().st_size], tmp_path / "copy") == [whole]
    assert len(whole) == 15


@pytest.mark.slow
def test_a_cut_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "store" / "walks.unfog"
    path.parent.mkdir()
    with EventLog(SqliteBackend(path, "normal")) as log:
        rows = [row for i in range(200) for row in put(log, 1, f"p{i % 3}")]
    lengths = tail(path, STEP)
    found = cut(path, "", lengths, tmp_path / "copy")
    assert {len(rows) for rows in found if rows is not None} <= {0, 200}
    assert [length for length, rows in zip(lengths, found, strict=True) if rows == [] and length > 0] == []
    assert cut(path, "", [path.stat().st_size], tmp_path / "copy") == [rows]


def damaged(path: Path, chance: random.Random, ending: str) -> None:
    file = path.with_name(path.name + ending)
    content = bytearray(file.read_bytes())
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    file.write_bytes(content)


def by_problem(path: Path) -> dict[str, list[Row]] | None:
    try:
        with EventLog(SqliteBackend(path, "normal")) as log:
            return {name: list(log.read(name)) for name in log.names()}
    except StoreError:
        return None


@pytest.mark.slow
def test_a_changed_bit_is_noticed(tmp_path: Path) -> None:
    """All rows or an error, read as a whole and problem by problem (which goes by way of an index)."""
    path = tmp_path / "store" / "walks.unfog"
    path.parent.mkdir()
    with EventLog(SqliteBackend(path, "normal")) as log:
        rows = [row for i in range(60) for row in put(log, 1, f"p{i % 3}")]
    parted = {f"p{i}": rows[i::3] for i in range(3)}
    chance, noticed = random.Random(3), 0
    for _ in range(400):
        copy = copied(path, tmp_path / "copy")
        damaged(copy, chance, "")
        assert by_problem(copy) in (None, parted)
        found = opened(copy)
        assert found in (None, rows)
        noticed += found is None
    assert noticed > 60


@pytest.mark.slow
def test_a_changed_bit_in_the_write_ahead_log_gives_a_prefix(
    killed: Path, whole: list[Row], tmp_path: Path
) -> None:
    chance = random.Random(4)
    for _ in range(100):
        copy = copied(killed, tmp_path / "copy")
        damaged(copy, chance, "-wal")
        found = opened(copy)
        assert found is None or found == whole[: len(found)]


def test_damage_that_is_met_while_reading_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "walks.unfog"
    with EventLog(SqliteBackend(path)) as log:
        put(log, 100)
    content = path.read_bytes()
    assert content.count(b"context of a walk") > 1000
    place = content.index(b"context of a walk")
    path.write_bytes(content[:place] + b"C" + content[place + 1 :])
    with EventLog(SqliteBackend(path)) as log:
        with pytest.raises(
            StoreError, match=rf"^{path}: rows after 0 could not be read: .*row \d+ is damaged$"
        ):
            list(log.read())
        put(log)


def changed(path: Path, *statements: str) -> None:
    """What damage may do to the tables, behind the log's back."""
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()


def test_rows_that_are_missing_are_missed(tmp_path: Path) -> None:
    path = tmp_path / "walks.unfog"
    with EventLog(SqliteBackend(path)) as log:
        for i in range(20):
            put(log, 1, f"p{i % 2}")
    changed(path, "DELETE FROM event WHERE seq = 9")
    with EventLog(SqliteBackend(path)) as log:
        for problem in (None, "p0"):
            with pytest.raises(StoreError, match=r"could not be read: .*rows are missing after row"):
                list(log.read(problem))
        assert len(list(log.read("p1"))) == 10


def test_last_rows_that_only_an_index_knows_are_missed(tmp_path: Path) -> None:
    path = tmp_path / "walks.unfog"
    with EventLog(SqliteBackend(path)) as log:
        put(log, 20)
    changed(
        path,
        "CREATE TABLE less AS SELECT * FROM event WHERE seq <= 12",
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM sqlite_master WHERE name = 'less')"
        " WHERE name = 'event'",
    )
    with pytest.raises(
        StoreError, match=r"cannot be opened: .*rows are missing after row 12, or their index"
    ):
        EventLog(SqliteBackend(path))


def test_damage_that_sqlite_cannot_even_quote(tmp_path: Path) -> None:
    path = tmp_path / "walks.unfog"
    with EventLog(SqliteBackend(path)) as log:
        put(log)
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE note", b"CREATE \xd5ABLE note"))
    with pytest.raises(StoreError, match=r"walks.unfog cannot be opened: "):
        EventLog(SqliteBackend(path))
