"""Theta that is given: the same in every trial, and no agent is told."""

import numpy as np
import pytest

from unfog.lab.spec import build_problem
from unfog.simulation import play
from unfog.simulation.job import truth_draws
from unfog.validation import InputError
from unfog.worlds.synthetic import GaussianProblem

THETA = [0.3, -1.2, 0.7, 0.1, 0.9, -0.4]


def test_theta_is_as_given_and_all_else_as_drawn() -> None:
    plain, given = GaussianProblem(dim=2, actions=4), GaussianProblem(dim=2, actions=4, theta=THETA)
    draws = truth_draws(5, range(3), plain.truth_draws())
    one, other = plain.truth(draws), given.truth(draws)
    assert np.array_equal(other.theta, np.tile(THETA, (3, 1)))
    assert not np.allclose(one.theta, other.theta)
    assert np.array_equal(one.bias, other.bias)


def test_agents_are_told_the_prior_all_the_same() -> None:
    given = GaussianProblem(dim=2, theta=THETA, prior_cov=0.5)
    assert np.array_equal(given.knowledge().prior_cov, 0.5 * np.eye(6))
    assert np.array_equal(given.knowledge().prior_mean, np.zeros(6))


def test_it_is_not_plain() -> None:
    assert GaussianProblem(dim=2).plain
    assert not GaussianProblem(dim=2, theta=THETA).plain


def test_a_spec_can_say_it() -> None:
    built = build_problem({"kind": "gaussian", "dim": 2, "theta": THETA})
    assert isinstance(built, GaussianProblem)
    assert np.array_equal(built.theta, THETA)


def test_of_another_size_it_is_refused() -> None:
    with pytest.raises(InputError, match=r"^theta: .*allowed: a number or a list of 6 numbers"):
        GaussianProblem(dim=2, theta=[1.0, 2.0])


@pytest.mark.slow
def test_both_engines_know_it() -> None:
    problem = GaussianProblem(dim=2, actions=4, theta=THETA)
    told = {"rounds": 30, "trials": 3}
    one = play(problem, ["unfog"], **told)  # type: ignore[arg-type]
    other = play(problem, ["unfog"], engine="jax", draws="numpy", **told)  # type: ignore[arg-type]
    np.testing.assert_allclose(one.values["regret"], other.values["regret"], rtol=1e-7)
