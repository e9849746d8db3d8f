"""How much memory an agent takes, before it takes it.

What is believed of theta takes most: a matrix of m x m numbers, or a block of k x k for each arm. It stands
there several times: as the prior, as it is, as it is about to be, and with what is needed to take a reward
back. How often was measured, with the agents of the catalogue. Choosers whose probabilities are not known
exactly draw theta many times.
"""

from unfog.agents.agent import Agent
from unfog.channel.knowledge import Knowledge
from unfog.live.mind import PROPENSITY_DRAWS
from unfog.validation import InputError

MOST = 1 << 30  # bytes that one agent of a problem may take
NUMBER = 8  # bytes
COPIES = 16  # of what is believed of theta, at most at a time, where it is in blocks or may be taken back
WHOLE = 4  # where it is one matrix of a learner that keeps no more
DRAWN = 4  # of each draw of theta, while a decision is made


def needed(agent: Agent, known: Knowledge) -> int:
    """Bytes, about; the arrays of priors are only asked for their shapes."""
    m, d = known.prior_mean.shape[-1], known.context_mean.shape[-1]
    theta = WHOLE * m * m if agent.learner.dense else COPIES * known.prior_cov.size
    draws = 1 if agent.chooser.propensity == "exact" else PROPENSITY_DRAWS
    return NUMBER * (theta + COPIES * d * d + DRAWN * draws * agent.chooser.normals(known))


def refuse_large(field: str, agent: Agent, known: Knowledge) -> None:
    """Complain of a problem of which an agent would take more than may be."""
    bytes_ = needed(agent, known)
    if bytes_ > MOST:
        m, d = known.prior_mean.shape[-1], known.context_mean.shape[-1]
        what = f"{m} features of contexts of {d} take {agent.name!r} about {bytes_ / 2**30:.1f} GiB of memory"
        raise InputError(field, what, f"fewer arms or coordinates: {MOST / 2**30:g} GiB at most")
