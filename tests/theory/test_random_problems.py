"""Random problems that meet the conditions: no corrected bound is below what is simulated."""

from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.problems import spd
from unfog.channel.knowledge import Knowledge
from unfog.features.linear import Matrix, matrix
from unfog.maths.arrays import Array
from unfog.maths.statistics import estimate
from unfog.simulation import play
from unfog.theory import bounds, information
from unfog.theory.bounds import Bound
from unfog.theory.conditions import Case, linear_case
from unfog.worlds.synthetic import GaussianProblem

pytestmark = pytest.mark.slow

PROBLEMS, SMALL = 72, 1e-3
AGENTS = {"alg1": "plugin", "alg1-exact": "exact", "alg2": "plugin", "alg2-exact": "exact"}


class Posed(NamedTuple):
    problem: GaussianProblem
    case: Case
    rounds: int


def posed(number: int) -> Posed:
    """Every third one isotropic and centred, as the printed theorems ask; the others neither."""
    rng = np.random.default_rng(number)
    d, arms = int(rng.integers(2, 6)), int(rng.integers(2, 15))
    rounds = int((1, 2, 3, d, 10, 20, 40, 100)[number % 8])
    isotropic = number % 3 == 0

    def cov() -> Array:
        low, high = np.sort(10 ** rng.uniform(-1, 1, 2))
        return float(high) * np.eye(d) if isotropic else spd(rng, d, low, high)

    mean = np.zeros(d) if isotropic else rng.normal(0, 1, d)
    reward_var = 10 ** rng.uniform(-1, 1)
    prior_var = reward_var * min(1, d / rounds) * rng.choice([1, 1, 0.2])
    channel = cov(), cov(), cov()
    known = Knowledge(mean, *channel, np.zeros(d), prior_var * np.eye(d), np.asarray(reward_var))
    matrices = rng.normal(size=(arms, d, d))
    matrices /= linear_case(known, matrices).feature_norm

    def build(actions: Array) -> Matrix:
        return matrix(actions.reshape(*actions.shape[:-1], d, d))

    problem = GaussianProblem(
        dim=d,
        actions=matrices.reshape(arms, d * d),
        features=build,
        context_mean=mean,
        context_cov=channel[0],
        noise_cov=channel[1],
        bias_cov=channel[2],
        prior_cov=prior_var,
        reward_var=reward_var,
    )
    return Posed(problem, linear_case(problem.knowledge(), matrices), rounds)


def bounds_of(case: Case, rounds: int, agent: str, version: str) -> dict[str, tuple[Bound, tuple[str, ...]]]:
    """Every bound on an agent, and the losses whose sum it bounds. Those that do not apply are left out."""
    ee, denoiser = ("ee1", "ee2"), AGENTS[agent]
    told: dict[str, Any] = {"denoiser": denoiser, "strict": False}
    found: dict[str, tuple[Bound, tuple[str, ...]]]
    if agent.startswith("alg1"):
        found = {
            "theorem 1": (bounds.theorem_1(case, rounds, version, **told), ("regret",)),
            "lemma 1": (bounds.lemma_1(case, rounds, version, strict=False), ("cb",)),
            "lemma 2": (bounds.lemma_2(case, rounds, version, **told), ee),
            "lemma 2, linear": (bounds.lemma_2_linear(case, rounds, version, **told), ee),
        }
    else:
        found = {
            "theorem 2": (bounds.theorem_2(case, rounds, version, **told), ("regret",)),
            "lemma 3": (bounds.lemma_3(case, rounds, version, denoiser=denoiser), ("cb",)),
            "lemma 4": (bounds.lemma_4(case, rounds, version), ee),
            f"lemma 4, delta = {SMALL}": (bounds.lemma_4(case, rounds, version, delta=SMALL), ee),
        }
    return {name: pair for name, pair in found.items() if pair[0].holds.all()}


class ComparedBound(NamedTuple):
    """A bound beside what was simulated."""

    number: int
    rounds: int
    agent: str
    name: str
    version: str
    bound: float
    mean: float
    se: float


@pytest.fixture(scope="module")
def held() -> list[ComparedBound]:
    rows = []
    for number in range(PROBLEMS):
        problem, case, rounds = posed(number)
        trials = 1000 if rounds == 1 else 100
        curves = play(problem, list(AGENTS), rounds=rounds, trials=trials, seed=number)
        for i, agent in enumerate(curves.agents):
            for version in information.VERSIONS:
                for name, (bound, losses) in bounds_of(case, rounds, agent, version).items():
                    found = estimate(np.sum([curves.values[loss][i, :, -1] for loss in losses], 0))
                    rows.append(
                        ComparedBound(number, rounds, agent, name, version, float(bound.total), *found)
                    )
    return rows


def test_all_bounds_apply_to_fifty_problems_and_more(held: list[ComparedBound]) -> None:
    for name in ("theorem 1", "lemma 1", "lemma 2", "lemma 2, linear", "theorem 2", "lemma 3", "lemma 4"):
        corrected = {row.number for row in held if row.name == name and row.version == "corrected"}
        assert len(corrected) >= 50
        assert len({row.number for row in held if row.name == name and row.version == "printed"}) >= 15
    assert {1, 2, 3, 100} <= {row.rounds for row in held}


def test_no_corrected_bound_is_below_what_is_simulated(held: list[ComparedBound]) -> None:
    below = [row for row in held if row.version == "corrected" and row.mean + 3 * row.se > row.bound]
    assert below == []


def test_printed_bounds_are_below_in_one_case_alone(held: list[ComparedBound]) -> None:
    """Lemma 4 at T = 1 with a small delta and the exact denoiser, and there in most problems."""
    below = [row for row in held if row.version == "printed" and row.mean - 3 * row.se > row.bound]
    assert {(row.name, row.rounds, row.agent) for row in below} == {
        (f"lemma 4, delta = {SMALL}", 1, "alg2-exact")
    }
    asked = {row.number for row in held if row.rounds == 1}
    assert len({row.number for row in below}) > len(asked) / 2


def test_bounds_are_loose(held: list[ComparedBound]) -> None:
    """How many times the regret: a corrected theorem is never nearer than 3 times, typically 10 and more."""
    for name in ("theorem 1", "theorem 2"):
        times = [row.bound / row.mean for row in held if row.name == name and row.version == "corrected"]
        assert min(times) > 3
        assert np.median(times) > 10
