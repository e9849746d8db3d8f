"""Memory is estimated before work starts; the error for a run that cannot fit names the fields to blame.

    run = this process + what is stored + workers x the peak of a batch
    stored = curves, twice while they are assembled + moments: pooled ones, and those of pieces under way

The engine lists the peak of a batch term by term (`Engine.terms`); the limit is the machine's memory, or
UNFOG_MEMORY (_memory.py). The error blames, in this order: the curves of all trials; the workers, if one
process would fit; the trials side by side, if one would fit; and otherwise what takes most of one trial.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from unfog import _memory
from unfog.simulation import engines
from unfog.simulation.engines import Engine, MemoryTerm
from unfog.simulation.engines.numpy import PROCESS
from unfog.simulation.executors import IN_FLIGHT, Executor
from unfog.simulation.job import Job, in_a_task
from unfog.validation import InputError
from unfog.worlds.problem import Problem

COPIES = 2  # of the curves: batch by batch, and assembled or written


class Memory(NamedTuple):
    """The estimate for a run."""

    terms: tuple[MemoryTerm, ...]  # of a process, during the largest job
    trials: int  # side by side in a process
    workers: int  # such processes; 1: this process alone
    stored: int  # bytes of all curves, with their copies, and of moments

    @property
    def process(self) -> int:
        """Bytes of each worker process."""
        return engines.peak(self.terms, self.trials)

    @property
    def total(self) -> int:
        """Bytes of all processes together."""
        return self.process * self.workers + self.stored + (int(PROCESS) if self.workers > 1 else 0)


def estimate(
    jobs: Sequence[Job], engine: Engine, sizes: Sequence[int], ends: Sequence[int], executor: Executor
) -> Memory:
    """The memory of a run of these jobs, in batches of these sizes, that may end after so many trials."""
    return max(_estimates(jobs, engine, sizes, ends, executor), key=lambda one: one.total)


def refuse(
    jobs: Sequence[Job], engine: Engine, sizes: Sequence[int], ends: Sequence[int], executor: Executor
) -> None:
    """Raise if a run does not fit into the machine's memory or the device's."""
    for job, memory in zip(jobs, _estimates(jobs, engine, sizes, ends, executor), strict=True):
        _check_job(job, engine, memory, ends[-1])


def _estimates(
    jobs: Sequence[Job], engine: Engine, sizes: Sequence[int], ends: Sequence[int], executor: Executor
) -> list[Memory]:
    """The estimates while each of the jobs is played."""
    trials = ends[-1]
    stored = COPIES * trials * sum(map(engines.curves, jobs))
    stored += (len(ends) + 1) * sum(map(_moment_bytes, jobs))
    stored += _waiting_bytes(jobs, engine, sizes, trials, executor.workers)
    pieces = sum(-(-trials // size) for size in sizes)
    workers = min(executor.here, pieces)  # they share the pieces of all jobs
    return [
        Memory(tuple(engine.terms(job)), size, workers, stored) for job, size in zip(jobs, sizes, strict=True)
    ]


def _moment_bytes(job: Job) -> int:
    """Bytes of the moments of a piece, or of all pieces once they are pooled."""
    return 2 * engines.NUMBER * len(job.agents) * len(job.losses) * len(job.curve)


def _waiting_bytes(
    jobs: Sequence[Job], engine: Engine, sizes: Sequence[int], trials: int, workers: int
) -> int:
    """Bytes of moments that wait until their task is finished, or until the pieces before them are."""
    seconds = [engine.seconds(job, size) for job, size in zip(jobs, sizes, strict=True)]
    total = sum(length * -(-trials // size) for length, size in zip(seconds, sizes, strict=True))
    task = max(
        _moment_bytes(job) * in_a_task(s, total, workers) for job, s in zip(jobs, seconds, strict=True)
    )
    return (1 + IN_FLIGHT) * workers * task


def refuse_truth(problem: Problem) -> None:
    """Raise if not even one trial of a world fits."""
    most, terms = _memory.limit(), engines.truth(problem)
    if most is not None and engines.peak(terms, 1) > most:
        raise _make_error(problem, {}, terms, engines.peak(terms, 1), _memory.free(most))


def _check_job(job: Job, engine: Engine, memory: Memory, trials: int) -> None:
    device, most = engine.device(), _memory.limit()
    if device is not None:
        on_device = [term for term in memory.terms if term.fields]
        _check_batch(
            job, memory._replace(terms=tuple(on_device), stored=0, workers=1), device, "on the device"
        )
        memory = memory._replace(terms=tuple(term for term in memory.terms if not term.fields))
    if most is None or memory.total <= most:
        return
    free, rest, single = _memory.free(most), most - memory.stored, engines.peak(memory.terms, 1)
    basic = [term for term in memory.terms if not term.fields]
    if engines.peak(basic, 1) > most:
        names = " and ".join(term.what for term in basic)
        raise InputError(
            "memory", free, f"more than {_memory.format_bytes(engines.peak(basic, 1))}: {names} take that"
        )
    if rest < single and memory.stored > most // 2:
        value = f"{trials} with {len(job.grid)} stored rounds take {_memory.format_bytes(memory.stored)}"
        value += f", the process with one trial {_memory.format_bytes(single)}"
        value += f": {_memory.format_bytes(memory.stored + single)} in all"
        raise InputError("trials, points", value, f"fewer of either: {free}")
    if memory.process <= rest:
        fit = max(1, (rest - int(PROCESS)) // memory.process)
        value = f"{memory.workers} processes of {_memory.format_bytes(memory.process)} each"
        raise InputError("workers", value, f"at most {fit}: {free}")
    _check_batch(job, memory, rest, free)


def _check_batch(job: Job, memory: Memory, most: int, free: str) -> None:
    """Raise if a batch does not fit; the error blames `chunk` if a single trial would."""
    if memory.process <= most:
        return
    single = engines.peak(memory.terms, 1)
    if single > most:
        settings = {
            "rounds": job.rounds,
            "points": len(job.grid),
            "agents": len(job.agents),
            "draws": job.draws,
        }
        raise _make_error(job.problem, settings, memory.terms, single, free)
    fit = 1 + (most - single) // engines.for_each(memory.terms)
    value = f"{memory.trials} trials side by side take {_memory.format_bytes(memory.process)}"
    raise InputError("chunk", value, f"at most {fit}: {free}")


def _make_error(
    problem: Problem, settings: dict[str, Any], terms: Sequence[MemoryTerm], total: int, free: str
) -> InputError:
    """An error that blames the fields of the term that takes most of one trial."""
    worst = max(engines.counted(terms, 1), key=lambda term: term.bytes(1) if term.fields else -1)
    pairs = ((field, _get_value(problem, settings, field)) for field in worst.fields)
    values = {field: value for field, value in pairs if value is not None}
    most, needed = _memory.format_bytes(worst.bytes(1)), _memory.format_bytes(total)
    what = f"{worst.what} take {most} of the {needed} that a trial needs"
    text = ", ".join(map(str, values.values()))
    return InputError(", ".join(values) or "problem", f"{text}: {what}" if text else what, f"less: {free}")


def _get_value(problem: Problem, settings: dict[str, Any], field: str) -> Any:
    """The value of a field; None if the world has no such field, or it makes no difference."""
    table, _, name = field.rpartition(".")
    if not table:
        return settings.get(name)
    if name == "actions":
        return problem.arms() if name in dir(problem) else None
    value = vars(problem).get(name)
    return None if name == "units" and value == 1 else value
