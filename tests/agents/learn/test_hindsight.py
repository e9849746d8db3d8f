"""Learners that look back: against all rows computed again, dense quadrature over the bias, and JAX."""

import pickle
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.problems import inverse, random_knowledge, random_problem, spd
from unfog.agents import round as rounds
from unfog.agents.agent import Agent, check_fit
from unfog.agents.base import Hindsight, View
from unfog.agents.catalogue import AGENTS, Catalogue
from unfog.agents.learn import Joint, Smoothing, hindsight
from unfog.agents.learn.hindsight import normal_nodes
from unfog.agents.round import Memory, Observation, Setup
from unfog.channel.knowledge import Knowledge
from unfog.features import Context
from unfog.features.linear import matrix, product
from unfog.features.per_arm import PerArm
from unfog.features.quadratic import quadratic
from unfog.features.quadrature import quadrature
from unfog.maths import gaussian
from unfog.maths.arrays import Array
from unfog.maths.gaussian import Blocks
from unfog.simulation import play
from unfog.validation import InputError
from unfog.worlds.synthetic import GaussianProblem

D, K = 3, 4
ACTIONS = np.random.default_rng(8).normal(size=(K, D))
MATRICES = np.random.default_rng(9).normal(size=(K, 5, D))
MAPS: dict[str, Any] = {
    "quadratic": quadratic(ACTIONS),
    "diagonal": product(ACTIONS),
    "linear": matrix(MATRICES),
    "block": PerArm(K, D, intercept=False),
    "block, prior in one piece": PerArm(K, D, intercept=False),
}


def with_learner(learner: Any) -> Agent:
    return replace(AGENTS["alg1-exact"], name="mine", learner=learner)


def knowledge(name: str) -> Knowledge:
    known = random_knowledge(6, D, MAPS[name].size)
    if name != "block":
        return known
    rng = np.random.default_rng(3)
    return known._replace(prior_cov=np.stack([spd(rng, D, 0.1) for _ in range(K)]))


class Past(NamedTuple):
    """What brute force remembers: everything."""

    noisy: list[Array]
    arms: list[Any]
    rewards: list[Any]
    variances: list[Any]


class Moment(NamedTuple):
    """What the agent saw and believed at a decision, and the past without it."""

    view: View
    setup: Setup
    memory: Memory
    hindsight: Hindsight
    noisy: Array
    past: Past


def walk(
    learner: Any, known: Knowledge, features: Any, number: int, batch: tuple[int, ...] = ()
) -> Iterator[Moment]:
    """Rounds with a true bias; yields what is believed before each choice."""
    rng, agent = np.random.default_rng(11), with_learner(learner)
    d, m = known.context_mean.shape[-1], known.prior_mean.shape[-1]
    theta = known.prior_mean + 0.3 * rng.normal(size=(*batch, m))
    bias = rng.multivariate_normal(np.zeros(d), known.bias_cov, batch or None)
    setup, memory = rounds.start(agent, known)
    past = Past([], [], [], [])
    for _ in range(number):
        context = rng.multivariate_normal(known.context_mean, known.context_cov, batch or None)
        noisy = context + bias + rng.multivariate_normal(np.zeros(d), known.noise_cov, batch or None)
        denoiser: Any = agent.denoiser
        observation = Observation(noisy)
        view = rounds.view(agent, setup, memory, features, observation)
        hindsight = denoiser.hindsight(setup.denoiser, memory.denoiser, noisy)
        yield Moment(view, setup, memory, hindsight, noisy, Past(*map(list, past)))
        decision = rounds.decide(
            agent, setup, memory, features, observation, rng.standard_normal((*batch, m))
        )
        reward = (features.at(context).row(decision.arm) * theta).sum(-1) + rng.standard_normal(batch)
        adds = decision.evidence.context_variance() if learner.hetero else np.zeros(batch)
        memory = rounds.observe(agent, setup, memory, observation)
        memory, _ = rounds.reward(agent, setup, memory, decision, reward)
        for kept, new in zip(past, (noisy, decision.arm, reward, adds), strict=True):
            kept.append(new)


