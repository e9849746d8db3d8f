"""One row of the live benchmark, in a process of its own: time and memory of decisions with a log.

    python -m benchmarks.live_worker per_arm --events 300000

d = 5 coordinates, K = 40 arms, the agent `unfog`: with features of their own for each arm (m = 240), or with
quadratic features of vectors (m = 15), the model of the peers. Every number is of this process alone.
"""

import argparse
import json
import os
import sqlite3
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import unfog
from unfog.live.backend import Row
from unfog.live.log import EventLog
from unfog.live.sqlite import SqliteBackend

DIM, ARMS = 5, 40
COORDINATES = list("abcde")
CHANNEL = {"context_mean": [0.0] * DIM, "context_cov": 1.0, "noise_cov": 1.1, "bias_cov": 1.1}


def problem(store: unfog.live.Store, features: str, agent: str = "unfog") -> unfog.live.Problem:
    """The problem of all rows."""
    rng = np.random.default_rng(0)
    names = [f"arm {i}" for i in range(ARMS)]
    arms: Any = names if features == "per_arm" else {name: rng.normal(size=DIM) for name in names}
    return store.problem(
        "bench",
        context=COORDINATES,
        arms=arms,
        features=features,
        channel=CHANNEL,
        agent=agent,
        seed=1,
        prior_cov=0.5,
    )


def readings(number: int) -> list[list[float]]:
    """Noisy contexts as the channel says they are."""
    rng = np.random.default_rng(2)
    bias = rng.normal(size=DIM) * 1.1**0.5
    found: list[list[float]] = (rng.normal(size=(number, DIM)) * 2.1**0.5 + bias).tolist()
    return found


def spread(values: list[float]) -> dict[str, float]:
    """Microseconds."""
    ordered = sorted(values)
    return {
        "median": 1e6 * median(ordered),
        "min": 1e6 * ordered[0],
        "p99": 1e6 * ordered[int(0.99 * len(ordered))],
    }


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    found = work()
    return time.perf_counter() - started, found


def calls(folder: Path, features: str, sync: str, rounds: int) -> dict[str, Any]:
    """A decision and its reward, one after the other, each with its commit."""
    rng = np.random.default_rng(3)
    with unfog.live.open(folder / f"{sync}.unfog", sync=sync) as store:
        live = problem(store, features)
        decide, reward = [], []
        for x in readings(rounds):
            took, made = timed(partial(live.decide, x))
            decide.append(took)
            took, _ = timed(partial(live.reward, made.id, float(rng.normal())))
            reward.append(took)
    return {"decide": spread(decide[rounds // 10 :]), "reward": spread(reward[rounds // 10 :])}


def bare_commit(folder: Path, sync: str, rounds: int) -> dict[str, float]:
    """One commit of SQLite of a row of 500 bytes, with nothing around it."""
    connection = sqlite3.connect(folder / f"bare-{sync}.db", isolation_level=None)
    connection.execute("PRAGMA locking_mode=EXCLUSIVE")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute(f"PRAGMA synchronous={sync.upper()}")
    connection.execute("CREATE TABLE event(seq INTEGER PRIMARY KEY, body TEXT)")

    def once() -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO event(body) VALUES (?)", ("x" * 500,))
        connection.execute("COMMIT")

    found = [timed(once)[0] for _ in range(rounds)]
    connection.close()
    return spread(found[rounds // 10 :])


def log_of(folder: Path, features: str, events: int) -> tuple[Path, int]:
    """A log of so many events, half of them decisions and half their rewards."""
    path = folder / "many.unfog"
    rng = np.random.default_rng(4)
    with unfog.live.open(path, sync="normal") as store:
        live = problem(store, features)
        with store.batch():
            for x in readings(events // 2):
                live.reward(live.decide(x).id, float(rng.normal()))
    return path, events


def big(folder: Path, features: str, events: int) -> dict[str, Any]:
    """Import into the log, fold, start from the log and from a snapshot."""
    path, _ = log_of(folder, features, events)
    with EventLog(SqliteBackend(path)) as log:
        rows = list(log.read("bench"))
    return {
        "events": len(rows),
        **written(folder, rows),
        **folded(path),
    }


def written(folder: Path, rows: list[Row]) -> dict[str, float]:
    """Rows into a log of their own."""
    with EventLog(SqliteBackend(folder / "import.unfog")) as log:

        def work() -> None:
            for start in range(0, len(rows), 10_000):
                log.commit(log.add(rows[start : start + 10_000]), log.epoch)

        took, _ = timed(work)
    return {"imported_per_s": len(rows) / took}


def folded(path: Path) -> dict[str, float]:
    """A start from a snapshot, and a replay of the whole log."""
    took, store = timed(lambda: unfog.live.open(path))
    started, _ = timed(lambda: store.problem("bench").state_hash())
    replay, found = timed(lambda: store.replay()["bench"])
    events, same = found.events, found.same
    store.close()
    assert same
    return {"start_s": took + started, "replay_s": replay, "folded_per_s": events / replay}


def pending(folder: Path, features: str, number: int = 10_000) -> dict[str, float]:
    """Memory of open decisions."""
    with unfog.live.open(folder / "pending.unfog", sync="normal") as store:
        live = problem(store, features)
        some = readings(number + 100)
        with store.batch():
            for x in some[:100]:
                live.decide(x)
            tracemalloc.start()
            before, _ = tracemalloc.get_traced_memory()
            for x in some[100:]:
                live.decide(x)
        after, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return {"pending_mb": (after - before) / 1e6 * 10_000 / number}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("features", choices=["per_arm", "quadratic"])
    parser.add_argument("--rounds", type=int, default=3000)
    parser.add_argument("--events", type=int, default=300_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=os.environ.get("UNFOG_BENCH_DISK")) as place:
        folder = Path(place)
        row: dict[str, Any] = {
            "features": given.features,
            "version": unfog.__version__,
            "rounds": given.rounds,
        }
        for sync, rounds in (("normal", given.rounds), ("full", max(20, given.rounds // 5))):
            row[sync] = calls(folder, given.features, sync, rounds)
            row[sync]["bare_commit"] = bare_commit(folder, sync, rounds)
        row |= pending(folder, given.features) | big(folder, given.features, given.events)
    json.dump(row, sys.stdout)


if __name__ == "__main__":
    main()
