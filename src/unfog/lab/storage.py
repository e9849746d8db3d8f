"""A run folder while it is written: whole or not at all, resumed after an interruption, never overwritten.

    NAME/spec.toml     the experiment; `unfog run NAME/spec.toml` repeats it
    NAME/run.json      seed, versions, hash of the code, sha256 of the spec, the curves and itself
    NAME/curves.nc     cumulative losses as netCDF 3 (dims agent, trial, round), for xarray
    NAME/timing.json   seconds, unless it was interrupted; the one file that differs between equal runs

While it runs, the folder is NAME.partial, with one file, a block, for each finished task. The last step is a
rename. An interrupted run is resumed from its blocks if spec and code are still the same. What a kill left
half-done is cleared away by the next run that holds the folder.

A block says itself whether it is whole, and which run it belongs to:

    SHA-256 of the rest
    {"run": hash of the run's identity, "pieces": [[setting, first, stop], ...], "arrays": [...]}
    the numbers of all arrays, one after the other

For each piece `arrays` lists name, type and shape of its arrays. A block is used if all of this is what the
plan of the run asks for and its numbers are finite. Any other block is removed, whatever is wrong with it,
and its pieces are played again.

An unfinished folder belongs to the run that run.json names; where that file is damaged the folder is refused.
"""

import hashlib
import itertools
import json
import logging
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from unfog._io import (
    FULL,
    DamagedError,
    check,
    content_of,
    digest,
    reason,
    remove,
    seal,
    sync_folder,
    write_atomically,
)
from unfog.lab import run_folder
from unfog.lab.prepare import ExperimentPlan
from unfog.lab.run_folder import UNFINISHED, manifest, read
from unfog.lab.spec import to_toml
from unfog.simulation.job import MOMENTS, Job, Part, Piece, Task
from unfog.validation import InputError

FLOATS = ("<f4", "<f8")
WORDS = 8192  # most bytes of a piece's part of the header
say = logging.getLogger("unfog.lab").warning


class RunLockedError(InputError):
    """Another process holds the folder."""


