"""Live decisions in memory, next to the same in a file with sync="normal", in one run on one core.

python benchmarks/live_memory.py             # some minutes; into benchmarks/results/live_memory.json
python benchmarks/live_memory.py --quick     # a smoke test; into benchmarks/out/live_memory-quick.json

Both take turns, a hundred decisions and rewards each, so that whatever else the machine does hits both alike.
The ratio is that of the medians over turns. Memory is what Python has allocated for a bandit and its events,
after so many decisions with their rewards.
"""

import argparse
import json
import os
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

import unfog
from benchmarks.compare import OUT, pin
from benchmarks.peers.run import ROOT, machine
from unfog.live import Problem

RESULTS = ROOT / "benchmarks" / "results" / "live_memory.json"
DIM, TURN = 4, 100
TERMS: dict[str, Any] = {
    "context": ["steps", "sleep", "mood", "hour"],
    "arms": ["send", "wait", "call"],
    "channel": {"context_mean": [0.0] * DIM, "context_cov": 1.0, "noise_cov": 1.1, "bias_cov": 1.1},
    "seed": 1,
}


def turn(live: Problem, readings: list[list[float]]) -> tuple[float, float]:
    """Seconds of the clock and of the processor for a decision and its reward."""
    clock, processor = time.perf_counter(), time.process_time()
    for reading in readings:
        live.reward(live.decide(reading, unit="ann").id, reading[0])
    return (time.perf_counter() - clock) / TURN, (time.process_time() - processor) / TURN


def speed(folder: Path, turns: int) -> dict[str, Any]:
    """A decision and its reward, in microseconds, in memory and in a file."""
    rng, seconds = np.random.default_rng(0), dict[str, list[tuple[float, float]]](memory=[], file=[])
    with unfog.live.open(folder / "speed.unfog", sync="normal") as store:
        places: dict[str, Problem] = {
            "memory": unfog.Bandit(**TERMS),
            "file": store.problem("bench", **TERMS),
        }
        for _ in range(turns):
            readings = rng.normal(size=(TURN, DIM)).tolist()
            for name, live in places.items():
                seconds[name].append(turn(live, readings))
    settled = {name: values[turns // 10 :] for name, values in seconds.items()}
    report: dict[str, Any] = {}
    for i, kind in enumerate(("elapsed", "processor")):
        medians = {name: 1e6 * median(value[i] for value in values) for name, values in settled.items()}
        report[kind] = {**medians, "ratio": medians["memory"] / medians["file"]}
    return report


def size(decisions: int) -> dict[str, float]:
    """Megabytes of a bandit after so many decisions and rewards, and seconds to save and load it."""
    readings = np.random.default_rng(1).normal(size=(decisions, DIM)).tolist()
    tracemalloc.start()
    bandit = unfog.Bandit(**TERMS)
    for reading in readings:
        bandit.reward(bandit.decide(reading, unit="ann").id, reading[0])
    allocated, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.bandit"
        started = time.perf_counter()
        bandit.save(path)
        saved = time.perf_counter()
        unfog.Bandit.load(path)
        loaded = time.perf_counter()
        file = path.stat().st_size
    return {
        "decisions": decisions,
        "mb": allocated / 1e6,
        "peak_mb": peak / 1e6,
        "file_mb": file / 1e6,
        "save_s": saved - started,
        "load_s": loaded - saved,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="tiny sizes: the numbers mean nothing")
    quick = parser.parse_args().quick
    where = machine()
    pin()
    with tempfile.TemporaryDirectory(dir=os.environ.get("UNFOG_BENCH_DISK")) as folder:
        report = {"quick": quick, "machine": where, **speed(Path(folder), 4 if quick else 60)}
    report["memory"] = size(500 if quick else 100_000)
    report["load_after"] = os.getloadavg()[0]
    out = OUT / "live_memory-quick.json" if quick else RESULTS
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
