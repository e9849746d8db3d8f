"""`unfog.run`: from a plan to a Dataset of curves, kept in a run folder if one is asked for."""

import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import xarray as xr

from unfog.agents.agent import Agent
from unfog.agents.catalogue import with_own
from unfog.lab import progress as reporting
from unfog.lab import search, storage
from unfog.lab.prepare import ExperimentPlan, prepare
from unfog.lab.progress import Count, Progress, quiet
from unfog.lab.results import dataset, opened
from unfog.lab.run_folder import read, run_folder
from unfog.lab.search import OnMessage, Search
from unfog.lab.spec import Spec, check_run, checked, describe, load, with_run, with_target_se
from unfog.lab.stopping import Checkpoint
from unfog.simulation import MOST_SEED, Gathering
from unfog.simulation.executors import MOST_WORKERS, make_executor
from unfog.simulation.job import Job, Piece
from unfog.validation import InputError, check_contract, check_keywords, count
from unfog.version import __version__
from unfog.worlds.problem import Problem

__all__ = ["Progress", "keep", "open_run", "play", "quiet", "run"]

PYTHON = "python"  # the kind of a problem that no spec can describe


def silent(line: str) -> None:
    """Ignore a message."""


@check_keywords
def run(
    experiment: str | Path | Spec | Problem,
    *,
    rounds: int | None = None,
    trials: int | None = None,
    seed: int | None = None,
    agents: Sequence[str | Agent] | None = None,
    engine: str | None = None,
    precision: str | None = None,
    workers: int | None = None,
    executor: str | None = None,
    out: str | Path | None = None,
    progress: Progress | bool = False,
    target_se: float | None = None,
    reference: str | None = None,
    max_trials: int | None = None,
    on_message: OnMessage = silent,
) -> xr.Dataset:
    """Cumulative losses with dims (agent, trial, round), and in front of them those of a sweep.

    `experiment` is a name of the catalog, a TOML file, a spec or a problem. With `out` the result is also
    kept in that folder, which must not exist yet; an interrupted run of the same spec is resumed there.
    `executor` is where it is played: None for this process or `workers` others, "serial", "processes", "dask"
    or "ray" for workers on this machine, "dask://host:port" or "ray://host:port" for those of a cluster.
    Agents are names of the catalogue, names of your own as `module:name` or, without `out`, rows.
    With `target_se` there are as many trials as make the standard error of every ratio to the regret of
    `reference` (the oracle, or the first agent, unless told) at most so large, and no more than `max_trials`
    (100,000 unless told) however large it is; `on_message` gets lines on what that costs.

    `progress=True` shows on stderr how far it is: a bar on a terminal, a line now and then elsewhere. Or give
    a function, which is told how many agent-rounds are done, of how many: agents x trials x rounds, of all
    settings. It is called from time to time, first with what an interrupted run left, last when all is done.

        def show(done: int, total: int) -> None:
            print(f"{done / total:.0%}")

        unfog.run("fig1-gaussian", trials=1000, progress=show)

    >>> import unfog
    >>> problem = unfog.GaussianProblem(dim=2, actions=5)
    >>> result = unfog.run(problem, agents=["unfog", "naive"], rounds=50, trials=20, seed=0)
    >>> dict(result.sizes)
    {'agent': 2, 'trial': 20, 'round': 50}
    >>> result.regret.sel(agent="unfog").isel(round=-1).mean().round(1).item()
    4.4
    """
    reporting.checked(progress)
    here = 1 if workers is None else count("workers", workers, most=MOST_WORKERS)
    names, own_agents = (None, []) if agents is None else with_own(agents)
    changes = {
        "rounds": None if rounds is None else count("rounds", rounds),
        "trials": None if trials is None else count("trials", trials),
        "seed": None if seed is None else count("seed", seed, 0, MOST_SEED),
        "agents": names,
        "engine": engine,
        "precision": precision,
    }
    spec, problem = _read_spec(experiment, changes)
    spec = with_target_se(
        spec, target_se=target_se, reference=reference, max_trials=max_trials, trials=trials
    )
    if out is not None and spec.problem.get("kind") == PYTHON:
        raise InputError("out", str(out), "nothing, for a problem that a TOML file cannot describe")
    if out is not None and own_agents:
        name = own_agents[0].name
        allowed = f"nothing, for rows made in Python: put {name!r} in a module and name it module:name"
        raise InputError("out", str(out), allowed)
    target = None if out is None else run_folder(out)
    runner = make_executor(executor, workers)
    plan = prepare(spec, workers=here, executor=runner, own=own_agents, problem=problem)
    with reporting.choose_progress(progress, plan) as display:
        if target is None:
            return play(plan, display, on_message=on_message)
        return open_run(keep(plan, target, progress=display, on_message=on_message))


