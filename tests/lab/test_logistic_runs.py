"""Kept runs of logistic problems: the same bytes after an interruption, every loss told."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unfog
from unfog.agents.catalogue import Catalogue
from unfog.lab import storage
from unfog.lab.prepare import prepare
from unfog.lab.report import summary
from unfog.lab.run import keep
from unfog.lab.spec import Spec, describe, parse
from unfog.simulation.engines import numpy as numpy_engine
from unfog.theory.regret import names
from unfog.validation import InputError
from unfog.worlds.synthetic import LogisticProblem

LOSSES = names(True)


def small(**changes: Any) -> Spec:
    settings = {"rounds": 20, "trials": 9, "agents": ["alg1:steps=3", "naive-pg:sweeps=1", "alg1-adf"]}
    problem = {"kind": "logistic", "dim": 2, "actions": 5, "context_mean": [0.5, -1.0]}
    return parse({"problem": problem, "run": settings | changes}, "small")


def contents(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.name != "timing.json"}


@pytest.mark.parametrize("finished", [0, 2])
def test_an_interrupted_run_ends_with_the_same_bytes(
    finished: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(prepare(small()), tmp_path / "whole")
    monkeypatch.setattr(numpy_engine, "BATCH_TRIALS_HISTORY", (1, 3))
    save, count = storage.Partial.save, iter(range(10**6))

    def failing(self: storage.Partial, *given: Any) -> None:
        if next(count) >= finished:
            raise OSError(28, "No space left on device")
        save(self, *given)

    with monkeypatch.context() as trouble:
        trouble.setattr(storage.Partial, "save", failing)
        with pytest.raises(OSError, match="No space"):
            keep(prepare(small()), tmp_path / "broken")
    assert len(list((tmp_path / "broken.partial").glob("block-*"))) == finished
    keep(prepare(small()), tmp_path / "broken")
    assert contents(tmp_path / "broken") == contents(tmp_path / "whole")
    assert not (tmp_path / "broken.partial").exists()


def test_a_kept_run_tells_every_loss(tmp_path: Path) -> None:
    data = unfog.run(small(), out=tmp_path / "run")
    assert set(data) == set(LOSSES)
    assert list(data["agent"].values) == small().run.agents
    facts = json.loads(json.dumps(summary(data), allow_nan=False))
    for name, row in facts["agents"].items():
        assert {*LOSSES, "se", "regret_realised_se", "q50", "q99", "linear_share"} == set(row)
        for loss in LOSSES:
            right = data[loss].sel(agent=name).isel(round=-1).values.mean()
            assert row[loss] == pytest.approx(right, abs=1e-12), loss


def test_a_problem_made_in_python_is_the_same_run() -> None:
    problem = LogisticProblem(dim=2, actions=5, context_mean=[0.5, -1.0])
    fields = describe(problem)
    assert fields is not None
    again = unfog.run(problem, rounds=20, trials=9, agents=small().run.agents)
    assert again.drop_attrs().equals(unfog.run(small()).drop_attrs())


def test_agents_of_ones_own_run_and_are_not_kept(tmp_path: Path) -> None:
    mine = replace(Catalogue("bernoulli")["alg1-adf"], name="mine")
    both = unfog.run(small(), agents=[mine, "alg1-adf"])
    assert all(np.array_equal(*both[loss].values) for loss in LOSSES)
    with pytest.raises(InputError, match="out"):
        unfog.run(small(), agents=[mine], out=tmp_path / "run")
