"""Microseconds per step of linear Thompson sampling: unfog, a plain NumPy loop, other libraries.

    bash benchmarks/peers/setup.sh
    benchmarks/out/peers-venv/bin/python benchmarks/peers/run.py --out benchmarks/out/peers.json

Every row is measured in a process of its own, on one thread. A row that fails keeps its reason in `error`,
and the others go on. This file is the parent of those processes and imports the standard library alone,
because a child's peak memory starts at its parent's.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

PEERS = (
    "unfog",
    "numpy",
    "bayesianbandits",
    "coba",
    "mabwiser",
    "mabwiser-shared",
    "contextualbandits",
    "contextualbandits-shared",
    "river",
    "river-shared",
    "vowpalwabbit",
)
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
EMPTY = ("version", "model", "parameters", "us_per_step", "peak_mb", "import_mb", "learned", "reward")
ROOT = Path(__file__).resolve().parents[2]


def measure(peer: str, options: argparse.Namespace) -> dict[str, Any]:
    """The row of a peer, measured in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "row.json")
        sizes = [f"--{name}={getattr(options, name)}" for name in ("rounds", "repeats", "size", "arms")]
        command = [sys.executable, "-m", "benchmarks.peers.worker", peer, *sizes, f"--out={out}"]
        error = _run(command, options.timeout)
        if error is None:
            return {"peer": peer, **json.loads(out.read_text()), "error": None}
    return {"peer": peer, **dict.fromkeys(EMPTY), "error": error + _installer(peer)}


def _run(command: list[str], seconds: float) -> str | None:
    """None, or why the process did not end well."""
    environment = os.environ | dict.fromkeys(THREADS, "1") | {"PYTHONPATH": str(ROOT / "src")}
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return f"not done after {seconds:g} s"
    if done.returncode == 0:
        return None
    if done.returncode < 0 or not done.stderr.strip():
        return f"ended with status {done.returncode}"
    return _last_words(done.stderr)


def _last_words(traceback: str) -> str:
    """The error and the function that raised it, without the paths between them."""
    lines = traceback.strip().splitlines()
    places = [line.rpartition(", in ")[2] for line in lines if line.startswith("  File ")]
    return f"{lines[-1]} (in {places[-1]})" if places else lines[-1]


def _installer(peer: str) -> str:
    """What the installer said, where it could not install the peer."""
    note = Path(sys.prefix, "failed", f"{peer.partition('-')[0]}.txt")
    return f" (installer: {note.read_text().strip()})" if note.exists() else ""


def machine() -> dict[str, Any]:
    """Where the numbers come from."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        "load": os.getloadavg()[0],
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def say(row: dict[str, Any]) -> None:
    """A line of progress."""
    if row["error"] is not None:
        line = f"failed: {row['error']}"
    else:
        times = row["us_per_step"]
        learned = "learned" if row["learned"] else "DID NOT LEARN"
        line = f"{times['median']:10.1f} us ({times['min']:.1f} to {times['max']:.1f}), "
        line += f"{row['peak_mb']:5.0f} MB, {learned}, {row['parameters']}"
    print(f"{row['peer']:26}{line}", file=sys.stderr, flush=True)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="where the JSON goes")
    parser.add_argument("--peers", default=",".join(PEERS), help="names, with commas between them")
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--m", dest="size", type=int, default=15, help="features, a multiple of three")
    parser.add_argument("--K", dest="arms", type=int, default=40, help="arms")
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds for one row")
    options = parser.parse_args()
    options.peers = options.peers.split(",")
    if unknown := set(options.peers) - set(PEERS):
        parser.error(f"no peer is called {', '.join(sorted(unknown))}: choose from {', '.join(PEERS)}")
    if min(options.rounds, options.repeats, options.size, options.arms) < 1 or options.size % 3:
        parser.error("rounds, repeats, m and K must be positive, and m a multiple of three")
    return options


def main() -> None:
    options = arguments()
    settings = {"rounds": options.rounds, "repeats": options.repeats, "m": options.size, "K": options.arms}
    result: dict[str, Any] = {"settings": settings | {"threads": 1}, "rows": [], "machine": machine()}
    for peer in options.peers:
        result["rows"].append(measure(peer, options))
        say(result["rows"][-1])
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
