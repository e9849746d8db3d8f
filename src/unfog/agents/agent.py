"""An agent is three parts: denoise, learn, choose. This is how they make a round together."""

from typing import NamedTuple

from unfog.agents.parts import Chooser, Denoiser, Learner, Parameters, Privilege, State
from unfog.arrays import Array, Ints
from unfog.features import Context, FeatureMap
from unfog.knowledge import Knowledge


class Agent(NamedTuple):
    """A named algorithm."""

    name: str
    denoiser: Denoiser
    learner: Learner
    chooser: Chooser
    summary: str
    reference: str
    reveals: bool = False  # shown the true context after its reward (setting 2)
    privileged: bool = False  # shown the bias before the first round


class Setup(NamedTuple):
    """What does not change during a run."""

    denoiser: Parameters
    learner: Parameters


class Memory(NamedTuple):
    """What does."""

    denoiser: State
    learner: State


class Decision(NamedTuple):
    """What an agent did in a round, and what it believed of the context when it did."""

    arm: Ints  # (...,)
    context: Context
    row: Array  # (..., m) expected features of the arm
    spread: Array | None  # (..., m, m) their covariance, where the learner asks for it


def begin(
    agent: Agent, known: Knowledge, privilege: Privilege | None = None, rounds: int | None = None
) -> tuple[Setup, Memory]:
    """Set up the parts. Only a privileged agent may be shown the truth.

    With `rounds` the memory of past rounds has that fixed size, as compiled programs need it; else it grows.
    """
    if agent.privileged != (privilege is not None):
        raise ValueError(f"{agent.name}: privilege must be given to privileged agents, and to no others")
    setup = Setup(agent.denoiser.setup(known, privilege), agent.learner.setup(known))
    return setup, Memory(agent.denoiser.start(setup.denoiser), agent.learner.start(known, rounds))


def think(agent: Agent, setup: Setup, memory: Memory, normals: Array) -> Memory:
    """One step of the learner's chain: normals (..., n). A round's steps come before its decision."""
    if agent.learner.chain is None:
        raise ValueError(f"{agent.name}: its learner has no steps to take")
    return memory._replace(learner=agent.learner.chain.step(setup.learner, memory.learner, normals))


def decide(
    agent: Agent, setup: Setup, memory: Memory, features: FeatureMap, noisy: Array, normals: Array
) -> Decision:
    """Denoise and choose: noisy (..., d)."""
    context = agent.denoiser.predict(setup.denoiser, memory.denoiser, noisy)
    design = features.design(context)
    arm = agent.chooser.choose(design, agent.learner.belief(setup.learner, memory.learner), normals)
    spread = design.covariance(arm) if agent.learner.spread else None
    return Decision(arm, context, design.row(arm), spread)


def learn(
    agent: Agent,
    setup: Setup,
    memory: Memory,
    features: FeatureMap,
    decision: Decision,
    noisy: Array,
    reward: Array,
    revealed: Array | None,
) -> Memory:
    """Take in the reward and, in setting 2, the true context, which then replaces the belief about it."""
    if agent.reveals != (revealed is not None):
        raise ValueError(
            f"{agent.name}: the context must be revealed to agents that take it, and to no others"
        )
    row, spread = decision.row, decision.spread
    if revealed is not None:
        row = features.at(revealed).row(decision.arm)
        spread = None if spread is None else 0 * spread
    return Memory(
        agent.denoiser.update(setup.denoiser, memory.denoiser, noisy, revealed),
        agent.learner.update(setup.learner, memory.learner, row, spread, reward),
    )
