"""What must never pass for a result: walks that run off, modes that were found and thrown away."""

from typing import Any

import numpy as np
import pytest
from scipy.special import expit

from unfog import LogisticProblem
from unfog.agents.catalogue import AGENTS, Catalogue, named
from unfog.agents.learn.adf import Online, _mode
from unfog.agents.learn.lmc import LMC
from unfog.inputs import InputError
from unfog.maths.arrays import Array
from unfog.maths.gaussian import Gaussian
from unfog.simulate import simulate

SMALL: dict[str, Any] = {"rounds": 20, "trials": 3}
PROBLEM = LogisticProblem(dim=2, actions=5)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_mode_is_found_for_scores_of_all_sizes(dtype: str) -> None:
    """S - mean = variance sigmoid(-s), for means of the prior's size and far beyond, by its residual."""
    rng = np.random.default_rng(0)
    variance = np.repeat(np.logspace(-6, 6, 25), 400).astype(dtype)
    mean = (np.sqrt(variance) * rng.normal(0, 2, variance.shape)).astype(dtype)
    at = _mode(mean, variance).astype(np.float64)
    chance = expit(-at)
    residual = at - mean - variance * chance
    steepness = 1 + variance * chance * (1 - chance)
    width = np.sqrt(variance / steepness)
    # In widths of the posterior: a thousandth would move no moment, rounding of float32 makes some of it.
    assert np.abs(residual / steepness / width).max() < (1e-12 if dtype == "float64" else 1e-5)


class Runaway(Online):
    """A learner whose belief grows without end."""

    def update(self, parameters: Any, state: Gaussian, row: Array, *rest: Any) -> Gaussian:  # noqa: ARG002
        return state._replace(mean=1e30 * (state.mean + 1) + 0 * row)


@pytest.mark.parametrize("engine", ["numpy", "jax"])
def test_a_belief_that_runs_off_is_refused(engine: str) -> None:
    mine = AGENTS["alg1"]._replace(name="mine", learner=Runaway())
    with pytest.raises(InputError, match=r"^agents: what 'mine' believes of theta is not finite"):
        simulate(PROBLEM, [mine], engine=engine, **SMALL)


def test_a_step_too_long_for_the_prior_is_refused_before_the_run() -> None:
    narrow = LogisticProblem(dim=2, actions=5, prior_cov=0.05)
    with pytest.raises(InputError, match=r"^alg1\.rate: 0\.2 is too long a step for a prior precision of 20"):
        simulate(narrow, ["alg1"], **SMALL)
    assert np.isfinite(simulate(narrow, ["alg1-lmc:rate=0.09"], **SMALL).values["regret"]).all()


def test_learners_of_the_wrong_make_are_refused_by_name() -> None:
    for wrong in (LMC, None, "pg"):
        mine = AGENTS["alg1"]._replace(name="mine", learner=wrong)  # type: ignore[arg-type]
        with pytest.raises(
            InputError, match=r"^agents: the learner of 'mine' is .*; allowed: a learner, made"
        ):
            simulate(PROBLEM, [mine], **SMALL)


def test_one_agent_does_not_play_under_two_names() -> None:
    with pytest.raises(InputError, match=r"^agents: 'alg1-lmc:steps=50' is 'alg1' by another name"):
        named(["naive", "alg1", "alg1-lmc:steps=50"], rows=Catalogue("bernoulli"))
    assert len(named(["alg1", "alg1-lmc:steps=51"], rows=Catalogue("bernoulli"))) == 2


@pytest.mark.parametrize("setting", ["steps=1_0", "steps=+5", "steps=１０", "temperature= 1", "rate=1_0"])
def test_numbers_in_names_are_written_plainly(setting: str) -> None:
    with pytest.raises(InputError, match=r"number, such as"):
        named([f"alg1-lmc:{setting}"], rows=Catalogue("bernoulli"))


def test_nodes_are_enough_for_the_widest_belief() -> None:
    """A channel with a bias far larger than contexts: a belief is then far wider than contexts are."""
    wide = LogisticProblem(dim=2, actions=5, noise_cov=0.1, bias_cov=20.0)
    plain = LogisticProblem(dim=2, actions=5)
    assert wide.rewards.nodes > 3 * plain.rewards.nodes  # type: ignore[attr-defined]
