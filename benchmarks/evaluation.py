"""Values of policies on simulated noisy logs whose truth is known (benchmarks/logs.py).

python benchmarks/evaluation.py             # twenty minutes; into benchmarks/results/evaluation.json
python benchmarks/evaluation.py --quick     # a smoke test; into benchmarks/out/evaluation-quick.json
python benchmarks/evaluation.py --only simex,speed

estimates   1,000 logs of 4,000 rounds, of a logger that learns and of one that does not: bias, error, how
            often 95 % intervals hold; obp's doubly robust estimator on the same logs (peers/obp.sh)
models      our doubly robust estimator against one whose model takes readings for the truth
speed       a million rounds, five fixed policies
noise       what noise does to each way of valuing a policy (evaluation_noise.py): 200 logs of 4,000 rounds
simex       what is said of a perfect sensor: 40 logs of 20,000 rounds, noise half as large as contexts vary
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.compare import OUT
from benchmarks.evaluation_noise import noise
from benchmarks.logs import ACTIONS, World, best, logs, policy, truth, with_one
from benchmarks.peers.run import ROOT, machine
from unfog.evaluation.context import EvaluationContext
from unfog.evaluation.evaluate import evaluate_policies
from unfog.evaluation.log import DecisionLog
from unfog.evaluation.sensor import CURVES, READ, sensor
from unfog.maths.arrays import Array

RESULTS = ROOT / "benchmarks" / "results" / "evaluation.json"
OBP, WORKER = OUT / "obp-venv" / "bin" / "python", ROOT / "benchmarks" / "peers" / "obp_worker.py"
NAMES = "dr,snips,ips,switch,clipped,dm"
BATCH, ROUNDS = 100, 4000
SETTINGS: dict[str, dict[str, Any]] = {
    "": {},
    ", 10 % revealed": {"revealed": 0.1},
    ", 50 % revealed": {"revealed": 0.5},
    ", 20 % lost": {"lost": 0.2},
    ", 100 devices": {"units": 100},
    ", mean four times as far": {"away": 4.0},
}


def batches(world: World, number: int, learns: bool) -> Iterator[list[DecisionLog]]:
    """Logs, so many at a time."""
    for start in range(0, number, BATCH):
        yield logs(world, min(BATCH, number - start), ROUNDS, learns=learns, seed=1000 + start)


def judged(found: Array, worth: float) -> dict[str, float]:
    """Bias with its standard error, root mean squared error, coverage; of values and ends (logs, 3)."""
    means, low, high = found.T
    off = means - worth
    return {
        "bias": float(off.mean()),
        "bias_se": float(off.std() / np.sqrt(len(off))),
        "rmse": float(np.sqrt((off**2).mean())),
        "coverage": float(((low <= worth) & (worth <= high)).mean()),
    }


def margin(ours: Array, theirs: Array, worth: float) -> dict[str, float]:
    """By which share our root mean squared error is smaller, with its standard error, paired by log."""
    mine, its = (ours - worth) ** 2, (theirs - worth) ** 2
    ratio = np.sqrt(mine.mean() / its.mean())
    moved = ratio / 2 * (mine / mine.mean() - its / its.mean())
    return {
        "rmse_ours": float(np.sqrt(mine.mean())),
        "rmse_theirs": float(np.sqrt(its.mean())),
        "less": float(1 - ratio),
        "less_se": float(moved.std() / np.sqrt(len(moved))),
    }


def estimates(number: int, learns: bool) -> dict[str, Any]:
    """Every estimator, with intervals for loggers that learn and plain ones; and obp's."""
    world, rows, peers = World(), list[Array](), list[dict[str, Array]]()
    worth = truth(world, 16_000_000 if number > 100 else 1_000_000)
    columns = ("value", "low", "high", "plain_value", "plain_low", "plain_high")
    for batch in batches(world, number, learns):
        scenes = [EvaluationContext(log, world.channel) for log in batch]
        for scene in scenes:
            found = evaluate_policies(scene, {"other": policy}, estimators=NAMES)
            rows.append(np.stack([found[name].values[0] for name in columns]))
        peers.append(obp(batch, [scene.across.rewards for scene in scenes]))
    values = np.stack(rows)  # (logs, columns, estimators)
    names = NAMES.split(",")
    said: dict[str, Any] = {"logs": number, "rounds": ROUNDS, "truth": worth, "adaptive": {}, "plain": {}}
    for i, name in enumerate(names):
        said["adaptive"][name] = judged(values[:, :3, i], worth)
        said["plain"][name] = judged(values[:, 3:, i], worth)
    if peers[0]:
        their = {name: np.concat([one[name] for one in peers]) for name in peers[0]}
        said["obp"] = against(values, names, their, worth)
    return said


def against(values: Array, names: list[str], their: dict[str, Array], worth: float) -> dict[str, Any]:
    """Our doubly robust values against obp's, and the same formulas on the same model."""
    dr, plain = values[:, 0, names.index("dr")], values[:, 3]
    same = {name: plain[:, names.index(name)] - their[f"same_{name}"] for name in ("dr", "ips", "snips")}
    return {
        "bias": {name: float(their[name].mean() - worth) for name in ("dr", "dr_folds")},
        "plain_against": {
            name: margin(plain[:, names.index("dr")], their[name], worth) for name in ("dr", "dr_folds")
        },
        "adaptive_against": {name: margin(dr, their[name], worth) for name in ("dr", "dr_folds")},
        "largest_difference_of_same_formula": {name: float(np.abs(gap).max()) for name, gap in same.items()},
    }


