"""The folder of a suite: a run folder for each problem, what was asked for, and the table once it is made.

    rivals-001/suite.json    what was asked, and the fingerprint of the code
    rivals-001/PROBLEM       a run folder (lab/storage.py); beside it -slow, -dear, -tuning and -tuned
    rivals-001/table.txt     the table for people
    rivals-001/table.json    the ratios, and a hash of table.txt; its being there says that the suite is done

An interrupted suite that was asked for the same, of the same code, is gone on with: finished problems are
read, the unfinished one is resumed. Both JSON files are sealed (_io.py), and the table says of which suite it
is.

Damage is repaired by the same command: a table is made anew, and the run of a problem is played again. Where
suite.json is damaged the folder is refused.
"""

import hashlib
import itertools
import json
import logging
from pathlib import Path
from typing import Any

import xarray as xr

from unfog._io import (
    FULL,
    DamagedError,
    content_of,
    digest,
    is_file,
    reason,
    remove,
    sealed,
    unsealed,
    write_atomically,
)
from unfog.lab import run_folder
from unfog.lab.baselines.report import Comparison, from_plain, plain
from unfog.lab.prepare import Plan
from unfog.lab.run import Progress, keep, open_run
from unfog.lab.run_folder import LAYOUT, UNFINISHED, LayoutError, fingerprint, in_this_layout, manifest
from unfog.validation import InputError
from unfog.version import __version__

say = logging.getLogger("unfog.lab").warning

NAME = "rivals"
ASKED, TABLE, TEXT = "suite.json", "table.json", "table.txt"
ENTRIES = {"suite", "asked", "unfog", "code"}  # what a suite.json has, at least
FILES = (run_folder.RUN, run_folder.SPEC, run_folder.CURVES)


def identity(asked: dict[str, Any]) -> dict[str, Any]:
    """What a suite is: what was asked of which code."""
    whole = {"suite": NAME, "layout": LAYOUT, "asked": asked, "unfog": __version__, "code": fingerprint()}
    return dict(json.loads(json.dumps(whole)))  # as it will be read again


def claim(asked: dict[str, Any], out: Path | None, among: Path = Path("runs")) -> Path:
    """The folder asked for, or the first of runs/rivals-001, ... that is free or can be gone on with."""
    whole = identity(asked)
    if out is None:
        numbered = (among / f"{NAME}-{number:03d}" for number in itertools.count(1))
        out = next(path for path in numbered if not path.exists() or _unfinished(path, whole))
    try:
        if out.exists() and not _unfinished(out, whole):
            allowed = "a folder that does not exist yet, or an unfinished suite of the same settings and code"
            raise InputError("out", f"{str(out)!r} exists already", allowed)
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if error.errno in FULL:
            raise
        problem = f"{str(out)!r} cannot be made ({reason(error)})"
        raise InputError("out", problem, "a folder that can be made") from None
    for path in out.glob("*.tmp"):
        remove(path)
    write_atomically(out / ASKED, sealed(whole))
    remove(out / TABLE)  # it is not done any more
    return out


def _unfinished(path: Path, whole: dict[str, Any]) -> bool:
    """Whether this folder holds a suite of this identity without a whole table."""
    try:
        if _stated(path) != whole:
            return False
    except (OSError, DamagedError, LayoutError):
        return False
    try:
        read(path)
    except InputError:
        return True
    return False


def kept(folder: Path, plan: Plan, progress: Progress) -> xr.Dataset:
    """The run of a plan in its place in the folder: read where it is done, gone on with where it is not."""
    target = folder / plan.spec.name
    if target.exists() and not _whole(target, plan):
        say("unfog: %s is damaged and is played again", target)
        remove(target)
    return open_run(target if target.exists() else keep(plan, target, progress=progress))


def _whole(target: Path, plan: Plan) -> bool:
    """Whether the run of this plan is there undamaged; another one is refused."""
    try:
        found = run_folder.read(target)
    except LayoutError:
        raise
    except InputError:
        return False
    if found.identity != manifest(plan):
        raise InputError("out", f"{str(target)!r} holds another run", "another folder, or remove that run")
    return True


def finish(folder: Path, found: Comparison) -> None:
    """Keep the table, for programs and for people."""
    text = f"{found}\n".encode()
    marks = {"suite": digest(_asked(folder)), "text": hashlib.sha256(text).hexdigest()}
    write_atomically(folder / TEXT, text)
    write_atomically(folder / TABLE, sealed({**marks, **plain(found)}))


def is_suite(path: Path) -> bool:
    """Whether a folder is that of a suite, finished or not."""
    return is_file(path / ASKED)


def read(path: Path) -> Comparison:
    """What a finished suite found; damage is refused by name."""
    asked = _asked(path)
    if not (path / TABLE).exists():
        allowed = "a finished one; the same `unfog run rivals` goes on with it"
        raise InputError("run", f"{str(path)!r} is an unfinished suite: it has no {TABLE} yet", allowed)
    try:
        found, text = _table(path, asked)
        made = from_plain(found)
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        allowed = "a table made by `unfog run`; the same `unfog run rivals` makes it anew"
        raise InputError("run", f"{str(path / TABLE)!r} is damaged", allowed) from None
    _check_text(path / TEXT, text)
    check(path)
    return made


def _asked(path: Path) -> dict[str, Any]:
    """What a suite.json says, whole or refused."""
    try:
        return _stated(path)
    except (OSError, DamagedError):
        raise InputError("run", f"{str(path / ASKED)!r} is damaged", "one made by `unfog run`") from None


def _stated(path: Path) -> dict[str, Any]:
    """What a suite.json says; other files are sealed, too."""
    found = in_this_layout(path, content_of(path / ASKED))
    if not found.keys() >= ENTRIES:
        raise DamagedError("it is not as it was written")
    return found


def _table(path: Path, asked: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """What the table.json of this suite says, and the hash of the table for people."""
    found = unsealed(content_of(path / TABLE))
    if found.pop("suite") != digest(asked):
        raise DamagedError("it is another suite's")
    return found, found.pop("text")


def _check_text(path: Path, expected: str) -> None:
    """The table for people may be missing, but not another one."""
    try:
        whole = hashlib.sha256(content_of(path)).hexdigest() == expected
    except FileNotFoundError:
        return
    except (OSError, DamagedError):
        whole = False
    if not whole:
        raise InputError("run", f"{str(path)!r} is damaged", "one made with the table; or remove it")


def check(folder: Path) -> None:
    """Refuse a suite with a damaged run; one that is missing was removed by somebody."""
    for run in sorted(folder.iterdir()):
        if run.name.endswith(UNFINISHED) or not any((run / name).exists() for name in FILES):
            continue
        try:
            run_folder.read(run)
        except LayoutError:
            raise
        except InputError as error:
            allowed = "the runs as they were made; the same `unfog run rivals` plays this one again"
            raise InputError("run", error.value, allowed) from None
