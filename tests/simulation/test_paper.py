"""The paper's findings, in its own setting and in one where denoising is more than a scalar shrink."""

import numpy as np
import pytest

from tests.problems import spd
from unfog.maths.arrays import Array
from unfog.maths.statistics import estimate
from unfog.simulation import play
from unfog.worlds.synthetic import GaussianProblem

pytestmark = pytest.mark.slow

REFERENCE = {"naive": 171, "kk": 175, "alg1": 145, "alg2": 123, "oracle": 143}  # standard error 3 each


def final_regrets(problem: GaussianProblem, trials: int) -> dict[str, Array]:
    curves = play(problem, rounds=1000, trials=trials, seed=0, points=1, decompose=False, workers=2)
    return dict(zip(curves.agents, curves.values["regret"][:, :, 0], strict=True))


@pytest.fixture(scope="module")
def paper() -> dict[str, Array]:
    """400 trials of the paper's first experiment."""
    return final_regrets(GaussianProblem(), 400)


@pytest.fixture(scope="module")
def correlated() -> dict[str, Array]:
    """400 trials with correlated, anisotropic covariances and contexts that are not centred."""
    rng = np.random.default_rng(2)
    problem = GaussianProblem(
        dim=4,
        actions=20,
        context_mean=rng.normal(0.5, 0.5, 4),
        context_cov=spd(rng, 4, 0.3, 2.0),
        noise_cov=spd(rng, 4, 0.3, 4.0),
        bias_cov=spd(rng, 4, 0.5, 3.0),
        prior_cov=spd(rng, 12, 0.005, 0.05),
    )
    return final_regrets(problem, 400)


def above(regrets: dict[str, Array], one: str, other: str) -> float:
    """By what share of the other's regret the one's is higher; trials are paired."""
    return float((regrets[one] - regrets[other]).mean() / regrets[other].mean())


@pytest.mark.parametrize("name", REFERENCE)
def test_final_regrets_are_those_of_an_independent_run(name: str, paper: dict[str, Array]) -> None:
    found = estimate(paper[name])
    # Three combined standard errors, five agents: a right simulator fails with probability 0.013 at most.
    assert abs(found.mean - REFERENCE[name]) < 3 * np.hypot(found.se, 3)


def test_algorithm_1_is_as_good_as_knowing_the_bias(paper: dict[str, Array]) -> None:
    # The paired standard error is 1.1 %: were the two equal, one seed in 150 would fail.
    assert abs(above(paper, "alg1", "oracle")) < 0.03


def test_ignoring_the_noise_costs_an_eighth(paper: dict[str, Array]) -> None:
    # The mean over seeds is 19 %, five paired standard errors away: wrong less than 1e-6 of the time.
    assert above(paper, "naive", "alg1") >= 0.12


def test_seeing_contexts_late_saves_a_tenth(paper: dict[str, Array]) -> None:
    # The mean over seeds is -14 %, four paired standard errors away: wrong 3e-5 of the time.
    assert above(paper, "alg2", "alg1") <= -0.10


def test_the_same_holds_in_a_correlated_world(correlated: dict[str, Array]) -> None:
    # All three are four paired standard errors or more from what is found: wrong 1e-4 of the time.
    assert above(correlated, "naive", "alg1") > 0.25
    assert above(correlated, "alg2", "alg1") < -0.05
    assert abs(above(correlated, "alg1", "oracle")) < 0.05
