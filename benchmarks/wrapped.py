"""Other libraries with our denoiser in front, against themselves alone.

    python -m benchmarks.wrapped --trials 50 --workers 2

Each trial is a world of `wrapped_worlds.py`, played by each library of `wrapped_players.py` twice with the
same seed: alone, and behind `unfog.adapters.wrap`. The denoiser is told the law of contexts and of the
channel, as agents are in the lab; alone, what was lost is filled with the mean. Regret is against the best
arm for the true context. `less` is the share of it that the denoiser saves, and its interval that of a ratio
of paired means.
"""

import argparse
import json
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.wrapped_players import PLAYERS
from benchmarks.wrapped_worlds import ARMS, DIM, SETTINGS, Array, Setting, World, draw, floor
from unfog.adapters import wrap
from unfog.adapters.sklearn import Denoiser

OUT = Path(__file__).parent / "results" / "wrapped.json"
ALONE, WRAPPED, FLOOR = range(3)


class Nothing:
    """A denoiser that does nothing."""

    def transform(self, X: Array) -> Array:  # noqa: N803
        return X

    def transform_one(self, x: Array) -> Array:
        return x


class Recorded:
    """What the denoiser said of each reading, in order: it would say the same to every library."""

    def __init__(self, said: list[Array]) -> None:
        self._said = iter(said)

    def transform(self, X: Array) -> Array:  # noqa: N803
        raise AssertionError(f"{len(X)} contexts were not decided on")

    def transform_one(self, x: Array) -> Array:
        del x
        return next(self._said)


def denoiser(setting: Setting) -> Denoiser:
    """Told the laws, and no draw from them."""
    bias = setting.bias * setting.context_cov if setting.bias else None
    walk: dict[str, Any] = {}
    if setting.walk:
        walk = {"kind": "drift", "walk_cov": setting.walk * setting.context_cov}
    return Denoiser(setting.noise, bias, setting.mean, setting.context_cov, **walk)


def told(setting: Setting, world: World) -> list[dict[str, Any]]:
    """How precise each reading is, where that differs."""
    return [{} if setting.poor == 1 else {"noise_cov": cov} for cov in world.noises]


def alone(bandit: Any, **options: Any) -> Any:
    """As it is; the one that takes text needs someone to write it."""
    return wrap(bandit, Nothing(), **options) if "actions" in options else bandit


def played(player: Any, rows: Array, world: World) -> float:
    """The regret of all rounds."""
    total = 0.0
    for row, rewards, regrets in zip(rows, world.rewards, world.regrets, strict=True):
        arm = player.decide(row)
        player.update(row, arm, rewards[arm])
        total += regrets[arm]
    return float(total)


def trial(name: str, libraries: list[str], rounds: int, seed: int) -> list[list[float]]:
    """For each library: regret alone, behind the denoiser, and of who knows the arms."""
    setting = SETTINGS[name]
    world = draw(setting, rounds, seed)
    filled, about = np.where(np.isnan(world.readings), setting.mean, world.readings), told(setting, world)
    best = denoiser(setting)
    seen = [best.transform_one(row, **said) for row, said in zip(world.readings, about, strict=True)]
    known = floor(world, np.array(seen))

    def front(bandit: Any, **options: Any) -> Any:
        return wrap(bandit, Recorded(seen), **options)

    regrets = []
    for make in (PLAYERS[library] for library in libraries):
        apart = played(make(alone, setting.intercept, DIM, seed), filled, world)
        behind = played(make(front, setting.intercept, DIM, seed), world.readings, world)
        regrets.append([apart, behind, known])
    return regrets


def saved(before: Array, after: Array) -> tuple[float, float]:
    """1 - mean(after) / mean(before) of pairs, and the half width of its 95 % interval."""
    share = 1 - after.mean() / before.mean()
    rest = after - (1 - share) * before
    return float(share), float(1.96 * rest.std(ddof=1) / np.sqrt(len(rest)) / before.mean())


def row(library: str, name: str, regrets: Array) -> dict[str, Any]:
    """A row of the table, from regrets (trials, 3)."""
    less, half = saved(regrets[:, ALONE], regrets[:, WRAPPED])
    known = regrets[:, [FLOOR]]
    excess = saved(*(regrets - known)[:, [ALONE, WRAPPED]].T)
    halves = 1.96 * regrets.std(0, ddof=1) / np.sqrt(len(regrets))
    return {
        "library": library,
        "version": version(library),
        "setting": name,
        "title": SETTINGS[name].title,
        "gain": SETTINGS[name].gain,
        "alone": [float(regrets[:, ALONE].mean()), float(halves[ALONE])],
        "wrapped": [float(regrets[:, WRAPPED].mean()), float(halves[WRAPPED])],
        "floor": [float(regrets[:, FLOOR].mean()), float(halves[FLOOR])],
        "less": [less, half],
        "less_of_excess": list(excess),
    }


def line(found: dict[str, Any]) -> str:
    """As it is printed and as it stands in docs/notebook/adapters.md."""
    numbers = [f"{mean:.0f} ± {half:.0f}" for mean, half in (found["alone"], found["wrapped"])]
    shares = [
        f"{100 * mean:.1f} ± {100 * half:.1f}" for mean, half in (found["less"], found["less_of_excess"])
    ]
    return f"| {found['title']} | {found['library']} | {' | '.join(numbers + shares)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--libraries", nargs="*", default=list(PLAYERS))
    parser.add_argument("--settings", nargs="*", default=list(SETTINGS))
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    size = {"rounds": options.rounds, "trials": options.trials, "arms": ARMS, "dim": DIM}
    rows = []
    with ProcessPoolExecutor(options.workers) as pool:
        for name in options.settings:
            play = partial(trial, name, options.libraries, options.rounds)
            regrets = np.array(list(pool.map(play, range(options.trials))))
            for place, library in enumerate(options.libraries):
                rows.append(row(library, name, regrets[:, place]))
                print(line(rows[-1]), flush=True)
            options.out.write_text(json.dumps(size | {"rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
