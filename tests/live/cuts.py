"""A store cut at some bytes, or with a byte changed: what opens is held against what was committed."""

from collections.abc import Iterable
from pathlib import Path

from tests.live.rows import copied
from unfog.live.backend import Row
from unfog.live.errors import StoreError
from unfog.live.log import EventLog
from unfog.live.sqlite import SqliteBackend


def opened(path: Path) -> list[Row] | None:
    """Every row, or None where a StoreError named the file."""
    try:
        with EventLog(SqliteBackend(path, "normal")) as log:
            return list(log.read())
    except StoreError as error:
        named = path.name in str(error)
    assert named
    return None


def cut(path: Path, ending: str, at: Iterable[int], to: Path) -> list[list[Row] | None]:
    """What opens where the file with this ending keeps only so many of its bytes, for each number in turn."""
    whole = path.with_name(path.name + ending).read_bytes()
    found = []
    for length in at:
        copy = copied(path, to)
        copy.with_name(copy.name + ending).write_bytes(whole[:length])
        found.append(opened(copy))
    return found


def tail(path: Path, step: int) -> range:
    """The lengths that cut a file within its last 64 KiB."""
    size = path.stat().st_size
    return range(max(0, size - 65536), size + 1, step)
