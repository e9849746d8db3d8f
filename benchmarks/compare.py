"""unfog next to other libraries and to a plain loop, on one core, in one run.

    python benchmarks/compare.py             # a few minutes; into benchmarks/results/cpu.json
    python benchmarks/compare.py --quick     # a smoke test; into benchmarks/out/quick.json
    python benchmarks/page.py                # docs/notebook/benchmarks.md and its picture, from the results

Every row is measured in a process of its own. This file is the parent of those processes and imports the
standard library alone, because a child's peak memory starts at its parent's.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.peers.run import ROOT, machine

OUT = ROOT / "benchmarks" / "out"
PEERS_PYTHON = OUT / "peers-venv" / "bin" / "python"
RESULTS = ROOT / "benchmarks" / "results" / "cpu.json"

DIM, ARMS = 5, 40
ROUNDS_OF = {1: 1000, 10: 1000, 100: 1000, 1000: 500, 4000: 250}  # by trials
PLAIN_SIZES = (1, 1000)  # trials, rounds
AGENT_SIZES = {"numpy": (100, 1000), "numba": (1000, 500), "jax": (1000, 500)}
GROWTH_SIZES = {"plain": (1, 300), "numpy": (100, 500), "numba": (1000, 200), "jax": (1000, 200)}
SETTINGS = ("agent", "trials", "rounds", "dim", "arms", "repeats")
ARMS_GRID, DIM_GRID = (10, 40, 160, 640), (2, 5, 10, 20)


class Case(NamedTuple):
    """One measurement of `engine_worker.py`, and the table it belongs to."""

    table: str
    engine: str
    trials: int
    rounds: int
    agent: str = "alg1"
    decompose: bool = False
    dim: int = DIM
    arms: int = ARMS
    repeats: int = 3


def engine_cases() -> list[Case]:
    """Algorithm 1 on every engine, from one trial to thousands, with the regret split and whole."""
    return [
        Case("engines", engine, trials, rounds, decompose=decompose)
        for trials, rounds in ROUNDS_OF.items()
        for engine in ("numpy", "numba", "jax")
        for decompose in (False, True)
    ]


def agent_cases(agents: list[str]) -> list[Case]:
    """Every agent of the catalogue."""
    return [Case("agents", engine, *AGENT_SIZES[engine], agent) for agent in agents for engine in AGENT_SIZES]


def growth_cases() -> list[Case]:
    """Algorithm 1 with more arms, and with more dimensions."""
    bases = [Case("", engine, *sizes) for engine, sizes in GROWTH_SIZES.items()]
    by_arms = [base._replace(table="arms", arms=arms) for base in bases for arms in ARMS_GRID]
    return by_arms + [base._replace(table="dim", dim=dim) for base in bases for dim in DIM_GRID]


def cases(agents: list[str], quick: bool) -> list[Case]:
    """Everything that is measured, less the peers; the yardstick first."""
    plain = [Case("plain", "plain", *PLAIN_SIZES, repeats=7)]
    found = plain + engine_cases() + agent_cases(agents[:1] if quick else agents) + growth_cases()
    return [smaller(case) for case in found if _ends(case)] if quick else found


def smaller(case: Case) -> Case:
    """The same case, shrunk for a smoke test."""
    return case._replace(trials=min(case.trials, 20 + case.trials // 100), rounds=5, repeats=2)


def _ends(case: Case) -> bool:
    """Whether a case is at an end of its grid: enough to see that all works."""
    at = {"engines": case.trials, "arms": case.arms, "dim": case.dim}.get(case.table)
    grid = {"engines": tuple(ROUNDS_OF), "arms": ARMS_GRID, "dim": DIM_GRID}.get(case.table, (None,))
    return at in (grid[0], grid[-1])


def measure(case: Case) -> dict[str, Any]:
    """The row of a case; a failure ends the benchmark, with the worker's own words."""
    sizes = [f"--{name}={getattr(case, name)}" for name in SETTINGS]
    flags = ["--decompose"] if case.decompose else []
    command = [sys.executable, "-m", "benchmarks.engine_worker", case.engine, *sizes, *flags]
    row: dict[str, Any] = json.loads(_output(command))
    return row


def agent_names() -> list[str]:
    """The catalogue, read in a process of its own."""
    code = "from unfog.agents.catalogue import playable; print(*playable())"
    return _output([sys.executable, "-c", code]).split()


def _output(command: list[str]) -> str:
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    return subprocess.run(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True
    ).stdout


def peers(quick: bool) -> dict[str, Any]:
    """What `peers/run.py` finds, in the peers' own environment."""
    out = OUT / ("peers-quick.json" if quick else "peers.json")
    small = ["--rounds=20", "--repeats=2"] if quick else []
    script = ROOT / "benchmarks" / "peers" / "run.py"
    subprocess.run([PEERS_PYTHON, script, f"--out={out}", *small], cwd=ROOT, check=True)
    found: dict[str, Any] = json.loads(out.read_text())
    return found


def set_up_peers() -> None:
    """Install the peers where that has not been done."""
    if not PEERS_PYTHON.exists():
        script = ROOT / "benchmarks" / "peers" / "setup.sh"
        subprocess.run(["bash", script], env=os.environ | {"PYTHON": sys.executable}, check=True)


def pin() -> None:
    """Keep this process and its children on one core."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def say(case: Case, row: dict[str, Any]) -> None:
    """A line of progress."""
    speed = row["rounds_per_s"]
    sizes = f"{case.trials:5} trials, {case.rounds:4} rounds, d={case.dim}, K={case.arms}"
    line = f"{case.table:8}{case.engine:6}{case.agent:11}{'split ' if case.decompose else '      '}{sizes:44}"
    line += f"{speed['median']:10,.0f} /s ({speed['min']:,.0f} to {speed['max']:,.0f})"
    print(f"{line}, first {row['first_s']:.1f} s, {row['peak_mb']:.0f} MB", file=sys.stderr, flush=True)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="tiny sizes: the numbers mean nothing")
    parser.add_argument("--skip-peers", action="store_true", help="leave the other libraries out")
    parser.add_argument("--out", type=Path, help="where the JSON goes")
    options = parser.parse_args()
    options.out = options.out or (OUT / "quick.json" if options.quick else RESULTS)
    return options


def main() -> None:
    options, started = arguments(), time.perf_counter()
    if not options.skip_peers:
        set_up_peers()
    where = machine()
    pin()
    report: dict[str, Any] = {"quick": options.quick, "machine": where, "versions": {}}
    report["peers"] = None if options.skip_peers else peers(options.quick)
    for case in cases(agent_names(), options.quick):
        row = measure(case)
        say(case, row)
        report["versions"] |= row.pop("versions")
        report.setdefault(case.table, []).append(row)
    report["load_after"], report["seconds"] = os.getloadavg()[0], time.perf_counter() - started
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(report, indent=1) + "\n")
    print(f"{report['seconds']:.0f} s, into {options.out}", file=sys.stderr)


if __name__ == "__main__":
    main()
