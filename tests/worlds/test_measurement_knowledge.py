"""What agents are told of contexts beyond their moments, and what oracles know whatever agents are told."""

from typing import Any

import numpy as np
import pytest

from tests.each import each
from tests.worlds.test_composed_discrete import MADE, world
from unfog.lab.spec import KINDS
from unfog.simulation import play
from unfog.validation import InputError
from unfog.worlds.synthetic import GaussianProblem, LogisticProblem

COV = np.array([[1.0, 0.6], [0.6, 2.0]])


def gaussian(**told: Any) -> GaussianProblem:
    return GaussianProblem(dim=2, actions=4, context_mean=[1.0, -2.0], context_cov=COV, noise_cov=0.3, **told)


def test_nothing_more_is_told_unless_it_is_asked_for() -> None:
    for problem in (gaussian(), LogisticProblem(dim=2), world(contexts="gaussian")):
        assert problem.knowledge().beyond_moments == ()
    assert world().knowledge().beyond_moments == ("contexts", "sample")


def test_a_subset_of_the_users_leaves_the_oracle_all_of_them() -> None:
    some, whole = world(prior_contexts=4), world()
    known = some.knowledge()
    assert known.sample is not None
    assert known.sample.shape == (4, 3)
    assert all((user == MADE.users).all(1).any() for user in known.sample)
    assert len(np.unique(known.sample, axis=0)) == 4
    np.testing.assert_array_equal(known.contexts, MADE.users)
    found, right = (play(p, ["bayes-oracle", "unfog"], rounds=20, trials=3, seed=1) for p in (some, whole))
    for loss, values in right.values.items():
        np.testing.assert_array_equal(found.values[loss], values, err_msg=loss)
    one, other = (
        play(p, ["empirical"], rounds=20, trials=3, seed=1).values["regret_bayes"] for p in (some, whole)
    )
    assert not np.array_equal(one, other)


def test_contexts_are_drawn_from_the_law_where_there_is_no_list() -> None:
    """4,000 draws: five moments at 5 standard errors fail with probability 3e-6."""
    drawn = gaussian(prior_contexts=4000).knowledge().sample
    assert drawn is not None
    error = np.sqrt(np.diag(COV) / 4000)
    assert (np.abs(drawn.mean(0) - [1.0, -2.0]) < 5 * error).all()
    spread = np.sqrt((np.outer(np.diag(COV), np.diag(COV)) + COV**2) / 4000)
    assert (np.abs(np.cov(drawn.T) - COV) < 5 * spread).all()
    np.testing.assert_array_equal(drawn[:10], gaussian(prior_contexts=10).knowledge().sample)


def test_a_mixture_is_fitted_about_the_told_mean() -> None:
    law = gaussian(prior_noisy_contexts=3000).knowledge().mixture
    assert law is not None
    mean = law.weights @ law.means
    np.testing.assert_allclose(mean, [1.0, -2.0], atol=1e-9)
    away = law.means - mean
    whole = (law.weights[:, None, None] * (law.covs + away[:, :, None] * away[:, None, :])).sum(0)
    np.testing.assert_allclose(whole, COV, atol=0.3)


@each(
    "fields, complaint",
    [
        ({"prior_contexts": -1}, "^prior_contexts: -1; allowed: a whole number"),
        ({"prior_contexts": 2.5}, "^prior_contexts: 2.5; allowed: a whole number"),
        ({"prior_noisy_contexts": True}, "^prior_noisy_contexts: True; allowed: a whole number"),
        ({"prior_noisy_contexts": 7}, "^prior_noisy_contexts: 7; allowed: 0, or a whole number from 50"),
    ],
)
def test_refusals(fields: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        gaussian(**fields)
    with pytest.raises(InputError, match=complaint):
        KINDS["airquality"](**fields)


def test_many_dimensions_need_more_to_be_fitted() -> None:
    with pytest.raises(
        InputError, match=r"^prior_noisy_contexts: 60; allowed: 0, or at least 105 for contexts of"
    ):
        GaussianProblem(dim=20, prior_noisy_contexts=60)


def test_no_more_users_are_told_than_there_are() -> None:
    with pytest.raises(
        InputError, match=r"^prior_contexts: 8; allowed: 0 for all, or at most the 7 that there are"
    ):
        world(prior_contexts=8)


@pytest.mark.parametrize("kind", ["gaussian", "logistic"])
def test_the_rows_play(kind: str) -> None:
    problem = KINDS[kind](dim=2, actions=4, prior_contexts=30, prior_noisy_contexts=100)  # type: ignore[call-arg]
    found = play(problem, ["empirical", "mixture"], rounds=12, trials=3, seed=2)
    assert np.isfinite(found.values["regret"]).all()
