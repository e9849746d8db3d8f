"""The folder of a suite: a run folder for each problem, the request, and the table once the suite is done.

    baselines-001/suite.json    the request, and the hash of the code
    baselines-001/PROBLEM       a run folder (lab/storage.py); beside it -slow, -dear, -tuning and -tuned
    baselines-001/table.txt     the table for people
    baselines-001/table.json    the ratios, and a hash of table.txt; it exists once the suite is done

An interrupted suite with the same request and the same code is resumed: finished problems are read, and the
unfinished one is resumed. Both JSON files are sealed (_io.py), and the table names its suite.

The same command repairs damage: it writes the table again, or plays the run of a problem again. A folder
whose suite.json is damaged is refused.
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
    seal,
    unseal,
    write_atomically,
)
from unfog.lab import run_folder
from unfog.lab.baselines.report import Comparison, from_plain, plain
from unfog.lab.prepare import ExperimentPlan
from unfog.lab.run import Progress, keep, open_run
from unfog.lab.run_folder import LAYOUT, UNFINISHED, LayoutError, code_hash, in_this_layout, manifest
from unfog.validation import InputError
from unfog.version import __version__

say = logging.getLogger("unfog.lab").warning

NAME = "baselines"
REQUEST, TABLE, TEXT = "suite.json", "table.json", "table.txt"
ENTRIES = {"suite", "request", "unfog", "code"}  # what a suite.json has, at least
FILES = (run_folder.RUN, run_folder.SPEC, run_folder.CURVES)


def identity(request: dict[str, Any]) -> dict[str, Any]:
    """What identifies a suite: the request, and the code that answers it."""
    contents = {
        "suite": NAME,
        "layout": LAYOUT,
        "request": request,
        "unfog": __version__,
        "code": code_hash(),
    }
    return dict(json.loads(json.dumps(contents)))  # as it is read back


def claim(request: dict[str, Any], out: Path | None, among: Path = Path("runs")) -> Path:
    """The folder given, or the first of runs/baselines-001, ... that is free or can be resumed."""
    contents = identity(request)
    if out is None:
        numbered = (among / f"{NAME}-{number:03d}" for number in itertools.count(1))
        out = next(path for path in numbered if not path.exists() or _is_unfinished(path, contents))
    try:
        if out.exists() and not _is_unfinished(out, contents):
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
    write_atomically(out / REQUEST, seal(contents))
    remove(out / TABLE)  # the suite is no longer finished
    return out


def _is_unfinished(path: Path, contents: dict[str, Any]) -> bool:
    """Whether this folder holds a suite of this identity without an intact table."""
    try:
        if _parse_request(path) != contents:
            return False
    except (OSError, DamagedError, LayoutError):
        return False
    try:
        read(path)
    except InputError:
        return True
    return False


def kept(folder: Path, plan: ExperimentPlan, progress: Progress) -> xr.Dataset:
    """The run of a plan in the suite's folder, read if it is finished, else played or resumed."""
    target = folder / plan.spec.name
    if target.exists() and not _is_intact(target, plan):
        say("unfog: %s is damaged and is played again", target)
        remove(target)
    return open_run(target if target.exists() else keep(plan, target, progress=progress))


def _is_intact(target: Path, plan: ExperimentPlan) -> bool:
    """Whether the run in this folder is undamaged; the run of another plan is refused."""
    try:
        finished = run_folder.read(target)
    except LayoutError:
        raise
    except InputError:
        return False
    if finished.identity != manifest(plan):
        raise InputError("out", f"{str(target)!r} holds another run", "another folder, or remove that run")
    return True


def finish(folder: Path, comparison: Comparison) -> None:
    """Write the table, for programs and for people."""
    text = f"{comparison}\n".encode()
    marks = {"suite": digest(_read_request(folder)), "text": hashlib.sha256(text).hexdigest()}
    write_atomically(folder / TEXT, text)
    write_atomically(folder / TABLE, seal({**marks, **plain(comparison)}))


def is_suite(path: Path) -> bool:
    """Whether a folder is that of a suite, finished or not."""
    return is_file(path / REQUEST)


def read(path: Path) -> Comparison:
    """Read the comparison of a finished suite; a damaged file is refused by name."""
    request = _read_request(path)
    if not (path / TABLE).exists():
        allowed = "a finished one; the same `unfog run baselines` goes on with it"
        raise InputError("run", f"{str(path)!r} is an unfinished suite: it has no {TABLE} yet", allowed)
    try:
        data, text = _read_table(path, request)
        comparison = from_plain(data)
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        allowed = "a table made by `unfog run`; the same `unfog run baselines` makes it anew"
        raise InputError("run", f"{str(path / TABLE)!r} is damaged", allowed) from None
    _check_text(path / TEXT, text)
    check_runs(path)
    return comparison


def _read_request(path: Path) -> dict[str, Any]:
    """Read a folder's suite.json; raise InputError if it is damaged."""
    try:
        return _parse_request(path)
    except (OSError, DamagedError):
        raise InputError("run", f"{str(path / REQUEST)!r} is damaged", "one made by `unfog run`") from None


def _parse_request(path: Path) -> dict[str, Any]:
    """Parse a suite.json; raise DamagedError if another kind of sealed file has its name."""
    contents = in_this_layout(path, content_of(path / REQUEST))
    if not contents.keys() >= ENTRIES:
        raise DamagedError("it is not as it was written")
    return contents


def _read_table(path: Path, request: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Read the table.json of this suite, and the hash of the table for people."""
    contents = unseal(content_of(path / TABLE))
    if contents.pop("suite") != digest(request):
        raise DamagedError("it is another suite's")
    return contents, contents.pop("text")


def _check_text(path: Path, expected: str) -> None:
    """Check that the table for people is missing or the right one."""
    try:
        is_intact = hashlib.sha256(content_of(path)).hexdigest() == expected
    except FileNotFoundError:
        return
    except (OSError, DamagedError):
        is_intact = False
    if not is_intact:
        raise InputError("run", f"{str(path)!r} is damaged", "one made with the table; or remove it")


def check_runs(folder: Path) -> None:
    """Refuse a suite with a damaged run; a missing run was removed by someone, which is allowed."""
    for run in sorted(folder.iterdir()):
        if run.name.endswith(UNFINISHED) or not any((run / name).exists() for name in FILES):
            continue
        try:
            run_folder.read(run)
        except LayoutError:
            raise
        except InputError as error:
            allowed = "the runs as they were made; the same `unfog run baselines` plays this one again"
            raise InputError("run", error.value, allowed) from None
