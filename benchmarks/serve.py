"""The service under load, on one machine with its load generator, in one run.

python benchmarks/serve.py             # a quarter of an hour; into benchmarks/results/serve.json
python benchmarks/serve.py --quick     # a smoke test; into benchmarks/out/serve-quick.json

As many decisions as 32 clients get (`wrk` asks), with every event synced to the disk, without the syncs,
without events written at all, and the same server with an echo. Then 500 decisions and 500 rewards a second
at fixed times; more than can be done for ten seconds; and how soon it is back to normal.
"""

import argparse
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.compare import OUT
from benchmarks.peers.run import ROOT, THREADS, machine

RESULTS = ROOT / "benchmarks" / "results" / "serve.json"
CLIENTS, CROWD = 32, 700  # connections; the latter are more than may wait
RATE = 500  # decisions a second, and as many rewards
TERMS: dict[str, Any] = {
    "name": "walks",
    "context": ["steps", "sleep"],
    "arms": ["send", "wait"],
    "channel": {
        "context_mean": [1.0, -2.0],
        "context_cov": [[2.0, 0.3], [0.3, 1.0]],
        "noise_cov": [0.5, 0.8],
        "bias_cov": [0.3, 0.4],
    },
    "seed": 11,
    "reward_window": "1h",
}
ENVIRONMENT = os.environ | dict.fromkeys(THREADS, "1") | {"PYTHONPATH": str(ROOT / "src")}
SCRIPT = """
local counts = {}
local threads = {}
function setup(thread) table.insert(threads, thread) end
function init() statuses = "" end
function request()
  local steps, sleep = math.random() * 4 - 1, math.random() * 3 - 3
  local body = string.format('{"context":{"steps":%.3f,"sleep":%.3f}}', steps, sleep)
  return wrk.format("POST", "/v1/problems/walks/decide", {["Content-Type"] = "application/json"}, body)
end
function response(status)
  counts[status] = (counts[status] or 0) + 1
  statuses = ""
  for code, times in pairs(counts) do statuses = statuses .. code .. "=" .. times .. " " end
end
function done(summary, latency)
  for _, thread in ipairs(threads) do print("statuses " .. thread:get("statuses")) end
  print("p50 " .. latency:percentile(50) .. " p99 " .. latency:percentile(99) .. " max " .. latency.max)
end
"""


class Running:
    """A service in a process of its own."""

    def __init__(self, folder: Path, what: str) -> None:
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self.port: int = found.getsockname()[1]
        command = [sys.executable, "-m", "benchmarks.serve_worker", str(folder / f"{what}.unfog")]
        self.process = subprocess.Popen(
            [*command, str(self.port), what], cwd=ROOT, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True
        )
        while self._status("GET", "/readyz") not in (200, 405):
            time.sleep(0.05)
        self._status("POST", "/v1/problems", json.dumps(TERMS))

    def _status(self, method: str, path: str, body: str | None = None) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body, {"Content-Type": "application/json"})
            return connection.getresponse().status
        except OSError:
            return 0
        finally:
            connection.close()

    def cpu(self) -> float:
        """Seconds of processor time so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident(self) -> float:
        """Megabytes."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    def stop(self) -> list[float]:
        """In good order; how long its snapshots have kept others waiting."""
        self.process.send_signal(signal.SIGTERM)
        told, _ = self.process.communicate(timeout=60)
        assert self.process.returncode == 0
        found: list[float] = json.loads(told or "[]")
        return found


def closed_loop(running: Running, clients: int, seconds: int, script: Path) -> dict[str, Any]:
    """As fast as so many clients can ask, one after the other each."""
    before = running.cpu()
    command = ["wrk", "-t1", f"-c{clients}", f"-d{seconds}s", "--timeout", "30s", "-s", str(script)]
    told = subprocess.run(
        [*command, f"http://127.0.0.1:{running.port}"], capture_output=True, text=True, check=True
    ).stdout
    statuses = {int(code): int(times) for code, times in re.findall(r"(\d+)=(\d+)", told)}
    number = sum(statuses.values())
    p50, p99, most = (float(x) / 1e3 for x in re.findall(r"(?:p50|p99|max) ([\d.e+]+)", told)[-3:])
    return {
        "per_s": statuses.get(200, 0) / seconds,
        "statuses": statuses,
        "p50_ms": p50,
        "p99_ms": p99,
        "max_ms": most,
        "cpu_us": 1e6 * (running.cpu() - before) / max(number, 1),
    }


