"""A problem in memory as a file: its events, and a snapshot of its state.

    unfog bandit 1     what it is, and the layout
    sizes              of the three parts that follow
    head               JSON: `keep`, what was dropped, the row and the fingerprint of the snapshot
    rows               a line of JSON each, compressed
    snapshot           as in a store (live/snapshot.py), compressed
    SHA-256            of everything before it

There is no pickle in it. With another version of unfog, NumPy or Python the snapshot is not used, and the
state is built from the events.
"""

import json
import os
import struct
import zlib
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from unfog import _io
from unfog.live.backend import Row
from unfog.live.errors import StoreError
from unfog.validation import InputError, display
from unfog.version import __version__

SUFFIX = ".bandit"
MAGIC = b"unfog bandit "
LAYOUT = 1
SIZES = struct.Struct("<QQQ")  # bytes of the head, the events and the snapshot
HASH = 32  # bytes
LEVEL = 3  # of the compression
ALLOWED = "a file that Bandit.save wrote"


class Saved(NamedTuple):
    """What a file contains."""

    rows: Sequence[Row]
    snapshot: tuple[int, str, bytes]  # its last row, its fingerprint and its bytes
    first_decision: int  # events from this decision on are all there
    keep: int | None
    version: str = __version__  # of unfog, that wrote it


def write(path: object, saved: Saved) -> Path:
    """Write a file, completely or not at all; one of the same name is replaced."""
    target = _check_target(path)
    seq, fingerprint, blob = saved.snapshot
    head = {
        "version": saved.version,
        "keep": saved.keep,
        "first_decision": saved.first_decision,
        "seq": seq,
        "fingerprint": fingerprint,
    }
    lines = "".join(f"{json.dumps(row)}\n" for row in saved.rows)
    parts = json.dumps(head).encode(), zlib.compress(lines.encode(), LEVEL), zlib.compress(blob, LEVEL)
    content = b"".join((MAGIC, b"%d\n" % LAYOUT, SIZES.pack(*map(len, parts)), *parts))
    try:
        _io.write_atomically(target, content + sha256(content).digest(), _io.PRIVATE)
    except OSError as error:
        raise StoreError(f"{target} cannot be written: {_io.reason(error)}") from error
    return target


def _check_target(path: object) -> Path:
    if not isinstance(path, str | os.PathLike) or "\0" in str(path) or Path(path).suffix != SUFFIX:
        raise InputError("path", display(path), f"the name of a file that ends in {SUFFIX}")
    target = Path(path).expanduser().resolve()
    if not target.parent.is_dir() or target.is_dir():
        raise InputError("path", str(target), "a file in a folder that is there")
    return target


def read(path: object) -> Saved:
    """Read a file; InputError if it is not there, damaged, or another program's."""
    if not isinstance(path, str | os.PathLike) or "\0" in str(path):
        raise InputError("path", display(path), ALLOWED)
    content, name = _io.content("path", Path(path).expanduser(), ALLOWED), repr(str(path))
    if content.startswith(b"SQLite format 3"):
        raise InputError("path", name, f"{ALLOWED}; a store is opened by unfog.live.open")
    if not content.startswith(MAGIC):
        raise InputError("path", f"{name} is another program's", ALLOWED)
    layout, _, rest = content[len(MAGIC) : -HASH].partition(b"\n")
    if sha256(content[:-HASH]).digest() != content[-HASH:]:
        raise InputError("path", f"{name} is damaged: its hash differs", ALLOWED)
    if layout != b"%d" % LAYOUT:
        raise InputError("path", f"{name} has layout {layout.decode()}", f"layout {LAYOUT}, of this unfog")
    start, parts = SIZES.size, []
    for size in SIZES.unpack_from(rest):
        parts.append(rest[start : start + size])
        start += size
    head: dict[str, Any] = json.loads(parts[0])
    rows = [Row._make(json.loads(line)) for line in zlib.decompress(parts[1]).splitlines()]
    snapshot = head["seq"], head["fingerprint"], zlib.decompress(parts[2])
    return Saved(rows, snapshot, head["first_decision"], head["keep"], head["version"])
