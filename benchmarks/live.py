"""Live decisions with a durable log, next to other libraries without one, on one core, in one run.

python benchmarks/live.py             # some minutes; into benchmarks/results/live.json
python benchmarks/live.py --quick     # a smoke test; into benchmarks/out/live-quick.json
python benchmarks/page.py             # makes docs/notebook/benchmarks.md from the results
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.compare import OUT, PEERS_PYTHON, pin, set_up_peers
from benchmarks.peers.run import ROOT, THREADS, machine

RESULTS = ROOT / "benchmarks" / "results" / "live.json"
PEERS = "unfog,mabwiser,mabwiser-shared,river,river-shared,vowpalwabbit"
FEATURES = ("quadratic", "per_arm")


def peers(quick: bool) -> dict[str, Any]:
    """The step of other libraries, in their own environment."""
    out = OUT / "live-peers.json"
    small = ["--rounds=20", "--repeats=2"] if quick else []
    script = ROOT / "benchmarks" / "peers" / "run.py"
    command = [str(PEERS_PYTHON), str(script), f"--out={out}", f"--peers={PEERS}", *small]
    subprocess.run(command, cwd=ROOT, check=True)
    found: dict[str, Any] = json.loads(out.read_text())
    return found


def measure(features: str, quick: bool) -> dict[str, Any]:
    """Ours, in a process of its own."""
    small = ["--rounds=200", "--events=2000"] if quick else []
    environment = os.environ | dict.fromkeys(THREADS, "1") | {"PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-m", "benchmarks.live_worker", features, *small]
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    row: dict[str, Any] = json.loads(done.stdout)
    print(json.dumps(row, indent=1), file=sys.stderr, flush=True)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="tiny sizes: the numbers mean nothing")
    parser.add_argument("--skip-peers", action="store_true", help="leave the other libraries out")
    given = parser.parse_args()
    if not given.skip_peers:
        set_up_peers()
    where, started = machine(), time.perf_counter()
    pin()
    report: dict[str, Any] = {"quick": given.quick, "machine": where}
    report["rows"] = [measure(features, given.quick) for features in FEATURES]
    report["peers"] = None if given.skip_peers else peers(given.quick)
    report["load_after"], report["seconds"] = os.getloadavg()[0], time.perf_counter() - started
    out = OUT / "live-quick.json" if given.quick else RESULTS
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(report, indent=1) + "\n")
    print(f"{report['seconds']:.0f} s, into {out}", file=sys.stderr)


if __name__ == "__main__":
    main()
