"""Units have channels of their own, and that pays where their biases differ."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unfog
from unfog.agents.catalogue import Catalogue, select_rows
from unfog.live.problem import Problem
from unfog.maths.arrays import Array
from unfog.simulation import play
from unfog.simulation.job import Nature, emitted, truth_draws
from unfog.simulation.player import played
from unfog.validation import InputError

ROUNDS, UNITS = 400, 20


def world(tell: bool = True) -> unfog.GaussianProblem:
    """As in benchmarks/live_units.py."""
    told: dict[str, Any] = {"dim": 3, "actions": 4, "features": "per_arm", "prior_cov": 0.5}
    return unfog.GaussianProblem(**told, noise_cov=0.5, bias_cov=1.0, units=UNITS, observe_units=tell)


def terms(problem: unfog.GaussianProblem) -> dict[str, Any]:
    known = problem.knowledge()
    assert known.reward_var is not None
    told: dict[str, Any] = {"context": ["x", "y", "z"], "arms": [f"arm {i}" for i in range(4)], "seed": 1}
    return told | {
        "reward_sd": float(known.reward_var) ** 0.5,
        "prior_cov": 0.5,
        "channel": known,
        "epsilon": 0,
    }


def lived(live: Problem, tell: bool, rounds: int, seed: int) -> Array:
    """What every round of trial 0, decided live, earned less than the best arm in its true context."""
    problem = world(tell)
    truth = problem.truth(truth_draws(seed, [0], problem.truth_draws()))
    nature, uniforms = Nature(problem, seed, [0]).next(rounds)
    lost = []
    for t in range(rounds):
        emission = emitted(problem, truth, nature[:, t], uniforms[:, t], np.asarray(t))
        unit = None if emission.unit is None else f"device {int(emission.unit[0])}"
        made = live.decide(emission.noisy[0], unit=unit)
        design = truth.features.at(emission.context)
        scores = [np.vecdot(design.row(np.asarray([arm])), truth.theta) for arm in range(4)]
        score = scores[int(made.arm.partition(" ")[2])]
        live.reward(made.id, float(problem.reward(score, nature[:, t])[0]))
        lost.append(float(max(scores)[0] - score[0]))
    return np.asarray(lost)


@pytest.mark.slow
@pytest.mark.parametrize("tell", [True, False])
def test_what_is_decided_live_is_what_the_simulator_plays(tmp_path: Path, tell: bool) -> None:
    """So its tables are those of live decisions."""
    with unfog.live.open(tmp_path / "walks.unfog", sync="normal") as store:
        live = store.problem("walks", **terms(world(tell)))
        lost = lived(live, tell, ROUNDS, 1)
        assert len(store.processor.cache.get("walks").runner.channels) == (UNITS if tell else 1)
    found = play(world(tell), ["unfog"], rounds=ROUNDS, trials=1, seed=1, decompose=True)
    assert lost.sum() == pytest.approx(float(found.values["regret_true_context"][0, 0, -1]), rel=1e-9)


@pytest.mark.slow
def test_units_pay() -> None:
    """Paired over 30 trials: beyond 3 standard errors."""
    told, untold = (
        play(world(tell), ["unfog"], rounds=ROUNDS, trials=30, seed=2).values["regret"][0, :, -1]
        for tell in (True, False)
    )
    saved = untold - told
    assert saved.mean() > 3 * saved.std(ddof=1) / np.sqrt(len(saved))
    assert saved.mean() > 0.1 * untold.mean()


def test_a_unit_learns_from_its_own_readings_alone(tmp_path: Path) -> None:
    with unfog.live.open(tmp_path / "walks.unfog", sync="normal") as store:
        both = store.problem("both", **terms(world()))
        alone = store.problem("alone", **terms(world()))
        for i in range(12):
            both.decide([3.0, -i / 5, 0.1], unit="ann")
            alone.decide([3.0, -i / 5, 0.1], unit="ann")
            both.decide([-5.0, 0.2, i / 7], unit="bob")
        for name in ("bias", "bias_sd"):
            assert np.array_equal(both.belief("ann")[name].values, alone.belief("ann")[name].values)
        assert float(both.belief("bob")["bias"][0]) < 0 < float(both.belief("ann")["bias"][0])


def test_no_unit_is_a_unit_of_its_own(tmp_path: Path) -> None:
    with unfog.live.open(tmp_path / "walks.unfog", sync="normal") as store:
        walks = store.problem("walks", **terms(world()))
        first = walks.decide([3.0, 1.0, 0.1])
        walks.decide([3.0, 1.0, 0.1], unit="ann")
        again = walks.decide([3.0, 1.0, 0.1])
        assert walks.decide([3.0, 1.0, 0.1], unit="bob").denoised == first.denoised != again.denoised
        assert [*store.processor.cache.get("walks").runner.channels] == ["", "ann", "bob"]


@pytest.mark.parametrize("agent", ["coupled", "samplinucb"])
def test_learners_that_look_back_have_one(tmp_path: Path, agent: str) -> None:
    """Whatever they look back with: not all of them know of a bias."""
    with unfog.live.open(tmp_path / "walks.unfog", sync="normal") as store:
        walks = store.problem("walks", **terms(world()) | {"agent": agent})
        walks.decide([3.0, 1.0, 0.1], unit="ann")
        before = walks.state_hash()
        with pytest.raises(InputError, match=r"^unit: 'bob'.*looks back on past rounds as those of one$"):
            walks.decide([3.0, 1.0, 0.1], unit="bob")
        assert walks.state_hash() == before
        walks.decide([3.0, 1.0, 0.1], unit="ann")


@pytest.mark.parametrize("agent", ["drift", "robust", "adaptive", "gaps"])
def test_other_denoisers_have_units_as_in_the_lab(tmp_path: Path, agent: str) -> None:
    """Each round's belief of the context, with three units in turn."""
    problem = unfog.GaussianProblem(dim=3, actions=4, features="per_arm", units=3, prior_cov=0.5)
    (row,) = select_rows([agent], rows=Catalogue("gaussian"))
    with unfog.live.open(tmp_path / "walks.unfog", sync="normal") as store:
        given = terms(problem) | {"agent": agent, "standardise": False}
        walks = store.problem("walks", **given)
        for emission, decision in played(problem, row, 15, [0], 1):
            assert emission.unit is not None
            found = walks.decide(emission.noisy[0], unit=f"unit {int(emission.unit[0])}")
            assert np.allclose([*found.denoised.values()], decision.context.mean[0], rtol=1e-9, atol=1e-12)
