"""The world where a part of the context follows the decision: its laws, what is read, and its yardstick."""

from typing import Any

import numpy as np
import pytest

from tests.each import each
from unfog import testing
from unfog.maths.arrays import Array
from unfog.simulation import play
from unfog.simulation.job import truth_draws
from unfog.validation import InputError
from unfog.worlds.problem import Emission, Truth
from unfog.worlds.synthetic import Followed, PostServingProblem

N = 40_000
SMALL: dict[str, Any] = {
    "before": 3,
    "after": 2,
    "actions": 4,
    "half": 2.0,
    "after_var": 0.3,
    "prior_cov": 0.5,
}
MAPS = ["linear", "polynomial"]


def emitted(world: PostServingProblem, trials: int, seed: int = 1) -> tuple[Truth, Emission]:
    truth = world.truth(truth_draws(3, range(trials), world.truth_draws()))
    normals = np.random.default_rng(seed).standard_normal((trials, world.round_normals()))
    return truth, world.emit(truth, normals, np.asarray(0))


def law(world: PostServingProblem) -> Followed:
    found = world._parts.contexts
    assert isinstance(found, Followed)
    return found


def expected(world: PostServingProblem, x: Array) -> Array:
    """What follows x on average, from the formula."""
    f = x if world.mapping == "linear" else x * x
    return np.array([law(world).weights.T @ one + law(world).offset for one in f])


@pytest.mark.parametrize("mapping", MAPS)
def test_it_keeps_the_contract_of_worlds(mapping: str) -> None:
    testing.check_world(PostServingProblem(**SMALL, mapping=mapping))


@pytest.mark.parametrize("mapping", MAPS)
def test_agents_are_told_the_moments_of_contexts(mapping: str) -> None:
    world = PostServingProblem(**SMALL, mapping=mapping)
    rng, known = np.random.default_rng(1), world.knowledge()
    context = law(world).draw(rng.standard_normal((N, law(world).normals)), None)
    x, noise = context[:, :3], context[:, 3:] - expected(world, context[:, :3])
    assert np.abs(x).max() <= 2.0
    error = np.sqrt(np.diag(known.context_cov) / N)
    assert (np.abs(context.mean(0) - known.context_mean) < 5 * error).all()
    # Products of these have at most a few times the variance of Gaussian ones: five errors of 2 / sqrt(N).
    scale = np.sqrt(np.diag(known.context_cov))
    off = (np.cov(context.T) - known.context_cov) / np.outer(scale, scale)
    assert np.abs(off).max() < 10 / np.sqrt(N)
    assert np.abs(np.cov(noise.T) - 0.3 * np.eye(2)).max() < 5 * 0.3 * np.sqrt(2 / N)
    assert np.abs(np.corrcoef(np.c_[x, noise].T)[:3, 3:]).max() < 5 / np.sqrt(N)


@pytest.mark.parametrize("mapping", MAPS)
def test_what_comes_before_is_read_and_the_rest_is_lost(mapping: str) -> None:
    world = PostServingProblem(**SMALL, mapping=mapping)
    emission = emitted(world, 5)[1]
    np.testing.assert_allclose(emission.noisy[:, :3], emission.context[:, :3], atol=1e-4)
    np.testing.assert_array_equal(emission.noisy[:, 3:], np.tile(world.knowledge().context_mean[3:], (5, 1)))
    assert emission.mask is not None
    np.testing.assert_array_equal(emission.mask, np.tile([1.0, 1, 1, 0, 0], (5, 1)))
    assert emission.best is not None
    np.testing.assert_allclose(emission.best.mean[:, 3:], expected(world, emission.context[:, :3]))
    np.testing.assert_allclose(emission.best.cov, np.diag([0, 0, 0, 0.3, 0.3]))


def test_all_of_it_is_read_where_that_is_asked_for() -> None:
    world = PostServingProblem(**SMALL, foretold=True)
    emission, hidden = emitted(world, 5)[1], emitted(PostServingProblem(**SMALL), 5)[1]
    np.testing.assert_allclose(emission.noisy, emission.context, atol=1e-4)
    assert emission.mask is None
    np.testing.assert_array_equal(emission.context, hidden.context)
    assert emission.best is not None
    assert hidden.best is not None
    np.testing.assert_array_equal(emission.best.mean, hidden.best.mean)


@pytest.mark.parametrize("mapping", MAPS)
def test_regret_is_against_what_follows_on_average(mapping: str) -> None:
    world = PostServingProblem(**SMALL, mapping=mapping)
    found = play(world, ["naive"], rounds=1, trials=3, seed=3).values["regret"][0, :, 0]
    assert (found >= 0).all()
    truth, emission = emitted(world, 3)
    centre = np.c_[emission.context[:, :3], expected(world, emission.context[:, :3])]
    assert emission.best is not None
    scores = np.einsum("td,tkd->tk", centre, truth.theta.reshape(3, 4, 5))
    np.testing.assert_allclose(truth.features.design(emission.best).scores(truth.theta), scores)


def test_what_follows_can_be_learnt_where_it_is_not_linear() -> None:
    world = PostServingProblem(**SMALL)
    names = ["polinucb:before=3:powers=2:alpha=0.03", "linucb:alpha=0.3"]
    first, second = play(world, names, rounds=400, trials=6, decompose=False).values["regret"][:, :, -1]
    assert second.mean() > 1.5 * first.mean()


@each(
    "field, value",
    [
        ("before", 0),
        ("after", 1.5),
        ("actions", 0),
        ("mapping", "periodic"),
        ("half", -1.0),
        ("after_var", 0),
    ],
)
def test_bad_fields_are_refused(field: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"^{field}: "):
        PostServingProblem(**{**SMALL, field: value})


@each("trouble", [{"missing": 0.3}, {"tails": 3}, {"drift_cov": 0.1}])
def test_a_channel_of_another_kind_is_refused(trouble: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="read as it is"):
        PostServingProblem(**SMALL, **trouble)


@pytest.mark.slow
def test_a_compiled_engine_plays_the_same() -> None:
    world, names = PostServingProblem(**SMALL), ["polinucb:before=3:powers=2", "linucb"]
    told: dict[str, Any] = {"rounds": 40, "trials": 3}
    plain = play(world, names, **told)
    compiled = play(world, names, engine="jax", draws="numpy", **told)
    np.testing.assert_allclose(compiled.values["regret"], plain.values["regret"], rtol=1e-6, atol=1e-6)
