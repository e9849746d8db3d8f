"""The log for as long as it takes: hundreds of kills, a cut at every byte, thousands of changed bits."""

import random
from pathlib import Path

import pytest

from tests.live.cuts import cut, opened, tail
from tests.live.kills import killed_again_and_again
from tests.live.rows import contents, copied, killed_store, put
from tests.live.test_damage import by_problem, damaged
from unfog.live.log import EventLog
from unfog.live.sqlite import SqliteBackend


@pytest.mark.soak
def test_hundreds_of_kills(tmp_path: Path) -> None:
    found = 0
    for part in range(20):  # a file that starts anew, so that most of the time goes into kills
        found += killed_again_and_again(tmp_path / f"{part}.unfog", 25, random.Random(part))
    assert found > 5000


@pytest.mark.soak
def test_a_write_ahead_log_cut_at_every_byte(tmp_path: Path) -> None:
    path = killed_store(tmp_path / "store", 12)
    whole = contents(copied(path, tmp_path / "whole"))
    found = cut(path, "-wal", tail(path.with_name("walks.unfog-wal"), 1), tmp_path / "copy")
    assert len(found) == 65537
    assert [rows for rows in found if rows is None or rows != whole[: len(rows)]] == []
    lengths = [len(rows or []) for rows in found]
    assert (lengths, lengths[-1]) == (sorted(lengths), 15)


@pytest.mark.soak
def test_a_file_cut_at_every_byte(tmp_path: Path) -> None:
    path = tmp_path / "store" / "walks.unfog"
    path.parent.mkdir()
    with EventLog(SqliteBackend(path)) as log:
        rows = [row for i in range(200) for row in put(log, 1, f"p{i % 3}")]
    found = cut(path, "", tail(path, 1), tmp_path / "copy")
    assert len(found) == 65537
    assert [rows for rows in found[:-1] if rows is not None] == []
    assert found[-1] == rows


@pytest.mark.soak
@pytest.mark.parametrize("problems", [1, 3])
def test_thousands_of_changed_bits(tmp_path: Path, problems: int) -> None:
    path = tmp_path / "store" / "walks.unfog"
    path.parent.mkdir()
    with EventLog(SqliteBackend(path)) as log:
        rows = [row for i in range(60) for row in put(log, 1, f"p{i % problems}")]
    parted = {f"p{i}": rows[i::problems] for i in range(problems)}
    chance = random.Random(problems)
    for _ in range(5000):
        copy = copied(path, tmp_path / "copy")
        damaged(copy, chance, "")
        assert opened(copy) in (None, rows)
        assert by_problem(copy) in (None, parted)
