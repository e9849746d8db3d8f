"""Contexts on a sphere: their length, their moments, and what is refused."""

from typing import Any

import numpy as np
import pytest

from tests.each import each
from tests.problems import covariance_error, within
from unfog.simulation import play
from unfog.simulation.job import truth_draws
from unfog.validation import InputError
from unfog.worlds.synthetic import GaussianProblem

TOLD: dict[str, Any] = {"context_law": "sphere", "noise_cov": 1e-12, "bias_cov": 1e-12}


def contexts(problem: GaussianProblem, rng: np.random.Generator, number: int) -> Any:
    truth = problem.truth(truth_draws(0, range(1), problem.truth_draws()))
    return problem.emit(truth, rng.standard_normal((number, problem.round_normals()))).context


def test_each_arm_has_its_own(rng: np.random.Generator) -> None:
    problem = GaussianProblem(dim=6, actions=3, context_cov=2.0, features="own", **TOLD)
    drawn = contexts(problem, rng, 50_000)
    lengths = np.linalg.norm(drawn.reshape(-1, 3, 2), axis=-1)
    np.testing.assert_allclose(lengths, 2.0, rtol=1e-12)
    # 27 numbers at 5 standard errors: a right law fails 2e-5 of the time.
    cov = 2.0 * np.eye(6)
    assert within(drawn.mean(0), np.zeros(6), np.sqrt(np.diag(cov) / len(drawn)))
    assert within(np.cov(drawn.T), cov, covariance_error(cov, len(drawn)))


def test_other_maps_have_one_sphere(rng: np.random.Generator) -> None:
    drawn = contexts(GaussianProblem(dim=4, actions=3, **TOLD), rng, 1000)
    np.testing.assert_allclose(np.linalg.norm(drawn, axis=-1), 2.0, rtol=1e-12)


def test_it_is_not_as_agents_are_told() -> None:
    assert GaussianProblem(dim=2).plain
    assert not GaussianProblem(dim=2, **TOLD).plain


@each(
    "field, value",
    [("context_law", "cube"), ("context_mean", 1.0), ("context_cov", [1.0, 2.0])],
)
def test_what_no_sphere_has_is_refused(field: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"^{field}:"):
        GaussianProblem(dim=2, **TOLD | {field: value})


@pytest.mark.slow
def test_both_engines_draw_it() -> None:
    problem = GaussianProblem(dim=6, actions=3, context_cov=0.5, features="own", prior_cov=0.5, **TOLD)
    told: dict[str, Any] = {"rounds": 30, "trials": 3, "draws": "numpy"}
    runs = [play(problem, ["naive"], engine=engine, **told) for engine in ("numpy", "jax")]
    found = [run.values["regret"] for run in runs]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6, atol=1e-9)
