"""One contract for every row of the catalogue, and the refusal of names that are not in it."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from unfog.agents.agent import Agent, Decision, Memory, Setup

from tests.problems import feature_moments, inverse, quadratic_phi, random_problem
from unfog.agents import agent as agents
from unfog.agents.catalogue import AGENTS, named
from unfog.agents.denoise import identity, known_bias, prior_only
from unfog.agents.denoise.bias import Tally
from unfog.agents.parts import Privilege
from unfog.features import Context
from unfog.inputs import InputError
from unfog.maths import gaussian
from unfog.maths.arrays import Array
from unfog.maths.gaussian import Gaussian
from unfog.worlds.problem import Truth

ROUNDS, TRIALS, K, D = 6, 4, 6, 3
M = 3 * D
PROBLEM = random_problem(seed=2, dim=D, actions=K)
EVERY_ROW = pytest.mark.parametrize("agent", AGENTS.values(), ids=list(AGENTS))


class Round(NamedTuple):
    """What one round needs, for all trials."""

    context: Array
    noisy: Array
    normals: Array
    reward: Array


def make_world(seed: int = 8) -> tuple[Truth, list[Round]]:
    rng = np.random.default_rng(seed)
    normal = rng.standard_normal
    draws = {"theta": normal((TRIALS, M)), "bias": normal((TRIALS, D)), "actions": normal((TRIALS, K, D))}
    truth = PROBLEM.truth(draws)
    emissions = [PROBLEM.emit(truth, normal((TRIALS, 2 * D + 1))) for _ in range(ROUNDS)]
    return truth, [
        Round(*emission[:2], normal((TRIALS, M)), rng.normal(1, 2, TRIALS)) for emission in emissions
    ]


def one_trial(truth: Truth, rounds: list[Round], i: int) -> tuple[Truth, list[Round]]:
    features = type(truth.features)(truth.features.table[i])  # type: ignore[attr-defined, call-arg]
    return Truth(truth.theta[i], truth.bias[i], features), [Round(*(part[i] for part in r)) for r in rounds]


def begin(agent: Agent, truth: Truth) -> tuple[Setup, Memory]:
    return agents.begin(agent, PROBLEM.knowledge(), Privilege(truth.bias) if agent.privileged else None)


def step(agent: Agent, setup: Setup, memory: Memory, truth: Truth, r: Round) -> tuple[Decision, Memory]:
    """One round; who takes the true context late is shown it right after the round."""
    decision = agents.decide(agent, setup, memory, truth.features, r.noisy, r.normals)
    revealed = r.context if agent.reveals and not agent.amends else None
    memory = agents.learn(agent, setup, memory, truth.features, decision, r.noisy, r.reward, revealed)
    if agent.reveals and agent.amends:
        seen = truth.features, decision, r.noisy, r.reward, r.context
        memory, _ = agents.amend(agent, setup, memory, *seen)
    return decision, memory


def play(agent: Agent, truth: Truth, rounds: list[Round]) -> tuple[list[Decision], list[Memory]]:
    """Walk through the rounds: decisions, and memories from before the first to after the last."""
    setup, memory = begin(agent, truth)
    decisions, memories = [], [memory]
    for r in rounds:
        decision, memory = step(agent, setup, memory, truth, r)
        decisions.append(decision)
        memories.append(memory)
    return decisions, memories


def belief(agent: Agent, memory: Memory) -> Gaussian:
    """What the agent believes of theta, however its learner keeps it."""
    found = agent.learner.belief(agent.learner.setup(PROBLEM.knowledge()), memory.learner)
    assert isinstance(found, Gaussian)
    return found


def leaves(state: Any) -> list[Array]:
    return [leaf for part in state for leaf in leaves(part)] if isinstance(state, tuple) else [state]


@EVERY_ROW
def test_shapes_types_and_range_hold(agent: Agent) -> None:
    decisions, memories = play(agent, *make_world())
    for decision in decisions:
        assert decision.arm.shape == (TRIALS,)
        assert np.issubdtype(decision.arm.dtype, np.integer)
        assert ((decision.arm >= 0) & (decision.arm < K)).all()
        assert decision.context.mean.shape == (TRIALS, D)
        assert decision.context.cov.shape in {(D, D), (TRIALS, D, D)}
        assert decision.row.shape == (TRIALS, M)
        assert all(leaf.dtype == np.float64 for leaf in (*decision.context, decision.row))
    for memory in memories[1:]:
        assert belief(agent, memory).mean.shape == (TRIALS, M)
        assert belief(agent, memory).root.shape == (TRIALS, M, M)
        assert all(leaf.dtype == np.float64 and np.isfinite(leaf).all() for leaf in leaves(memory))
    shapes = [[leaf.shape for leaf in leaves(memory)] for memory in memories[1:]]
    assert all(shape == shapes[0] for shape in shapes)


@EVERY_ROW
def test_every_round_changes_the_memory_and_leaves_the_old_one_alone(agent: Agent) -> None:
    truth, rounds = make_world()
    setup, memory = begin(agent, truth)
    for r in rounds:
        copies = [leaf.copy() for leaf in leaves(memory)]
        _, after = step(agent, setup, memory, truth, r)
        assert all(np.array_equal(a, b) for a, b in zip(leaves(memory), copies, strict=True))
        new, old = belief(agent, after), belief(agent, memory)
        assert (np.abs(new.mean - old.mean).max(-1) > 1e-6).all()
        assert (np.abs(new.root - old.root).max((-2, -1)) > 1e-6).all()
        memory = after


@EVERY_ROW
def test_the_denoisers_memory_grows_where_there_is_a_bias_to_learn(agent: Agent) -> None:
    _, memories = play(agent, *make_world())
    remembers = len(leaves(memories[0].denoiser)) > 0
    assert remembers or agent.denoiser in (identity, prior_only, known_bias)
    if isinstance(memories[0].denoiser, Tally):
        assert [float(memory.denoiser.seen) for memory in memories] == list(range(ROUNDS + 1))


@EVERY_ROW
def test_the_row_is_that_of_the_arm_and_belief(agent: Agent) -> None:
    truth, rounds = make_world()
    for decision in play(agent, truth, rounds)[0]:
        again = truth.features.design(decision.context).row(decision.arm)
        assert np.array_equal(decision.row, again)


def learnt_by_hand(
    agent: Agent, row: Array, spread: Array | None, reward: Array, prior: tuple[Array, Array]
) -> tuple[Array, Array]:
    """Mean and covariance of theta after one reward, in precision form, with Cov(phi) in full.

    Where Cov(phi) is not None it adds to the reward's variance, for learners that count it, and the size of
    the surprise is one more measurement of theta, for those that take it.
    """
    mean, cov = prior
    variance = float(np.asarray(PROBLEM.knowledge().reward_var))
    counted = agent.learner.spread and spread is not None
    seen = spread if counted and spread is not None else np.zeros((M, M))
    variance = variance + mean @ seen @ mean + np.trace(seen @ cov)
    expected, surprise = variance + row @ cov @ row, reward - row @ mean
    precision = inverse(cov) + np.outer(row, row) / variance
    pull = inverse(cov) @ mean + row * reward / variance
    if counted and getattr(agent.learner, "surprise", False):
        slope, after = 2 * seen @ mean, np.linalg.solve(precision, pull)
        value = slope @ after + variance * (surprise**2 / expected - 1)
        pull = pull + slope * value / (2 * expected**2)
        precision = precision + np.outer(slope, slope) / (2 * expected**2)
    return np.linalg.solve(precision, pull), inverse(precision)


@EVERY_ROW
def test_what_is_learnt_from_is_phi_where_the_context_is_revealed(agent: Agent) -> None:
    truth, rounds = make_world()
    first, known = rounds[0], PROBLEM.knowledge()
    decision, after = step(agent, *begin(agent, truth), truth, first)
    found = belief(agent, after)
    for i in range(TRIALS):
        action = truth.features.table[i, decision.arm[i], D : 2 * D]  # type: ignore[attr-defined]
        covs = np.broadcast_to(decision.context.cov, (TRIALS, D, D))
        context = Context(decision.context.mean[i], covs[i])
        rows, spreads = feature_moments(quadratic_phi, action[None], context, order=3)
        x = quadratic_phi(action, first.context[i]) if agent.reveals else rows[0]
        spread = None if agent.reveals else spreads[0]
        prior = known.prior_mean, known.prior_cov
        mean, cov = learnt_by_hand(agent, x, spread, first.reward[i], prior)
        np.testing.assert_allclose(found.mean[i], mean, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(gaussian.covariance(found)[i], cov, rtol=1e-8, atol=1e-11)


@EVERY_ROW
def test_a_batch_of_trials_is_its_trials(agent: Agent) -> None:
    truth, rounds = make_world()
    decisions, memories = play(agent, truth, rounds)
    for i in range(TRIALS):
        alone, remembered = play(agent, *one_trial(truth, rounds, i))
        for together, single in zip(decisions, alone, strict=True):
            assert together.arm[i] == single.arm
            np.testing.assert_allclose(together.row[i], single.row, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(
            belief(agent, memories[-1]).mean[i], belief(agent, remembered[-1]).mean, rtol=1e-11, atol=1e-12
        )


@EVERY_ROW
def test_privilege_is_for_the_privileged_alone(agent: Agent) -> None:
    truth, _ = make_world()
    wrong = None if agent.privileged else Privilege(truth.bias)
    with pytest.raises(ValueError, match=f"^{agent.name}: privilege must be given to privileged agents"):
        agents.begin(agent, PROBLEM.knowledge(), wrong)


@EVERY_ROW
def test_only_who_is_shown_the_context_needs_it(agent: Agent) -> None:
    truth, rounds = make_world()
    setup, memory = begin(agent, truth)
    noisy, context = rounds[0].noisy, rounds[0].context

    def remember(revealed: Array | None) -> list[Array]:
        return leaves(agent.denoiser.update(setup.denoiser, memory.denoiser, noisy, revealed))

    if agent.reveals:
        assert not np.array_equal(remember(context)[1], remember(context + 1)[1])
    if agent.reveals and not agent.amends:
        with pytest.raises(TypeError):
            remember(None)
    else:
        for a, b in zip(remember(None), remember(np.full_like(context, np.nan)), strict=True):
            assert np.array_equal(a, b)


def test_who_takes_the_context_late_is_not_shown_it_with_the_reward() -> None:
    truth, rounds = make_world()
    r = rounds[0]
    for agent in (row for row in AGENTS.values() if row.amends):
        setup, memory = begin(agent, truth)
        decision = agents.decide(agent, setup, memory, truth.features, r.noisy, r.normals)
        with pytest.raises(ValueError, match=f"^{agent.name}: the context must be revealed to agents that"):
            agents.learn(agent, setup, memory, truth.features, decision, r.noisy, r.reward, r.context)


def test_the_rows_that_reveal_are_those_of_setting_2() -> None:
    revealing = {name: agent.amends for name, agent in AGENTS.items() if agent.reveals}
    at_once, late = ["alg2", "alg2-exact", "unfog-delayed"], ["late", "unknown-noise"]
    assert revealing == dict.fromkeys(at_once, False) | dict.fromkeys(late, True)


@EVERY_ROW
def test_every_row_says_what_it_is_and_whence(agent: Agent) -> None:
    assert AGENTS[agent.name] is agent
    assert agent.summary
    assert agent.reference


def test_names_give_rows_in_their_order() -> None:
    assert [agent.name for agent in named(["kk", "alg1"])] == ["kk", "alg1"]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["alg1", "alg9"], "agents: no agent is called 'alg9'; allowed: alg1, alg2, naive"),
        (["kk", "alg1", "kk"], "agents: 'kk' is named twice; allowed: each agent once"),
        ([], "agents: none named; allowed: one or more of alg1, alg2"),
    ],
    ids=["unknown", "repeated", "none"],
)
def test_bad_names_are_refused_by_name(names: list[str], message: str) -> None:
    with pytest.raises(InputError) as refused:
        named(names)
    assert str(refused.value).startswith(message)


def test_the_field_is_named_as_asked() -> None:
    with pytest.raises(InputError, match=r"^run\.agents: no agent is called 'x'"):
        named(["x"], "run.agents")
