"""Bounded surprise: what is absurd does no more than what is just out of reach, and is counted."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.agents.world import KNOWN, TRIALS, Round, begin, leaves, make_world, same_bits, step
from unfog.agents import round as rounds
from unfog.agents.agent import Agent
from unfog.agents.base import Learner
from unfog.agents.catalogue import AGENTS, Catalogue
from unfog.agents.choose import RandUcb
from unfog.agents.denoise import Exact, Identity, UnknownNoise
from unfog.agents.learn import Hetero
from unfog.agents.round import Memory, Observation
from unfog.maths.arrays import Array
from unfog.validation import InputError
from unfog.worlds.problem import Truth

BOUNDED = {name: row for name, row in AGENTS.items() if row.clip_sd is not None}
every = pytest.mark.parametrize("agent", BOUNDED.values(), ids=list(BOUNDED))
NOISE = float(np.asarray(KNOWN.reward_var, dtype=float))
LARGE = 1e3, 1e6, 1e12, 1e150


def after(agent: Agent, world: tuple[Truth, list[Round]], last: Round) -> Memory:
    """The memory after some rounds and this one."""
    truth, played = world
    setup, memory = begin(agent, truth)
    for r in played[:4]:
        _, memory = step(agent, setup, memory, truth, r)
    return step(agent, setup, memory, truth, last)[1]


def test_which_rows_are_bounded() -> None:
    ours = {name for name, row in AGENTS.items() if "paper" not in row.reference and row.clip_sd}
    assert {"unfog", "unfog-delayed", "unfog-oracle", "gaps", "late", "unknown-noise"} <= ours
    assert not {"alg1", "alg2", "naive", "oracle", "kk", "alg1-exact", "alg2-exact"} & set(BOUNDED)


def test_values_within_reach_keep_their_bits_and_others_are_at_its_edge(rng: np.random.Generator) -> None:
    mean, variance = rng.normal(size=(50, 3)), rng.gamma(1.0, size=3)
    values = mean + 4 * rng.normal(size=(50, 3)) * np.sqrt(variance)
    values[3, 1] = np.nan
    found, far = rounds.clip(values, mean, variance, 5.0)
    reach = np.abs(values - mean) / np.sqrt(variance)
    np.testing.assert_array_equal(far, reach > 5)
    assert 5 < far.sum() < 50
    np.testing.assert_array_equal(found[~far], values[~far])
    edge = (found - mean) / np.sqrt(variance)
    np.testing.assert_allclose(edge[far], 5 * np.sign((values - mean)[far]), rtol=1e-12)
    assert np.isnan(found[3, 1])


@every
def test_an_absurd_value_does_no_more_than_the_first_that_is_out_of_reach(agent: Agent) -> None:
    for size in [1.0, -1.0]:
        for what in ["reward", "noisy"]:
            check_an_absurd_value_does_no_more_than_the_first_that_is_out_of_reach(agent, what, size)


def check_an_absurd_value_does_no_more_than_the_first_that_is_out_of_reach(
    agent: Agent, what: str, size: float
) -> None:
    world = make_world()
    last = world[1][4]

    def with_value(value: float) -> Memory:
        changed: Array = np.array(getattr(last, what))
        changed[..., 0] = value
        return after(agent, world, last._replace(**{what: changed}))

    first, *others = [with_value(size * large) for large in LARGE]
    assert all(np.isfinite(leaf).all() for leaf in leaves(first))
    for other in others:
        assert same_bits(first, other)
    counts: Any = first.surprises
    if what == "reward":
        assert (counts.rewards[0], counts.rewards[1:].sum(), np.sum(counts.contexts)) == (1, 0, 0)
    else:
        assert (counts.contexts == 1).all()


def test_without_surprises_clipping_changes_nothing() -> None:
    for agent in BOUNDED.values():
        check_without_surprises_clipping_changes_nothing(agent)


def check_without_surprises_clipping_changes_nothing(agent: Agent) -> None:
    world = make_world()
    free = Agent(agent.name, agent.denoiser, agent.learner, agent.chooser)
    found, right = after(agent, world, world[1][4]), after(free, world, world[1][4])
    assert same_bits(found[:2], right[:2])
    assert right.surprises == ()
    assert all(not np.any(count) for count in found.surprises)


SEEING = {name: row for name, row in BOUNDED.items() if row.sees_context}


def test_an_absurd_true_context_is_bounded_too() -> None:
    for agent in SEEING.values():
        check_an_absurd_true_context_is_bounded_too(agent)


def check_an_absurd_true_context_is_bounded_too(agent: Agent) -> None:
    world = make_world()
    last = world[1][4]

    def shown(value: float) -> Memory:
        context = np.array(last.context)
        context[1, 2] = value
        return after(agent, world, last._replace(context=context))

    first, other = shown(1e4), shown(1e9)
    assert same_bits(first, other)
    counts: Any = first.surprises
    assert counts.contexts.tolist() == [0, 1, 0, 0]


def test_a_reading_is_expected_to_be_what_the_joint_gaussian_has_it_to_be() -> None:
    """Every denoiser that expects, against the brute-force law of the next reading given those before."""
    _, played = make_world()
    readings = [r.noisy for r in played[:3]]
    for name in ("unfog", "gaps", "drift:step=0", "late", "robust:nu=1000"):
        agent = Catalogue()[name]
        setup = agent.denoiser.setup(KNOWN, None)
        state = agent.denoiser.start(setup)
        for noisy in readings:
            state = agent.denoiser.update(setup, state, noisy, None)
        assert agent.can.predict_reading is not None
        mean, variance = agent.can.predict_reading.predict_reading(setup, state)
        before = name in ("gaps", "late")  # who expect what they did before any reading
        right_mean, right_cov = expected_reading([] if before else readings)
        tolerance = 2e-2 if name.startswith("robust") else 1e-10
        found, right = np.broadcast_arrays(mean, right_mean)
        np.testing.assert_allclose(found, right, rtol=tolerance, atol=tolerance)
        right = np.diagonal(right_cov)
        found, right = np.broadcast_arrays(variance, right)
        np.testing.assert_allclose(found, right, rtol=tolerance)


def test_with_the_noise_unknown_a_reading_is_expected_to_be_as_wide_as_those_before() -> None:
    """About mu_c, from readings alone and from pairs, what is told being worth one."""
    _, played = make_world()
    denoiser = UnknownNoise()
    setup = denoiser.setup(KNOWN, None)
    state = denoiser.start(setup)
    total = np.diagonal(KNOWN.context_cov + KNOWN.noise_cov + KNOWN.bias_cov)
    for t, r in enumerate(played):
        state = denoiser.update(setup, state, r.noisy, r.context if t % 2 else None)
        away = (r.noisy - r.context) ** 2 + np.diagonal(KNOWN.context_cov)
        total = total + (away if t % 2 else (r.noisy - KNOWN.context_mean) ** 2)
    mean, variance = denoiser.predict_reading(setup, state)
    np.testing.assert_array_equal(mean, KNOWN.context_mean)
    np.testing.assert_allclose(variance, total / (1 + len(played)), rtol=1e-12)


def expected_reading(readings: list[Array]) -> tuple[Array, Array]:
    """Mean and covariance of reading n + 1 given n of them: they share the bias, and nothing else."""
    n, d = len(readings), KNOWN.context_mean.shape[0]
    own, shared = KNOWN.context_cov + KNOWN.noise_cov, KNOWN.bias_cov
    joint = np.kron(np.eye(n + 1), own) + np.kron(np.ones((n + 1, n + 1)), shared)
    if not readings:
        return KNOWN.context_mean, joint
    past, cross = joint[: n * d, : n * d], joint[n * d :, : n * d]
    gain = np.linalg.solve(past, cross.T).T
    seen = np.concatenate([x - KNOWN.context_mean for x in readings], -1)
    return KNOWN.context_mean + seen @ gain.T, joint[n * d :, n * d :] - gain @ cross.T


def test_a_reward_is_expected_to_be_what_draws_say() -> None:
    """Mean and variance of a reward over theta, the context and the noise; six standard errors."""
    rng = np.random.default_rng(5)
    truth, played = make_world()
    agent = AGENTS["unfog"]
    setup, memory = begin(agent, truth)
    made = rounds.decide(
        agent, setup, memory, truth.features, Observation(played[0].noisy), played[0].normals[:, :2]
    )
    mean, variance = made.evidence.expected_reward(NOISE + made.evidence.context_variance())
    n = 200_000
    belief, context = made.evidence.belief, made.context
    for trial in range(TRIALS):
        theta = belief.mean + rng.standard_normal((n, belief.mean.shape[-1])) @ belief.root.T
        drawn = rng.multivariate_normal(context.mean[trial], context.cov, n)
        action = truth.features.table[trial][made.arm[trial]][3:6]  # type: ignore[attr-defined]
        phi = np.concatenate([np.tile(action**2, (n, 1)), drawn**2, action * drawn], -1)
        paid = (phi * theta).sum(-1) + np.sqrt(NOISE) * rng.standard_normal(n)
        assert abs(paid.mean() - mean[trial]) <= 6 * paid.std() / np.sqrt(n)
        spread = ((paid - paid.mean()) ** 2).std() / np.sqrt(n)
        assert abs(paid.var() - variance[trial]) <= 6 * spread


def test_compiled_rounds_are_bounded_alike() -> None:
    truth, played = make_world()
    agent = AGENTS["unfog"]
    setup, memory = begin(agent, truth)
    wild = played[0]._replace(
        noisy=played[0].noisy * np.asarray([1, 1e6, 1, 1])[:, None], reward=np.asarray([1.0, 2, -1e6, 0])
    )
    _, right = step(agent, setup, memory, truth, wild)
    given = jax.tree.map(jnp.asarray, (setup, memory, truth, wild))
    found = jax.jit(lambda setup, memory, truth, r: step(agent, setup, memory, truth, r)[1])(*given)
    for a, b in zip(leaves(found), leaves(right), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
    assert [count.tolist() for count in right.surprises] == [[0, 1, 0, 0], [0, 0, 1, 0]]


def test_clipping_needs_a_denoiser_that_expects() -> None:
    with pytest.raises(InputError, match=r"^mine\.clip_sd: 6\.0 beside the denoiser 'identity'; allowed: "):
        Agent("mine", Identity(), Hetero(), RandUcb(), clip_sd=6.0)
    with pytest.raises(InputError, match=r"^mine\.clip_sd: "):
        Agent("mine", Exact(), Hetero(), RandUcb(), clip_sd=-1.0)


def test_clipping_needs_a_learner_that_says_how_noisy_rewards_are() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Silent(Hetero):
        noise = Learner.noise  # type: ignore[assignment]  # as one of one's own has it, unless it says more

    with pytest.raises(
        InputError, match=r"^mine\.clip_sd: 6\.0 beside the learner 'hetero'; allowed: none, or "
    ):
        Agent("mine", Exact(), Silent(), RandUcb(), clip_sd=6.0)
    assert Agent("mine", Exact(), Silent(), RandUcb()).clip_sd is None


def test_a_context_that_is_told_again_is_counted_once() -> None:
    truth, played = make_world()
    agent = AGENTS["late"]
    setup, memory = begin(agent, truth)
    observation = Observation(played[0].noisy)
    decision = rounds.decide(agent, setup, memory, truth.features, observation, played[0].normals[:, :2])
    context = np.array(played[0].context)
    context[2, 1] = -1e5
    for _ in range(3):
        memory, decision = rounds.reveal(agent, setup, memory, decision, context)
    counts: Any = memory.surprises
    assert counts.contexts.tolist() == [0, 0, 1, 0]