def throughput(folder: Path, script: Path, seconds: int, rounds: int) -> dict[str, Any]:
    """Of all kinds, in turns, so that what else the machine does falls on all alike; medians of rates."""
    kinds = ("full", "normal", "none", "echo")
    all_of = {what: Running(folder, what) for what in kinds}
    found: dict[str, list[dict[str, Any]]] = {what: [] for what in kinds}
    for running in all_of.values():
        closed_loop(running, CLIENTS, 1, script)
    for _ in range(rounds):
        for what, running in all_of.items():
            found[what].append(closed_loop(running, CLIENTS, seconds, script))
    for running in all_of.values():
        running.stop()
    rows = {what: sorted(rows, key=lambda row: row["per_s"])[len(rows) // 2] for what, rows in found.items()}
    for what, row in rows.items():
        row["best_per_s"] = max(one["per_s"] for one in found[what])
        row["best_cpu_us"] = min(one["cpu_us"] for one in found[what])
        row["ratio"] = row["per_s"] / rows["full"]["per_s"]
    return rows


def open_loop(running: Running, seconds: int) -> tuple[list[Any], list[float]]:
    """Decisions and rewards at fixed times; and megabytes of memory, each second."""
    command = [sys.executable, "-m", "benchmarks.serve_load", str(running.port), str(RATE), str(seconds)]
    memory: list[float] = []
    with tempfile.TemporaryFile("w+") as told:
        with subprocess.Popen(command, cwd=ROOT, env=ENVIRONMENT, stdout=told) as load:
            while load.poll() is None:
                memory.append(running.resident())
                time.sleep(1.0)
        told.seek(0)
        rows: list[Any] = json.load(told)
    return rows, memory


def latencies(rows: list[Any]) -> dict[str, Any]:
    """Of these requests, in milliseconds."""
    ordered = sorted(row[3] * 1e3 for row in rows)
    at = {"p50_ms": 0.5, "p99_ms": 0.99, "p999_ms": 0.999}
    found = {name: ordered[int(share * len(ordered))] for name, share in at.items()}
    statuses = Counter(row[2] for row in rows)
    return found | {"max_ms": ordered[-1], "statuses": dict(statuses), "number": len(rows)}


def steady(folder: Path, script: Path, seconds: int, crowded: int) -> dict[str, Any]:
    """The fixed rate; then a crowd; then the fixed rate again."""
    running = Running(folder, "full")
    before = running.cpu()
    rows, memory = open_loop(running, seconds)
    first = min(60, len(memory) // 3)
    found = {
        "seconds": seconds,
        "decide": latencies([row for row in rows if row[1] == "decide"]),
        "reward": latencies([row for row in rows if row[1] == "reward"]),
        "cpu_us": 1e6 * (running.cpu() - before) / len(rows),
        "memory_mb": {"after_first_minute": memory[first], "last": memory[-1]},
        "memory_growth": memory[-1] / memory[first] - 1,
    }
    found["crowd"] = closed_loop(running, CROWD, crowded, script)
    rows, _ = open_loop(running, 10)
    by_second = [latencies([row for row in rows if int(row[0]) == second]) for second in range(10)]
    slow = [i for i, one in enumerate(by_second) if one["p99_ms"] > 100 or set(one["statuses"]) != {200}]
    found["seconds_until_normal"] = slow[-1] + 1 if slow else 0
    found["afterwards"] = latencies(rows)
    pauses = running.stop()
    found["snapshots"] = {"number": len(pauses), "longest_ms": 1e3 * max(pauses, default=0.0)}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a minute: the numbers mean little")
    given = parser.parse_args()
    where, started = machine(), time.perf_counter()
    report: dict[str, Any] = {"quick": given.quick, "machine": where}
    with tempfile.TemporaryDirectory(dir=os.environ.get("UNFOG_BENCH_DISK")) as place:
        folder, script = Path(place), Path(place) / "decide.lua"
        script.write_text(SCRIPT)
        report["throughput"] = throughput(folder, script, *((2, 2) if given.quick else (5, 5)))
        print(json.dumps(report["throughput"], indent=1), file=sys.stderr, flush=True)
        (folder / "steady").mkdir()
        report["steady"] = steady(folder / "steady", script, *((20, 3) if given.quick else (600, 10)))
        print(json.dumps(report["steady"], indent=1), file=sys.stderr, flush=True)
    report["load_after"], report["seconds"] = os.getloadavg()[0], time.perf_counter() - started
    out = OUT / "serve-quick.json" if given.quick else RESULTS
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(report, indent=1) + "\n")
    print(f"{report['seconds']:.0f} s, into {out}", file=sys.stderr)


if __name__ == "__main__":
    main()