def beliefs_of_the_bias(known: Knowledge, noisy: Array) -> tuple[Array, Array]:
    """N(g, S) from measurements (n, d), by explicit inverses."""
    evidence = inverse(known.context_cov + known.noise_cov)
    cov = inverse(inverse(known.bias_cov) + len(noisy) * evidence)
    return cov @ evidence @ (noisy - known.context_mean).sum(0), cov


def context_given(known: Knowledge, noisy: Array, mean: Array, cov: Array) -> Context:
    """The context of a round whose bias is N(mean, cov), with M and its inverses as the paper has them."""
    precision = inverse(known.context_cov) + inverse(known.noise_cov)
    gain = inverse(precision) @ inverse(known.noise_cov)
    natural_mean = inverse(known.context_cov) @ known.context_mean + inverse(known.noise_cov) @ (noisy - mean)
    return Context(inverse(precision) @ natural_mean, inverse(precision) + gain @ cov @ gain.T)


def conjugate_form(
    known: Knowledge, features: Any, past: Past, bias: Array, bias_cov: Array
) -> tuple[Array, Array]:
    """Precision and natural mean of theta, with the row of every past round computed anew for this bias."""
    precision = inverse(gaussian.as_matrix(known.prior_cov))
    natural_mean = precision @ known.prior_mean
    for noisy, arm, reward, spread in zip(*past, strict=True):
        row = features.design(context_given(known, noisy, bias, bias_cov)).row(arm)
        variance = known.reward_var + spread
        precision = precision + np.outer(row, row) / variance
        natural_mean = natural_mean + row * reward / variance
    return precision, natural_mean


def flat(belief: Any) -> tuple[Array, Array]:
    """Mean and covariance of a belief, which may be in blocks."""
    cov = belief.root @ belief.root.mT
    return belief.mean.reshape(-1), gaussian.as_matrix(cov) if isinstance(belief, Blocks) else cov


@pytest.mark.parametrize("name", MAPS)
def test_smoothing_is_computing_all_past_rows_again(name: str) -> None:
    for hetero in [True, False]:
        check_smoothing_is_computing_all_past_rows_again(name, hetero)


def check_smoothing_is_computing_all_past_rows_again(name: str, hetero: bool) -> None:
    known, features = knowledge(name), MAPS[name]
    seen = 0
    for moment in walk(Smoothing(hetero=hetero), known, features, 50):
        noisy = np.array([*moment.past.noisy, moment.noisy])
        mean, cov = beliefs_of_the_bias(known, noisy)
        context = context_given(known, moment.noisy, mean, cov)
        np.testing.assert_allclose(moment.view.context.mean, context.mean, rtol=0, atol=1e-10)
        np.testing.assert_allclose(moment.view.context.cov, context.cov, rtol=0, atol=1e-10)
        precision, natural_mean = conjugate_form(known, features, moment.past, mean, cov)
        found = flat(moment.view.belief)
        np.testing.assert_allclose(found[0], np.linalg.solve(precision, natural_mean), rtol=0, atol=1e-10)
        np.testing.assert_allclose(found[1], inverse(precision), rtol=0, atol=1e-10)
        assert all((adds > 0) == hetero for adds in moment.past.variances)
        seen += 1
    assert seen == 50


def test_the_weights_are_those_of_their_day() -> None:
    known, features = knowledge("quadratic"), MAPS["quadratic"]
    *days, last = walk(Smoothing(), known, features, 6)
    for day, arm, told in zip(days, last.past.arms, last.past.variances, strict=True):
        mean, cov = flat(day.view.belief)
        spread = features.design(day.view.context).covariance(arm)
        assert told == pytest.approx(mean @ spread @ mean + np.trace(spread @ cov))


