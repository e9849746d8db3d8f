"""Which engine runs a job: as told, or the one that is estimated to finish first.

The estimate is linear: seconds = start + rounds (call + trials (each + root m^2 + arm K m)) for every agent.
Its coefficients were measured with `benchmarks/compare.py` and `benchmarks/gpu.py` (docs/benchmarks.md says
on which machines); they need to be right only to the factor that separates the engines.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import NamedTuple

from unfog.inputs import InputError, one_of
from unfog.simulate.job import ENGINES, PRECISIONS, TAPES, Job


class Cost(NamedTuple):
    """Seconds: to start (compile), for a round of a batch, and for a trial of a round."""

    start: float
    call: float
    each: float
    root: float  # times m^2
    arm: float  # times K m

    def seconds(self, job: Job, trials: int, processes: int = 1) -> float:
        """The estimate for a job."""
        known = job.problem.knowledge()
        m = known.prior_mean.shape[0]
        arms = job.problem.arms()
        trial = self.each + self.root * m * m + self.arm * arms * m
        batches = max(1, trials / 250)
        return len(job.agents) * (
            self.start + job.rounds * (self.call * batches + trials * trial) / processes
        )


COSTS = {
    "numpy": Cost(start=0.0, call=8e-5, each=1.1e-6, root=1.6e-9, arm=0.8e-9),
    "jax on cpu": Cost(start=3.0, call=2e-5, each=0.5e-6, root=2.4e-9, arm=0.9e-9),
    "jax on gpu": Cost(start=3.0, call=6e-5, each=1e-10, root=8e-12, arm=2e-12),
}


class Choice(NamedTuple):
    """An engine, and why."""

    engine: str
    reason: str


def resolve(job: Job, trials: int, workers: int) -> Choice:
    """The engine that will run the job; refuses what it cannot do."""
    one_of("engine", job.engine, (*ENGINES, "auto"))
    if job.precision is not None:
        one_of("precision", job.precision, PRECISIONS)
    one_of("tape", job.tape, TAPES)
    choice = _cheapest(job, trials, workers) if job.engine == "auto" else Choice(job.engine, "as told")
    if choice.engine == "numpy":
        if job.precision == "float32" and job.engine == "numpy":
            raise InputError("precision", job.precision, "float64 on the numpy engine")
    elif find_spec("jax") is None:
        raise ModuleNotFoundError("No module named 'jax'", name="jax")
    if choice.engine == "chip":
        import_module("unfog.simulate.chip_engine").refuse_what_it_cannot(job)
    return choice


def _cheapest(job: Job, trials: int, workers: int) -> Choice:
    numpy = COSTS["numpy"].seconds(job, trials, workers)
    if find_spec("jax") is None:
        return Choice("numpy", f"about {numpy:.1f} s; jax is not installed")
    from unfog.simulate import jax_engine

    where = f"jax on {jax_engine.platform()}"
    jax = COSTS.get(where, COSTS["jax on cpu"]).seconds(job, trials)
    engine = "numpy" if numpy <= jax else "jax"
    return Choice(engine, f"numpy would take about {numpy:.1f} s, {where} about {jax:.1f} s")
