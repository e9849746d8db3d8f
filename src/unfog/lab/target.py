"""Folders that a user asks for: of a run, which must be new, and of figures. Odd names are refused."""

import os
import tempfile
from pathlib import Path

from unfog._io import reason
from unfog.validation import InputError, shown

UNFINISHED = ".partial"  # what a run's folder is called until it is done (lab/store.py)
OURS = f"another name: folders that end in {UNFINISHED} are of unfinished runs"


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
