"""A run folder: written once, whole or not at all, resumed after an interruption, never overwritten.

    NAME/spec.toml     the experiment; `unfog run NAME/spec.toml` repeats it
    NAME/run.json      seed, versions, fingerprint of the code, sha256 of the curves
    NAME/curves.nc     cumulative losses as netCDF 3 (dims agent, trial, round), for xarray
    NAME/timing.json   seconds it took; the one file that differs between equal runs

While it runs the folder is NAME.partial, with one file for each finished task; the last step is a
rename. A run that was interrupted goes on from them if spec and code are still the same.
"""

import hashlib
import itertools
import json
import math
import os
import platform
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib import import_module, metadata, resources
from pathlib import Path
from typing import Any

from unfog.agents.assemble import PLACES
from unfog.inputs import REFERENCE, InputError
from unfog.lab import blocks
from unfog.lab.prepare import Plan
from unfog.lab.spec import KINDS, to_toml
from unfog.simulate.job import Job, Part
from unfog.simulate.tasks import Piece, Task
from unfog.version import __version__
from unfog.worlds.composed import Composed

NUMERIC = (  # what decides results, but for the maths on paper in the rest of `theory`
    "maths",
    "model",
    "features",
    "agents",
    "worlds",
    "simulate",
    "inputs.py",
    "theory/regret.py",
    "lab/until.py",
    *sorted(
        f"lab/{home[-1]}.py" for home in (w.__module__.split(".") for w in KINDS.values()) if "lab" in home
    ),
    "lab/ratings.py",
)


def own_modules(plan: Plan) -> set[str]:
    """The modules named module:name, and those that the classes of the agents' parts live in."""
    named = [*plan.spec.run.agents, *(fields.get("features") for _, fields in plan.spec.settings())]
    found = {name.partition(":")[0] for name in named if isinstance(name, str) and REFERENCE.fullmatch(name)}
    parts = [vars(agent)[place] for agent in plan.work.jobs[0].agents for place in PLACES]
    return found | {kind.__module__ for part in parts for kind in type(part).__mro__}


def fingerprint(own: Iterable[str] = ()) -> str:
    """A hash of the code that decides results, so that old and new code never mix in one run.

    Modules of one's own bring their file or, where they are in a package, all files of the outermost one.
    """
    paths = [Path(str(resources.files("unfog") / name)) for name in NUMERIC]
    for name in sorted({name.partition(".")[0] for name in own} - {"unfog", *sys.stdlib_module_names}):
        module = vars(import_module(name))
        paths += map(Path, module.get("__path__") or filter(None, [module.get("__file__")]))
    digest = hashlib.sha256()
    for path in paths:
        for file in sorted([*path.rglob("*.py"), *path.rglob("*.cu")]) if path.is_dir() else [path]:
            digest.update(file.read_bytes())
    return digest.hexdigest()


def manifest(plan: Plan) -> dict[str, Any]:
    """What identifies a run."""
    spec = plan.spec
    packages = ["numpy", "scipy", "xarray", *plan.work.engine.packages, *KINDS[spec.problem["kind"]].packages]
    versions = {name: metadata.version(name) for name in packages}
    data = [one.digest for one in plan.problems if isinstance(one, Composed) and one.digest]
    return {
        **({"data": data} if data else {}),
        "experiment": spec.name,
        "seed": spec.run.seed,
        "versions": {"unfog": __version__, "python": platform.python_version(), **versions},
        "code": fingerprint(own_modules(plan)),
        "spec": hashlib.sha256(to_toml(spec).encode()).hexdigest(),
    }


