"""The contract of learners."""

from itertools import pairwise
from typing import Any

import numpy as np

from unfog.agents import round as rounds
from unfog.agents.assemble import Agent, refuse_misfit
from unfog.agents.choose import Thompson
from unfog.agents.denoise import Exact, Incomplete
from unfog.agents.evidence import Evidence
from unfog.agents.parts import Chain, Denoiser, Learner, TakesBack
from unfog.inputs import InputError
from unfog.maths.arrays import Array
from unfog.testing.common import (
    ROUNDS,
    TRIALS,
    ContractError,
    arrays,
    check_value,
    normals,
    problem,
    require,
    same,
    writes_nothing,
)
from unfog.worlds.problem import Truth


def check_learner(learner: Learner, denoiser: Denoiser | None = None, **changes: Any) -> None:
    """Raise ContractError, by the name of the learner and of the rule, where it breaks one.

    The denoiser beside it is the exact one unless told; `changes` are fields of the problem it is tried on.
    """
    who = check_value("learner", learner)
    world = problem(learner.rewards, **changes)
    wanted = world.truth_draws().items()
    truth = world.truth({name: normals(name, TRIALS, *draws.shape) for name, draws in wanted})
    try:
        agent = Agent("tried", denoiser or Exact(), learner, Thompson())
        about = {"rewards": learner.rewards, "partial": False, "has_bias": True}
        refuse_misfit(agent, world.knowledge(), truth.features, **about)  # type: ignore[arg-type]
    except InputError as error:
        raise ContractError(
            f"{who}: cannot be tried here, give check_learner what it needs ({error})"
        ) from None
    whole = _play(who, agent, world, truth, slice(None))
    for trial in range(TRIALS):
        alone = _play(who, agent, world, truth, slice(trial, trial + 1))
        agree = all(same(one[trial], other[0]) for one, other in zip(whole, alone, strict=True))
        require(agree, who, "a trial's belief depends on the trials beside it")
    moved = [not same(one, other) for one, other in pairwise(whole)]
    require(any(moved), who, "learns nothing from rewards")
    if isinstance(learner, TakesBack):
        _check_takes_back(who, learner, world, truth)


def _play(who: str, agent: Agent, world: Any, truth: Truth, trials: slice) -> list[Array]:
    """Samples of theta before each decision, from the same normals."""
    known, learner = world.knowledge(), agent.learner
    features = type(truth.features)(*(part[trials] for part in truth.features))  # type: ignore[attr-defined]
    setup, memory = rounds.begin(agent, known)
    list(arrays(who, memory.learner))
    found = []
    for t in range(ROUNDS):
        memory = _chained(who, agent, setup, memory, known, t, trials)
        noisy, drawn = normals(f"noisy {t}", TRIALS, 2)[trials], normals(f"theta {t}", TRIALS, 6)[trials]
        offer = rounds.Offer(noisy, time=np.asarray(t))
        decision = rounds.decide(agent, setup, memory, features, offer, drawn)
        require(np.isfinite(decision.evidence.belief.mean).all(), who, "its belief is not finite")
        fixed = normals("belief", TRIALS, 6)[trials]
        found.append(np.broadcast_to(decision.evidence.belief.sample(fixed), fixed.shape))
        paid = (normals(f"paid {t}", TRIALS)[trials] > 0).astype(float)
        memory = rounds.observe(agent, setup, memory, offer)
        state = writes_nothing(who, learner.update, setup.learner, memory.learner, decision.evidence, paid)
        list(arrays(who, state))
        memory = memory._replace(learner=state)
    return found


def _chained(
    who: str, agent: Agent, setup: rounds.Setup, memory: rounds.Memory, known: Any, seen: int, trials: slice
) -> rounds.Memory:
    """The learner's steps before a decision, where it has any."""
    if not isinstance(agent.learner, Chain):
        return memory
    width = agent.learner.normals(known, seen)
    for step in range(agent.learner.steps):
        drawn = normals(f"steps {seen} {step}", TRIALS, width)[trials]
        memory = rounds.advance_chain(agent, setup, memory, drawn)
        list(arrays(who, memory.learner))
    return memory


def _check_takes_back(who: str, learner: Any, world: Any, truth: Truth) -> None:
    """A term put in and replaced by another is as if the other had been put in."""
    agent = Agent("tried", Incomplete(pairs=True), learner, Thompson())
    setup, memory = rounds.begin(agent, world.knowledge())
    offer = rounds.Offer(normals("noisy", TRIALS, 2))
    decision = rounds.decide(agent, setup, memory, truth.features, offer, normals("theta", TRIALS, 6))
    evidence: Evidence = decision.evidence
    known = evidence._replace(design=truth.features.at(normals("contexts", TRIALS, 2)))
    old, new = (learner.term(setup.learner, one) for one in (evidence, known))
    paid, state = normals("paid", TRIALS), memory.learner
    once = learner.replace(setup.learner, state, None, new, paid)
    twice = learner.replace(setup.learner, state, None, old, paid)
    twice = learner.replace(setup.learner, twice, old, new, paid)
    beliefs = [learner.belief(setup.learner, one) for one in (once, twice)]
    agree = same(beliefs[0].mean, beliefs[1].mean) and same(beliefs[0].root, beliefs[1].root)
    require(agree, who, "takes back something else than it took in")