def _read_spec(
    experiment: str | Path | Spec | Problem, changes: Mapping[str, Any]
) -> tuple[Spec, Problem | None]:
    """The spec of an experiment, and its problem if the caller gave one."""
    if isinstance(experiment, str | Path):
        return load(experiment, changes), None
    if isinstance(experiment, Spec):
        return checked(with_run(experiment, changes)), None
    check_contract(
        "experiment", experiment, Problem, "a name of the catalog, a .toml file, a spec or a problem"
    )
    described = Spec(problem=describe(experiment) or {"kind": PYTHON, "problem": repr(experiment)})
    return check_run(with_run(described, changes)), experiment


def keep(
    plan: ExperimentPlan,
    target: Path | None = None,
    *,
    runs: Path = Path("runs"),
    progress: Progress = quiet,
    on_message: OnMessage = silent,
) -> Path:
    """Run into a folder: the one asked for, or the next free one under `runs`."""
    with storage.claimed(plan, target, runs) as partial:
        started, resumed = time.perf_counter(), partial.begun
        with partial.refusable():
            data = play(plan, progress, partial, on_message)
        search_attrs = {name: int(data.attrs[name]) for name in ("trials_found",) if name in data.attrs}
        # The time that an interrupted run took before is unknown.
        seconds = None if resumed else time.perf_counter() - started
        partial.finish(bytes(data.to_netcdf(engine="scipy")), seconds, search_attrs)
        return partial.target


def play(
    plan: ExperimentPlan,
    progress: Progress = quiet,
    partial: storage.Partial | None = None,
    on_message: OnMessage = silent,
) -> xr.Dataset:
    """Run a plan, except for the pieces that an interrupted run left."""
    gathered, stop = _gather(plan, Count(plan, progress), partial, on_message)
    data = dataset(gathered.together(None if stop is None else stop.trials), plan.spec.sweep)
    data.attrs = {
        "experiment": plan.spec.name,
        "spec": plan.spec.model_dump_json(),
        "unfog": __version__,
        "engine": plan.engine,
        **({} if stop is None else search.attributes(stop, plan.spec.run)),
    }
    return data.assign_attrs(note=plan.note) if plan.note else data


def _gather(
    plan: ExperimentPlan, count: Count, partial: storage.Partial | None, on_message: OnMessage
) -> tuple[Gathering, Checkpoint | None]:
    """All pieces, played now or left by an interrupted run, and the checkpoint that ended it, if any."""
    work, gathered = plan.work, Gathering(plan.work)
    finished = _restore_pieces(partial, work.jobs, gathered)
    search = None if plan.spec.run.target_se is None else Search(plan, gathered, finished, on_message)

    def tick(rounds: int) -> None:
        count.tick(rounds, work.total if search is None else search.expects(rounds))

    count.begins(sum(map(work.work_of, finished)))
    count.finished(finished)
    tick(0)
    if search is not None and search.ended():
        return gathered, search.end
    stages = [[p for p in work.pieces if p not in finished]] if search is None else search.missing()
    with closing(work.in_stages(stages, tick)) as results:
        for task, parts in results:
            if partial is not None:
                partial.save(task, parts)
            for piece, part in zip(task, parts, strict=True):
                gathered.add(piece, part)
            finished.update(task)
            count.finished(task)
            if search is not None and search.ended():
                tick(0)
                return gathered, search.end
    return gathered, None


def _restore_pieces(partial: storage.Partial | None, jobs: Sequence[Job], gathered: Gathering) -> set[Piece]:
    """The pieces that an interrupted run left; each is added to `gathered`."""
    finished = set[Piece]()
    for piece, part in () if partial is None else partial.blocks(jobs):
        gathered.add(piece, part)
        finished.add(piece)
    return finished


@check_keywords
def open_run(folder: str | Path) -> xr.Dataset:
    """The Dataset of a finished run folder, every file of it checked against its hash.

    >>> import unfog
    >>> _ = unfog.run("fig1-gaussian", agents=["alg1"], rounds=20, trials=5, out="first")
    >>> unfog.open_run("first").sizes["trial"]
    5
    """
    return opened(read(Path(folder)).curves)
