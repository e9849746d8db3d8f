"""An agent where no channel is told: an ordinary contextual bandit, which takes readings for the truth."""

from dataclasses import replace

import numpy as np

from unfog.agents.assemble import Agent
from unfog.agents.denoise import Identity
from unfog.channel.channel import Channel
from unfog.validation import InputError


def without_channel(field: str, agent: Agent) -> Agent:
    """The same learner and chooser, on readings as they are."""
    try:
        return replace(agent, denoiser=Identity(), limit=None)
    except InputError as error:
        raise InputError(field, f"{agent.name!r} without a channel", f"a channel; {error.allowed}") from None


def unknown_channel(dim: int) -> Channel:
    """Nothing is known: what an agent that takes readings for the truth never looks at."""
    one = np.eye(dim)
    return Channel(np.zeros(dim), one, one, one, np.zeros(dim))
