"""One context for a whole trial, and arms whose coordinates get lost together."""

from typing import Any

import numpy as np
import pytest

from unfog.simulation import play
from unfog.simulation.job import truth_draws
from unfog.validation import InputError
from unfog.worlds.synthetic import GaussianProblem

TOLD: dict[str, Any] = {
    "dim": 6,
    "actions": 3,
    "features": "own",
    "context_mean": [1.0, -2.0, 0.5, 0.0, 3.0, 1.0],
    "context_cov": [0.5, 1.0, 2.0, 0.3, 0.7, 1.1],
}


def emitted(problem: GaussianProblem, trials: int, rounds: int) -> Any:
    truth = problem.truth(truth_draws(7, range(trials), problem.truth_draws()))
    normals = np.random.default_rng(1).normal(size=(rounds, trials, problem.round_normals()))
    return [problem.emit(truth, drawn, np.asarray(t)) for t, drawn in enumerate(normals)]


def test_one_context_for_all_rounds_of_a_trial() -> None:
    problem = GaussianProblem(**TOLD, steady=True)
    rounds = emitted(problem, 4000, 3)
    first = rounds[0].context
    assert all((one.context == first).all() for one in rounds)
    assert not (rounds[0].noisy == rounds[1].noisy).any()
    # With 4000 trials a mean is off by more than five of its deviations once in a million.
    spread = np.sqrt(np.asarray(TOLD["context_cov"]) / 4000)
    assert (np.abs(first.mean(0) - TOLD["context_mean"]) < 5 * spread).all()
    np.testing.assert_allclose(np.cov(first.T), np.diag(TOLD["context_cov"]), atol=0.2)


def test_regret_is_against_who_knows_the_context() -> None:
    problem = GaussianProblem(**TOLD, steady=True, missing=0.3)
    found = play(problem, ["linucb"], rounds=20, trials=4).values
    np.testing.assert_allclose(found["regret"], found["regret_true_context"])
    assert not problem.plain


def test_other_draws_are_those_of_a_world_that_is_not_steady() -> None:
    steady, other = (emitted(GaussianProblem(**TOLD, steady=s), 3, 2) for s in (True, False))
    for one, two in zip(steady, other, strict=True):
        np.testing.assert_allclose(one.noisy - one.context, two.noisy - two.context, atol=1e-12)


def test_arms_get_lost_as_a_whole() -> None:
    rounds = emitted(GaussianProblem(**TOLD, missing=0.25, missing_arms=True), 1000, 4)
    mask = np.stack([one.mask for one in rounds]).reshape(-1, 3, 2)
    assert (mask[..., 0] == mask[..., 1]).all()
    kept = mask[..., 0]
    assert (np.abs(kept.mean(0) - 0.75) < 5 * np.sqrt(0.75 * 0.25 / 4000)).all()
    assert (np.abs(np.corrcoef(kept.T)[np.triu_indices(3, 1)]) < 5 / np.sqrt(4000)).all()


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(InputError, match='missing_arms: True; allowed: false, or features = "own"'):
        GaussianProblem(missing=0.1, missing_arms=True)
    for field in ("steady", "missing_arms"):
        with pytest.raises(InputError, match=f"{field}: 1; allowed: True or False"):
            GaussianProblem(**TOLD | {field: 1})


@pytest.mark.slow
def test_both_engines_agree() -> None:
    problem = GaussianProblem(**TOLD, steady=True, missing=0.4, missing_arms=True)
    ours, theirs = (
        play(problem, ["gaps"], rounds=40, trials=3, engine=engine, draws="numpy").values["regret"]
        for engine in ("numpy", "jax")
    )
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-9)