class Partial:
    """A run in progress."""

    def __init__(self, target: Path, plan: ExperimentPlan) -> None:
        """Describe the folder NAME.partial of this run, without creating it."""
        self.target, self.spec = target, plan.spec
        self.folder = target.parent / f"{target.name}{UNFINISHED}"
        self._plan = plan
        self._created = list[Path]()  # folders that were not there before, the innermost first

    @cached_property
    def identity(self) -> dict[str, Any]:
        """The content of run.json; computed only when a folder may belong to this run."""
        return manifest(self._plan)

    @cached_property
    def run(self) -> str:
        """The hash that blocks of this run carry."""
        return digest(self.identity)

    def open(self) -> None:
        """Make the folder, or take it over."""
        try:
            self._open()
        except OSError as error:
            if error.errno in FULL:
                raise
            problem = f"{str(self.target)!r} cannot be made ({reason(error)})"
            raise InputError("out", problem, "a folder that can be made") from None

    def _open(self) -> None:
        if not self.target.name or self.target.exists() or self.target.is_symlink():
            self.tidy()
            raise self._exists_error()
        if self.folder.exists():
            self._check_owner()
        self._created = [path for path in (self.folder, *self.folder.parents) if not path.exists()]
        self.folder.mkdir(parents=True, exist_ok=True)

    def _exists_error(self) -> InputError:
        return InputError("out", f"{str(self.target)!r} exists already", "a folder that does not exist yet")

    def _check_owner(self) -> None:
        """Refuse a folder that does not belong to this spec and this code."""
        try:
            if owner_of(self.folder) in (None, self.run):
                return
            problem = f"{str(self.folder)!r} holds another unfinished run"
        except DamagedError as error:
            problem = f"{str(self.folder / run_folder.RUN)!r} is damaged: {error}"
        raise InputError("out", problem, "another folder, or remove the unfinished run")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder against other processes; the lock ends with this process."""
        with self._lock():
            self._prepare_folder()
            yield

    @contextmanager
    def _lock(self) -> Iterator[None]:
        with open(self.folder / "lock", "wb") as lock:
            if not _try_lock(lock.fileno()):
                problem = f"{str(self.folder)!r} is being written"
                raise RunLockedError("out", problem, "another folder, or wait for it to be done")
            yield

    def _prepare_folder(self) -> None:
        """With the lock held: check again, remove what a killed run left, write run.json."""
        if self.target.exists():  # finished by another just before the lock was ours
            self._remove_stale()
            raise self._exists_error()
        self._check_owner()
        for path in (*self.folder.glob("*.tmp"), self.folder / "final"):
            remove(path)
        if not (self.folder / run_folder.RUN).exists():
            write_atomically(self.folder / run_folder.RUN, seal(self.identity))

    def tidy(self) -> None:
        """Remove the unfinished folder if the process was killed just after its run was finished."""
        if self._is_stale():
            with suppress(RunLockedError, OSError), self._lock():
                self._remove_stale()

    def _is_stale(self) -> bool:
        """Whether both folders exist and belong to the same run."""
        try:
            return owner_of(self.folder) in (None, digest(read(self.target).identity))
        except (InputError, OSError, DamagedError):
            return False

    def _remove_stale(self) -> None:
        if self._is_stale():
            shutil.rmtree(self.folder, ignore_errors=True)

    def save(self, task: Task, parts: Sequence[Part]) -> None:
        """Write the results of a task as a block."""
        first, last = task[0], task[-1]
        name = f"block-{first.setting}-{first.trials.start}-{last.setting}-{last.trials.stop}"
        write_atomically(self.folder / name, packed(self.run, task, parts))

    def blocks(self, jobs: Sequence[Job]) -> Iterator[tuple[Piece, Part]]:
        """All pieces that are there; a damaged block is removed, and its pieces are played again."""
        pieces, seen = frozenset(self._plan.work.pieces), set[Piece]()
        most = most_bytes(pieces, jobs)
        for path in sorted(self.folder.glob("block-*"), key=_block_key):
            try:
                check(path, most)  # before it is read: reading would allocate all of it at once
                parts = unpacked(content_of(path), self.run, pieces, jobs)
            except (OSError, DamagedError):
                parts = None
            if parts is None or seen & parts.keys():
                say("unfog: %s is damaged; what it held is played again", path)
                remove(path)
                continue
            seen |= parts.keys()
            yield from parts.items()

    @contextmanager
    def refusable(self) -> Iterator[None]:
        """Remove the folder if the run is refused while it is played, unless it existed before."""
        try:
            yield
        except InputError:
            if self.folder in self._created:
                shutil.rmtree(self.folder, ignore_errors=True)
                with suppress(OSError):  # another process has put something there
                    for path in self._created[1:]:
                        path.rmdir()
            raise

    @property
    def begun(self) -> bool:
        """Whether an interrupted run left finished blocks."""
        return any(self.folder.glob("block-*"))

    def finish(self, curves: bytes, seconds: float | None, extra: Mapping[str, Any]) -> None:
        """Write the final files beside the blocks, and rename them into place; `extra` goes into run.json."""
        final = self.folder / "final"
        remove(final)
        final.mkdir()
        identity = {**self.identity, **extra, "curves": hashlib.sha256(curves).hexdigest()}
        write_atomically(final / run_folder.CURVES, curves)
        write_atomically(final / run_folder.SPEC, to_toml(self.spec).encode())
        if seconds is not None:
            write_atomically(final / run_folder.TIMING, seal(run_folder.timing(digest(identity), seconds)))
        write_atomically(final / run_folder.RUN, seal(identity))
        if self.target.exists():
            raise InputError("out", f"{str(self.target)!r} appeared meanwhile", "a folder of this run's own")
        os.rename(final, self.target)
        sync_folder(self.target.parent)
        for block in self.folder.glob("block-*"):  # before run.json, which says which run they belong to
            remove(block)
        shutil.rmtree(self.folder, ignore_errors=True)


@contextmanager
def claimed(plan: ExperimentPlan, target: Path | None, runs: Path) -> Iterator[Partial]:
    """The folder of a run, held: the one asked for, or the first free one of runs/NAME-001, -002, ...

    An unfinished run of this very plan is taken up again, unless another process is at it.
    """
    with ExitStack() as stack:
        if target is not None:
            partial = _open_target(plan, target, stack)
        else:
            names = (f"{plan.spec.name}-{number:03d}" for number in itertools.count(1))
            numbered = (Partial(runs / name, plan) for name in names)
            partial = next(candidate for candidate in numbered if _try_open(candidate, stack))
        yield partial


def _open_target(plan: ExperimentPlan, target: Path, stack: ExitStack) -> Partial:
    """Open and lock the folder asked for; retry if another process removed it in between."""
    while True:
        partial = Partial(target, plan)
        partial.open()
        with suppress(FileNotFoundError):
            stack.enter_context(partial.locked())
            return partial


def _try_open(partial: Partial, stack: ExitStack) -> bool:
    """Try to open and lock a folder; another process may take or finish it at any moment."""
    try:
        partial.open()
        stack.enter_context(partial.locked())
    except (RunLockedError, FileNotFoundError):
        return False
    except InputError:
        if partial.target.exists() or partial.folder.exists():
            return False
        raise
    return True


def _try_lock(handle: int) -> bool:
    """Try to take the lock; return whether this process has it."""
    try:
        import fcntl
    except ImportError:  # no advisory locks on this system
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _block_key(block: Path) -> tuple[list[int], str]:
    """The sort key of a block: the numbers in its name, so that pieces come in the order of trials."""
    return [int(number) for number in re.findall("[0-9]+", block.name)], block.name


def owner_of(folder: Path) -> str | None:
    """The identity hash of the run that an unfinished folder belongs to, or None if it has none yet.

    A process may be killed before it writes run.json, or at the very end. A folder with other files but
    without run.json is not ours: the name of one of the files is returned.
    """
    try:
        raw = content_of(folder / run_folder.RUN)
    except FileNotFoundError:
        others = [path.name for path in folder.iterdir() if path.name != "lock" and path.suffix != ".tmp"]
        return others[0] if others else None
    return digest(run_folder.identity_in(folder, raw, finished=False))


def packed(run: str, task: Task, parts: Sequence[Part]) -> bytes:
    """The bytes of the block of a task."""
    arrays = [{name: np.asarray(x, x.dtype.newbyteorder("<")) for name, x in part.items()} for part in parts]
    header = {
        "run": run,
        "pieces": [[piece.setting, piece.trials.start, piece.trials.stop] for piece in task],
        "arrays": [[[name, x.dtype.str, x.shape] for name, x in part.items()] for part in arrays],
    }
    numbers = b"".join(x.tobytes() for part in arrays for x in part.values())
    content = json.dumps(header).encode() + b"\n" + numbers
    return hashlib.sha256(content).hexdigest().encode() + b"\n" + content


def most_bytes(pieces: Set[Piece], jobs: Sequence[Job]) -> int:
    """The most bytes that a block of this plan can have."""
    cells = sum(prod(shape) for piece in pieces for shape in _expected_shapes(piece, jobs).values())
    return 8 * cells + WORDS * (1 + len(pieces))


def unpacked(file: bytes, run: str, pieces: Set[Piece], jobs: Sequence[Job]) -> dict[Piece, Part] | None:
    """The pieces of a block, or None if it is damaged, of another run, or not one that the plan asks for."""
    payload = _split_block(file)
    if payload is None or payload[0].get("run") != run:
        return None
    try:
        return _read_parts(*payload, pieces, jobs)
    except Exception:  # noqa: BLE001  the header can be wrong in any way
        return None


def _split_block(file: bytes) -> tuple[dict[str, Any], bytes] | None:
    """The header of a block and its numbers; None if its hash differs."""
    digest, _, content = file.partition(b"\n")
    if hashlib.sha256(content).hexdigest().encode() != digest:
        return None
    raw, _, numbers = content.partition(b"\n")
    header = _parse_header(raw)
    return None if header is None else (header, numbers)


def _parse_header(raw: bytes) -> dict[str, Any] | None:
    try:
        header = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return header if isinstance(header, dict) else None


def _read_parts(
    header: dict[str, Any], numbers: bytes, pieces: Set[Piece], jobs: Sequence[Job]
) -> dict[Piece, Part] | None:
    """Each piece with its arrays."""
    task = [Piece(setting, range(first, stop)) for setting, first, stop in header["pieces"]]
    if not set(task) <= pieces or len(set(task)) < max(1, len(task)):
        return None
    parts, start = dict[Piece, Part](), 0
    for piece, arrays in zip(task, header["arrays"], strict=True):
        expected = _expected_shapes(piece, jobs)
        if len(arrays) != len(expected) or {name: tuple(shape) for name, _, shape in arrays} != expected:
            return None
        parts[piece] = {}
        for name, kind, shape in arrays:
            values = np.frombuffer(numbers, FLOATS[FLOATS.index(kind)], prod(shape), start)
            parts[piece][name] = values.reshape(shape)
            start += values.nbytes
    is_finite = all(np.isfinite(values).all() for part in parts.values() for values in part.values())
    return parts if is_finite and start == len(numbers) else None


def _expected_shapes(piece: Piece, jobs: Sequence[Job]) -> dict[str, tuple[int, ...]]:
    """The names and shapes of the arrays of a piece."""
    job = jobs[piece.setting]
    shapes: dict[str, tuple[int, ...]] = {
        name: (len(job.agents), len(piece.trials), len(job.grid)) for name in job.losses
    }
    if len(job.curve):
        shapes |= {MOMENTS + name: (len(job.agents), len(job.curve), 2) for name in job.losses}
    return shapes
