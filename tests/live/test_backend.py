"""What every backend of a log must do: in memory, on real files and in a real PostgreSQL.

The backends are used as a log uses them, without one. The last test plants a fault in a backend.
"""

import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.live.places import Alone, owned
from unfog.live import memory
from unfog.live.backend import Backend, Row, Tail
from unfog.live.errors import StoreError
from unfog.live.memory import MemoryBackend
from unfog.live.sqlite import SqliteBackend

Opening = Callable[[], Backend]


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def opening(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Opening:
    """What makes a backend; each has what the one before it wrote."""
    if request.param == "memory":
        monkeypatch.setattr(memory, "BLOCK", 2)
        backend = MemoryBackend()
        return lambda: backend
    if request.param == "sqlite":
        return lambda: SqliteBackend(tmp_path / "walks.unfog")
    postgres = request.getfixturevalue("postgres")
    return lambda: Alone(postgres, "walks", owned(postgres, "walks"))


def rows(first: int, count: int) -> list[Row]:
    numbers = range(first, first + count)
    return [
        Row(n, "walks", "decide", f"d{n // 2}", f"k{n}", n / 8, f'{{"n": {n}, "é": "\\""}}') for n in numbers
    ]


def read(backend: Backend, last: int, after: int = 0) -> list[Row]:
    """All rows after one, in chunks."""
    found: list[Row] = []
    while after < last:
        chunk = backend.read("walks", after, last, 3)
        assert chunk, f"rows are missing after row {after}"
        found += chunk
        after = found[-1].seq
    return found


def check_an_empty_one(opening: Opening) -> None:
    backend = opening()
    states = [backend.is_open]
    assert backend.open() == (0, False)
    states.append(backend.is_open)
    assert dict(backend.tails) == {}
    assert backend.only in (None, "walks")
    assert backend.keyed("walks", "k1") is None
    assert backend.decided("walks", "d1") == []
    assert backend.snapshot("walks") is None
    backend.close()
    assert [*states, backend.is_open] == [False, True, False]


def check_rows_are_kept(opening: Opening) -> None:
    backend = opening()
    backend.open()
    first, second = rows(1, 4), rows(5, 3)
    backend.write(first)
    assert read(backend, 4) == first
    backend.write(second)
    backend.write([])
    assert read(backend, 7) == first + second
    assert read(backend, 5, 2) == rows(3, 3)
    assert backend.read(None, 0, 7, 100) == first + second
    number = backend.tails["walks"].number
    assert dict(backend.tails) == {"walks": Tail(number, 7, 7 / 8)}
    backend.close_connection()
    assert backend.open() == (7, False)
    assert read(backend, 7) == first + second
    backend.close()
    again = opening()
    assert again.open() == (7, False)
    assert dict(again.tails) == {"walks": Tail(number, 7, 7 / 8)}
    assert read(again, 7) == first + second
    again.close()


def check_rows_are_found(opening: Opening) -> None:
    backend = opening()
    backend.open()
    kept = rows(1, 6)
    backend.write(kept)
    assert [backend.keyed("walks", f"k{n}") for n in range(1, 8)] == [*kept, None]
    assert backend.decided("walks", "d1") == kept[1:3]
    assert backend.decided("walks", "d3") == kept[5:]
    assert backend.decided("walks", "d9") == []
    assert backend.keyed("naps", "k1") is None
    assert backend.decided("naps", "d1") == []
    backend.close()


def check_snapshots(opening: Opening) -> None:
    backend = opening()
    backend.open()
    backend.write(rows(1, 9))
    for seq in (3, 9, 5):
        backend.write([], lambda seq=seq: backend.keep("walks", seq, f"f{seq}", bytes([0, seq])))  # type: ignore[misc]
        newest = max(seq, 9) if seq != 3 else 3
        assert backend.snapshot("walks") == (newest, f"f{newest}", bytes([0, newest]))
    backend.close()
    again = opening()
    again.open()
    assert again.snapshot("walks") == (9, "f9", b"\0\t")
    again.write(rows(10, 1), lambda: again.discard("walks"))
    assert again.snapshot("walks") is None
    assert read(again, 10) == rows(1, 10)
    again.close()


def check_a_change_that_fails_leaves_nothing(opening: Opening) -> None:
    def fail() -> None:
        backend.keep("walks", 2, "f", b"blob")
        raise ZeroDivisionError

    backend = opening()
    backend.open()
    backend.write(rows(1, 2))
    with pytest.raises(ZeroDivisionError):
        backend.write(rows(3, 2), fail)
    backend.close_connection()
    assert backend.open() == (2, False)
    assert read(backend, 2) == rows(1, 2)
    assert backend.snapshot("walks") is None
    backend.write(rows(3, 1))
    assert read(backend, 3) == rows(1, 3)
    backend.close()


def check_rows_are_rewritten(opening: Opening) -> None:
    backend = opening()
    backend.open()
    kept = rows(1, 5)
    backend.write(kept)
    clean = [row._replace(key=None, body="{}") for row in kept[1:3]]
    backend.write(rows(6, 1), lambda: backend.rewrite(clean))
    backend.rebuild()
    expected = [kept[0], *clean, *kept[3:], *rows(6, 1)]
    assert read(backend, 6) == expected
    assert backend.keyed("walks", "k2") is None
    backend.close()
    again = opening()
    assert again.open() == (6, False)
    assert read(again, 6) == expected
    again.close()


def check_a_hole_is_seen(opening: Opening) -> None:
    backend = opening()
    backend.open()
    kept = rows(1, 6)
    backend.write([*kept[:3], *kept[4:]])
    if backend.is_durable:  # in memory some are missing once `keep` has dropped them
        with pytest.raises((*backend.failures, StoreError), match="rows are missing after row"):
            read(backend, 6)
    backend.close()


CHECKS = [found for name, found in list(globals().items()) if name.startswith("check_")]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_every_backend(opening: Opening, check: Callable[[Opening], None]) -> None:
    check(opening)


def test_a_backend_that_forgets_its_last_row_is_caught(
    opening: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = opening()
    write = backend.write
    monkeypatch.setattr(backend, "write", lambda rows, change=None: write(rows[:-1], change))
    with pytest.raises(Exception, match="rows are missing after row 3"):
        check_rows_are_kept(lambda: backend)
    backend.close()


def test_a_write_in_memory_that_is_interrupted_leaves_nothing_half_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Wherever it stops, as Ctrl-C may: what is there afterwards are the first rows."""
    monkeypatch.setattr(memory, "BLOCK", 2)
    for lines in count(1):
        backend = MemoryBackend()
        backend.open()
        backend.write(rows(1, 3))
        if not interrupted(lambda backend=backend: backend.write(rows(4, 2)), lines):  # type: ignore[misc]
            assert lines > 20
            return
        backend.close_connection()
        last, _ = backend.open()
        backend.write(rows(last + 1, 6 - last))
        assert backend.read(None, 0, 6, 9) == rows(1, 6)
        assert [backend.keyed("walks", f"k{n}") for n in range(1, 7)] == rows(1, 6)
        assert [row for n in range(4) for row in backend.decided("walks", f"d{n}")] == rows(1, 6)


def interrupted(call: Callable[[], None], lines: int) -> bool:
    """Whether a call was stopped after so many lines of this package."""
    left = lines

    def trace(frame: Any, event: str, _: Any) -> Any:
        nonlocal left
        if frame.f_code.co_filename != memory.__file__:
            return None
        left -= event == "line"
        if left < 0:
            raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
    return False
