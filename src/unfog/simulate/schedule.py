"""Which rounds are stored, how trials are cut into batches, and who runs them.

None of it changes a result: a trial's numbers depend on (seed, trial) alone, so batches of any size, in any
number of processes, give the same bits.
"""

import multiprocessing
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from importlib import import_module
from typing import Any

import numpy as np

from unfog.agents.catalogue import AGENTS
from unfog.arrays import Ints
from unfog.inputs import InputError
from unfog.simulate import numpy_engine
from unfog.simulate.job import Job, Part, Tick
from unfog.simulate.numpy_engine import BLOCK

MOST_POINTS = 1000
MOST_CELLS = 32_000_000  # stored numbers in a run: 256 MB
FINE_ENOUGH = 100  # points that make a curve
BATCH_BYTES = 64_000_000
BATCH_TRIALS = (50, 250)  # fewer are slow, more bring nothing
CHIP_TRIALS = 2**17
CURVES = 6


def stored_rounds(rounds: int, trials: int, agents: int, points: int | None = None) -> Ints:
    """Every round where that is affordable, otherwise evenly spaced ones, the last always among them."""
    if points is None:
        points = min(MOST_POINTS, max(1, MOST_CELLS // (CURVES * trials * agents)))
    points = min(points, rounds)
    return np.unique(np.ceil(np.arange(1, points + 1) * (rounds / points) - 1e-9).astype(np.intp))


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
        arms = job.problem.arms()
        m, d = known.prior_mean.shape[0], known.context_mean.shape[0]
        curves = len(job.agents) * CURVES * len(job.grid)
        each = 8 * (BLOCK * (4 * arms + 6 * d + 2 * m) + 4 * arms * m + 4 * m * m + curves)
        least, most = BATCH_TRIALS
        chunk = max(1, min(BATCH_BYTES // each, most, max(least, -(-trials // workers))))
    return [range(first, min(first + chunk, trials)) for first in range(0, trials, chunk)]


def _compiled_batch(job: Job, trials: int) -> int:
    """Equal batches of as many trials as a device holds with ease, so that one program serves all."""
    from unfog.simulate import jax_engine

    if job.engine == "chip":  # a kernel takes minutes to compile: one size serves all
        return CHIP_TRIALS
    most, room = (2**17, 2**33) if jax_engine.platform() == "gpu" else (2**12, 2**29)
    each = 8 * CURVES * len(job.grid) + 8 * job.rounds * 64 * (job.tape == "numpy")
    return -(-trials // -(-trials // max(1, min(most, room // each))))


def results(job: Job, pending: Sequence[range], workers: int, tick: Tick) -> Iterator[tuple[range, Part]]:
    """Each batch with its curves, as they finish. A compiled engine uses its device whole: one process."""
    if workers == 1 or len(pending) <= 1 or job.engine != "numpy":
        batch = max(map(len, pending), default=0)
        for trials in pending:
            yield trials, _run(job, trials, batch, tick)
    else:
        yield from _in_processes(job, pending, min(workers, len(pending)), tick)


def _run(job: Job, trials: range, batch: int, tick: Tick) -> Part:
    if job.engine == "numpy":
        return numpy_engine.run_trials(job, trials, tick)
    engine = import_module(f"unfog.simulate.{job.engine}_engine")
    found: Part = engine.run_trials(job, trials, batch, tick)
    return found


def _in_processes(
    job: Job, pending: Sequence[range], workers: int, tick: Tick
) -> Iterator[tuple[range, Part]]:
    names = [agent.name for agent in job.agents]
    if any(AGENTS.get(agent.name) is not agent for agent in job.agents):
        raise InputError("workers", workers, "1 for agents that are not in the catalogue")
    context = multiprocessing.get_context("spawn")
    done, seen = context.Value("q", 0), 0
    with ProcessPoolExecutor(workers, context, _enlist, (done,)) as pool:
        bare = job._replace(agents=())
        waiting: dict[Future[Part], range] = {
            pool.submit(_serve, bare, names, trials): trials for trials in pending
        }
        try:
            while waiting:
                finished, _ = wait(waiting, timeout=0.1, return_when=FIRST_COMPLETED)
                total = done.value
                tick(total - seen)
                seen = total
                for future in finished:
                    yield waiting.pop(future), future.result()
        finally:
            for future in waiting:
                future.cancel()


_done: Any = None  # set in worker processes only: the rounds done, shared with the parent


def _enlist(done: Any) -> None:
    global _done
    _done = done


def _serve(bare: Job, names: Sequence[str], trials: range) -> Part:
    def tick(rounds: int) -> None:
        with _done.get_lock():
            _done.value += rounds

    return numpy_engine.run_trials(bare._replace(agents=[AGENTS[name] for name in names]), trials, tick)


def cores() -> int:
    """The processor cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
