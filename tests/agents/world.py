"""A small world to play rounds in, for all agents alike."""

from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.problems import random_problem
from unfog.agents import predict
from unfog.agents import round as rounds
from unfog.agents.agent import Agent
from unfog.agents.base import Privilege
from unfog.agents.catalogue import AGENTS, Catalogue
from unfog.agents.round import Decision, Memory, Observation, Setup
from unfog.maths.arrays import Array
from unfog.maths.gaussian import Gaussian
from unfog.maths.mixture import Mixture
from unfog.worlds.problem import Truth

ROUNDS, TRIALS, K, D = 6, 4, 6, 3
M = 3 * D
PROBLEM = random_problem(seed=2, dim=D, actions=K)
SAMPLE = np.random.default_rng(9).normal(0.7, 1.4, (12, D))  # contexts, for those that must be told some
LAW = Mixture(np.array([0.3, 0.7]), SAMPLE[:2], np.stack([np.diag([0.6, 1.2, 0.3]), np.eye(D) - 0.2]))
KNOWN = PROBLEM.knowledge()._replace(contexts=SAMPLE, sample=SAMPLE, mixture=LAW)  # whoever needs it
WIDE = KNOWN._replace(prior_cov=4 * KNOWN.prior_cov)  # wide enough for the paper's steps of Langevin's
EVERY_ROW = pytest.mark.parametrize("agent", AGENTS.values(), ids=list(AGENTS))
BINARY = [name for name, row in AGENTS.items() if row.binary_learner is not None]
BOTH_KINDS = {f"{name} gaussian": row for name, row in AGENTS.items()}
BOTH_KINDS |= {f"{name} bernoulli": Catalogue("bernoulli")[name] for name in BINARY}


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


def one_trial(truth: Truth, played: list[Round], i: int) -> tuple[Truth, list[Round]]:
    features = type(truth.features)(truth.features.table[i])  # type: ignore[attr-defined, call-arg]
    return Truth(truth.theta[i], truth.bias[i], features), [Round(*(part[i] for part in r)) for r in played]


def begin(agent: Agent, truth: Truth) -> tuple[Setup, Memory]:
    known = KNOWN if agent.learner.rewards == "gaussian" else WIDE
    return rounds.start(agent, known, Privilege(truth.bias) if agent.can.see_bias else None)


def step(agent: Agent, setup: Setup, memory: Memory, truth: Truth, r: Round) -> tuple[Decision, Memory]:
    """One round, and the decision as it was made; who sees contexts is shown this one right after."""
    observation = Observation(r.noisy)
    made = rounds.decide(agent, setup, memory, truth.features, observation, r.normals)
    memory = rounds.observe(agent, setup, memory, observation)
    memory, decision = rounds.reward(agent, setup, memory, made, r.reward)
    if agent.sees_context:
        memory, _ = rounds.reveal(agent, setup, memory, decision, r.context)
    return made, memory


def play(agent: Agent, truth: Truth, played: list[Round]) -> tuple[list[Decision], list[Memory]]:
    """Walk through the rounds: decisions, and memories from before the first to after the last."""
    setup, memory = begin(agent, truth)
    decisions, memories = [], [memory]
    for r in played:
        decision, memory = step(agent, setup, memory, truth, r)
        decisions.append(decision)
        memories.append(memory)
    return decisions, memories


def foretold(agent: Agent, setup: Setup, memory: Memory, decision: Decision) -> tuple[Array, Array] | None:
    """What it expected of the reading of a decision, with the memory as it was before that."""
    channel = rounds.state_of(memory.denoiser, decision.unit, decision.noisy)
    return predict.forecast_reading(agent, setup.denoiser, channel)


def belief(agent: Agent, memory: Memory) -> Gaussian:
    """What the agent believes of theta, however its learner keeps it."""
    found = agent.learner.belief(agent.learner.setup(KNOWN), memory.learner)
    assert isinstance(found, Gaussian)
    return found


def leaves(state: Any) -> list[Array]:
    """Every array in nested tuples."""
    if state is None:
        return []
    return [leaf for part in state for leaf in leaves(part)] if isinstance(state, tuple) else [state]


def same_bits(one: Any, other: Any) -> bool:
    return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(leaves(one), leaves(other), strict=True))
