"""The contract of learners: `check_learner` tests any learner against it."""

from itertools import pairwise
from typing import Any

import numpy as np

from unfog.agents import round as rounds
from unfog.agents.agent import Agent, check_fit
from unfog.agents.base import (
    Chooser,
    Denoiser,
    EstimatesScales,
    Learner,
    Privilege,
    ReplacesTerms,
    State,
    Term,
)
from unfog.agents.choose import RandUcb, Thompson
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
    """Raise ContractError, with the name of the learner and the rule, if it breaks one.

    By default the denoiser is the exact one and the chooser Thompson's, or one that draws arms by lot where
    a learner estimates its scales first: a learner with `needs_report`
    needs a chooser that reports it. `changes` are fields of the problem on which it is tested.

    >>> import unfog
    >>> unfog.testing.check_learner(unfog.learn.Conjugate())  # says nothing where all is well
    """
    who = check_value("learner", learner)
    world = problem(learner.rewards, **changes)
    usual = RandUcb() if isinstance(learner, EstimatesScales) else Thompson()
    agent = _make_agent(who, learner, denoiser or Exact(), chooser or usual, world)
    samples = _play(who, agent, world, slice(None))
    for trial in range(TRIALS):
        alone = _play(who, agent, world, slice(trial, trial + 1))
        agree = all(same(one[trial], other[0]) for one, other in zip(samples, alone, strict=True))
        require(agree, who, "a trial's belief depends on the trials beside it")
    changed = [not same(one, other) for one, other in pairwise(samples)]
    require(any(changed), who, "learns nothing from rewards")
    if isinstance(learner, ReplacesTerms):
        _check_replaces_terms(who, learner, agent, world)


def _make_agent(who: str, learner: Learner, denoiser: Denoiser, chooser: Chooser, world: Problem) -> Agent:
    """Put the learner into an agent; raise if that cannot play this world."""
    try:
        agent = Agent("tried", denoiser, learner, chooser)
        settings: dict[str, Any] = {"partial": world.partial, "has_bias": world.has_bias}
        check_fit(agent, world.knowledge(), truth(world).features, rewards=learner.rewards, **settings)
    except InputError as error:
        reason = "cannot be tried here, give check_learner what it needs"
        raise ContractError(f"{who}: {reason} ({error})") from None
    return agent


def _begin(agent: Agent, world: Problem, nature: Truth) -> tuple[rounds.Setup, rounds.Memory]:
    privilege = None if agent.can.see_bias is None else Privilege(nature.bias)
    return rounds.start(agent, world.knowledge(), privilege)


def _play(who: str, agent: Agent, world: Problem, trials: slice) -> list[Array]:
    """Samples of theta before each decision, from the same normals."""
    nature, size = truth(world, trials), world.knowledge().prior_mean.shape[-1]
    setup, memory = _begin(agent, world, nature)
    floats(who, memory.learner)
    z, samples = normals("belief", TRIALS, size)[trials], []
    width = agent.chooser.normals(world.knowledge())
    for t in range(ROUNDS):
        memory = _advance_chain(who, agent, setup, memory, world.knowledge(), t, trials)
        if agent.can.estimate_scales is not None:
            estimator = agent.can.estimate_scales
            learner = writes_nothing(who, estimator.estimate_scales, setup.learner, memory.learner)
            memory = memory._replace(learner=learner)
        draws = normals(f"round {t}", TRIALS, world.round_normals())[trials]
        emission = world.emit(nature, draws, np.asarray(t))
        observation = rounds.Observation(
            emission.noisy, emission.mask, bias=emission.bias, round=np.asarray(t)
        )
        choice = normals(f"theta {t}", TRIALS, width)[trials]
        decision = rounds.decide(agent, setup, memory, nature.features, observation, choice)
        belief = decision.evidence.belief
        require(np.isfinite(belief.mean).all(), who, "its belief is not finite")
        samples.append(np.broadcast_to(belief.sample(z), z.shape))
        memory = rounds.observe(agent, setup, memory, observation)
        scores = nature.features.at(emission.context).scores(nature.theta)
        reward = world.reward(pick(scores, decision.arm), draws)
        memory = _learn(who, agent, setup, memory, decision, reward, emission.context)
    return samples


def _learn(
    who: str,
    agent: Agent,
    setup: rounds.Setup,
    memory: rounds.Memory,
    decision: rounds.Decision,
    reward: Array,
    context: Array,
) -> rounds.Memory:
    """Learn the reward, and the true context if the agent sees it, as a round does."""
    memory, decision = writes_nothing(who, rounds.reward, agent, setup, memory, decision, reward)
    if agent.sees_context:
        memory, _ = writes_nothing(who, rounds.reveal, agent, setup, memory, decision, context)
    floats(who, memory.learner)
    return memory


def _advance_chain(
    who: str, agent: Agent, setup: rounds.Setup, memory: rounds.Memory, known: Any, seen: int, trials: slice
) -> rounds.Memory:
    """Take the learner's steps before a decision, if it has any."""
    if agent.can.sample is None:
        return memory
    width = agent.can.sample.normals(known, seen)
    for step in range(agent.can.sample.steps):
        draws = normals(f"steps {seen} {step}", TRIALS, width)[trials]
        memory = writes_nothing(who, rounds.advance_chain, agent, setup, memory, draws)
        floats(who, memory.learner)
    return memory


def _check_replaces_terms(who: str, learner: ReplacesTerms, agent: Agent, world: Problem) -> None:
    """Check that replacing a term by another gives the belief that the other alone gives."""
    nature, known = truth(world), world.knowledge()
    size, dim = agent.chooser.normals(known), known.context_mean.shape[-1]
    setup, memory = _begin(agent, world, nature)
    observation = rounds.Observation(normals("noisy", TRIALS, dim))
    decision = rounds.decide(
        agent, setup, memory, nature.features, observation, normals("theta", TRIALS, size)
    )
    certain = decision.evidence._replace(design=nature.features.at(normals("contexts", TRIALS, dim)))
    old, new = (learner.term(setup.learner, one) for one in (decision.evidence, certain))
    reward = world.reward(np.zeros(TRIALS), normals("paid", TRIALS, world.round_normals()))
    direct = _replace(learner, setup, memory.learner, None, new, reward)[0]
    corrected, old = _replace(learner, setup, memory.learner, None, old, reward)
    corrected, _ = _replace(learner, setup, corrected, old, new, reward)
    beliefs = [agent.learner.belief(setup.learner, one) for one in (direct, corrected)]
    covs = [belief.root @ belief.root.mT for belief in beliefs]  # roots are not unique
    agree = same(beliefs[0].mean, beliefs[1].mean) and same(*covs)
    require(agree, who, "takes back something else than it took in")


def _replace(
    learner: ReplacesTerms, setup: rounds.Setup, state: State, old: Term | None, new: Term, reward: Array
) -> tuple[State, Term]:
    """The state with a term in place of another, and that term as it was fitted."""
    new = learner.fit(setup.learner, state, old, new, reward)
    return learner.replace(setup.learner, state, old, new, reward), new
