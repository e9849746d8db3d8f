"""What a run is, and how a finished run folder is read.

A run is its spec, its seed, and the versions and the code that decide its result. `run.json` holds this
identity with the hashes of `spec.toml` and `curves.nc`, and is sealed (_io.py). `timing.json` is sealed, too,
and names its run. Every file is checked against its hash when it is read, and a damaged one is refused by
name. Folders of the first layout have hashes of the spec and the curves alone.
"""

import hashlib
import json
import math
import os
import platform
import sys
import tempfile
from collections.abc import Iterable
from importlib import import_module, metadata, resources
from pathlib import Path
from typing import Any, NamedTuple

from unfog._io import DamagedError, content, digest, near, parsed, reason, unsealed
from unfog.agents.agent import PLACES
from unfog.lab.prepare import Plan
from unfog.lab.spec import KINDS, to_toml
from unfog.validation import REFERENCE, InputError, shown
from unfog.version import __version__
from unfog.worlds.composed import Composed

LAYOUT = 2  # of a run folder and its files; folders of the first one do not say theirs
NUMERIC = (  # what decides results, but for the maths on paper in the rest of `theory`
    "maths",
    "channel",
    "features",
    "agents",
    "worlds",
    "simulation",
    "_table.py",
    "validation.py",
    "theory/regret.py",
    "lab/stopping.py",
    "lab/datasets",
)

RUN, SPEC, CURVES, TIMING = "run.json", "spec.toml", "curves.nc", "timing.json"
MADE = "a folder made by `unfog run`"
FIRST = {"code", "experiment", "seed", "spec", "versions"}  # what an identity of the first layout says
ENDS = ("curves", "trials_found")  # what a run.json says that is known at the end of a run alone

UNFINISHED = ".partial"  # what a run's folder is called until it is done (lab/storage.py)
OURS = f"another name: folders that end in {UNFINISHED} are of unfinished runs"


class NewerError(InputError):
    """A folder that only a newer version knows how to read."""


class Finished(NamedTuple):
    """All that is in a run folder."""

    identity: dict[str, Any]  # as `manifest` made it
    curves: bytes
    seconds: float | None  # None: it is not known

    @property
    def layout(self) -> int:
        """Of the folder's files."""
        return layout_of(self.identity)


def run_folder(out: str | os.PathLike[str]) -> Path:
    """The folder of a run, whose name may not be that of an unfinished one."""
    path = _path("out", out, "a folder that does not exist yet")
    if path.name.endswith(UNFINISHED):
        raise InputError("out", repr(str(path)), OURS)
    return path


def made_folder(field: str, out: str | os.PathLike[str]) -> Path:
    """A folder that is there or can be made, and written to: asked before anything long is begun."""
    allowed = "a folder that can be made and written to"
    path = _path(field, out, allowed)
    try:
        there = next(one for one in (path, *path.absolute().parents) if one.exists())
        if not there.is_dir():
            raise InputError(field, str(path), allowed)
        with tempfile.TemporaryFile(dir=there):  # to root all seems to be permitted: only who tries knows
            return path
    except OSError as error:
        problem = f"{str(path)!r} cannot be made or written to ({reason(error)})"
        raise InputError(field, problem, allowed) from None


def _path(field: str, out: str | os.PathLike[str], allowed: str) -> Path:
    if not isinstance(out, str | os.PathLike) or not os.fspath(out) or "\0" in str(out):
        raise InputError(field, shown(out), allowed)
    return Path(out)


def manifest(plan: Plan) -> dict[str, Any]:
    """What identifies a run."""
    spec = plan.spec
    packages = ["numpy", "scipy", "xarray", *plan.work.engine.packages, *KINDS[spec.problem["kind"]].packages]
    versions = {name: metadata.version(name) for name in packages}
    data = [one.digest for one in plan.problems if isinstance(one, Composed) and one.digest]
    return {
        "layout": LAYOUT,
        **({"data": data} if data else {}),
        "experiment": spec.name,
        "seed": spec.run.seed,
        "versions": {"unfog": __version__, "python": platform.python_version(), **versions},
        "code": fingerprint(own_modules(plan)),
        "spec": hashlib.sha256(to_toml(spec).encode()).hexdigest(),
    }


def own_modules(plan: Plan) -> set[str]:
    """The modules named module:name, and those that the classes of the agents' parts live in."""
    named = [*plan.spec.run.agents, *(fields.get("features") for _, fields in plan.spec.settings())]
    found = {name.partition(":")[0] for name in named if isinstance(name, str) and REFERENCE.fullmatch(name)}
    parts = [vars(agent)[place] for agent in plan.work.jobs[0].agents for place in PLACES]
    return found | {kind.__module__ for part in parts for kind in type(part).__mro__}


