"""What a run is, and how a finished run folder is read.

A run is its spec, its seed, and the versions and the code that decide its result. `run.json` holds this
identity with the hashes of `spec.toml` and `curves.nc`, and is sealed (_io.py). `timing.json` is sealed, too,
and names its run. Every file is checked against its hash when it is read, and a damaged one is refused by
name. So is a folder of another layout, with the version that made it.
"""

import hashlib
import math
import os
import platform
import sys
import tempfile
from collections.abc import Iterable
from importlib import import_module, metadata, resources
from pathlib import Path
from typing import Any, NamedTuple

from unfog._io import SEAL, DamagedError, content, digest, near, parse_json, reason, unseal
from unfog.agents.agent import PLACES
from unfog.lab.prepare import ExperimentPlan
from unfog.lab.spec import KINDS, to_toml
from unfog.validation import REFERENCE, InputError, display
from unfog.version import __version__
from unfog.worlds.composed import Composed

LAYOUT = 3  # of a run folder and its files
NUMERIC = (  # what determines results; the rest of `theory` does not
    "maths",
    "channel",
    "features",
    "agents",
    "worlds",
    "simulation",
    "_frames.py",
    "_table.py",
    "validation.py",
    "theory/regret.py",
    "lab/stopping.py",
    "lab/datasets",
)

RUN, SPEC, CURVES, TIMING = "run.json", "spec.toml", "curves.nc", "timing.json"
MADE = "a folder made by `unfog run`"
ENTRIES = {"code", "experiment", "seed", "spec", "versions"}  # what an identity has, at least
ENDS = ("curves", "trials_found")  # what a run.json says that is known at the end of a run alone

UNFINISHED = ".partial"  # what a run's folder is called until it is done (lab/storage.py)
OURS = f"another name: folders that end in {UNFINISHED} are of unfinished runs"


class LayoutError(InputError):
    """A folder that another version of unfog made, in another layout."""


class Finished(NamedTuple):
    """All that is in a run folder."""

    identity: dict[str, Any]  # as `manifest` made it
    curves: bytes
    seconds: float | None  # None: it is not known


def run_folder(out: str | os.PathLike[str]) -> Path:
    """The folder of a run, whose name may not be that of an unfinished one."""
    path = _check_path("out", out, "a folder that does not exist yet")
    if path.name.endswith(UNFINISHED):
        raise InputError("out", repr(str(path)), OURS)
    return path


def made_folder(field: str, out: str | os.PathLike[str]) -> Path:
    """Check that a folder exists or can be created and is writable, before anything long is begun."""
    allowed = "a folder that can be made and written to"
    path = _check_path(field, out, allowed)
    try:
        existing = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
        if not existing.is_dir():
            raise InputError(field, str(path), allowed)
        with tempfile.TemporaryFile(dir=existing):  # permissions tell nothing for root: only trying does
            return path
    except OSError as error:
        problem = f"{str(path)!r} cannot be made or written to ({reason(error)})"
        raise InputError(field, problem, allowed) from None


def _check_path(field: str, out: str | os.PathLike[str], allowed: str) -> Path:
    if not isinstance(out, str | os.PathLike) or not os.fspath(out) or "\0" in str(out):
        raise InputError(field, display(out), allowed)
    return Path(out)


def manifest(plan: ExperimentPlan) -> dict[str, Any]:
    """What identifies a run: its spec, seed, versions and code."""
    spec = plan.spec
    packages = ["numpy", "scipy", "xarray", *plan.work.engine.packages, *KINDS[spec.problem["kind"]].packages]
    versions = {name: metadata.version(name) for name in packages}
    data = [problem.digest for problem in plan.problems if isinstance(problem, Composed) and problem.digest]
    return {
        "layout": LAYOUT,
        **({"data": data} if data else {}),
        "experiment": spec.name,
        "seed": spec.run.seed,
        "versions": {"unfog": __version__, "python": platform.python_version(), **versions},
        "code": code_hash(own_modules(plan)),
        "spec": hashlib.sha256(to_toml(spec).encode()).hexdigest(),
    }


def own_modules(plan: ExperimentPlan) -> set[str]:
    """The modules named module:name, and those that the classes of the agents' parts live in."""
    named = [*plan.spec.run.agents, *(fields.get("features") for _, fields in plan.spec.settings())]
    modules = {
        name.partition(":")[0] for name in named if isinstance(name, str) and REFERENCE.fullmatch(name)
    }
    parts = [vars(agent)[field] for agent in plan.work.jobs[0].agents for field in PLACES]
    return modules | {kind.__module__ for part in parts for kind in type(part).__mro__}


