"""Which engine runs a job: as told, or the one that is estimated to finish first.

The estimate is linear: an agent takes start + rounds (call batches + trials (each + root m^2 + arm K m))
seconds. Its coefficients were fitted by hand to benchmarks/results, and a test holds them to a factor of
three of every measurement there: they need to be right only to the factor that separates the engines.
"""

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import NamedTuple

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

    def seconds(self, job: Job, trials: int, processes: int = 1) -> float:
        """The estimate for a job; processes beyond the number of batches have nothing to do."""
        m, arms = job.problem.knowledge().prior_mean.shape[0], job.problem.arms()
        batches = -(-trials // self.batch)
        trial = self.each + self.root * m * m + self.arm * arms * m
        work = job.rounds * (self.call * batches + trials * trial)
        return len(job.agents) * (self.start + work / min(processes, batches))


COSTS = {
    "numpy": Cost(batch=250, start=0.0, call=6e-5, each=1.5e-6, root=1.6e-9, arm=0.8e-9),
    "jax on cpu": Cost(batch=2**12, start=2.5, call=5e-6, each=0.35e-6, root=2.3e-9, arm=0.95e-9),
    "jax on gpu": Cost(batch=2**17, start=3.0, call=6e-5, each=3e-10, root=6e-12, arm=1.7e-12),
}


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
    elif find_spec("jax") is None:
        raise ModuleNotFoundError("No module named 'jax'", name="jax")
    if choice.engine == "chip":
        for each in jobs:
            import_module("unfog.simulate.chip_engine").refuse_what_it_cannot(each)
    return choice


def _cheapest(jobs: Sequence[Job], trials: int, workers: int) -> Choice:
    if jobs[0].precision == "float32":
        return Choice("jax", "numpy has no float32")
    numpy = sum(COSTS["numpy"].seconds(job, trials, workers) for job in jobs)
    if find_spec("jax") is None:
        return Choice("numpy", f"about {numpy:.1f} s; jax is not installed")
    from unfog.simulate import jax_engine

    where = f"jax on {jax_engine.platform()}"
    cost = COSTS.get(where, COSTS["jax on cpu"])
    jax = sum(cost.seconds(job, trials) for job in jobs)
    engine = "numpy" if numpy <= jax else "jax"
    return Choice(engine, f"numpy would take about {numpy:.1f} s, {where} about {jax:.1f} s")
