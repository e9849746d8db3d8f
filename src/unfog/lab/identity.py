"""What a run is: its spec, its seed, the versions and the code that decide its result."""

import hashlib
import platform
import sys
from collections.abc import Iterable
from importlib import import_module, metadata, resources
from pathlib import Path
from typing import Any

from unfog.agents.agent import PLACES
from unfog.lab.prepare import Plan
from unfog.lab.spec import KINDS, to_toml
from unfog.validation import REFERENCE
from unfog.version import __version__
from unfog.worlds.composed import Composed

LAYOUT = 2  # of a run folder and its files; folders of the first one do not say theirs
NUMERIC = (  # what decides results, but for the maths on paper in the rest of `theory`
    "maths",
    "model",
    "features",
    "agents",
    "worlds",
    "simulate",
    "validation.py",
    "theory/regret.py",
    "lab/until.py",
    *sorted(
        f"lab/{home[-1]}.py" for home in (w.__module__.split(".") for w in KINDS.values()) if "lab" in home
    ),
    "lab/ratings.py",
    "lab/datasets.py",
)


def own_modules(plan: Plan) -> set[str]:
    """The modules named module:name, and those that the classes of the agents' parts live in."""
    named = [*plan.spec.run.agents, *(fields.get("features") for _, fields in plan.spec.settings())]
    found = {name.partition(":")[0] for name in named if isinstance(name, str) and REFERENCE.fullmatch(name)}
    parts = [vars(agent)[place] for agent in plan.work.jobs[0].agents for place in PLACES]
    return found | {kind.__module__ for part in parts for kind in type(part).__mro__}


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


def fingerprint(own: Iterable[str] = ()) -> str:
    """A hash of the code that decides results, so that old and new code never mix in one run."""
    digest = hashlib.sha256()
    for file in files(own):
        digest.update(file.read_bytes())
    return digest.hexdigest()


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
