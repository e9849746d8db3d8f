"""Open what a user calls a run, whatever it is: a folder of ordinary files is read, all else refused."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from unfog import files
from unfog.inputs import InputError
from unfog.lab.run import open_run

if TYPE_CHECKING:
    import xarray as xr

ALLOWED = "a folder made by `unfog run`"
FILES = ("run.json", "spec.toml", "curves.nc", "timing.json", "suite.json", "table.json")
MOST_BYTES = 10**8  # of what is no curves
BROKEN = (ValueError, TypeError, LookupError, AttributeError, EOFError, OverflowError)


def folder(run: Path) -> Path:
    """The folder, where each file that is there is an ordinary one, and what is JSON can be read."""
    for name in FILES:
        path = run / name
        try:
            if not os.path.lexists(path):
                continue
        except ValueError as error:
            raise InputError("run", f"{str(run)!r} cannot be read ({error})", ALLOWED) from None
        files.refuse_others("run", path, ALLOWED)
        if path.suffix == ".json":
            _refuse_nested(path)
    if not files.is_folder(run):
        raise InputError("run", f"no folder {str(run)!r}", ALLOWED)
    return run


def opened(run: Path) -> "xr.Dataset":
    """The Dataset of a finished run; curves that were damaged before they were hashed are refused, too."""
    try:
        return open_run(run)
    except InputError:
        raise
    except BROKEN as error:
        raise InputError("run", f"{str(run)!r} is damaged ({error})", ALLOWED) from None


def _refuse_nested(path: Path) -> None:
    try:
        json.loads(files.content("run", path, ALLOWED, MOST_BYTES))
    except RecursionError:
        raise InputError("run", f"{str(path)!r} is damaged", ALLOWED) from None
    except ValueError as error:  # whoever reads it says which file is damaged
        if isinstance(error, InputError):
            raise
