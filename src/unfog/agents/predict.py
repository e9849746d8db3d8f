"""What an agent says will come: the next reading, and the reward of a decision.

Both are predicted in advance, so that they can be compared with what comes: channel/innovations.py tests
whether readings are as the channel says, live/monitoring.py counts the rewards within their intervals.

The reward of an arm is phi'theta plus noise. With theta and the context independent, as the agent has them,
its variance is that of the noise, of x'theta, x = E[phi], and E[theta'Cov(phi)theta], which is what the
hidden context adds. For rewards of 0 or 1 the score is taken for a Gaussian of that mean and variance, and
the probability of 1 is the mean of its sigmoid, by Gauss and Hermite's rule.
"""

import numpy as np

from unfog.agents import round as rounds
from unfog.agents.agent import Agent
from unfog.agents.base import Parameters, State
from unfog.agents.hedge import mix_moments
from unfog.agents.round import Decision, Memory, Setup
from unfog.maths.arrays import Array
from unfog.maths.logistic import sigmoid

NODES = 20
LEAST = 0.002  # probability of a reward of 1, as a linear model predicts it


def _rule() -> tuple[Array, Array]:
    """Points and weights of the quadrature rule for a standard normal."""
    points, weights = np.polynomial.hermite_e.hermegauss(NODES)
    return points, weights / weights.sum()


POINTS, WEIGHTS = _rule()


def forecast_reading(agent: Agent, parameters: Parameters, channel: State) -> tuple[Array, Array] | None:
    """Mean and variance of each coordinate of the next reading: (..., d) each.

    `channel` is the state at its time. None for agents that predict no readings.
    """
    if agent.can.forecast_reading is not None:
        return agent.can.forecast_reading.forecast_reading(parameters, channel)
    return (
        None
        if agent.can.predict_reading is None
        else agent.can.predict_reading.predict_reading(parameters, channel)
    )


def reward(agent: Agent, setup: Setup, memory: Memory, decision: Decision) -> tuple[Array, Array] | None:
    """Mean and variance of the reward of a decision, (...,) each, before it is learnt from.

    The beliefs about theta and the context are those of the decision. To learn from the reward afterwards,
    replace the evidence by `decision.evidence.weighed()` first, which saves time. None for learners of
    Gaussian rewards that do not say how noisy these are, or do not know it yet. A chain is certain of its
    sample, so that its variance is too small.
    """
    evidence, learner = decision.evidence, agent.learner
    is_binary = learner.rewards == "bernoulli"
    binary = is_binary and not learner.is_linear
    hidden = evidence.context_variance()
    estimator = agent.can.estimate_scales
    if estimator is not None and not estimator.is_ready(memory.learner, 1).all():
        return None
    noise = hidden if binary else agent.learner.noise(setup.learner, memory.learner, hidden)
    if noise is None:
        return None
    mean, variance = evidence.expected_reward(noise)
    weights = rounds.candidate_weights(memory)
    if weights is not None:
        mean, variance = mix_moments(weights, mean, variance, -1)
    if is_binary and learner.is_linear:
        xp = mean.__array_namespace__()
        chance = xp.clip(mean, LEAST, 1 - LEAST)
        return chance, chance * (1 - chance)
    if not binary:
        return mean, variance
    xp = mean.__array_namespace__()
    points, weights = (xp.asarray(x, dtype=mean.dtype) for x in (POINTS, WEIGHTS))
    chance = xp.vecdot(sigmoid(mean[..., None] + xp.sqrt(variance)[..., None] * points), weights)
    return chance, chance * (1 - chance)