def code_hash(modules: Iterable[str] = ()) -> str:
    """A hash of the code that decides results, so that old and new code never mix in one run."""
    digest = hashlib.sha256()
    for file in files(modules):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def files(modules: Iterable[str] = ()) -> list[Path]:
    """The files of the code that decides results: sources of Python and CUDA, folder by folder.

    A user's own module adds its file or, if it is in a package, all files of the outermost package.
    """
    paths = [Path(str(resources.files("unfog") / name)) for name in NUMERIC]
    for name in sorted({name.partition(".")[0] for name in modules} - {"unfog", *sys.stdlib_module_names}):
        module = vars(import_module(name))
        paths += map(Path, module.get("__path__") or filter(None, [module.get("__file__")]))
    sources = list[Path]()
    for path in paths:
        sources += sorted([*path.rglob("*.py"), *path.rglob("*.cu")]) if path.is_dir() else [path]
    return sources


def read(folder: Path) -> Finished:
    """Read a finished run; anything incomplete or damaged is refused."""
    identity = identity_of(folder)
    curves, spec = (content("run", folder / name, MADE) for name in (CURVES, SPEC))
    for name, stored, expected in ((CURVES, curves, identity["curves"]), (SPEC, spec, identity["spec"])):
        if hashlib.sha256(stored).hexdigest() != expected:
            raise InputError("run", f"{str(folder / name)!r} is damaged: its hash differs", MADE)
    begun = {name: value for name, value in identity.items() if name not in ENDS}
    return Finished(begun, curves, _read_seconds(folder, digest(identity)))


def identity_of(folder: Path) -> dict[str, Any]:
    """What the run.json of a finished run says."""
    if not folder.is_dir():
        raise InputError("run", f"no folder {str(folder)!r}", MADE, near(folder))
    if folder.name.endswith(UNFINISHED):
        problem = f"{str(folder)!r} is unfinished"
        raise InputError("run", problem, MADE + "; the same command goes on with it")
    raw = content("run", folder / RUN, MADE)
    try:
        return identity_in(folder, raw, finished=True)
    except DamagedError as error:
        raise InputError("run", f"{str(folder / RUN)!r} is damaged: {error}", MADE) from None


def identity_in(folder: Path, raw: bytes, *, finished: bool) -> dict[str, Any]:
    """Parse the bytes of a folder's run.json; raise DamagedError if they belong to another kind of file."""
    identity = in_this_layout(folder, raw)
    if (
        not identity.keys() >= ENTRIES
        or ("curves" in identity) != finished
        or _find_version(identity) is None
    ):
        raise DamagedError("it is another file")
    return identity


def in_this_layout(folder: Path, raw: bytes) -> dict[str, Any]:
    """Parse a sealed file that has a layout; raise LayoutError if another layout was used for the folder.

    The first layout had neither seals nor a number.
    """
    try:
        contents = unseal(raw)
        layout = contents.get("layout")
    except DamagedError:
        contents, layout = parse_json(raw), 1
        if {SEAL, "layout"} & contents.keys() or _find_version(contents) is None:
            raise
    if type(layout) is not int or layout < 1:
        raise DamagedError("its layout is no whole number, at least 1")
    if layout != LAYOUT:
        version = _find_version(contents) or "of another version"
        newer = ", or a newer unfog" * (layout > LAYOUT)
        problem = f"{str(folder)!r} was made by unfog {version}, in layout {layout}"
        raise LayoutError("run", problem, f"layout {LAYOUT}{newer}")
    return contents


def _find_version(contents: dict[str, Any]) -> Any:
    """The version of unfog that a run.json or a suite.json names, or None."""
    versions = contents.get("versions", contents)
    return versions.get("unfog") if isinstance(versions, dict) else None


def seconds(folder: Path) -> float | None:
    """How long a finished run took, where that is known."""
    return _read_seconds(folder, digest(identity_of(folder)))


def timing(owner: str, seconds: float) -> dict[str, Any]:
    """The content of timing.json: how long the run took, and the hash of its run.json."""
    return {"run": owner, "seconds": seconds}


def _read_seconds(folder: Path, owner: str) -> float | None:
    """How long a run took, or None if that is not stored; a damaged file is refused."""
    if not (folder / TIMING).exists():
        return None
    raw = content("run", folder / TIMING, MADE)
    try:
        contents = unseal(raw)
        if contents == timing(owner, seconds := float(contents["seconds"])) and 0 <= seconds < math.inf:
            return seconds
    except (DamagedError, LookupError, TypeError, ValueError):
        pass
    problem = f"{str(folder / TIMING)!r} is damaged"
    raise InputError("run", problem, "one made with the run; or remove it, and the time is not known")
