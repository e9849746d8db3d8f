"""A disk that loses its power: what a store's files hold if only what was synced is there."""

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

WRITER = Path(__file__).with_name("writer.py")


class Record(NamedTuple):
    """One thing that was done to a file."""

    kind: str
    path: str
    offset: int
    data: bytes


def shim(folder: Path) -> Path:
    """The library that stands between a process and the disk; it takes a C compiler."""
    library = folder / "shim.so"
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("takes a C compiler, called cc")
    source = Path(__file__).with_name("shim.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    return library


def traced(folder: Path, what: str, number: int) -> list[Record]:
    """What a writer does to its files, and what it acknowledges."""
    (folder / "store").mkdir(exist_ok=True)
    (folder / "trace").unlink(missing_ok=True)
    said = {"LD_PRELOAD": str(shim(folder)), "UNFOG_TRACE": str(folder / "trace")}
    command = [sys.executable, str(WRITER), str(folder / "store" / "walks.unfog"), what, str(number)]
    subprocess.run(command, env=os.environ | said, check=False, stdout=subprocess.PIPE, timeout=60)
    return list(records((folder / "trace").read_bytes()))


def records(trace: bytes) -> Iterator[Record]:
    while trace:
        head, _, trace = trace.partition(b"\n")
        kind, path, offset, size = head.decode().split(" ")
        yield Record(kind, path, int(offset), trace[: int(size)])
        trace = trace[int(size) :]


def images(done: list[Record], chance: random.Random) -> Iterator[tuple[list[str], dict[str, bytes]]]:
    """For each moment: what was acknowledged by then, and files as a power cut may leave them.

    What was synced is there; of what was not, each write is there or not. A file that was removed is gone.
    """
    synced: dict[str, bytes] = {}
    waiting: dict[str, list[Record]] = {}
    acknowledged: list[str] = []
    for record in done:
        if record.kind == "A":
            acknowledged.extend(record.data.decode().split())
        elif record.kind == "S":
            synced[record.path] = applied(synced.get(record.path, b""), waiting.pop(record.path, []))
        elif record.kind == "U":
            synced.pop(record.path, None)
            waiting.pop(record.path, None)
        else:
            waiting.setdefault(record.path, []).append(record)
        yield list(acknowledged), dict(synced)
        some = {path: [r for r in rest if chance.random() < 0.5] for path, rest in waiting.items()}
        yield list(acknowledged), synced | {p: applied(synced.get(p, b""), rest) for p, rest in some.items()}


def applied(content: bytes, writes: list[Record]) -> bytes:
    for record in writes:
        end = record.offset + len(record.data)
        if record.kind == "T":
            content = content[: record.offset].ljust(record.offset, b"\0")
        else:
            content = content[: record.offset].ljust(record.offset, b"\0") + record.data + content[end:]
    return content


def restored(files: dict[str, bytes], folder: Path) -> Path:
    """The files of a store, in a folder of their own."""
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir()
    for path, content in files.items():
        (folder / Path(path).name).write_bytes(content)
    return folder / "walks.unfog"
