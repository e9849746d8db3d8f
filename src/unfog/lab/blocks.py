"""Blocks: what came of a task, as one file that says itself whether it is whole.

The first line is the SHA-256 of the rest, which is a NumPy archive: `pieces` (n, 3), the setting and the
first and last trial (exclusive) of each, and the arrays of piece i under `i/NAME`.
"""

import hashlib
import io
from collections.abc import Sequence

import numpy as np

from unfog.simulate.job import MOMENTS, Job, Part
from unfog.simulate.tasks import Piece, Task


def packed(task: Task, parts: Sequence[Part]) -> bytes:
    """The file of a task."""
    content, pieces = io.BytesIO(), [(p.setting, p.trials.start, p.trials.stop) for p in task]
    arrays = {f"{i}/{name}": values for i, part in enumerate(parts) for name, values in part.items()}
    np.savez(content, allow_pickle=False, pieces=np.asarray(pieces, np.int64), **arrays)
    return hashlib.sha256(content.getvalue()).hexdigest().encode() + b"\n" + content.getvalue()


def unpacked(file: bytes, jobs: Sequence[Job]) -> dict[Piece, Part] | None:
    """The pieces of a file, or None where it is damaged or holds what these jobs could not have given."""
    digest, _, content = file.partition(b"\n")
    if hashlib.sha256(content).hexdigest().encode() != digest:
        return None
    with np.load(io.BytesIO(content), allow_pickle=False) as saved:
        found = [Piece(int(s), range(int(a), int(b))) for s, a, b in saved["pieces"]]
        parts = [
            {n.partition("/")[2]: saved[n] for n in saved.files if n.partition("/")[0] == str(i)}
            for i in range(len(found))
        ]
    pieces = dict(zip(found, parts, strict=True))
    return pieces if all(_sound(piece, part, jobs) for piece, part in pieces.items()) else None


def _sound(piece: Piece, part: Part, jobs: Sequence[Job]) -> bool:
    """Whether a part has the names, shapes and finite numbers that its job asks for."""
    if not 0 <= piece.setting < len(jobs):
        return False
    job = jobs[piece.setting]
    wanted = {name: (len(job.agents), len(piece.trials), len(job.grid)) for name in job.losses}
    if len(job.curve):
        wanted |= {MOMENTS + name: (len(job.agents), len(job.curve), 2) for name in job.losses}
    shapes = {name: values.shape for name, values in part.items()}
    return shapes == wanted and all(np.isfinite(values).all() for values in part.values())
