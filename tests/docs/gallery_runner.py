"""Run gallery scripts one after the other in this process, and write down what each drew.

python -W error gallery_runner.py FOLDER SCRIPT...    # pictures, and found.json, go into FOLDER
"""

import json
import runpy
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt


def drawn(script: Path, folder: Path) -> dict[str, Any]:
    """What became of one script: its figures with their titles, or why it failed."""
    plt.rcdefaults()
    plt.close("all")
    started = time.process_time()
    try:
        runpy.run_path(str(script), run_name="__main__")
    except Exception:  # noqa: BLE001 (one that fails must not hide the others)
        return {"failed": traceback.format_exc()}
    figures = [plt.figure(number) for number in plt.get_fignums()]
    titles = [
        " ".join([figure.get_suptitle(), *(axes.get_title("left") for axes in figure.axes)]).strip()
        for figure in figures
    ]
    for figure in figures:
        figure.savefig(folder / f"{script.stem}.png", dpi=80)
    widths = [figure.get_figwidth() for figure in figures]
    return {"titles": titles, "widths": widths, "seconds": round(time.process_time() - started, 2)}


def main() -> None:
    """All scripts of the command line."""
    folder, *scripts = map(Path, sys.argv[1:])
    plt.show = lambda *_, **__: None
    found = {script.name: drawn(script, folder) for script in scripts}
    (folder / "found.json").write_text(json.dumps(found, indent=1), "utf-8")


if __name__ == "__main__":
    main()
