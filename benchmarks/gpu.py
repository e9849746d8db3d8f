"""The compiled engines on a GPU: rounds a second of every agent, precision, bandwidth, a million trials.

    python benchmarks/gpu.py --out gpu.json [--trials 131072] [--rounds 1000] [--kernel alg1]

Needs NumPy and JAX alone. Compile time is reported apart: it is the first run less the later ones.
"""

import argparse
import json
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import jax
import jax.numpy as jnp
import numpy as np

from unfog.agents.catalogue import playable
from unfog.simulation import play
from unfog.worlds.synthetic import GaussianProblem

PROBLEM = GaussianProblem()


def timed(work: Callable[[], Any], repeats: int = 3) -> tuple[float, list[float], Any]:
    """Seconds to compile, seconds of each later run, and the last result."""
    seconds, result = [], None
    for _ in range(repeats + 1):
        started = time.perf_counter()
        result = work()
        seconds.append(time.perf_counter() - started)
    return max(0.0, seconds[0] - float(np.median(seconds[1:]))), sorted(seconds[1:]), result


def bandwidth() -> float:
    """Bytes a second that a large copy moves, read and written."""
    block = jnp.ones(2**29, jnp.float32)
    copy = jax.jit(lambda x: x + 1)
    copy(block).block_until_ready()
    started = time.perf_counter()
    for _ in range(10):
        copy(block).block_until_ready()
    return 10 * 2 * block.nbytes / (time.perf_counter() - started)


def scan_bytes(size: int, dim: int, arms: int, width: int) -> int:
    """What a scan must move for a trial-round: the root five times, the actions twice, the draws twice."""
    return width * (5 * size * size + 2 * arms * dim + 2 * (size + 2 * dim + 1) + 4 * size)


def row(name: str, trials: int, rounds: int, **settings: Any) -> dict[str, Any]:

    def work() -> Any:
        chunk = None if settings["engine"] == "cuda" else trials
        return play(PROBLEM, [name], trials=trials, rounds=rounds, points=1, chunk=chunk, **settings)

    compiled, seconds, curves = timed(work)
    final = curves.values["regret"][0, :, -1]
    speed = [trials * rounds / s / 1e6 for s in reversed(seconds)]
    found = {
        "agent": name,
        **settings,
        "trials": trials,
        "rounds": rounds,
        "compile_s": round(compiled, 1),
        "M_rounds_per_s": [round(v, 1) for v in speed],
        "regret": float(final.mean()),
        "se": float(final.std(ddof=1) / len(final) ** 0.5),
    }
    print(json.dumps(found), flush=True)
    return found


def precision_effect(trials: int, rounds: int) -> dict[str, Any]:
    """float32 less float64 on the same random numbers."""
    finals = [
        play(
            PROBLEM,
            ["alg1"],
            trials=trials,
            rounds=rounds,
            points=1,
            engine="jax",
            precision=p,
            draws="numpy",
        ).values["regret"][0, :, -1]
        for p in ("float32", "float64")
    ]
    gap = finals[0] - finals[1]
    found = {
        "trials": trials,
        "rounds": rounds,
        "float32_minus_float64": float(gap.mean()),
        "se": float(gap.std(ddof=1) / trials**0.5),
        "float64": float(finals[1].mean()),
        "same_to_1e-3": float((np.abs(gap) < 1e-3).mean()),
    }
    print(json.dumps(found), flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", required=True)
    parser.add_argument("--trials", type=int, default=131072)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--agents", default=",".join(playable()))
    parser.add_argument("--kernel", default="alg1")
    given = parser.parse_args()
    size = given.trials, given.rounds
    peak = bandwidth()
    report: dict[str, Any] = {
        "device": str(jax.devices()[0]),
        "kind": jax.devices()[0].device_kind,
        "versions": {"jax": jax.__version__, "numpy": np.__version__, "python": platform.python_version()},
        "copy_TB_per_s": round(peak / 1e12, 2),
        "rows": [],
    }
    print(json.dumps(report), flush=True)
    rows = report["rows"]
    for name in filter(None, given.agents.split(",")):
        rows.append(row(name, *size, engine="jax", precision="float32", decompose=False))
    rows.append(row("alg1", *size, engine="jax", precision="float32", decompose=True))
    rows.append(
        row("alg1", given.trials, given.rounds // 4, engine="jax", precision="float64", decompose=False)
    )
    scan = float(np.median(next(r for r in rows if r["agent"] == "alg1")["M_rounds_per_s"])) * 1e6
    report["scan_share_of_bandwidth"] = round(scan * scan_bytes(15, 5, 40, 4) / peak, 2)
    report["precision"] = precision_effect(4096, 1000)
    _save(given.out, report)
    for name in filter(None, given.kernel.split(",")):
        rows.append(row(name, *size, engine="cuda", decompose=False))
        rows.append(row(name, 8 * given.trials, given.rounds, engine="cuda", decompose=False))
        _save(given.out, report)
    for engine in ("jax", "cuda") if given.kernel else ("jax",):
        started = time.perf_counter()
        curves = play(PROBLEM, ["alg1"], trials=10**6, rounds=1000, engine=engine, decompose=False)
        seconds = time.perf_counter() - started
        stored = sum(v.nbytes for v in curves.values.values()) / 1e6
        million = {
            "engine": engine,
            "seconds": round(seconds, 1),
            "stored_MB": round(stored),
            "curve": len(curves.curve),
        }
        report.setdefault("million_trials", []).append(
            {**million, "regret": float(curves.mean["regret"][0, -1])}
        )
        print(json.dumps(report["million_trials"][-1]), flush=True)
    _save(given.out, report)


def _save(path: str, report: dict[str, Any]) -> None:
    Path(path).write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
