"""What holds for all learners that keep past rounds, and for all of rewards of 0 or 1."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.agents.learn.data import make_data, remember
from tests.problems import (
    feature_moments,
    quadratic_phi,
    random_knowledge,
)
from unfog.agents import round as rounds
from unfog.agents.catalogue import Catalogue
from unfog.agents.learn import LMC, PG, Adf, Laplace
from unfog.agents.learn.logistic import Refit
from unfog.agents.round import Observation
from unfog.features import Context
from unfog.features.quadratic import quadratic
from unfog.maths import gaussian
from unfog.validation import InputError

CHAINS = [LMC(temperature=0.5), LMC(temperature=0.5, marginal=True), PG(), Laplace(), Laplace(marginal=True)]
EVERY_CHAIN = pytest.mark.parametrize("learner", CHAINS, ids=repr)


@EVERY_CHAIN
def test_a_fixed_size_history_gives_the_same_steps(learner: Refit, rng: np.random.Generator) -> None:
    data, room = make_data(3, 7), 11
    parameters, grown = remember(learner, data)
    _, fixed = remember(learner, data, room)
    for _ in range(3):
        normals = rng.standard_normal((4, learner.normals(data.known, 7)))
        padding = learner.normals(data.known, room) - learner.normals(data.known, 7)
        grown = learner.step(parameters, grown, normals)
        fixed = learner.step(parameters, fixed, np.concatenate([normals, np.zeros((4, padding))], 1))
        # Where no normals are drawn, one theta serves the whole batch.
        assert grown.theta.shape == ((4, 3) if normals.shape[1] else (3,))
        np.testing.assert_allclose(fixed.theta, grown.theta, rtol=1e-11, atol=1e-12)


@EVERY_CHAIN
def test_what_fills_the_empty_slots_of_a_fixed_size_history_does_not_matter(
    learner: Refit, rng: np.random.Generator
) -> None:
    data = make_data(3, 7)
    parameters, state = remember(learner, data, 11)
    one, other = rng.standard_normal((2, learner.normals(data.known, 11)))
    used = learner.normals(data.known, 7)
    other[:used] = one[:used]
    np.testing.assert_allclose(
        learner.step(parameters, state, one).theta, learner.step(parameters, state, other).theta, rtol=1e-12
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "learner", [LMC(temperature=0.5, marginal=True), PG(), Laplace(marginal=True)], ids=repr
)
def test_jax_takes_the_same_steps(learner: Refit, rng: np.random.Generator) -> None:
    data = make_data(3, 7)
    parameters, state = remember(learner, data, 9)
    normals = rng.standard_normal((4, learner.normals(data.known, 9)))
    step = jax.jit(learner.step)
    there = jax.tree.map(jnp.asarray, (parameters, state))
    for _ in range(3):
        state = learner.step(parameters, state, normals)
        there = there[0], step(*there, jnp.asarray(normals))
    np.testing.assert_allclose(there[1].theta, state.theta, rtol=1e-10, atol=1e-11)
    right = learner.belief(parameters, state)
    found = learner.belief(*there)
    np.testing.assert_allclose(gaussian.covariance(found), gaussian.covariance(right), rtol=1e-9, atol=1e-11)


def test_a_sampler_is_certain_of_its_sample(rng: np.random.Generator) -> None:
    for learner in [LMC(), PG()]:
        check_a_sampler_is_certain_of_its_sample(learner, rng)


def check_a_sampler_is_certain_of_its_sample(learner: Refit, rng: np.random.Generator) -> None:
    parameters, state = remember(learner, make_data(3, 4))
    theta = rng.normal(size=(2, 3))
    belief = learner.belief(parameters, state._replace(theta=theta))
    assert np.array_equal(belief.sample(rng.standard_normal((2, 3))), theta)


@pytest.mark.parametrize(
    "name", ["alg1-lmc:rate=0.05:marginal=true", "alg2-laplace:marginal=true", "alg1-pg"]
)
def test_an_agent_remembers_the_features_of_its_arm(name: str, rng: np.random.Generator) -> None:
    """Their mean and covariance under its belief, by quadrature; phi itself where the context is shown."""
    agent, known, trials, arms = Catalogue("bernoulli")[name], random_knowledge(5, 2, 6), 3, 4
    actions, noisy, shown = (
        rng.normal(0.5, 1.0, shape) for shape in ((trials, arms, 2), (trials, 2), (trials, 2))
    )
    setup, memory = rounds.start(agent, known)
    normals = rng.standard_normal((trials, agent.chooser.normals(known)))
    rewards, features = np.array([1.0, 0.0, 1.0]), quadratic(actions)
    told = agent, setup, memory, features, Observation(noisy), normals
    memory, decision = rounds.play(*told, lambda _: rewards)
    if agent.sees_context:
        memory, decision = rounds.reveal(agent, setup, memory, decision, shown)
    past = memory.learner.past
    assert (past.spreads is None) == (name == "alg1-pg")
    assert np.array_equal(past.rewards[:, 0], rewards)
    for i, arm in enumerate(decision.arm):
        context = Context(decision.context.mean[i], np.broadcast_to(decision.context.cov, (trials, 2, 2))[i])
        rows, covs = feature_moments(quadratic_phi, actions[i], context)
        row = quadratic_phi(actions[i, arm], shown[i]) if agent.sees_context else rows[arm]
        np.testing.assert_allclose(past.rows[i, :, 0], row, rtol=1e-10, atol=1e-12)
        if past.spreads is not None:
            cov = 0 * covs[arm] if agent.sees_context else covs[arm]
            np.testing.assert_allclose(past.spreads[i, 0], cov, rtol=1e-9, atol=1e-11)


def test_bad_settings_are_refused_by_name() -> None:
    bad: list[tuple[Any, dict[str, Any]]] = [
        (LMC, {"temperature": -0.1, "steps": 0, "rate": 0.0, "decay": -1.0, "marginal": 1}),
        (LMC, {"steps": 10_001}),
        (PG, {"sweeps": 0}),
        (PG, {"sweeps": 10_001}),
        (Laplace, {"steps": -3, "marginal": None}),
        (Adf, {"marginal": 0.0}),
    ]
    for learner, fields in bad:
        for field, value in fields.items():
            with pytest.raises(InputError, match=rf"^{field}: .*; allowed: ") as refused:
                learner(**{field: value})
            assert refused.value.field == field


def test_settings_at_the_edge_are_taken() -> None:
    assert LMC(temperature=0, decay=0, steps=10_000).steps == 10_000
    assert LMC(temperature=np.float64(0.5)).temperature == 0.5


def test_learners_do_not_change_and_are_their_settings() -> None:
    for learner in [LMC(), PG(), Laplace(), Adf()]:
        check_learners_do_not_change_and_are_their_settings(learner)


def check_learners_do_not_change_and_are_their_settings(learner: Any) -> None:
    assert learner.rewards == "bernoulli"
    assert learner == type(learner)()
    assert hash(learner) == hash(type(learner)())
    with pytest.raises(AttributeError):
        learner.marginal = True
