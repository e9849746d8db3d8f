"""What reference readings are worth at Air Quality: regret, context error, ratios; two pictures.

    python benchmarks/airquality.py --out docs/images                    # 400 trials: about ten minutes
    python benchmarks/airquality.py --calibration 500 --trials 200       # the table alone
    python benchmarks/airquality.py --out docs/images --table benchmarks/results/airquality.json    # redraw

The table goes to the standard output as JSON; results/airquality.json has the rows that the picture needs.
Trials of all rows are paired: they have the same truth, hours and rewards, and what is shown is nested over
shares. Nothing was tuned on the seed.
"""

import os

os.environ |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from benchmarks.airquality_figures import (
    Estimate,
    Panel,
    Stretch,
    Track,
    share_figure,
    stretch_figure,
    track,
)
from unfog.lab.datasets.airquality import AirQuality
from unfog.maths.arrays import Array, Ints
from unfog.plotting import save
from unfog.simulation import play

SEED = 20_261_116
ROUNDS = 1000
NORMAL = 1.96  # standard errors of a 95 % interval
SHARES = (0.0, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
TITLES = {"regret": "reward lost in 1,000 hours (regret)", "context_error": "squared error of a context"}
MONTH = 30 * 24.0  # hours
GAP = 3 / 24  # days without a reading that break a line
GAS, CALLED = 3, "NO2, µg/m³"


class Row(NamedTuple):
    """Who plays, what is shown, and a target for the ratio to another row."""

    agent: str
    revealed: float = 1.0
    reveal: str = "random"
    to: str = "alg2 1"
    target: float | None = None

    @property
    def name(self) -> str:
        """For the table."""
        return f"{self.agent} {self.revealed:g}" + ("" if self.reveal == "random" else f" {self.reveal}")


RANDOM = "temporal 0.02"  # readings of one hour in fifty, at random
TARGETS = {1.0: 0.35, 0.1: 0.70, 0.02: 1.0, 0.005: 1.5, 0.0: 0.95}
ROWS = (
    *(Row(agent) for agent in ("alg2", "unfog-delayed", "late")),
    *(Row(agent, 0.0) for agent in ("naive", "alg1", "unfog", "kk")),
    *(Row("late", share) for share in (0.1, 0.02)),
    *(
        Row("temporal", share, "random", "alg2 1" if share else "naive 0", TARGETS.get(share))
        for share in SHARES
    ),
    Row("temporal", 0.02, "every", RANDOM),
    Row("temporal", 0.02, "on_request", RANDOM, 0.95),
)
SEES_NOTHING = ("naive", "alg1", "unfog", "kk")


class Played(NamedTuple):
    """One row, played."""

    regret: Array  # (trials,)
    error: Array  # (trials,)
    covered: Array  # (trials,)
    readings: Array  # (trials,)


def world(row: Row, calibration: int) -> AirQuality:
    """What is shown does not matter to those who look at nothing: any share will do."""
    share = 1.0 if row.agent in SEES_NOTHING else row.revealed
    return AirQuality(revealed=share, reveal=row.reveal, calibration=calibration)


def play_row(row: Row, calibration: int, trials: int, seed: int) -> Played:
    """Regret as the simulator finds it, and the beliefs about contexts in the same trials."""
    problem = world(row, calibration)
    settings: Any = {"rounds": ROUNDS, "trials": trials, "seed": seed}
    run = play(problem, [row.agent], **settings, decompose=False, points=4)
    seen = track(problem, row.agent, **settings)
    regret = run.values["regret"][0, :, -1]
    return Played(regret, seen.squared_error(), seen.covered(), seen.readings())


def summary(values: Array) -> dict[str, float]:
    """A mean over trials and its standard error."""
    return {"mean": round(values.mean(), 4), "se": round(values.std(ddof=1) / np.sqrt(len(values)), 4)}


def ratio(one: Array, other: Array) -> dict[str, float]:
    """Of two means over the same trials, with its standard error (the delta method)."""
    found = one.mean() / other.mean()
    error = (one - found * other).std(ddof=1) / np.sqrt(len(one)) / other.mean()
    return {"ratio": round(found, 4), "se": round(error, 4)}


def described(row: Row, played: dict[str, Played]) -> dict[str, Any]:
    """A line of the table."""
    own, other = played[row.name], played[row.to]
    return {
        "row": row.name,
        "regret": summary(own.regret),
        "context_error": summary(own.error),
        "covered": round(own.covered.mean(), 4),
        "readings": summary(own.readings),
        "to": row.to,
        **ratio(own.regret, other.regret),
        "target": row.target,
    }


def shares(rows: Sequence[dict[str, Any]], note: str) -> Any:
    """Regret and context error over the share revealed, from the lines of the table."""
    lines = {row["row"]: row for row in rows}

    def estimate(name: str, field: str) -> Estimate:
        found = lines[name][field]
        return Estimate(found["mean"], NORMAL * found["se"])

    others = {"naive": "naive 0", "alg2, all shown": "alg2 1"}
    panels = [
        Panel(
            title,
            [estimate(f"temporal {share:g}", field) for share in SHARES],
            {label: estimate(name, field) for label, name in others.items()},
        )
        for field, title in TITLES.items()
    ]
    return share_figure(SHARES, panels, "Air Quality: what reference readings are worth", note)


def fullest(seen: Track) -> tuple[int, Ints]:
    """The trial whose last month has the most hours, and which rounds these are."""
    last = seen.at >= seen.at[:, -1:] - MONTH
    trial = int(last.sum(1).argmax())
    return trial, np.flatnonzero(last[trial])


def stretch(problem: AirQuality, seen: Track) -> Stretch:
    """A month of one gas, as concentrations instead of contexts."""
    trial, last = fullest(seen)
    first = problem.record().true[: problem.calibration, GAS]

    def gas(contexts: Array) -> Array:
        found: Array = np.exp(first.mean() + first.std(ddof=1) * (contexts - 1))
        return found

    mean, deviation = seen.mean[trial, last, GAS], seen.deviation[trial, last, GAS]
    middle, low, high = (gas(mean + side * NORMAL * deviation) for side in (0, -1, 1))
    noisy, true = (gas(one[trial, last, GAS]) for one in (seen.noisy, seen.true))
    days = (seen.at[trial, last] - seen.at[trial, last[0]]) / 24
    return Stretch(days, noisy, true, middle, low, high, seen.shown[trial, last, GAS])


def month(seed: int) -> Any:
    """Of the first twenty trials, with a reading in fifty hours."""
    problem = AirQuality(revealed=0.02)
    found = stretch(problem, track(problem, "temporal", rounds=ROUNDS, trials=20, seed=seed))
    title = "A month at Air Quality, with a reference reading in one hour of fifty"
    return stretch_figure(found, title, unit=CALLED, time="day", gap=GAP, logs=True)


def measured(calibration: int, trials: int, seed: int) -> dict[str, Any]:
    """The table, with what it was measured with."""
    played: dict[str, Played] = {}
    for row in ROWS:
        played[row.name] = play_row(row, calibration, trials, seed)
        print(row.name, file=sys.stderr, flush=True)
    settings = {"calibration": calibration, "trials": trials, "seed": seed, "rounds": ROUNDS}
    return {**settings, "rows": [described(row, played) for row in ROWS]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=400, help="of every row; default 400")
    parser.add_argument("--seed", type=int, default=SEED, help=f"default {SEED}")
    parser.add_argument("--calibration", type=int, default=1000, help="hours that calibrate; default 1000")
    parser.add_argument("--out", type=Path, help="a folder for the two pictures; without it none are made")
    parser.add_argument("--table", type=Path, help="a table printed before: draws from it, and plays nothing")
    given = parser.parse_args()
    if given.table is None:
        found = measured(given.calibration, given.trials, given.seed)
        print(json.dumps(found, indent=1))
    else:
        found = json.loads(given.table.read_text("utf-8"))
    if given.out is not None:
        note = f"means of {found['trials']} trials, seed {found['seed']}; bars and bands: 95 % intervals"
        save(shares(found["rows"], note), given.out, "airquality-share", ("png",))
    if given.out is not None and given.table is None:
        save(month(given.seed), given.out, "airquality-month", ("png",))


if __name__ == "__main__":
    main()