def fingerprint(own: Iterable[str] = ()) -> str:
    """A hash of the code that decides results, so that old and new code never mix in one run."""
    digest = hashlib.sha256()
    for file in files(own):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def files(own: Iterable[str] = ()) -> list[Path]:
    """The files of the code that decides results: sources of Python and CUDA, room by room.

    Modules of one's own bring their file or, where they are in a package, all files of the outermost one.
    """
    paths = [Path(str(resources.files("unfog") / name)) for name in NUMERIC]
    for name in sorted({name.partition(".")[0] for name in own} - {"unfog", *sys.stdlib_module_names}):
        module = vars(import_module(name))
        paths += map(Path, module.get("__path__") or filter(None, [module.get("__file__")]))
    found = list[Path]()
    for path in paths:
        found += sorted([*path.rglob("*.py"), *path.rglob("*.cu")]) if path.is_dir() else [path]
    return found


def read(folder: Path) -> Finished:
    """A finished run, whole; anything else is refused."""
    identity = identity_of(folder)
    owner = digest(identity)
    curves, spec = (content("run", folder / name, MADE) for name in (CURVES, SPEC))
    for name, found, expected in ((CURVES, curves, identity["curves"]), (SPEC, spec, identity.get("spec"))):
        if hashlib.sha256(found).hexdigest() != expected:
            raise InputError("run", f"{str(folder / name)!r} is damaged: its hash differs", MADE)
    begun = {name: value for name, value in identity.items() if name not in ENDS}
    return Finished(begun, curves, _seconds(folder, owner, layout_of(identity)))


def identity_of(folder: Path) -> dict[str, Any]:
    """What the run.json of a finished run says."""
    if not folder.is_dir():
        raise InputError("run", f"no folder {str(folder)!r}", MADE, near(folder))
    if folder.name.endswith(UNFINISHED):
        problem = f"{str(folder)!r} is unfinished"
        raise InputError("run", problem, MADE + "; the same command goes on with it")
    try:
        found = stated(content("run", folder / RUN, MADE), {*FIRST, "curves"})
    except DamagedError as error:
        raise InputError("run", f"{str(folder / RUN)!r} is damaged: {error}", MADE) from None
    refuse_newer(folder, found, _version(found) or "of another version")
    return found


def stated(said: bytes, first: set[str]) -> dict[str, Any]:
    """What a run.json says, which has these entries: sealed, or as the first layout had it.

    Other files are sealed, too, and may have come in its place. What a newer one has to say is not known.
    """
    try:
        found = unsealed(said)
    except DamagedError:
        return _first(said, first)
    complete = first <= found.keys() and ("curves" in found) == ("curves" in first)
    if layout_of(found) > LAYOUT or (complete and _version(found) is not None):
        return found
    raise DamagedError("it is another file")


def _first(said: bytes, first: set[str]) -> dict[str, Any]:
    """As the first layout had it: these entries and nothing else, in the order of the alphabet."""
    found = parsed(said)
    old = json.dumps(found, indent=2, sort_keys=True) + "\n"
    if _version(found) is not None and found.keys() - {"data"} == first and old.encode() == said:
        return found
    raise DamagedError("its hash differs")


def _version(found: dict[str, Any]) -> str | None:
    """The version of this package that a run.json names, where it does."""
    versions = found.get("versions")
    return str(versions["unfog"]) if isinstance(versions, dict) and "unfog" in versions else None


def layout_of(identity: dict[str, Any]) -> int:
    """What a folder says of its layout; the first one said nothing."""
    found = identity.get("layout", 1)
    if type(found) is int and found >= 1:
        return found
    raise DamagedError("its layout is no whole number, at least 1")


def refuse_newer(folder: Path, said: dict[str, Any], version: str) -> None:
    """Raise NewerError for a folder in a newer layout, and InputError if its layout is damaged."""
    try:
        found = layout_of(said)
    except DamagedError as error:
        raise InputError("run", f"{str(folder)!r} is damaged: {error}", MADE) from None
    if found > LAYOUT:
        problem = f"{str(folder)!r} was made by unfog {version}, in layout {found}"
        raise NewerError("run", problem, f"layouts up to {LAYOUT}, or a newer unfog")


def older(folder: Path) -> str | None:
    """What is to be said of a folder that an older version made."""
    found = identity_of(folder)
    said = f"{folder} was made by unfog {_version(found)}, in an older layout: not all has a hash"
    return None if layout_of(found) == LAYOUT else said


def seconds(folder: Path) -> float | None:
    """How long a finished run took, where that is known."""
    identity = identity_of(folder)
    return _seconds(folder, digest(identity), layout_of(identity))


def timing(owner: str, seconds: float) -> dict[str, Any]:
    """What timing.json says: how long the run of this run.json took."""
    return {"run": owner, "seconds": seconds}


def _seconds(folder: Path, owner: str, layout: int) -> float | None:
    """How long a run took; it may be unknown, but not wrong."""
    if not (folder / TIMING).exists():
        return None
    said = content("run", folder / TIMING, MADE)
    try:
        found = unsealed(said) if layout > 1 else {"run": owner, **parsed(said)}
        if found == timing(owner, seconds := float(found["seconds"])) and 0 <= seconds < math.inf:
            return seconds
    except (DamagedError, LookupError, TypeError, ValueError):
        pass
    problem = f"{str(folder / TIMING)!r} is damaged"
    raise InputError("run", problem, "one made with the run; or remove it, and the time is not known")