def test_the_context_of_this_round_is_the_exact_denoisers() -> None:
    known = knowledge("diagonal")
    denoiser = AGENTS["alg1-exact"].denoiser
    for moment in walk(Smoothing(), known, MAPS["diagonal"], 5):
        right = denoiser.predict(moment.setup.denoiser, moment.memory.denoiser, moment.noisy)
        np.testing.assert_allclose(moment.view.context.mean, right.mean, rtol=1e-10)
        np.testing.assert_allclose(moment.view.context.cov, right.cov, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", MAPS)
def test_joint_is_the_mixture_over_its_nodes(name: str) -> None:
    # Every node by brute force: all past rows again, and the evidence as a Gaussian density of the rewards.
    known, features = knowledge(name), MAPS[name]
    *_, moment = walk(Joint(nodes=6), known, features, 20)
    mixed = hindsight.mixture(moment.setup.learner, moment.memory.learner, features, moment.hindsight)
    logs, means, covs = [], [], []
    for bias in mixed.bias:
        precision, natural_mean = conjugate_form(known, features, moment.past, bias, np.zeros((D, D)))
        means.append(np.linalg.solve(precision, natural_mean))
        covs.append(inverse(precision))
        logs.append(evidence(known, features, moment.past, bias))
    weights = normalised(logs)
    np.testing.assert_allclose(mixed.weights, weights, rtol=1e-8, atol=1e-12)
    mean = weights @ np.array(means)
    away = np.array(means) - mean
    cov = np.tensordot(weights, covs, 1) + (weights[:, None] * away).T @ away
    found = flat(moment.view.belief)
    np.testing.assert_allclose(found[0], mean, rtol=0, atol=1e-9)
    if name == "block":  # what couples blocks is left out
        cov = cov * gaussian.as_matrix(np.ones_like(known.prior_cov))
    np.testing.assert_allclose(found[1], cov, rtol=0, atol=1e-9)
    bias_mean = weights @ mixed.bias
    spread = (weights[:, None] * (mixed.bias - bias_mean)).T @ (mixed.bias - bias_mean)
    context = context_given(known, moment.noisy, bias_mean, spread)
    np.testing.assert_allclose(moment.view.context.mean, context.mean, rtol=0, atol=1e-9)
    np.testing.assert_allclose(moment.view.context.cov, context.cov, rtol=0, atol=1e-9)


def normalised(logs: list[float]) -> Array:
    """Weights that add up to one, from their logarithms."""
    weights: Array = np.exp(np.array(logs) - max(logs))
    return weights / weights.sum()


def evidence(known: Knowledge, features: Any, past: Past, bias: Array) -> float:
    """Theta integrated out: the logarithm of N(rewards; X mu0, X prior_cov X' + diag(s^2))."""
    none = np.zeros((len(bias), len(bias)))
    rows = np.array(
        [
            features.design(context_given(known, noisy, bias, none)).row(arm)
            for noisy, arm in zip(past.noisy, past.arms, strict=True)
        ]
    )
    cov = rows @ gaussian.as_matrix(known.prior_cov) @ rows.T
    cov = cov + np.diag(np.array(past.variances) + known.reward_var)
    away = np.array(past.rewards) - rows @ known.prior_mean
    return float(-0.5 * away @ np.linalg.solve(cov, away) - 0.5 * np.linalg.slogdet(cov)[1])


@pytest.mark.slow
@pytest.mark.parametrize(("nodes", "error"), [(16, 0.05), (200, 0.01)])
def test_joint_is_dense_quadrature_over_the_bias_in_one_dimension(nodes: int, error: float) -> None:
    # The density of gamma on a fine grid: its prior, the measurements, the rewards. Errors are in posterior
    # standard deviations of gamma and of theta, and relative for the standard deviations themselves.
    known = random_knowledge(2, 1, 3)._replace(reward_var=np.asarray(0.1), context_cov=np.array([[1.5]]))
    features = quadratic(np.array([[1.0], [-0.7], [0.4]]))
    *_, moment = walk(Joint(nodes=nodes), known, features, 25)
    centre, width = moment.hindsight.mean[0], np.sqrt(moment.hindsight.cov[0, 0])
    grid = centre + width * np.linspace(-7, 7, 281)
    noisy, means, covs, logs = np.array([*moment.past.noisy, moment.noisy])[:, 0], [], [], []
    for at in grid:
        seen = (noisy - known.context_mean - at) ** 2 / (known.context_cov + known.noise_cov)[0, 0]
        prior = at**2 / known.bias_cov[0, 0]
        logs.append(evidence(known, features, moment.past, np.array([at])) - 0.5 * (seen.sum() + prior))
        precision, natural_mean = conjugate_form(
            known, features, moment.past, np.array([at]), np.zeros((1, 1))
        )
        means.append(np.linalg.solve(precision, natural_mean))
        covs.append(inverse(precision))
    weights = normalised(logs)
    mean, cov = hindsight.moments(weights, np.array(means))
    spread = np.sqrt(np.diag(cov + np.tensordot(weights, covs, 1)))
    found = flat(moment.view.belief)
    assert np.abs((found[0] - mean) / spread).max() < error
    assert np.abs(np.sqrt(np.diag(found[1])) / spread - 1).max() < error
    mixed = hindsight.mixture(moment.setup.learner, moment.memory.learner, features, moment.hindsight)
    ours, truth = hindsight.moments(mixed.weights, mixed.bias), hindsight.moments(weights, grid[:, None])
    assert abs(ours[0][0] - truth[0][0]) < error * np.sqrt(truth[1][0, 0])
    assert abs(np.sqrt(ours[1] / truth[1])[0, 0] - 1) < 2 * error
    assert abs(truth[0][0] - centre) > 5 * error * width  # rewards do say something here


def test_nodes_are_symmetric_and_white() -> None:
    for number, dim in [(16, 1), (16, 5), (2, 4), (65, 3), (500, 2)]:
        check_nodes_are_symmetric_and_white(number, dim)


def check_nodes_are_symmetric_and_white(number: int, dim: int) -> None:
    nodes = normal_nodes(number, dim)
    assert nodes.shape == (2 * max((number + 1) // 2, dim), dim)
    np.testing.assert_allclose(nodes.sum(0), 0, atol=1e-12)
    np.testing.assert_allclose(nodes.T @ nodes / len(nodes), np.eye(dim), atol=1e-12)
    if number == 500:  # the fourth moment of a normal is 3, its share within one deviation 68 %
        np.testing.assert_allclose((nodes**4).mean(0), 3, rtol=0.1)
        np.testing.assert_allclose((np.abs(nodes) < 1).mean(0), 0.683, atol=0.02)


@pytest.mark.parametrize("learner", [Smoothing(), Joint(nodes=8)], ids=["smoothing", "joint"])
def test_trials_learn_apart(learner: Any) -> None:
    for name in ["quadratic", "block"]:
        check_trials_learn_apart(name, learner)


def check_trials_learn_apart(name: str, learner: Any) -> None:
    known, rng = knowledge(name), np.random.default_rng(4)
    many = quadratic(np.stack([ACTIONS, -ACTIONS])) if name == "quadratic" else MAPS[name]
    *_, both = walk(learner, known, many, 6, (2,))
    for i in range(2):
        agent, features = with_learner(learner), many
        if name == "quadratic":
            features = quadratic([ACTIONS, -ACTIONS][i])
        setup, memory = rounds.start(agent, known)
        for noisy, arm, reward, adds in zip(*both.past, strict=True):
            observation = Observation(noisy[i])
            decision = rounds.decide(
                agent, setup, memory, features, observation, np.zeros(known.prior_mean.shape)
            )
            forced = decision.evidence._replace(arm=arm[i])
            assert forced.context_variance() == pytest.approx(adds[i], rel=1e-9)
            memory = rounds.observe(agent, setup, memory, observation)
            memory, _ = rounds.reward(agent, setup, memory, decision._replace(evidence=forced), reward[i])
        alone = rounds.view(agent, setup, memory, features, Observation(both.noisy[i]))
        np.testing.assert_allclose(both.view.belief.mean[i], alone.belief.mean, rtol=1e-9, atol=1e-11)
        normals = rng.standard_normal(known.prior_mean.shape)
        np.testing.assert_allclose(
            both.view.belief.sample(normals)[i], alone.belief.sample(normals), rtol=1e-8, atol=1e-10
        )
        np.testing.assert_allclose(both.view.context.mean[i], alone.context.mean, rtol=1e-9, atol=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["alg1-exact-smoothing", "alg1-exact-joint:nodes=8"])
def test_engines_agree(name: str) -> None:
    settings: Any = {"rounds": 60, "trials": 4, "seed": 3, "decompose": False}
    numpy = play(random_problem(7), [name], **settings)
    jax = play(random_problem(7), [name], engine="jax", draws="numpy", **settings)
    for loss, values in numpy.values.items():
        np.testing.assert_allclose(jax.values[loss], values, rtol=1e-9, atol=1e-9, err_msg=loss)


@pytest.mark.slow
@pytest.mark.parametrize("learner", [Smoothing(), Joint(nodes=8)], ids=["smoothing", "joint"])
def test_engines_agree_in_blocks(learner: Any) -> None:
    known, features, agent = knowledge("block"), MAPS["block"], with_learner(learner)
    *_, last = walk(learner, known, features, 5, (2,))

    def believe(known: Knowledge, memory: Memory, noisy: Array) -> tuple[Any, Any]:
        setup, _ = rounds.start(agent, known)
        seen = rounds.view(agent, setup, memory, features, Observation(noisy))
        return seen.context, seen.belief

    inputs = jax.tree.map(jnp.asarray, (known, last.memory, last.noisy))
    found = jax.tree.leaves(jax.jit(believe)(*inputs))
    for ours, theirs in zip(found, jax.tree.leaves((last.view.context, last.view.belief)), strict=True):
        assert isinstance(ours, jax.Array)
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("learner", [Smoothing(), Joint(nodes=8)], ids=["smoothing", "joint"])
def test_what_is_kept_does_not_grow(learner: Any) -> None:
    sizes = [m.memory.learner.moment.shape for m in walk(learner, knowledge("block"), MAPS["block"], 9)]
    assert sizes[0] == (1, 1)
    assert set(sizes[1:]) == {(K, D + 1, D + 1)}


def waves(action: Array, context: Array) -> Array:
    xp = context.__array_namespace__()
    found: Array = xp.sin(action * context)
    return found


@pytest.mark.parametrize("part", ["smoothing", "joint"])
def test_what_cannot_look_back_is_refused(part: str) -> None:
    rows, problem = Catalogue(), GaussianProblem(dim=2, actions=3)
    known, features, other = problem.knowledge(), quadratic(np.zeros((3, 2))), quadrature(waves, 2)
    usual: Any = {"rewards": "gaussian", "partial": False, "has_bias": True}
    check_fit(rows[f"alg1-exact-{part}"], known, features, **usual)
    check_fit(rows["alg1"], known, other(np.zeros((3, 2))), **usual)
    for row in ("alg1", "naive", "oracle", "alg2-exact"):
        told = rf"^{row}-{part}\.learner: '{part}' beside the denoiser '.*'; allowed: beside it a denoiser "
        with pytest.raises(InputError, match=told):
            rows[f"{row}-{part}"]
    told = rf"^alg1-exact-{part}\.learner: '{part}' with the features Quadrature; allowed: with it a"
    with pytest.raises(InputError, match=told):
        check_fit(rows[f"alg1-exact-{part}"], known, other(np.zeros((3, 2))), **usual)
    cut = known._replace(prior_cov=np.stack([np.eye(2)] * 3))
    told = rf"^alg1-exact-{part}\.learner: '{part}' with this prior in blocks; allowed: a prior in one piece$"
    with pytest.raises(InputError, match=told):
        check_fit(rows[f"alg1-exact-{part}"], cut, features, **usual)


def test_settings() -> None:
    rows = Catalogue()
    assert rows["alg1-exact-smoothing:hetero=false"].learner == Smoothing(hetero=False)
    assert rows["alg1-exact-joint:nodes=64:hetero=false"].learner == Joint(nodes=64, hetero=False)
    learner = rows["alg1-exact-joint:nodes=64"].learner
    assert pickle.loads(pickle.dumps(learner)) == learner  # noqa: S301
    for bad in ({"nodes": 1}, {"nodes": 10_001}, {"hetero": 1}):
        with pytest.raises(InputError):
            Joint(**bad)  # type: ignore[arg-type]
