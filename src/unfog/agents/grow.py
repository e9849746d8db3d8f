"""Arms that are added later, where every arm has a part of theta of its own (features/per_arm.py).

theta becomes longer by a block for each new arm, at its end, which is independent of all others a priori. No
past round says anything of it, so that what is believed is as if the arm had been there from the start and
had never been available: the old belief, and the prior of the new block beside it.
"""

from typing import Any

import numpy as np

from unfog.agents.agent import Agent
from unfog.agents.round import Memory, Setup
from unfog.channel.knowledge import Knowledge
from unfog.maths import gaussian
from unfog.maths.arrays import Array
from unfog.maths.gaussian import Belief, Blocks
from unfog.validation import InputError

PRIOR = "prior_mean", "prior_cov"


def grow_agent(
    agent: Agent, old: Knowledge, new: Knowledge, setup: Setup, memory: Memory
) -> tuple[Setup, Memory]:
    """Set-up and memory of an agent whose theta has become longer; the channel stays as it is.

    `new` is `old` with `prior_mean` and `prior_cov` extended at the end: in blocks, or block diagonal.
    Chains go on from where they are, and in the new block from the prior mean, as they began.
    """
    if agent.can.grow is None:
        what = f"the learner {agent.learner.name!r} of {agent.name!r}"
        raise InputError("arms", what, "no more arms, or a learner to which arms can be added (Grows)")
    check(old, new)
    state = agent.can.grow.grow(old, new, memory.learner)
    return setup._replace(learner=agent.learner.setup(new)), memory._replace(learner=state)


def grow_belief(new: Knowledge, belief: Belief) -> Belief:
    """An earlier belief about theta, with the prior of the arms added since."""
    if belief.centre.shape[-1] == new.prior_mean.shape[-1]:
        return belief
    prior: Belief = gaussian.from_moments(new.prior_mean, gaussian.as_matrix(new.prior_cov))
    if isinstance(belief, Blocks):
        prior = gaussian.blocks_from_moments(new.prior_mean, new.prior_cov)
    return gaussian.extend_belief(belief, prior)


def check(old: Knowledge, new: Knowledge) -> None:
    """Raise InputError if the new knowledge is not the old one with a longer prior."""
    for field, before, after in zip(Knowledge._fields, old, new, strict=True):
        if field not in PRIOR and not _is_same(before, after):
            raise InputError(field, "changed", "what it was: only the prior of theta may become longer")
    size, more = old.prior_mean.shape[-1], new.prior_mean.shape[-1]
    if more <= size or not np.array_equal(new.prior_mean[:size], old.prior_mean):
        raise InputError("prior_mean", f"{more} numbers for {size}", "the old ones, and more at the end")
    first = len(old.prior_cov)
    allowed = "the old one and more after it: further blocks, or a matrix that is block diagonal"
    if new.prior_cov.ndim != old.prior_cov.ndim or not _extends(old.prior_cov, new.prior_cov):
        raise InputError("prior_cov", f"of shape {new.prior_cov.shape} after {old.prior_cov.shape}", allowed)
    if new.prior_cov.ndim == 2 and np.any(new.prior_cov[:first, first:]):
        raise InputError("prior_cov", "with covariances between what is old and what is new", allowed)


def _extends(old: Array, new: Array) -> bool:
    """Whether the new covariance has the old one at its beginning."""
    first = len(old)
    start = new[:first, :first] if old.ndim == 2 else new[:first]
    return start.shape == old.shape and len(new) > first and bool(np.array_equal(start, old))


def _is_same(x: Any, y: Any) -> bool:
    """Whether two nested values are equal."""
    if isinstance(x, tuple) and isinstance(y, tuple):
        return len(x) == len(y) and all(map(_is_same, x, y))
    if x is None or y is None:
        return x is y
    are_numbers = isinstance(x, np.ndarray) and x.dtype.kind == "f"  # what is not known is not a number
    return bool(np.array_equal(x, y, equal_nan=are_numbers))
