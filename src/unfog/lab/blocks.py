"""Blocks: what came of a task, as one file that says itself whether it is whole, and whose it is.

    SHA-256 of the rest
    {"run": hash of the run's identity, "pieces": [[setting, first, stop], ...], "arrays": [...]}
    the numbers of all arrays, one after the other

For each piece `arrays` lists name, type and shape of what it came to. A block is used where all of this is
what the plan of the run asks for, and its numbers are finite; whatever is wrong with another, it is not.
"""

import hashlib
import json
import stat
from collections.abc import Sequence, Set
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from unfog.simulation.job import MOMENTS, Job, Part, Piece, Task

DIGEST = hashlib.sha256().hexdigest()  # how long one is
FLOATS = ("<f4", "<f8")
WORDS = 8192  # bytes of what is said of a piece besides its numbers, at most


def packed(run: str, task: Task, parts: Sequence[Part]) -> bytes:
    """The file of a task of this run."""
    ready = [{name: np.asarray(x, x.dtype.newbyteorder("<")) for name, x in part.items()} for part in parts]
    said = {
        "run": run,
        "pieces": [[piece.setting, piece.trials.start, piece.trials.stop] for piece in task],
        "arrays": [[[name, x.dtype.str, x.shape] for name, x in part.items()] for part in ready],
    }
    numbers = b"".join(x.tobytes() for part in ready for x in part.values())
    content = json.dumps(said).encode() + b"\n" + numbers
    return hashlib.sha256(content).hexdigest().encode() + b"\n" + content


def most_bytes(pieces: Set[Piece], jobs: Sequence[Job]) -> int:
    """No block of this plan is larger."""
    cells = sum(prod(shape) for piece in pieces for shape in _wanted(piece, jobs).values())
    return 8 * cells + WORDS * (1 + len(pieces))


def owner(path: Path) -> set[str]:
    """The run that a block belongs to, of whatever plan and size that is; none where it is damaged."""
    if not stat.S_ISREG(path.stat().st_mode):
        return set()
    with open(path, "rb") as file:
        expected = file.readline(len(DIGEST) + 1).rstrip(b"\n")
        if (
            len(expected) < len(DIGEST)
            or hashlib.file_digest(file, "sha256").hexdigest().encode() != expected
        ):
            return set()
        file.seek(len(DIGEST) + 1)
        said = _said(file.readline())
    return set() if said is None else {str(said.get("run"))}


def unpacked(file: bytes, run: str, pieces: Set[Piece], jobs: Sequence[Job]) -> dict[Piece, Part] | None:
    """The pieces of a file, or None where it is damaged, another run's, or nothing that was asked for."""
    found = _whole(file)
    if found is None or found[0].get("run") != run:
        return None
    try:
        return _parts(*found, pieces, jobs)
    except Exception:  # noqa: BLE001  what a file says can be wrong in any way
        return None


def _whole(file: bytes) -> tuple[dict[str, Any], bytes] | None:
    """What a file says, and its numbers; None where its hash differs."""
    digest, _, content = file.partition(b"\n")
    if hashlib.sha256(content).hexdigest().encode() != digest:
        return None
    words, _, numbers = content.partition(b"\n")
    said = _said(words)
    return None if said is None else (said, numbers)


def _said(words: bytes) -> dict[str, Any] | None:
    try:
        said = json.loads(words)
    except (ValueError, RecursionError):
        return None
    return said if isinstance(said, dict) else None


def _parts(
    said: dict[str, Any], numbers: bytes, pieces: Set[Piece], jobs: Sequence[Job]
) -> dict[Piece, Part] | None:
    """Each piece with its arrays."""
    task = [Piece(setting, range(first, stop)) for setting, first, stop in said["pieces"]]
    if not set(task) <= pieces or len(set(task)) < max(1, len(task)):
        return None
    found, start = dict[Piece, Part](), 0
    for piece, arrays in zip(task, said["arrays"], strict=True):
        wanted = _wanted(piece, jobs)
        if len(arrays) != len(wanted) or {name: tuple(shape) for name, _, shape in arrays} != wanted:
            return None
        found[piece] = {}
        for name, kind, shape in arrays:
            values = np.frombuffer(numbers, FLOATS[FLOATS.index(kind)], prod(shape), start)
            found[piece][name] = values.reshape(shape)
            start += values.nbytes
    sound = all(np.isfinite(values).all() for part in found.values() for values in part.values())
    return found if sound and start == len(numbers) else None


def _wanted(piece: Piece, jobs: Sequence[Job]) -> dict[str, tuple[int, ...]]:
    """The names and shapes of what comes of a piece."""
    job = jobs[piece.setting]
    wanted: dict[str, tuple[int, ...]] = {
        name: (len(job.agents), len(piece.trials), len(job.grid)) for name in job.losses
    }
    if len(job.curve):
        wanted |= {MOMENTS + name: (len(job.agents), len(job.curve), 2) for name in job.losses}
    return wanted
