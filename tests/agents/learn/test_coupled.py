"""theta and the bias in one Gaussian: against a dense filter, a grid over both, its limits, and JAX."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.agents.learn.test_hindsight import MAPS, D, beliefs_of_the_bias, flat, knowledge, waves
from tests.problems import inverse, random_knowledge
from unfog.agents import round as rounds
from unfog.agents.agent import Agent, check_fit
from unfog.agents.catalogue import AGENTS, Catalogue
from unfog.agents.learn import Coupled, Hetero
from unfog.agents.learn.coupled import shift_belief, theta_belief
from unfog.agents.round import Decision, Memory, Observation, Setup
from unfog.channel.knowledge import Knowledge
from unfog.features import Context
from unfog.features.linear import product
from unfog.features.quadrature import quadrature
from unfog.maths import gaussian
from unfog.maths.arrays import Array
from unfog.testing import check_learner
from unfog.validation import InputError
from unfog.worlds.synthetic import GaussianProblem


def with_learner(learner: Any) -> Agent:
    return replace(AGENTS["alg1-exact"], name="mine", learner=learner)


class Played(NamedTuple):
    """A round: what was decided, what was paid, and what the agent remembered before and after."""

    setup: Setup
    before: Memory
    after: Memory
    decision: Decision
    noisy: Array
    reward: Any


def walk(learner: Any, known: Knowledge, features: Any, number: int, paid: Any = None) -> Iterator[Played]:
    """Rounds with a true bias, the arms in turn; those that `paid` leaves out are never paid."""
    rng, agent = np.random.default_rng(17), with_learner(learner)
    d, m = known.context_mean.shape[-1], known.prior_mean.shape[-1]
    theta = rng.multivariate_normal(known.prior_mean, gaussian.as_matrix(known.prior_cov))
    bias = rng.multivariate_normal(np.zeros(d), known.bias_cov)
    setup, memory = rounds.start(agent, known)
    for t in range(number):
        context = rng.multivariate_normal(known.context_mean, known.context_cov)
        noisy = context + bias + rng.multivariate_normal(np.zeros(d), known.noise_cov)
        decision = rounds.decide(agent, setup, memory, features, Observation(noisy), np.zeros(m))
        arm = np.asarray(t % features.arms)
        decision = decision._replace(arm=arm, evidence=decision.evidence._replace(arm=arm))
        noise = rng.normal() * np.sqrt(np.asarray(known.reward_var))
        reward = (features.at(context).row(arm) * theta).sum(-1) + noise
        before, memory = memory, rounds.observe(agent, setup, memory, Observation(noisy))
        if paid is None or t in paid:
            memory, _ = rounds.reward(agent, setup, memory, decision, reward)
        yield Played(setup, before, memory, decision, noisy, reward)


class Dense:
    """The extended Kalman filter in covariances, (theta, gamma) in one vector, slopes by differences."""

    def __init__(self, known: Knowledge) -> None:
        m, d = len(known.prior_mean), len(known.context_mean)
        self.known, self.m = known, m
        self.mean = np.concatenate([known.prior_mean, np.zeros(d)])
        self.cov = np.zeros((m + d, m + d))
        self.cov[:m, :m], self.cov[m:, m:] = gaussian.as_matrix(known.prior_cov), known.bias_cov
        left = inverse(inverse(known.context_cov) + inverse(known.noise_cov))
        self.gain, self.left = left @ inverse(known.noise_cov), left

    def _see(self, rows: Array, away: Array, noise: Array) -> None:
        gain = self.cov @ rows.T @ inverse(rows @ self.cov @ rows.T + noise)
        self.mean = self.mean + gain @ away
        self.cov = self.cov - gain @ rows @ self.cov

    def look(self, noisy: Array) -> None:
        known, m = self.known, self.m
        rows = np.hstack([np.zeros((len(noisy), m)), np.eye(len(noisy))])
        away = noisy - known.context_mean - self.mean[m:]
        self._see(rows, away, known.context_cov + known.noise_cov)

    def context(self, noisy: Array, bias: Array) -> Context:
        cov = self.left + self.gain @ self.cov[self.m :, self.m :] @ self.gain.T
        mean = self.known.context_mean
        return Context(mean + self.gain @ (noisy - mean - bias), cov)

    def learn(self, features: Any, noisy: Array, arm: Any, reward: Any) -> None:
        m, theta, bias = self.m, self.mean[: self.m], self.mean[self.m :]

        def score(at: Array) -> float:
            return float(features.design(self.context(noisy, at)).row(arm) @ theta)

        design = features.design(self.context(noisy, bias))
        tilt = np.array([score(bias + e) - score(bias - e) for e in np.eye(len(bias)) / 2])
        row, spread = np.concatenate([design.row(arm), tilt]), design.covariance(arm)
        hidden = theta @ spread @ theta + np.trace(spread @ self.cov[:m, :m])
        noise = self.known.reward_var + hidden - tilt @ self.cov[m:, m:] @ tilt
        self._see(row[None], np.array([reward - score(bias)]), noise.reshape(1, 1))


@pytest.mark.parametrize("name", MAPS)
def test_it_is_the_filter_in_covariances(name: str) -> None:
    for paid in [None, {0, 1, 4, 7, 8}]:
        check_it_is_the_filter_in_covariances(name, paid)


def check_it_is_the_filter_in_covariances(name: str, paid: Any) -> None:
    known, features = knowledge(name), MAPS[name]
    dense, coupling = Dense(known), 0.0
    for t, played in enumerate(walk(Coupled(fade=0.0), known, features, 12, paid)):
        dense.look(played.noisy)
        right, found = dense.context(played.noisy, dense.mean[dense.m :]), played.decision.context
        np.testing.assert_allclose(found.mean, right.mean, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(found.cov, right.cov, rtol=1e-8, atol=1e-8)
        mean, cov = flat(played.decision.evidence.belief)
        whole = dense.cov[: dense.m, : dense.m]
        if name == "block":  # blocks are coupled by the bias alone, and are shown one by one
            whole = whole * gaussian.as_matrix(np.ones_like(known.prior_cov))
        np.testing.assert_allclose(mean, dense.mean[: dense.m], rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(cov, whole, rtol=1e-8, atol=1e-8)
        coupling = np.abs(dense.cov[: dense.m, dense.m :]).max()
        if paid is None or t in paid:
            dense.learn(features, played.noisy, played.decision.arm, played.reward)
    assert coupling > 1e-3  # there is something to carry


def grid_posterior(known: Knowledge, actions: Array, rows: list[Played]) -> tuple[Array, Array]:
    """Mean and covariance of (theta, gamma), both scalar, by a sum over a grid: no filter, no linearisation.

    The reward given both is N(a theta A, sigma^2 + (a theta)^2 / M), A and M as the paper has them.
    """
    (mu,), c, n = known.context_mean, known.context_cov[0, 0], known.noise_cov[0, 0]
    deviation, width = np.sqrt(known.prior_cov[0, 0]), np.sqrt(known.bias_cov[0, 0])
    theta = known.prior_mean[0] + deviation * np.linspace(-7, 7, 801)[:, None]
    bias = width * np.linspace(-7, 7, 801)[None]
    log = -0.5 * (((theta - known.prior_mean[0]) / deviation) ** 2 + (bias / width) ** 2)
    for played in rows:
        log = log - 0.5 * (played.noisy[0] - mu - bias) ** 2 / (c + n)
        mean = (mu / c + (played.noisy[0] - bias) / n) / (1 / c + 1 / n)
        weight = actions[played.decision.arm, 0] * theta
        variance = known.reward_var + weight**2 / (1 / c + 1 / n)
        log = log - 0.5 * (played.reward - weight * mean) ** 2 / variance - 0.5 * np.log(variance)
    weights = np.exp(log - log.max())
    weights = weights / weights.sum()
    points = np.stack(np.broadcast_arrays(theta, bias), -1)
    mean = (weights[..., None] * points).sum((0, 1))
    away = points - mean
    return mean, np.einsum("ij,ijk,ijl->kl", weights, away, away)


@pytest.mark.parametrize(("number", "error"), [(1, 0.05), (6, 0.1), (25, 0.2)])
def test_it_is_near_the_true_posterior_where_the_bias_is_nearly_known(number: int, error: float) -> None:
    # In deviations of the true posterior, which is no Gaussian: the variance of rewards tells of theta.
    actions = np.array([[1.0], [-0.7], [1.3]])
    known = random_knowledge(2, 1, 1)._replace(
        context_mean=np.array([1.5]),
        context_cov=np.array([[0.6]]),
        noise_cov=np.array([[0.02]]),
        bias_cov=np.array([[0.02]]),
        prior_mean=np.array([1.2]),
        prior_cov=np.array([[0.05]]),
        reward_var=np.asarray(0.02),
    )
    played = list(walk(Coupled(fade=0.0), known, product(actions), number))
    last = played[-1]
    denoiser: Any = AGENTS["alg1-exact"].denoiser
    hindsight = denoiser.hindsight(last.setup.denoiser, last.before.denoiser, last.noisy)
    shift, root = shift_belief(last.after.learner, hindsight)
    theta, spread = theta_belief(last.after.learner.theta, shift, root), root @ root.mT
    gain = hindsight.shrinkage.gain[0, 0]
    cross = last.after.learner.theta.centre[1, 0] * spread[0, 0] / gain
    found = np.array([theta.mean[0], shift[0] / gain])
    cov = np.array([[theta.variance(np.ones(1)), cross], [cross, spread[0, 0] / gain**2]])
    mean, right = grid_posterior(known, actions, played)
    deviations = np.sqrt(np.diag(right))
    assert np.abs((found - mean) / deviations).max() < error
    assert np.abs(np.sqrt(np.diag(cov)) / deviations - 1).max() < 0.1
    # A larger bias is a smaller context, and theta larger for the same reward.
    correlation = right[0, 1] / deviations.prod()
    assert correlation > 0.2
    assert cov[0, 1] / np.sqrt(np.diag(cov)).prod() == pytest.approx(correlation, abs=0.05)
    alone = np.sqrt(hindsight.cov[0, 0])
    assert deviations[1] < 0.9 * alone  # rewards do say something of the bias


def test_with_the_bias_known_it_is_hetero() -> None:
    for name in MAPS:
        check_with_the_bias_known_it_is_hetero(name)


def check_with_the_bias_known_it_is_hetero(name: str) -> None:
    known = knowledge(name)
    known = known._replace(bias_cov=1e-12 * known.bias_cov)
    both = (walk(learner, known, MAPS[name], 15) for learner in (Coupled(), Hetero()))
    for ours, theirs in zip(*both, strict=True):
        for found, right in zip(
            *map(flat, (x.decision.evidence.belief for x in (ours, theirs))), strict=True
        ):
            np.testing.assert_allclose(found, right, rtol=1e-7, atol=1e-8)


def test_noisy_contexts_alone_leave_theta_alone_and_tell_of_the_bias() -> None:
    known = knowledge("quadratic")
    *_, last = walk(Coupled(), known, MAPS["quadratic"], 9, paid=())
    mean, cov = flat(last.decision.evidence.belief)
    np.testing.assert_allclose(mean, known.prior_mean, rtol=0, atol=1e-14)
    np.testing.assert_allclose(cov, known.prior_cov, rtol=0, atol=1e-12)
    denoiser = AGENTS["alg1-exact"].denoiser
    right = denoiser.predict(last.setup.denoiser, last.before.denoiser, last.noisy)
    np.testing.assert_allclose(last.decision.context.mean, right.mean, rtol=1e-9)
    np.testing.assert_allclose(last.decision.context.cov, right.cov, rtol=1e-9, atol=1e-12)


def test_noisy_contexts_of_rounds_never_paid_move_theta_by_what_it_hangs_on_the_bias() -> None:
    known, features = knowledge("diagonal"), MAPS["diagonal"]
    *_, then, now = walk(Coupled(fade=0.0), known, features, 8, paid=range(6))
    state = now.before.learner
    assert state is then.before.learner
    seen = np.array([x.noisy for x in walk(Coupled(fade=0.0), known, features, 8, paid=range(6))])
    gain = now.setup.learner.channel.shrinkage.gain
    shifts = []
    for number in (7, 8):
        mean, cov = beliefs_of_the_bias(known, seen[:number])
        precision = inverse(gain @ cov @ gain.T)
        joint = inverse(precision + state.precision)
        shifts.append(joint @ (precision @ gain @ mean + state.natural_mean))
    moved = now.decision.evidence.belief.centre - then.decision.evidence.belief.centre
    right = state.theta.centre[1:].T @ (shifts[1] - shifts[0])
    assert np.abs(right).max() > 1e-4
    np.testing.assert_allclose(moved, right, rtol=1e-7, atol=1e-10)


def test_what_fades_leaves_the_mean_where_it_is() -> None:
    for name in MAPS:
        check_what_fades_leaves_the_mean_where_it_is(name)


def check_what_fades_leaves_the_mean_where_it_is(name: str) -> None:
    known, features = knowledge(name), MAPS[name]
    *_, last = walk(Coupled(fade=0.0), known, features, 7)
    _, shift = last.decision.evidence.shift()
    kept, faded = (
        Coupled(fade=fade).update(
            last.setup.learner, last.before.learner, last.decision.evidence, last.reward
        )
        for fade in (0.0, 0.25)
    )
    one, other = (flat(theta_belief(x.theta, shift, np.eye(D)))[0] for x in (kept, faded))
    np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
    slopes = kept.theta.centre[1:]
    assert np.abs(slopes).max() > 1e-3
    np.testing.assert_allclose(faded.theta.centre[1:], 0.75 * slopes, rtol=1e-12)
    for field in ("precision", "natural_mean"):
        np.testing.assert_array_equal(getattr(kept, field), getattr(faded, field))


def test_rewards_that_come_late_may_come_in_any_order() -> None:
    known, features = knowledge("quadratic"), MAPS["quadratic"]
    learner, played = Coupled(fade=0.0), list(walk(Coupled(fade=0.0), known, MAPS["quadratic"], 5, paid=()))
    parameters, ends = played[0].setup.learner, []
    for order in (range(5), (3, 0, 4, 2, 1)):
        state = played[0].before.learner
        for t in order:
            state = learner.update(parameters, state, played[t].decision.evidence, played[t].reward)
        ends.append((*flat(learner.belief(parameters, state)), state.precision, state.natural_mean))
    for one, other in zip(*ends, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
    assert features.size == len(ends[0][0])


def test_blocks_are_what_one_piece_is() -> None:
    cut, features = knowledge("block"), MAPS["block"]
    whole = cut._replace(prior_cov=gaussian.as_matrix(cut.prior_cov))
    *_, one = walk(Coupled(), cut, features, 20)
    *_, other = walk(Coupled(), whole, features, 20)
    found, right = one.decision.evidence.belief, other.decision.evidence.belief
    np.testing.assert_allclose(found.centre, right.centre, rtol=1e-9, atol=1e-10)
    design: Any = one.decision.evidence.design
    np.testing.assert_allclose(design.variances(found), design.variances(right), rtol=1e-8)
    np.testing.assert_allclose(one.after.learner.precision, other.after.learner.precision, rtol=1e-8)


def test_it_keeps_the_contract() -> None:
    for features in ["quadratic", "product", "per_arm"]:
        check_it_keeps_the_contract(features)


def check_it_keeps_the_contract(features: str) -> None:
    check_learner(Coupled(), features=features)


@pytest.mark.slow
def test_engines_agree_in_blocks() -> None:
    known, features, agent = knowledge("block"), MAPS["block"], with_learner(Coupled())
    *_, last = walk(Coupled(), known, features, 5)

    def believe(known: Knowledge, memory: Memory, noisy: Array) -> tuple[Any, Any]:
        setup, _ = rounds.start(agent, known)
        seen = rounds.view(agent, setup, memory, features, Observation(noisy))
        return seen.context, seen.belief

    inputs = jax.tree.map(jnp.asarray, (known, last.before, last.noisy))
    found = jax.tree.leaves(jax.jit(believe)(*inputs))
    right = jax.tree.leaves((last.decision.context, last.decision.evidence.belief))
    for ours, theirs in zip(found, right, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-11)


def test_what_it_is_not_for_is_refused() -> None:
    rows, problem = Catalogue(), GaussianProblem(dim=2, actions=3)
    usual: Any = {"rewards": "gaussian", "partial": False, "has_bias": True}
    told = (
        r"^coupled\.learner: 'coupled' with the features Quadrature; allowed: with it a feature map, linear"
    )
    with pytest.raises(InputError, match=told):
        check_fit(rows["coupled"], problem.knowledge(), quadrature(waves, 2)(np.zeros((3, 2))), **usual)
    for row in ("alg1", "naive", "oracle", "alg2-exact", "gaps"):
        with pytest.raises(InputError, match=rf"^{row}-coupled\.learner: 'coupled' beside the denoiser"):
            rows[f"{row}-coupled"]
    cut = problem.knowledge()._replace(prior_cov=np.stack([np.eye(2)] * 3))
    with pytest.raises(InputError, match="'coupled' with this prior in blocks; allowed: a prior"):
        check_fit(rows["coupled"], cut, MAPS["quadratic"], **usual)
    for fade in (-0.1, 1.1, "much"):
        with pytest.raises(InputError, match=r"^fade: "):
            Coupled(fade=fade)  # type: ignore[arg-type]
    assert rows["alg1-exact-coupled:fade=0.1"].learner == Coupled(fade=0.1)
    assert rows["coupled"].same_as(rows["unfog-coupled"])
