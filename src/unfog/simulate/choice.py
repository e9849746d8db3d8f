"""Which engine runs a job: as told, or the one that is estimated to finish first.

The estimate is linear: an agent takes start + rounds (call batches + trials (each + root m^2 + arm K m))
seconds, and where its learner keeps all past rounds, `past` for every multiplication of its steps, which on
compiled engines work on the whole history from the first round on. Parts that take longer than those of the
paper's agents say by how much (`extra`, as measured with NumPy for d = 5 and K = 40): rounds take 1 + extra
times as long. The coefficients were fitted by hand to benchmarks/results, and a test holds them to a factor
of three of every measurement there: they need to be right only to the factor that separates the engines.
"""

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import NamedTuple

from unfog.agents.assemble import Agent
from unfog.inputs import InputError, one_of
from unfog.simulate.job import ENGINES, PRECISIONS, TAPES, Job


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
        slow = 1 + agent.denoiser.cost + agent.learner.cost
        return self.start + job.rounds * slow * (call * batches + trials * trial) / min(processes, batches)


COSTS = {
    "numpy": Cost(250, 0.0, call=6e-5, each=1.5e-6, root=1.6e-9, arm=0.8e-9, past=3e-10, share=0.5),
    "jax on cpu": Cost(2**12, 2.5, call=5e-6, each=3.5e-7, root=2.3e-9, arm=9.5e-10, past=2e-10, share=1.0),
    "jax on gpu": Cost(2**17, 3.0, call=6e-5, each=3e-10, root=6e-12, arm=1.7e-12, past=1e-12, share=1.0),
}
STEPS_A_CALL = 4  # a step of a learner takes as long to call as a fourth of a round without


class Choice(NamedTuple):
    """An engine, and why."""

    engine: str
    reason: str


def resolve(job: Job, trials: int, workers: int) -> Choice:
    """The engine that will run a job; refuses what it cannot do."""
    return resolve_all([job], trials, workers)


def resolve_all(jobs: Sequence[Job], trials: int, workers: int) -> Choice:
    """The one engine that will run all of these jobs, which differ in their problem alone."""
    job = jobs[0]
    one_of("engine", job.engine, (*ENGINES, "auto"))
    if job.precision is not None:
        one_of("precision", job.precision, PRECISIONS)
    one_of("tape", job.tape, TAPES)
    choice = _cheapest(jobs, trials, workers) if job.engine == "auto" else Choice(job.engine, "as told")
    if choice.engine == "numpy":
        if job.precision == "float32":
            raise InputError("precision", job.precision, "float64 on the numpy engine")
    elif any(each.problem.partial for each in jobs):
        raise InputError("engine", f"{choice.engine} cannot show true contexts late or in part", "numpy")
    elif find_spec("jax") is None:
        raise ModuleNotFoundError("No module named 'jax'", name="jax")
    if choice.engine == "chip":
        for each in jobs:
            import_module("unfog.simulate.engines.pallas").refuse_what_it_cannot(each)
    return choice


def _cheapest(jobs: Sequence[Job], trials: int, workers: int) -> Choice:
    if any(job.problem.partial for job in jobs):
        return Choice("numpy", "only numpy can show true contexts late or in part")
    if jobs[0].precision == "float32":
        return Choice("jax", "numpy has no float32")
    numpy = sum(COSTS["numpy"].seconds(job, trials, workers) for job in jobs)
    if find_spec("jax") is None:
        return Choice("numpy", f"about {numpy:.1f} s; jax is not installed")
    from unfog.simulate.engines import jax as jax_engine

    where = f"jax on {jax_engine.platform()}"
    cost = COSTS.get(where, COSTS["jax on cpu"])
    jax = sum(cost.seconds(job, trials) for job in jobs)
    engine = "numpy" if numpy <= jax else "jax"
    return Choice(engine, f"numpy would take about {numpy:.1f} s, {where} about {jax:.1f} s")
