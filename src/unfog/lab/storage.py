"""A run folder while it is written: whole or not at all, resumed after an interruption, never overwritten.

    NAME/spec.toml     the experiment; `unfog run NAME/spec.toml` repeats it
    NAME/run.json      seed, versions, fingerprint of the code, sha256 of the spec, the curves and itself
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
    sealed,
    sync_folder,
    write_atomically,
)
from unfog.lab import run_folder
from unfog.lab.prepare import Plan
from unfog.lab.run_folder import UNFINISHED, manifest, read
from unfog.lab.spec import to_toml
from unfog.simulation.job import MOMENTS, Job, Part, Piece, Task
from unfog.validation import InputError

FLOATS = ("<f4", "<f8")
WORDS = 8192  # bytes of what is said of a piece besides its numbers, at most
say = logging.getLogger("unfog.lab").warning


class BeingWrittenError(InputError):
    """Another process holds the folder."""


class Partial:
    """A run in progress."""

    def __init__(self, target: Path, plan: Plan) -> None:
        """The folder NAME.partial of this very run; nothing is made yet."""
        self.target, self.spec = target, plan.spec
        self.folder = target.parent / f"{target.name}{UNFINISHED}"
        self._plan = plan
        self._made = list[Path]()  # folders that were not there before, the innermost first

    @cached_property
    def identity(self) -> dict[str, Any]:
        """What run.json says; to be found out only where a folder may be ours."""
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
            raise self._exists()
        if self.folder.exists():
            self._check_owner()
        self._made = [path for path in (self.folder, *self.folder.parents) if not path.exists()]
        self.folder.mkdir(parents=True, exist_ok=True)

    def _exists(self) -> InputError:
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
        """Keep a second process out; the lock dies with its holder."""
        with self._lock():
            self._settle()
            yield

    @contextmanager
    def _lock(self) -> Iterator[None]:
        with open(self.folder / "lock", "wb") as lock:
            if not _taken(lock.fileno()):
                problem = f"{str(self.folder)!r} is being written"
                raise BeingWrittenError("out", problem, "another folder, or wait for it to be done")
            yield

    def _settle(self) -> None:
        """Once the folder is ours alone: look again, clear away what a kill left, say whose it is."""
        if self.target.exists():  # finished by another just before the lock was ours
            self._remove_leftover()
            raise self._exists()
        self._check_owner()
        for path in (*self.folder.glob("*.tmp"), self.folder / "final"):
            remove(path)
        if not (self.folder / run_folder.RUN).exists():
            write_atomically(self.folder / run_folder.RUN, sealed(self.identity))

    def tidy(self) -> None:
        """Remove what a kill after the last step left beside a finished run."""
        if self._is_leftover():
            with suppress(BeingWrittenError, OSError), self._lock():
                self._remove_leftover()

    def _is_leftover(self) -> bool:
        """Whether both folders are there, and of one run."""
        try:
            return owner_of(self.folder) in (None, digest(read(self.target).identity))
        except (InputError, OSError, DamagedError):
            return False

    def _remove_leftover(self) -> None:
        if self._is_leftover():
            shutil.rmtree(self.folder, ignore_errors=True)

    def save(self, task: Task, parts: Sequence[Part]) -> None:
        """Keep what came of a task."""
        first, last = task[0], task[-1]
        name = f"block-{first.setting}-{first.trials.start}-{last.setting}-{last.trials.stop}"
        write_atomically(self.folder / name, packed(self.run, task, parts))

    def blocks(self, jobs: Sequence[Job]) -> Iterator[tuple[Piece, Part]]:
        """All pieces that are there; a damaged block is removed, and its pieces are played again."""
        pieces, seen = frozenset(self._plan.work.pieces), set[Piece]()
        most = most_bytes(pieces, jobs)
        for path in sorted(self.folder.glob("block-*"), key=_place):
            try:
                check(path, most)  # not while it is read: room for so much would be made at once
                found = unpacked(content_of(path), self.run, pieces, jobs)
            except (OSError, DamagedError):
                found = None
            if found is None or seen & found.keys():
                say("unfog: %s is damaged; what it held is played again", path)
                remove(path)
                continue
            seen |= found.keys()
            yield from found.items()

    @contextmanager
    def refusable(self) -> Iterator[None]:
        """A run that is refused while it is played leaves nothing, unless it had been begun before."""
        try:
            yield
        except InputError:
            if self.folder in self._made:
                shutil.rmtree(self.folder, ignore_errors=True)
                with suppress(OSError):  # somebody else has put something there
                    for path in self._made[1:]:
                        path.rmdir()
            raise

    @property
    def begun(self) -> bool:
        """Whether an interrupted run left something of itself."""
        return any(self.folder.glob("block-*"))

    def finish(self, curves: bytes, seconds: float | None, found: Mapping[str, Any]) -> None:
        """Write the final files beside the blocks, and rename them into place; what was `found` is said."""
        final = self.folder / "final"
        remove(final)
        final.mkdir()
        identity = {**self.identity, **found, "curves": hashlib.sha256(curves).hexdigest()}
        write_atomically(final / run_folder.CURVES, curves)
        write_atomically(final / run_folder.SPEC, to_toml(self.spec).encode())
        if seconds is not None:
            write_atomically(final / run_folder.TIMING, sealed(run_folder.timing(digest(identity), seconds)))
        write_atomically(final / run_folder.RUN, sealed(identity))
        if self.target.exists():
            raise InputError("out", f"{str(self.target)!r} appeared meanwhile", "a folder of this run's own")
        os.rename(final, self.target)
        sync_folder(self.target.parent)
        for block in self.folder.glob("block-*"):  # before run.json, which says whose they are
            remove(block)
        shutil.rmtree(self.folder, ignore_errors=True)


@contextmanager
def claimed(plan: Plan, target: Path | None, runs: Path) -> Iterator[Partial]:
    """The folder of a run, held: the one asked for, or the first free one of runs/NAME-001, -002, ...

    An unfinished run of this very plan is taken up again, unless another process is at it.
    """
    with ExitStack() as held:
        if target is not None:
            partial = _held(plan, target, held)
        else:
            names = (f"{plan.spec.name}-{number:03d}" for number in itertools.count(1))
            numbered = (Partial(runs / name, plan) for name in names)
            partial = next(found for found in numbered if _free(found, held))
        yield partial


def _held(plan: Plan, target: Path, held: ExitStack) -> Partial:
    """The folder asked for; again where another process took its own away between two steps of ours."""
    while True:
        partial = Partial(target, plan)
        partial.open()
        with suppress(FileNotFoundError):
            held.enter_context(partial.locked())
            return partial


def _free(partial: Partial, held: ExitStack) -> bool:
    """Whether this folder could be taken; another process may take or finish it at any moment."""
    try:
        partial.open()
        held.enter_context(partial.locked())
    except (BeingWrittenError, FileNotFoundError):
        return False
    except InputError:
        if partial.target.exists() or partial.folder.exists():
            return False
        raise
    return True


def _taken(handle: int) -> bool:
    """Whether the lock is ours now."""
    try:
        import fcntl
    except ImportError:  # no advisory locks on this system
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _place(block: Path) -> tuple[list[int], str]:
    """Order blocks by the numbers in their names: pieces come in the order of trials, and few wait."""
    return [int(number) for number in re.findall("[0-9]+", block.name)], block.name


def owner_of(folder: Path) -> str | None:
    """The run that an unfinished folder is of, by the hash of its identity; None where it is nobody's yet.

    A kill may come before run.json is written, or at the very end. A folder with other files and without it
    is somebody else's: the name of one comes back.
    """
    try:
        said = content_of(folder / run_folder.RUN)
    except FileNotFoundError:
        theirs = [path.name for path in folder.iterdir() if path.name != "lock" and path.suffix != ".tmp"]
        return theirs[0] if theirs else None
    return digest(run_folder.identity_in(folder, said, finished=False))


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
