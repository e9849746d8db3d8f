"""One source, two engines: everything numeric run on NumPy and on JAX compiled, and compared.

What can be compiled can be run without being compiled, and not the other way round. The rows that
tests/simulation/engines/test_jax.py plays are not played again.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.problems import random_problem, spd
from unfog.agents import denoise
from unfog.agents import round as rounds
from unfog.agents.agent import Agent
from unfog.agents.base import Denoiser, Privilege
from unfog.agents.catalogue import AGENTS
from unfog.agents.denoise import Empirical
from unfog.agents.round import Observation
from unfog.channel.knowledge import Knowledge, known_shrinkage
from unfog.features import Context, MapBuilder
from unfog.features import link as laws
from unfog.features.linear import matrix, product
from unfog.features.link import Rewards, Sigmoid
from unfog.features.quadratic import quadratic
from unfog.features.quadrature import error_estimate, quadrature
from unfog.maths import arrays, gaussian
from unfog.maths.arrays import Array
from unfog.maths.gaussian import Gaussian
from unfog.maths.mixture import Mixture
from unfog.maths.statistics import estimate
from unfog.theory import regret
from unfog.worlds.synthetic import GaussianProblem

pytestmark = pytest.mark.slow

T, N, K, D, M = 3, 4, 5, 3, 9  # trials, rounds, arms, dimensions, features
PROBLEM = random_problem(seed=21, dim=D, actions=K)
KNOWN = PROBLEM.knowledge()


@pytest.fixture
def trial_draws(rng: np.random.Generator) -> dict[str, Array]:
    normal = rng.standard_normal
    return {"theta": normal((T, M)), "bias": normal((T, D)), "actions": normal((T, K, D))}


def compare(function: Callable[..., Any], *inputs: Any) -> None:
    """Run on both engines; results must be of the same shapes, types and values."""
    right = jax.tree.leaves(function(*inputs))
    found = jax.tree.leaves(jax.jit(function)(*jax.tree.map(jnp.asarray, inputs)))
    assert len(found) == len(right) > 0
    for ours, theirs in zip(found, right, strict=True):
        assert isinstance(ours, jax.Array)
        assert not isinstance(theirs, jax.Array)
        assert (ours.shape, ours.dtype) == (np.shape(theirs), np.asarray(theirs).dtype)
        np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-12)


def wave_phi(action: Array, context: Array) -> Array:
    """Features that are no polynomial, for either engine."""
    xp = context.__array_namespace__()
    features: Array = xp.concat([xp.sin(action * context), xp.exp(-((action - context) ** 2))], axis=-1)
    return features


def test_arrays(rng: np.random.Generator) -> None:
    rows, vector, arm = rng.normal(size=(T, K, M)), rng.normal(size=(T, M)), rng.integers(0, K, T)
    compare(arrays.matvec, rows, vector)
    compare(arrays.rowdots, rows, vector)
    compare(arrays.rowdots, rows[:, None], rng.normal(size=(T, N, M)))
    compare(arrays.take, rows, arm)
    compare(arrays.take, rows[:, None], rng.integers(0, K, (T, N)))
    compare(arrays.pick, rows[..., 0], arm)


def test_gaussian(rng: np.random.Generator) -> None:
    mean, cov = rng.normal(size=(T, M)), np.stack([spd(rng, M) for _ in range(T)])
    belief, rows = gaussian.from_moments(mean, cov), rng.normal(size=(T, K, M))
    compare(gaussian.from_moments, mean, cov)
    compare(gaussian.covariance, belief)
    compare(Gaussian.condition, belief, rows[:, 0], rng.normal(size=T), np.asarray(0.7))
    compare(Gaussian.sample, belief, rng.standard_normal((T, M)))
    compare(Gaussian.variance, belief, rows[:, 0])


MAPS: dict[str, tuple[MapBuilder, tuple[int, ...], int]] = {
    "quadratic": (quadratic, (K, D), 3 * D),
    "linear": (matrix, (K, 4, D), 4),
    "diagonal": (product, (K, D), D),
    "quadrature": (quadrature(wave_phi, D, 4), (K, D), 2 * D),
    "degree 5": (quadrature(wave_phi, 7), (K, 7), 14),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MAPS)
def test_features(name: str, rng: np.random.Generator) -> None:
    build, shape, size = MAPS[name]
    d = shape[-1]
    context = Context(rng.normal(1.0, 1.0, (T, d)), spd(rng, d))
    belief, arms = (
        Gaussian(rng.normal(size=(T, size)), rng.normal(size=(T, size, size))),
        rng.integers(0, K, T),
    )

    def one_round(actions: Array, context: Context, belief: Gaussian, arms: Any) -> list[Any]:
        features = build(actions)
        designs = [features.design(context), features.at(context.mean)]
        return [
            (x.scores(belief.mean), x.row(arms), x.variances(belief), x.covariance(arms)) for x in designs
        ]

    actions = rng.normal(size=(T, *shape))
    compare(one_round, actions, context, belief, arms)
    features = build(jnp.asarray(actions))
    assert (features.size, features.arms) == (size, K)


@pytest.mark.slow
@pytest.mark.parametrize("name", MAPS)
def test_features_over_rounds(name: str, rng: np.random.Generator) -> None:
    build, shape, size = MAPS[name]
    d = shape[-1]
    context = Context(rng.normal(1.0, 1.0, (T, N, d)), np.stack([spd(rng, d) for _ in range(N)]))

    def block(actions: Array, context: Context, theta: Array, arms: Any) -> list[Any]:
        features = build(actions).over_rounds()
        designs = [features.design(context), features.at(context.mean)]
        return [(x.scores(theta), x.row(arms), x.covariance(arms)) for x in designs]

    theta, arms = rng.normal(size=(T, 1, size)), rng.integers(0, K, (T, N))
    compare(block, rng.normal(size=(T, *shape)), context, theta, arms)


@pytest.mark.slow
def test_error_estimate(rng: np.random.Generator) -> None:
    actions, context = rng.normal(size=(K, D)), Context(rng.normal(size=D), spd(rng, D))
    right = error_estimate(wave_phi, actions, context)
    found = error_estimate(wave_phi, *jax.tree.map(jnp.asarray, (actions, context)))
    assert found == pytest.approx(right, rel=1e-9)
    assert right > 1e-6


@pytest.mark.parametrize(
    "denoiser", [Empirical(atoms=30), Empirical(pairs=True), denoise.Mixture(pairs=True)], ids=repr
)
def test_denoisers(denoiser: Denoiser, rng: np.random.Generator) -> None:
    def walk(known: Knowledge, bias: Array, noisy: Array, contexts: Array) -> list[Any]:
        parameters = denoiser.setup(known, Privilege(bias))
        state, beliefs = denoiser.start(parameters), []
        for t in range(N):
            beliefs.append(denoiser.predict(parameters, state, noisy[t]))
            state = denoiser.update(parameters, state, noisy[t], contexts[t])
        return [parameters, beliefs[1:], state]

    def beliefs_only(*inputs: Any) -> list[Any]:
        # The eigenvectors among the parameters are free in sign, what follows from them is not.
        return walk(*inputs)[1:]

    bias, noisy, contexts = rng.normal(size=(T, D)), rng.normal(size=(N, T, D)), rng.normal(size=(N, T, D))
    law = Mixture(np.array([0.4, 0.6]), rng.normal(size=(2, D)), np.stack([spd(rng, D) for _ in range(2)]))
    known = KNOWN._replace(sample=rng.normal(size=(50, D)), mixture=law)
    compare(beliefs_only, known, bias, noisy, contexts)


TOLD = ("empirical", "mixture", "bayes-oracle")  # of the law of contexts more than its moments


@pytest.mark.slow
@pytest.mark.parametrize("agent", [AGENTS[name] for name in TOLD], ids=TOLD)
def test_agents(agent: Agent, rng: np.random.Generator) -> None:
    def play(known: Knowledge, actions: Array, bias: Array, played: tuple[Array, ...]) -> list[Any]:
        told = Privilege(bias) if agent.can.see_bias else None
        setup, memory = rounds.start(agent, known, told, late=False)  # compiled ones are told at once
        features, decisions = quadratic(actions), []
        for t in range(N):
            noisy, context, reward, normals = (part[t] for part in played)
            decision = rounds.decide(agent, setup, memory, features, Observation(noisy), normals)
            memory = rounds.observe(agent, setup, memory, Observation(noisy))
            memory, decision = rounds.reward(agent, setup, memory, decision, reward)
            if agent.sees_context:
                memory, decision = rounds.reveal(agent, setup, memory, decision, context)
            seen = decision.evidence
            decisions.append([decision.arm, decision.context, seen.row(), seen.covariance(), decision.term])
        return [decisions, memory]

    played = tuple(rng.normal(size=(N, T, *width)) for width in [(D,), (D,), (), (M,)])
    sample = rng.normal(size=(8, D))
    law = Mixture(np.array([0.2, 0.3, 0.5]), sample[:3], np.stack([spd(rng, D) for _ in range(3)]))
    known = KNOWN._replace(contexts=sample, sample=sample, mixture=law)
    compare(play, known, rng.normal(size=(T, K, D)), rng.normal(size=(T, D)), played)


WORLDS = {
    "normal": PROBLEM,
    "uniform": GaussianProblem(dim=D, actions=K, action_law="uniform"),
    "fixed": GaussianProblem(dim=D, actions=np.arange(6.0).reshape(2, 3)),
}


@pytest.mark.parametrize("name", WORLDS)
def test_world(name: str, trial_draws: dict[str, Array], rng: np.random.Generator) -> None:
    problem = WORLDS[name]

    def nature(draws: dict[str, Array], normals: Array) -> list[Any]:
        truth = problem.truth(draws)
        emission = problem.emit(truth, normals)
        scores = truth.features.at(emission.context).scores(truth.theta)
        return [truth, emission, scores, problem.reward(scores[:, 0], normals)]

    compare(nature, trial_draws, rng.standard_normal((T, problem.round_normals())))


@pytest.mark.slow
@pytest.mark.parametrize("rewards", [laws.Identity(), Sigmoid()], ids=lambda rewards: rewards.kind)
def test_regret(rewards: Rewards, rng: np.random.Generator) -> None:
    def account(
        known: Knowledge, actions: Array, theta: Array, seen: tuple[Array, ...], arms: Any
    ) -> list[Any]:
        noisy, bias, context, own = seen
        features = quadratic(actions)
        best = regret.oracle_context(known_shrinkage(known), noisy, bias)
        exact = Context(own, known.noise_cov)
        tables = regret.tables(rewards, features, theta, best, context, noisy, exact=exact)
        design = features.design(Context(own, known.context_cov))
        losses = regret.losses(rewards, tables, arms, design, theta)
        return [best, *tables[:3], *tables.paper[1:], losses]

    seen = tuple(rng.normal(size=(T, D)) for _ in range(4))
    actions, theta, arms = rng.normal(size=(T, K, D)), rng.normal(size=(T, M)), rng.integers(0, K, T)
    compare(account, KNOWN, actions, theta, seen, arms)


def test_estimate(rng: np.random.Generator) -> None:
    values = rng.normal(3.0, 2.0, 50)
    assert estimate(jnp.asarray(values)) == pytest.approx(estimate(values), rel=1e-13)
