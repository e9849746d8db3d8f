"""Every baseline on our problems, as published and tuned, and a round's time against a plain NumPy step.

    python benchmarks/baselines.py               # half an hour on two cores; results/baselines.json
    python benchmarks/baselines.py --scale 2     # twice the trials
    python benchmarks/baselines.py --quick       # a smoke test; into benchmarks/out/baselines-quick.json
    python benchmarks/baselines_page.py          # the tables and the picture of docs/science/baselines.md

Runs are kept in benchmarks/out/baselines, so that an interrupted benchmark is resumed. Data sets
are looked for as everywhere (docs/guide/data.md); a problem whose data are missing is left out, and said.
"""

import os

os.environ |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")

import argparse
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.baselines_plain import measured
from benchmarks.compare import OUT
from benchmarks.peers.run import machine
from benchmarks.wording import RESULTS
from unfog.lab.baselines import folder, suite
from unfog.lab.baselines.problems import BENCHMARKS
from unfog.lab.baselines.report import from_plain, plain
from unfog.lab.run import Progress, quiet
from unfog.simulation.executors.local import cores

FOUND = RESULTS / "baselines.json"
QUICK: dict[str, Any] = {"rounds": 20, "trials": 3}


@contextmanager
def said(name: str) -> Iterator[Progress]:
    """A line when a run is done."""
    began = time.perf_counter()
    yield quiet
    print(f"{name}: {time.perf_counter() - began:.0f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--scale", type=float, default=1.0, help="of the number of trials")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=cores())
    parser.add_argument("--problems", help=f"some of {', '.join(BENCHMARKS)}")
    parser.add_argument("--out", type=Path, help="the folder of the runs; in benchmarks/out unless told")
    given = parser.parse_args()
    small = QUICK if given.quick else {"rounds": None, "trials": None}
    chosen = None if given.problems is None else given.problems.split(",")
    request = suite.check_request(
        chosen, None, seed=given.seed, engine=None, precision=None, tuned=True, **small
    )
    request = request._replace(scale=given.scale)
    began, before = time.perf_counter(), machine()
    where = folder.claim(request._asdict(), given.out, OUT)
    found = suite.compare(request, where, given.workers, said, print)
    took = time.perf_counter() - began
    result = {
        "quick": given.quick,
        "scale": given.scale,
        "seed": given.seed,
        "tuning": {"seed": suite.SEED, "trials": suite.TRIALS, "dear_rounds": suite.DEAR_ROUNDS},
        "machine": before,
        "seconds": round(took, 1),
        **plain(found),
        "plain": measured(*([10] if given.quick else [])),
    }
    target = OUT / "baselines-quick.json" if given.quick or chosen else FOUND
    target.write_text(json.dumps(result, indent=1, allow_nan=False) + "\n", "utf-8")
    print(from_plain(result))
    print(f"into {target}")


if __name__ == "__main__":
    main()
