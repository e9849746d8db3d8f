"""Open what a user calls a run, whatever it is: a folder of ordinary files is read, all else refused."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from unfog import _io
from unfog.lab import finished
from unfog.lab.finished import MADE
from unfog.lab.rivals import folder as suites
from unfog.lab.run import open_run
from unfog.validation import InputError

if TYPE_CHECKING:
    import xarray as xr

SMALL = (finished.RUN, finished.TIMING, suites.ASKED, suites.TABLE)
MOST_BYTES = 10**8  # of each of these


def folder(run: Path) -> Path:
    """The folder, where each file that is there is an ordinary one, and not too large to be read."""
    for name in (*SMALL, finished.SPEC, finished.CURVES):
        path = run / name
        try:
            if not os.path.lexists(path):
                continue
        except ValueError as error:
            raise InputError("run", f"{str(run)!r} cannot be read ({error})", MADE) from None
        _io.refuse_others("run", path, MADE, MOST_BYTES if name in SMALL else None)
    if not _io.is_folder(run):
        raise InputError("run", f"no folder {str(run)!r}", MADE, _io.near(run))
    return run


def opened(run: Path) -> "xr.Dataset":
    """The Dataset of a finished run."""
    return open_run(run)
