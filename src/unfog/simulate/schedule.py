"""Which rounds are stored, how trials are cut into batches, and who runs them.

On the NumPy engine none of it changes a result: a trial's numbers depend on (seed, trial) alone, so batches
of any size, in any number of processes, give the same bits. Compiled engines round differently for other
batch sizes; a job has one.
"""

from collections.abc import Iterator, Sequence
from importlib import import_module
from math import prod

import numpy as np

from unfog.agents.assemble import Agent
from unfog.inputs import InputError
from unfog.maths.arrays import Ints
from unfog.simulate.engines import numpy as numpy_engine
from unfog.simulate.engines.numpy import BLOCK
from unfog.simulate.execute.processes import run_in_processes
from unfog.simulate.job import Job, Part, Tick

MOST_POINTS = 1000
MOST_CELLS = 32_000_000  # stored numbers in a run: 256 MB
MOST_STORED = 2**28  # 2 GB, where points are asked for
FINE_ENOUGH = 100  # points that make a curve
BATCH_BYTES = 64_000_000
BATCH_TRIALS = (50, 250)  # fewer are slow, more bring nothing
BATCH_TRIALS_HISTORY = (5, 50)  # likewise where every round is work enough
CHIP_TRIALS = 2**17
CURVES = 6


def stored_rounds(rounds: int, trials: int, agents: int, points: int | None = None) -> Ints:
    """Every round where that is affordable, otherwise evenly spaced ones, the last always among them."""
    if points is None:
        points = min(MOST_POINTS, max(1, MOST_CELLS // (CURVES * trials * agents)))
    points = min(points, rounds)
    return np.unique(np.ceil(np.arange(1, points + 1) * (rounds / points) - 1e-9).astype(np.intp))


def refuse_too_much(grid: Ints, trials: int, agents: int) -> None:
    """No run stores more than two gigabytes, not even one that is told how many points to keep."""
    each = CURVES * len(grid) * agents
    if each * trials > MOST_STORED:
        where = f"{trials} with {len(grid)} stored rounds of {agents} agents"
        raise InputError("trials", where, f"at most {MOST_STORED // each}, or fewer points")


def curve_rounds(rounds: int, grid: Ints) -> Ints:
    """The rounds of the moments over trials: where single trials are stored too coarsely to draw a curve."""
    fine = len(grid) >= min(rounds, FINE_ENOUGH)
    return grid[:0] if fine else stored_rounds(rounds, 1, 1, MOST_POINTS)


def batches(job: Job, trials: int, workers: int = 1, chunk: int | None = None) -> list[range]:
    """The trials cut into batches that fit in memory and keep all workers busy."""
    if chunk is None and job.engine != "numpy":
        chunk = _compiled_batch(job, trials)
    if chunk is None:
        known = job.problem.knowledge()
        arms, cells = job.problem.arms(), job.problem.cells()
        m, d = known.prior_mean.shape[0], known.context_mean.shape[0]
        curves = len(job.agents) * CURVES * len(job.grid)
        each = 8 * (BLOCK * (4 * arms + 6 * d + 2 * m + cells) + 4 * arms * m + 4 * m * m + curves)
        drawn = BLOCK * max(agent.chooser.normals(known) for agent in job.agents)
        each += 8 * (max(_history(agent, job) for agent in job.agents) + _walk(job) + drawn)
        keeps_history = any(agent.chain is not None for agent in job.agents)
        least, most = BATCH_TRIALS_HISTORY if keeps_history else BATCH_TRIALS
        chunk = max(1, min(BATCH_BYTES // each, most, max(least, -(-trials // workers))))
    return [range(first, min(first + chunk, trials)) for first in range(0, trials, chunk)]


def _history(agent: Agent, job: Job) -> int:
    """Numbers that an agent keeps for a trial, and needs for a step, where its learner keeps past rounds."""
    return 0 if agent.chain is None else agent.chain.room(job.problem.knowledge(), job.rounds)


def _walk(job: Job) -> int:
    """Numbers that a trial's truth takes up where the bias drifts: its steps, their path, and a copy."""
    walk = job.problem.truth_draws().get("walk")
    return 0 if walk is None else 3 * prod(walk.shape)


def _compiled_batch(job: Job, trials: int) -> int:
    """Equal batches of as many trials as a device holds with ease, so that one program serves all."""
    from unfog.simulate.engines import jax as jax_engine

    if job.engine == "chip":  # a kernel takes minutes to compile: one size serves all
        return CHIP_TRIALS
    most, room = (2**17, 2**33) if jax_engine.platform() == "gpu" else (2**12, 2**29)
    m, arms = job.problem.knowledge().prior_mean.shape[0], job.problem.arms()
    drawn = max(agent.chooser.normals(job.problem.knowledge()) for agent in job.agents)
    tape = job.rounds * (job.problem.round_normals() + drawn) * (job.tape == "numpy")
    past = max(_history(agent, job) * (job.rounds if tape else 1) for agent in job.agents) + _walk(job)
    each = 8 * (CURVES * len(job.grid) + 4 * m * m + 4 * arms * m + job.problem.cells() + tape + past)
    return -(-trials // -(-trials // max(1, min(most, room // each))))


def results(job: Job, pending: Sequence[range], workers: int, tick: Tick) -> Iterator[tuple[range, Part]]:
    """Each batch with its curves, as they finish. A compiled engine uses its device whole: one process."""
    if workers > 1 and len(pending) > 1 and job.engine == "numpy":
        found = run_in_processes(job, pending, min(workers, len(pending)), tick)
    else:
        found = ((trials, _run(job, trials, tick)) for trials in pending)
    for trials, part in found:
        _refuse_overflow(part)
        yield trials, part


def _run(job: Job, trials: range, tick: Tick) -> Part:
    if job.engine == "numpy":
        return numpy_engine.run_trials(job, trials, tick)
    engine = import_module("unfog.simulate.engines." + {"chip": "pallas"}.get(job.engine, job.engine))
    found: Part = engine.run_trials(job, trials, tick)
    return found


def _refuse_overflow(part: Part) -> None:
    """A loss that is no number is a result of nothing: the problem's numbers are too large, or phi's are."""
    for name, values in part.items():
        if not np.all(np.isfinite(values)):
            raise InputError(
                "problem", f"its {name} is not finite", "numbers and features that do not overflow"
            )