def write_atomically(path: Path, content: bytes) -> None:
    """The file appears whole, or not at all."""
    temporary = path.with_name(path.name + ".tmp")
    with open(temporary, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Make a rename durable; not every system lets a folder be opened."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _json(data: Any) -> bytes:
    return (json.dumps(data, indent=2, sort_keys=True) + "\n").encode()


class BeingWrittenError(InputError):
    """Another process holds the folder."""


class Partial:
    """A run in progress."""

    def __init__(self, target: Path, plan: Plan) -> None:
        """Open NAME.partial, keeping the blocks in it if they belong to this very run."""
        self.target, self.spec = target, plan.spec
        self.folder = target.parent / f"{target.name}.partial"
        self.identity = manifest(plan)

    def open(self) -> None:
        """Make the folder, or take it over."""
        try:
            self._open()
        except OSError as error:
            problem = f"{str(self.target)!r} cannot be made ({error.strerror})"
            raise InputError("out", problem, "a folder that can be made") from None

    def _open(self) -> None:
        if not self.target.name or self.target.exists() or self.target.is_symlink():
            problem = f"{str(self.target)!r} exists already"
            raise InputError("out", problem, "a folder that does not exist yet")
        if self.folder.exists() and not self.matches():
            problem = f"{str(self.folder)!r} holds another unfinished run"
            raise InputError("out", problem, "another folder, or remove the unfinished run")
        self.folder.mkdir(parents=True, exist_ok=True)
        if not (self.folder / "run.json").exists():
            write_atomically(self.folder / "run.json", _json(self.identity))

    def matches(self) -> bool:
        """Whether what is there belongs to this spec and this code."""
        try:
            return bool(json.loads((self.folder / "run.json").read_bytes()) == self.identity)
        except FileNotFoundError:
            return not any(self.folder.iterdir())
        except (OSError, ValueError):
            return False

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep a second process out; the lock dies with its holder."""
        with open(self.folder / "lock", "wb") as lock:
            if not _lock(lock.fileno()):
                raise BeingWrittenError(
                    "out",
                    f"{str(self.folder)!r} is being written",
                    "another folder, or wait for it to be done",
                )
            yield

    def save(self, task: Task, parts: Sequence[Part]) -> None:
        """Keep what came of a task."""
        first, last = task[0], task[-1]
        name = f"block-{first.setting}-{first.trials.start}-{last.setting}-{last.trials.stop}"
        write_atomically(self.folder / name, blocks.packed(task, parts))

    def blocks(self, jobs: Sequence[Job]) -> Iterator[tuple[Piece, Part]]:
        """All pieces that are there; a damaged block is removed, and its pieces are played again."""
        seen = set[Piece]()
        for path in sorted(self.folder.glob("block-*")):
            found = blocks.unpacked(path.read_bytes(), jobs)
            if found is None or seen & found.keys():
                path.unlink(missing_ok=True)
                continue
            seen |= found.keys()
            yield from found.items()

    def finish(self, curves: bytes, seconds: float, found: Mapping[str, Any]) -> None:
        """Write the final files beside the blocks, and rename them into place; what was `found` is said."""
        final = self.folder / "final"
        shutil.rmtree(final, ignore_errors=True)
        final.mkdir()
        write_atomically(final / "curves.nc", curves)
        write_atomically(final / "spec.toml", to_toml(self.spec).encode())
        write_atomically(final / "timing.json", _json({"seconds": seconds}))
        identity = {**self.identity, **found, "curves": hashlib.sha256(curves).hexdigest()}
        write_atomically(final / "run.json", _json(identity))
        if self.target.exists():
            raise InputError("out", f"{str(self.target)!r} appeared meanwhile", "a folder of this run's own")
        os.rename(final, self.target)
        _sync_folder(self.target.parent)
        shutil.rmtree(self.folder, ignore_errors=True)


def _lock(handle: int) -> bool:
    try:
        import fcntl
    except ImportError:  # no advisory locks on this system
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


@contextmanager
def claimed(plan: Plan, target: Path | None, runs: Path) -> Iterator[Partial]:
    """The folder of a run, held: the one asked for, or the first free one of runs/NAME-001, -002, ...

    An unfinished run of this very plan is taken up again, unless another process is at it.
    """
    with ExitStack() as held:
        if target is not None:
            partial = Partial(target, plan)
            partial.open()
            held.enter_context(partial.locked())
        else:
            names = (f"{plan.spec.name}-{number:03d}" for number in itertools.count(1))
            numbered = (Partial(runs / name, plan) for name in names)
            partial = next(found for found in numbered if _free(found, held))
        yield partial


def _free(partial: Partial, held: ExitStack) -> bool:
    """Whether this folder could be taken; another process may take or finish it at any moment."""
    if partial.target.exists() or (partial.folder.exists() and not partial.matches()):
        return False
    try:
        partial.open()
        held.enter_context(partial.locked())
    except (BeingWrittenError, FileNotFoundError):
        return False
    except InputError:
        if partial.target.exists() or partial.folder.exists():
            return False
        raise
    if partial.target.exists():  # finished by another just before the lock was ours: what we made is empty
        shutil.rmtree(partial.folder, ignore_errors=True)
        return False
    return True


def read(folder: Path) -> tuple[dict[str, Any], bytes]:
    """The identity of a finished run, and its curves, checked against their hash."""
    run = folder / "run.json"
    allowed = "a folder made by `unfog run`"
    if not folder.is_dir():
        raise InputError("run", f"no folder {str(folder)!r}", allowed)
    if folder.name.endswith(".partial"):
        raise InputError(
            "run", f"{str(folder)!r} is unfinished", allowed + "; the same command goes on with it"
        )
    try:
        identity = json.loads(run.read_bytes())
        curves, spec = ((folder / name).read_bytes() for name in ("curves.nc", "spec.toml"))
        expected = {"curves.nc": identity["curves"], "spec.toml": identity["spec"]}
    except FileNotFoundError as error:
        raise InputError("run", f"{str(folder)!r} has no {Path(error.filename).name}", allowed) from None
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError("run", f"{str(run)!r} is damaged", allowed) from None
    for name, content in (("curves.nc", curves), ("spec.toml", spec)):
        if hashlib.sha256(content).hexdigest() != expected[name]:
            raise InputError("run", f"{str(folder / name)!r} is damaged: its hash differs", allowed)
    return identity, curves


def seconds(folder: Path) -> float | None:
    """How long the run took, where that is known."""
    try:
        found = float(json.loads((folder / "timing.json").read_bytes())["seconds"])
        return found if math.isfinite(found) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
