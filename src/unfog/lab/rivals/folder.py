"""The folder of a suite: a run folder for each problem, what was asked for, and the table once it is made.

    rivals-001/suite.json    what was asked, and the fingerprint of the code
    rivals-001/PROBLEM       a run folder (lab/store.py); beside it -slow, -dear, -tuning and -tuned
    rivals-001/table.json    the ratios; its being there says that the suite is done

An interrupted suite that was asked for the same, of the same code, is gone on with: finished problems are
read, the unfinished one is resumed.
"""

import itertools
import json
from pathlib import Path
from typing import Any

import xarray as xr

from unfog.files import is_file
from unfog.inputs import InputError
from unfog.lab import store
from unfog.lab.prepare import Plan
from unfog.lab.rivals.table import Comparison, from_plain, plain
from unfog.lab.run import Progress, keep, open_run
from unfog.version import __version__

NAME = "rivals"
ASKED, TABLE, TEXT = "suite.json", "table.json", "table.txt"


def identity(asked: dict[str, Any]) -> dict[str, Any]:
    """What a suite is: what was asked of which code."""
    whole = {"suite": NAME, "asked": asked, "unfog": __version__, "code": store.fingerprint()}
    return dict(json.loads(json.dumps(whole)))  # as it will be read again


def claim(asked: dict[str, Any], out: Path | None, runs: Path = Path("runs")) -> Path:
    """The folder asked for, or the first of runs/rivals-001, ... that is free or can be gone on with."""
    whole = identity(asked)
    if out is None:
        numbered = (runs / f"{NAME}-{number:03d}" for number in itertools.count(1))
        out = next(path for path in numbered if not path.exists() or _unfinished(path, whole))
    try:
        if out.exists() and not _unfinished(out, whole):
            allowed = "a folder that does not exist yet, or an unfinished suite of the same settings and code"
            raise InputError("out", f"{str(out)!r} exists already", allowed)
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        problem = f"{str(out)!r} cannot be made ({error.strerror})"
        raise InputError("out", problem, "a folder that can be made") from None
    store.write_atomically(out / ASKED, _json(whole))
    return out


def _unfinished(path: Path, whole: dict[str, Any]) -> bool:
    """Whether this folder holds an unfinished suite of this identity."""
    if (path / TABLE).exists():
        return False
    try:
        return bool(json.loads((path / ASKED).read_bytes()) == whole)
    except (OSError, ValueError):
        return False


def kept(folder: Path, plan: Plan, progress: Progress) -> xr.Dataset:
    """The run of a plan in its place in the folder: read where it is done, gone on with where it is not."""
    target = folder / plan.spec.name
    if not target.exists():
        return open_run(keep(plan, target, progress=progress))
    found, _ = store.read(target)
    if {name: value for name, value in found.items() if name != "curves"} != store.manifest(plan):
        raise InputError("out", f"{str(target)!r} holds another run", "another folder, or remove that run")
    return open_run(target)


def is_suite(path: Path) -> bool:
    """Whether a folder is that of a suite, finished or not."""
    return is_file(path / ASKED)


def read(path: Path) -> Comparison:
    """What a finished suite found."""
    if not (path / TABLE).exists():
        allowed = "a finished one; the same `unfog run rivals` goes on with it"
        raise InputError("run", f"{str(path)!r} is an unfinished suite: it has no {TABLE} yet", allowed)
    try:
        return from_plain(json.loads((path / TABLE).read_bytes()))
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        raise InputError("run", f"{str(path / TABLE)!r} is damaged", "a table made by `unfog run`") from None


def finish(folder: Path, found: Comparison) -> None:
    """Keep the table, for programs and for people."""
    store.write_atomically(folder / TEXT, f"{found}\n".encode())
    store.write_atomically(folder / TABLE, _json(plain(found)))


def _json(data: Any) -> bytes:
    return (json.dumps(data, indent=1, allow_nan=False) + "\n").encode()