def obp(batch: list[DecisionLog], rewards: list[Array]) -> dict[str, Array]:
    """What obp says of these logs; nothing where its environment is not there."""
    if not OBP.exists():
        return {}
    columns: dict[str, Any] = {
        name: np.stack([getattr(log, name) for log in batch])
        for name in ("noisy", "arm", "reward", "probability")
    }
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder) / "logs.npz", Path(folder) / "values.npz"
        tables = np.stack([policy(log.noisy) for log in batch])
        np.savez(given, **columns, policy=tables, rewards=np.stack(rewards))
        subprocess.run([OBP, WORKER, given, found], check=True, cwd=folder)
        return dict(np.load(found))


def models(number: int) -> dict[str, Any]:
    """Doubly robust through the denoiser, against the same map on raw noisy contexts."""
    said = {}
    for shared in (False, True):
        features = ("product", ACTIONS) if shared else ("per_arm", None)
        for name, told in SETTINGS.items():
            world = World(shared=shared, **told)
            worth, rows = truth(world, 4_000_000 if number > 100 else 1_000_000), list[list[float]]()
            for batch in batches(world, number, learns=False):
                for log in batch:
                    ours = EvaluationContext(log, world.channel, *features)
                    raw = EvaluationContext(log._replace(true=None), None, *features)
                    found = [
                        evaluate_policies(one, {"other": policy}, estimators="dr,dm", intervals="plain")[
                            "value"
                        ]
                        for one in (ours, raw)
                    ]
                    rows.append([float(x) for one in found for x in one.values[0]])
            values = np.array(rows)
            said[features[0] + name] = {
                "logs": number,
                "truth": worth,
                "dr": margin(values[:, 0], values[:, 2], worth),
                "dm": margin(values[:, 1], values[:, 3], worth),
            }
    return said


def speed(rounds: int) -> dict[str, Any]:
    """Seconds from a log in memory to a dataset."""
    (log,) = logs(World(), 1, rounds, learns=False, seed=1)
    rules: dict[str, Any] = {name: name for name in ("logger", "uniform", "always:a", "fitted")}
    rules["other"] = policy(log.noisy)
    evaluate_policies(
        EvaluationContext(logs(World(), 1, 100, learns=False, seed=2)[0], World().channel)
    )  # imports what it needs
    wall, cpu = time.perf_counter(), time.process_time()
    evaluate_policies(EvaluationContext(log, World().channel), rules, estimators="dr,snips,ips")
    return {
        "rounds": rounds,
        "policies": 5,
        "s": time.perf_counter() - wall,
        "cpu_s": time.process_time() - cpu,
    }


def perfect(world: World, number: int = 4_000_000) -> tuple[float, float]:
    """What the best arm pays by the denoised context, and by the true one."""
    rng = np.random.default_rng(5)
    true, noisy = world.contexts(rng, number)
    scores = with_one(true) @ world.theta.T
    return float(scores[np.arange(number), best(world, noisy)].mean()), float(scores.max(axis=1).mean())


def simex(number: int, rounds: int) -> dict[str, Any]:
    """What is read off at no noise, by every curve."""
    world, rows = World(noise=0.5), list[Any]()
    now, without = perfect(world)
    at = int(np.flatnonzero(READ == -1.0)[0])
    for i in range(number):
        (log,) = logs(world, 1, rounds, learns=False, seed=5000 + i)
        found = sensor(EvaluationContext(log, world.channel))
        rows.append([found.values[0], *(found.read[curve][at] for curve in CURVES)])
    values = np.array(rows)  # (logs, curves, 2)
    said: dict[str, Any] = {"logs": number, "rounds": rounds, "truth": {"as it is": now, "perfect": without}}
    for i, name in enumerate(("as it is", *CURVES)):
        means, errors = values[:, i, 0], values[:, i, 1]
        said[name] = {
            "mean": float(means.mean()),
            "off_percent": float(100 * (means.mean() / (now if i == 0 else without) - 1)),
            "off_percent_se": float(100 * means.std() / np.sqrt(number) / without),
            "sd": float(means.std(ddof=1)),
            "stated_se": float(errors.mean()),
        }
    return said


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="estimates,models,noise,speed,simex")
    asked = parser.parse_args()
    quick, only = asked.quick, asked.only.split(",")
    path = OUT / "evaluation-quick.json" if quick else RESULTS
    said: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    parts: dict[str, Callable[[], dict[str, Any]]] = {
        "estimates": lambda: {
            "fixed": estimates(20 if quick else 1000, learns=False),
            "learning": estimates(20 if quick else 1000, learns=True),
        },
        "models": lambda: models(20 if quick else 300),
        "noise": lambda: noise(20 if quick else 200, ROUNDS),
        "speed": lambda: speed(100_000 if quick else 1_000_000),
        "simex": lambda: simex(3 if quick else 40, 20_000),
    }
    for name in only:
        start = time.perf_counter()
        said |= {"quick": quick, name: parts[name]() | {"machine": machine()}}
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(said, indent=1) + "\n")
        print(name, f"{time.perf_counter() - start:.0f} s", json.dumps(said[name], indent=1), flush=True)


if __name__ == "__main__":
    main()
