"""Which agents the kernel plays, on which problems; all others are played by the NumPy engine."""

import numpy as np

from unfog.agents.agent import Agent
from unfog.agents.choose import RandUcb, Thompson
from unfog.agents.learn import Conjugate, Hetero, Scaled
from unfog.features.link import Identity
from unfog.features.quadratic import Quadratic
from unfog.simulation.engines.numba.arrays import CONJUGATE, HETERO, MIXED, SCALED
from unfog.simulation.job import Job
from unfog.worlds.composed import Composed
from unfog.worlds.problem import Problem


def learner_of(agent: Agent) -> int | None:
    """The kernel's number for the agent's learner; None if it has no kernel."""
    learner = agent.learner
    if type(learner) is Scaled:
        return MIXED if learner.mixed else SCALED
    if type(learner) is Hetero and not learner.surprise:
        return HETERO
    return CONJUGATE if type(learner) is Conjugate else None


def why_not_problem(problem: Problem) -> str:
    """Why the kernel cannot play a problem; "" if it can."""
    if not isinstance(problem, Composed) or not isinstance(problem.rewards, Identity):
        return "rewards are not scores and Gaussian noise"
    zeros = {name: np.zeros((1, *draws.shape)) for name, draws in problem.truth_draws().items()}
    if not isinstance(problem.truth(zeros).features, Quadratic):
        return "features are not quadratic"
    return "the prior has blocks" if problem.knowledge().prior_cov.ndim > 2 else ""


def why_not_agent(agent: Agent, problem: Problem) -> str:
    """Why the kernel cannot play an agent; "" if it can.

    A block of rounds is denoised before the kernel plays it. So the denoiser must not use rewards, and true
    contexts must come at once or not at all.
    """
    learner = learner_of(agent)
    if learner is None:
        return f"there is no kernel for the learner {agent.learner.name!r}"
    if type(agent.chooser) not in (Thompson, RandUcb):
        return f"there is no kernel for the chooser {agent.chooser.name!r}"
    if learner == MIXED and type(agent.chooser) is Thompson:
        return "a draw from a mixture of scales needs a factorisation"
    if agent.can.use_time is not None or agent.can.revise is not None:
        return "its denoiser goes back to past rounds"
    if agent.sees_context and (problem.partial or problem.on_request or problem.has_reveal_mask):
        return "true contexts come late, in part, or when asked for"
    return ""


def why_not(agent: Agent, problem: Problem) -> str:
    """Why the kernel cannot play this agent on this problem; "" if it can.

    >>> import unfog
    >>> from unfog.simulation.engines.numba.support import why_not
    >>> problem = unfog.GaussianProblem(dim=2, actions=5)
    >>> why_not(unfog.AGENTS["unfog"], problem)
    ''
    >>> why_not(unfog.AGENTS["late"], problem)
    "there is no kernel for the learner 'revisable'"
    """
    return why_not_problem(problem) or why_not_agent(agent, problem)


def split(job: Job) -> tuple[list[int], list[int]]:
    """The indices of the agents with a kernel, and of those without."""
    indices = range(len(job.agents))
    reasons = {index: why_not(job.agents[index], job.problem) for index in indices}
    return [index for index in indices if not reasons[index]], [index for index in indices if reasons[index]]
