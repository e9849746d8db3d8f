"""Whatever the functions of the lab are given, they work or complain with an InputError of one line."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unfog
from tests.each import each
from unfog.cli import results
from unfog.lab.prepare import prepare
from unfog.lab.run_folder import made_folder, run_folder
from unfog.lab.spec import load, parse
from unfog.simulation import play
from unfog.validation import InputError


def nested(depth: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(depth):
        found = [found]
    return found


JUNK: list[Any] = [None, 5, -1, 0, True, "x", "", "a\0b", "a" * 5000, "\udcff", b"x", 1.5, float("nan")]
JUNK += [1e-320, float("inf"), 10**5000, [], {}, [None], [5], ["alg1", 5], [["alg1"]], object(), int, len]
JUNK += [np.array([1, 2]), np.array("x"), np.float64(3), complex(1, 2), range(3), {"alg1"}, nested(50)]
PROBLEM = unfog.GaussianProblem(dim=2, actions=3)
LOG = {"arm": ["a", "b"] * 5, "reward": [1.0, 0.0] * 5, "probability": [0.5] * 10, "context.x": [0.5] * 10}
SMALL: dict[str, Any] = {"rounds": 2, "trials": 1, "agents": ["alg1"]}
SUITE: dict[str, Any] = {"problems": ["drift"], "agents": ["linucb"], "rounds": 2, "trials": 2}
EVALUATED: dict[str, Any] = {"log": LOG, "policies": ["uniform"], "estimators": ["ips"]}


def _spec(**tables: Any) -> Any:
    return prepare(parse({"problem": {"kind": "gaussian", "dim": 2, "actions": 3}, "run": SMALL, **tables}))


CALLS: dict[str, Callable[[str, Any], Any]] = {
    "run experiment": lambda _, value: unfog.run(value, **SMALL),
    **dict.fromkeys(
        [f"run {name}" for name in ("rounds", "trials", "seed", "agents", "engine", "precision", "workers")],
        lambda name, value: unfog.run(PROBLEM, **{**SMALL, name: value}),
    ),
    "play problem": lambda _, value: play(value, ["alg1"], rounds=2, trials=1),
    **dict.fromkeys(
        [
            f"play {name}"
            for name in ("agents", "rounds", "trials", "points", "decompose", "draws", "chunk", "executor")
        ],
        lambda name, value: play(PROBLEM, **{**SMALL, name: value}),
    ),
    "load source": lambda _, value: load(value),
    "load agents": lambda name, value: load("fig1-gaussian", {name: value}),
    "parse data": lambda _, value: parse(value),
    **dict.fromkeys(
        ["parse problem", "parse run", "parse sweep", "parse name", "parse title"],
        lambda name, value: _spec(**{name: value}),
    ),
    "parse swept": lambda _, value: _spec(sweep={"missing": [value]}),
    **dict.fromkeys(
        [f"compare_baselines {name}" for name in ("problems", "agents", "engine", "tuned")],
        lambda name, value: unfog.compare_baselines(**{**SUITE, name: value}),
    ),
    **dict.fromkeys(
        [
            f"evaluate {name}"
            for name in ("log", "policies", "estimators", "intervals", "level", "channel", "features", "arms")
        ],
        lambda name, value: unfog.evaluate(**{**EVALUATED, name: value}),
    ),
    **dict.fromkeys(
        [f"problem {name}" for name in ("dim", "theta", "features", "noise_cov", "missing", "prior_mean")],
        lambda name, value: unfog.GaussianProblem(**{"dim": 2, "actions": 3, name: value}).knowledge(),
    ),
    "temporal fast_time": lambda name, value: unfog.TemporalProblem(**{name: value}).knowledge(),
}


@pytest.mark.parametrize("call", CALLS)
def test_bad_arguments(call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    refused = []
    for value in (
        JUNK[1:] if call.startswith("compare_baselines") or "rounds" in call else JUNK
    ):  # None plays long
        try:
            CALLS[call](call.split()[1], value)
        except InputError as error:
            refused.append(str(error))
    assert len(refused) > len(JUNK) / 3
    assert all(said.isprintable() for said in refused)


@each("value", [5, None, "", "a\0b", b"x", "x.partial", "y/x.partial/", object()])
def test_folders_of_runs(value: Any) -> None:
    with pytest.raises(InputError, match=r"^out: "):
        run_folder(value)
    assert run_folder("x/partial.y") == Path("x/partial.y")


@each("value", [5, "", "a\0b", "a" * 5000, "/dev/null", "/dev/null/x"])
def test_folders_of_figures(value: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^runs: "):
        made_folder("runs", value)
    assert not made_folder("runs", tmp_path / "a" / "b").exists()


@each("value", ["a\0b", "a" * 5000, "nowhere", "/dev/null"])
def test_folders_that_are_no_runs(value: str) -> None:
    with pytest.raises(InputError, match=r"^run: "):
        results.checked_folder(Path(value))
