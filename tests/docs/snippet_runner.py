"""Run the Python of pages, each in a process of its own that starts with what most of them import.

python -W error snippet_runner.py < JOBS    # [{"code": ..., "folder": ...}, ...] in JSON; the answer likewise

A process is a fork of this one: imports take longer than most pages.
"""

import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any


def warm() -> None:
    """Modules that others import anyhow: what a page itself forgets to import is still missing in it."""
    import numpy as np  # noqa: F401
    import pandas as pd  # noqa: F401
    import scipy.stats  # noqa: F401
    import xarray as xr  # noqa: F401

    import unfog.lab.run
    import unfog.lab.spec  # noqa: F401


def ran(code: str, folder: Path) -> dict[str, Any]:
    """How it ended, and what it printed."""
    out, err = folder / ".out", folder / ".err"
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.chdir(folder)
            for stream, path in ((1, out), (2, err)):
                os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), stream)
            exec(compile(code, "<page>", "exec"), {"__name__": "__main__"})  # noqa: S102
            status = 0
        except SystemExit as left:
            status = int(left.code or 0)
        except BaseException:  # noqa: BLE001  # whatever it is, it is the page's
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    _, status = os.waitpid(child, 0)
    return {
        "status": os.waitstatus_to_exitcode(status),
        "out": out.read_text("utf-8"),
        "err": err.read_text("utf-8"),
    }


def main() -> None:
    """All of them, one after another."""
    jobs = json.load(sys.stdin)
    warm()
    print(json.dumps([ran(job["code"], Path(job["folder"])) for job in jobs]))


if __name__ == "__main__":
    main()
