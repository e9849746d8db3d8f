"""What a job costs in seconds; for memory see engines/room.py.

The estimate of seconds is linear: an agent takes start + rounds (call batches + trials (each + root m^2 +
arm K m)) seconds, and where its learner keeps all past rounds, `past` for every multiplication of its steps,
which on compiled engines work on the whole history from the first round on. Parts that take longer than those
of the paper's agents say by how much (`cost`, as measured with NumPy for d = 5 and K = 40): rounds take
1 + cost times as long. Each engine's coefficients were fitted by hand to benchmarks/results, and a test
holds them to a factor of three of every measurement there: they need to be right only to the factor that
separates the engines.
"""

from typing import NamedTuple

from unfog.agents.agent import Agent
from unfog.simulate.job import Job

STEPS_A_CALL = 4  # a step of a learner takes as long to call as a fourth of a round without


class Cost(NamedTuple):
    """Seconds: to start (compile), for a round of a batch, and for a trial of a round."""

    batch: int  # trials at most
    start: float
    call: float
    each: float
    root: float  # times m^2
    arm: float  # times K m
    past: float  # times the multiplications of a learner's steps
    share: float  # of the rounds of the run that its steps work on, on average
    parts: float = 1.0  # times what parts say that they cost with NumPy

    def seconds(self, job: Job, trials: int, processes: int = 1) -> float:
        """The estimate for a job; processes beyond the number of batches have nothing to do."""
        return sum(self._agent(job, agent, trials, processes) for agent in job.agents)

    def _agent(self, job: Job, agent: Agent, trials: int, processes: int) -> float:
        known, chain = job.problem.knowledge(), agent.chain
        m, arms, batches = known.prior_mean.shape[0], job.problem.arms(), -(-trials // self.batch)
        trial, call = self.each + self.root * known.prior_cov.size + self.arm * arms * m, self.call
        if chain is not None:
            trial += self.past * chain.steps * chain.work(known) * self.share * job.rounds
            call *= 1 + chain.steps / STEPS_A_CALL
        slow = 1 + self.parts * (agent.denoiser.cost + agent.learner.cost)
        return self.start + job.rounds * slow * (call * batches + trials * trial) / min(processes, batches)
