"""The runs in the folder of a suite, one a problem: read where they are whole, else played."""

import logging
from pathlib import Path

import xarray as xr

from unfog._io import remove
from unfog.lab import finished
from unfog.lab.identity import manifest
from unfog.lab.prepare import Plan
from unfog.lab.run import Progress, keep, open_run
from unfog.lab.target import UNFINISHED
from unfog.validation import InputError

say = logging.getLogger("unfog.lab").warning
FILES = (finished.RUN, finished.SPEC, finished.CURVES)


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
        found = finished.read(target)
    except finished.NewerError:
        raise
    except InputError:
        return False
    if found.identity != manifest(plan):
        raise InputError("out", f"{str(target)!r} holds another run", "another folder, or remove that run")
    return True


def check(folder: Path) -> None:
    """Complain of a run that is damaged; one that is missing was removed by somebody."""
    for run in sorted(folder.iterdir()):
        if run.name.endswith(UNFINISHED) or not any((run / name).exists() for name in FILES):
            continue
        try:
            finished.read(run)
        except finished.NewerError:
            raise
        except InputError as error:
            allowed = "the runs as they were made; the same `unfog run rivals` plays this one again"
            raise InputError("run", error.value, allowed) from None
