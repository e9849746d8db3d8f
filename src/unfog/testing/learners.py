"""The contract of learners: `check_learner` runs it on any of them."""

from itertools import pairwise
from typing import Any

import numpy as np

from unfog.agents import round as rounds
from unfog.agents.agent import Agent, refuse_misfit
from unfog.agents.base import Chooser, Denoiser, Learner, Privilege, State, TakesBack, Term
from unfog.agents.choose import Thompson
from unfog.agents.denoise import Exact
from unfog.maths.arrays import Array, pick
from unfog.testing.common import (
    ROUNDS,
    TRIALS,
    ContractError,
    check_value,
    floats,
    normals,
    problem,
    require,
    same,
    truth,
    writes_nothing,
)
from unfog.validation import InputError
from unfog.worlds.problem import Problem, Truth


def check_learner(
    learner: Learner, denoiser: Denoiser | None = None, chooser: Chooser | None = None, **changes: Any
) -> None:
    """Raise ContractError, by the name of the learner and of the rule, where it breaks one.

    The denoiser beside it is the exact one and the chooser Thompson's, unless told: a learner that `hears`
    something needs one that tells it. `changes` are fields of the problem it is tried on.

    >>> import unfog
    >>> unfog.testing.check_learner(unfog.learn.Conjugate())  # says nothing where all is well
    """
    who = check_value("learner", learner)
    world = problem(learner.rewards, **changes)
    agent = _tried(who, learner, denoiser or Exact(), chooser or Thompson(), world)
    whole = _play(who, agent, world, slice(None))
    for trial in range(TRIALS):
        alone = _play(who, agent, world, slice(trial, trial + 1))
        agree = all(same(one[trial], other[0]) for one, other in zip(whole, alone, strict=True))
        require(agree, who, "a trial's belief depends on the trials beside it")
    moved = [not same(one, other) for one, other in pairwise(whole)]
    require(any(moved), who, "learns nothing from rewards")
    if isinstance(learner, TakesBack):
        _check_takes_back(who, learner, agent, world)


def _tried(who: str, learner: Learner, denoiser: Denoiser, chooser: Chooser, world: Problem) -> Agent:
    """The learner in an agent that can play this world."""
    try:
        agent = Agent("tried", denoiser, learner, chooser)
        about: dict[str, Any] = {"partial": world.partial, "has_bias": world.has_bias}
        refuse_misfit(agent, world.knowledge(), truth(world).features, rewards=learner.rewards, **about)
    except InputError as error:
        told = "cannot be tried here, give check_learner what it needs"
        raise ContractError(f"{who}: {told} ({error})") from None
    return agent


def _begin(agent: Agent, world: Problem, nature: Truth) -> tuple[rounds.Setup, rounds.Memory]:
    privilege = None if agent.can.see_bias is None else Privilege(nature.bias)
    return rounds.begin(agent, world.knowledge(), privilege)


def _play(who: str, agent: Agent, world: Problem, trials: slice) -> list[Array]:
    """Samples of theta before each decision, from the same normals."""
    nature, size = truth(world, trials), world.knowledge().prior_mean.shape[-1]
    setup, memory = _begin(agent, world, nature)
    floats(who, memory.learner)
    fixed, found = normals("belief", TRIALS, size)[trials], []
    width = agent.chooser.normals(world.knowledge())
    for t in range(ROUNDS):
        memory = _chained(who, agent, setup, memory, world.knowledge(), t, trials)
        drawn = normals(f"round {t}", TRIALS, world.round_normals())[trials]
        emission = world.emit(nature, drawn, np.asarray(t))
        offer = rounds.Offer(emission.noisy, emission.mask, bias=emission.bias, time=np.asarray(t))
        choice = normals(f"theta {t}", TRIALS, width)[trials]
        decision = rounds.decide(agent, setup, memory, nature.features, offer, choice)
        belief = decision.evidence.belief
        require(np.isfinite(belief.mean).all(), who, "its belief is not finite")
        found.append(np.broadcast_to(belief.sample(fixed), fixed.shape))
        memory = rounds.observe(agent, setup, memory, offer)
        scores = nature.features.at(emission.context).scores(nature.theta)
        paid = world.reward(pick(scores, decision.arm), drawn)
        memory = _learnt(who, agent, setup, memory, decision, paid, emission.context)
    return found


def _learnt(
    who: str,
    agent: Agent,
    setup: rounds.Setup,
    memory: rounds.Memory,
    decision: rounds.Decision,
    paid: Array,
    context: Array,
) -> rounds.Memory:
    """The reward, and the true context for those that see it, through the round."""
    memory, decision = writes_nothing(who, rounds.reward, agent, setup, memory, decision, paid)
    if agent.sees_context:
        memory, _ = writes_nothing(who, rounds.reveal, agent, setup, memory, decision, context)
    floats(who, memory.learner)
    return memory


def _chained(
    who: str, agent: Agent, setup: rounds.Setup, memory: rounds.Memory, known: Any, seen: int, trials: slice
) -> rounds.Memory:
    """The learner's steps before a decision, where it has any."""
    if agent.can.sample is None:
        return memory
    width = agent.can.sample.normals(known, seen)
    for step in range(agent.can.sample.steps):
        drawn = normals(f"steps {seen} {step}", TRIALS, width)[trials]
        memory = writes_nothing(who, rounds.advance_chain, agent, setup, memory, drawn)
        floats(who, memory.learner)
    return memory


def _check_takes_back(who: str, learner: TakesBack, agent: Agent, world: Problem) -> None:
    """A term put in and replaced by another is as if the other had been put in."""
    nature, known = truth(world), world.knowledge()
    size, dim = agent.chooser.normals(known), known.context_mean.shape[-1]
    setup, memory = _begin(agent, world, nature)
    offer = rounds.Offer(normals("noisy", TRIALS, dim))
    decision = rounds.decide(agent, setup, memory, nature.features, offer, normals("theta", TRIALS, size))
    certain = decision.evidence._replace(design=nature.features.at(normals("contexts", TRIALS, dim)))
    old, new = (learner.term(setup.learner, one) for one in (decision.evidence, certain))
    paid = world.reward(np.zeros(TRIALS), normals("paid", TRIALS, world.round_normals()))
    once = _replaced(learner, setup, memory.learner, None, new, paid)[0]
    twice, old = _replaced(learner, setup, memory.learner, None, old, paid)
    twice, _ = _replaced(learner, setup, twice, old, new, paid)
    beliefs = [agent.learner.belief(setup.learner, one) for one in (once, twice)]
    covs = [belief.root @ belief.root.mT for belief in beliefs]  # of which any root will do
    agree = same(beliefs[0].mean, beliefs[1].mean) and same(*covs)
    require(agree, who, "takes back something else than it took in")


def _replaced(
    learner: TakesBack, setup: rounds.Setup, state: State, old: Term | None, new: Term, paid: Array
) -> tuple[State, Term]:
    """The state with a term in place of another, and that term as it went in."""
    new = learner.fit(setup.learner, state, old, new, paid)
    return learner.replace(setup.learner, state, old, new, paid), new
