"""Memory is estimated before work starts, and a run that cannot fit is refused by the fields to blame.

    run = this process + what is stored + workers x the peak of a batch
    stored = curves, twice while they are put together + moments: what is pooled, and of pieces under way

Where the peak of a batch goes, the engine says term by term (`Engine.terms`); how much there is to have, the
machine says, or UNFOG_MEMORY (_memory.py). What does not fit is, in this order: the curves of all trials; the
workers, where one process would fit; the trials side by side, where one would; and else what takes most of
one trial.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from unfog import _memory
from unfog.simulation import engines
from unfog.simulation.engines import Engine, Term
from unfog.simulation.engines.numpy import PROCESS
from unfog.simulation.executors import IN_FLIGHT, Executor
from unfog.simulation.job import Job, in_a_task
from unfog.validation import InputError
from unfog.worlds.problem import Problem

COPIES = 2  # of the curves: batch by batch, and put together or written


class Memory(NamedTuple):
    """The estimate for a run."""

    terms: tuple[Term, ...]  # of a process, where the most is taken
    trials: int  # that it plays side by side
    workers: int  # such processes; 1: the work is done in this one
    stored: int  # bytes of all curves, with their copies, and of moments

    @property
    def process(self) -> int:
        """Bytes of each process that plays."""
        return engines.peak(self.terms, self.trials)

    @property
    def total(self) -> int:
        """Bytes of all processes together."""
        return self.process * self.workers + self.stored + (int(PROCESS) if self.workers > 1 else 0)


def estimate(
    jobs: Sequence[Job], engine: Engine, sizes: Sequence[int], ends: Sequence[int], executor: Executor
) -> Memory:
    """What a run of these jobs takes, in batches of these sizes, that may end with so many trials."""
    return max(_estimates(jobs, engine, sizes, ends, executor), key=lambda one: one.total)


def refuse(
    jobs: Sequence[Job], engine: Engine, sizes: Sequence[int], ends: Sequence[int], executor: Executor
) -> None:
    """Complain of a run that does not fit, in the machine or on the device that the engine computes on."""
    for job, found in zip(jobs, _estimates(jobs, engine, sizes, ends, executor), strict=True):
        _refuse_one(job, engine, found, ends[-1])


def _estimates(
    jobs: Sequence[Job], engine: Engine, sizes: Sequence[int], ends: Sequence[int], executor: Executor
) -> list[Memory]:
    """While each of the jobs is played."""
    trials = ends[-1]
    stored = COPIES * trials * sum(map(engines.curves, jobs)) + (len(ends) + 1) * sum(map(_moments, jobs))
    stored += _under_way(jobs, engine, sizes, trials, executor.workers)
    pieces = sum(-(-trials // size) for size in sizes)
    workers = min(executor.here, pieces)  # they share the pieces of all jobs
    return [
        Memory(tuple(engine.terms(job)), size, workers, stored) for job, size in zip(jobs, sizes, strict=True)
    ]


def _moments(job: Job) -> int:
    """Bytes of the moments of a piece, or of any number of pieces once they are pooled."""
    return 2 * engines.NUMBER * len(job.agents) * len(job.losses) * len(job.curve)


def _under_way(jobs: Sequence[Job], engine: Engine, sizes: Sequence[int], trials: int, workers: int) -> int:
    """Bytes of moments that wait: in a task until all of it is played, and here for a piece before them."""
    seconds = [engine.seconds(job, size) for job, size in zip(jobs, sizes, strict=True)]
    total = sum(length * -(-trials // size) for length, size in zip(seconds, sizes, strict=True))
    task = max(_moments(job) * in_a_task(s, total, workers) for job, s in zip(jobs, seconds, strict=True))
    return (1 + IN_FLIGHT) * workers * task


def refuse_truth(problem: Problem) -> None:
    """Complain of a world of which not even one trial can be made."""
    most, terms = _memory.limit(), engines.truth(problem)
    if most is not None and engines.peak(terms, 1) > most:
        raise _too_much(problem, {}, terms, engines.peak(terms, 1), _memory.free(most))


def _refuse_one(job: Job, engine: Engine, found: Memory, trials: int) -> None:
    device, most = engine.device(), _memory.limit()
    if device is not None:
        apart = [term for term in found.terms if term.fields]
        _refuse_batch(job, found._replace(terms=tuple(apart), stored=0, workers=1), device, "on the device")
        found = found._replace(terms=tuple(term for term in found.terms if not term.fields))
    if most is None or found.total <= most:
        return
    free, rest, one = _memory.free(most), most - found.stored, engines.peak(found.terms, 1)
    bare = [term for term in found.terms if not term.fields]
    if engines.peak(bare, 1) > most:
        names = " and ".join(term.what for term in bare)
        raise InputError(
            "memory", free, f"more than {_memory.said(engines.peak(bare, 1))}: {names} take that"
        )
    if rest < one and found.stored > most // 2:
        what = f"{trials} with {len(job.grid)} stored rounds take {_memory.said(found.stored)}"
        what += f", the process with one trial {_memory.said(one)}: {_memory.said(found.stored + one)} in all"
        raise InputError("trials, points", what, f"fewer of either: {free}")
    if found.process <= rest:
        fit = max(1, (rest - int(PROCESS)) // found.process)
        what = f"{found.workers} processes of {_memory.said(found.process)} each"
        raise InputError("workers", what, f"at most {fit}: {free}")
    _refuse_batch(job, found, rest, free)


def _refuse_batch(job: Job, found: Memory, most: int, free: str) -> None:
    """Complain of a batch that does not fit, or of a trial."""
    if found.process <= most:
        return
    one = engines.peak(found.terms, 1)
    if one > most:
        said = {"rounds": job.rounds, "points": len(job.grid), "agents": len(job.agents), "draws": job.draws}
        raise _too_much(job.problem, said, found.terms, one, free)
    fit = 1 + (most - one) // engines.for_each(found.terms)
    what = f"{found.trials} trials side by side take {_memory.said(found.process)}"
    raise InputError("chunk", what, f"at most {fit}: {free}")


def _too_much(
    problem: Problem, said: dict[str, Any], terms: Sequence[Term], total: int, free: str
) -> InputError:
    """The complaint about the term that takes most of one trial, and what its fields are."""
    worst = max(engines.counted(terms, 1), key=lambda term: term.bytes(1) if term.fields else -1)
    values = {field: value for field in worst.fields if (value := _value(problem, said, field)) is not None}
    what = f"{worst.what} take {_memory.said(worst.bytes(1))} of the {_memory.said(total)} that a trial needs"
    shown = ", ".join(map(str, values.values()))
    return InputError(", ".join(values) or "problem", f"{shown}: {what}" if shown else what, f"less: {free}")


def _value(problem: Problem, said: dict[str, Any], field: str) -> Any:
    """What a field says; None where the world has no such field, or it adds nothing."""
    table, _, name = field.rpartition(".")
    if not table:
        return said.get(name)
    if name == "actions":
        return problem.arms() if name in dir(problem) else None
    found = vars(problem).get(name)
    return None if name == "units" and found == 1 else found
