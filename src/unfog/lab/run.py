"""Run an experiment: from a plan to a Dataset of curves, kept in a run folder if one is asked for."""

import io
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import xarray as xr

from unfog.agents.assemble import Agent
from unfog.agents.catalogue import with_own
from unfog.inputs import InputError, count, offering
from unfog.lab import store
from unfog.lab.prepare import Plan, prepare
from unfog.lab.spec import Spec, check_run, checked, describe, load, with_run
from unfog.simulate import MOST_SEED, Curves, Gathering
from unfog.simulate.execute.named import executor
from unfog.simulate.job import Tick
from unfog.simulate.tasks import Piece
from unfog.version import __version__
from unfog.worlds.problem import Problem

PYTHON = "python"  # the kind of a problem that no spec can describe


class Progress(Protocol):
    """Told how much work there is, then of every piece done."""

    def __call__(self, done: int, total: int) -> None:
        """Agent-rounds done so far, of so many."""
        ...


def quiet(done: int, total: int) -> None:
    """Say nothing."""


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
    on: str | None = None,
    out: str | Path | None = None,
    progress: Progress = quiet,
) -> xr.Dataset:
    """Cumulative losses with dims (agent, trial, round).

    `experiment` is a name of the catalog, a TOML file, a spec or a problem. With `out` the result is also
    kept in that folder, which must not exist yet; an interrupted run of the same spec is resumed there.
    `on` is where it is played: None for this process or `workers` others, "serial", "processes", "dask" or
    "ray" for workers on this machine, "dask://host:port" or "ray://host:port" for those of a cluster.
    Agents are names of the catalogue, names of your own as `module:name` or, without `out`, rows.
    """
    here = 1 if workers is None else count("workers", workers)
    names, own = (None, []) if agents is None else with_own(agents)
    changes = {
        "rounds": None if rounds is None else count("rounds", rounds),
        "trials": None if trials is None else count("trials", trials),
        "seed": None if seed is None else count("seed", seed, 0, MOST_SEED),
        "agents": names,
        "engine": engine,
        "precision": precision,
    }
    spec, problem = _spec_of(experiment, changes)
    if out is not None and spec.problem.get("kind") == PYTHON:
        raise InputError("out", str(out), "nothing, for a problem that a TOML file cannot describe")
    if out is not None and own:
        allowed = f"nothing, for rows made in Python: put {own[0].name!r} in a module and name it module:name"
        raise InputError("out", str(out), allowed)
    played = executor(on, workers)
    plan = prepare(spec, workers=here, executor=played, own=own, problem=problem)
    return play(plan, progress) if out is None else open_run(keep(plan, Path(out), progress=progress))


def _spec_of(
    experiment: str | Path | Spec | Problem, changes: Mapping[str, Any]
) -> tuple[Spec, Problem | None]:
    """The spec of what is to be run, and its problem where that is there already."""
    if isinstance(experiment, str | Path):
        return load(experiment, changes), None
    if isinstance(experiment, Spec):
        return checked(with_run(experiment, changes)), None
    offering("experiment", experiment, Problem, "a name of the catalog, a .toml file, a spec or a problem")
    told = Spec(problem=describe(experiment) or {"kind": PYTHON, "problem": repr(experiment)})
    return check_run(with_run(told, changes)), experiment


def keep(
    plan: Plan, target: Path | None = None, *, runs: Path = Path("runs"), progress: Progress = quiet
) -> Path:
    """Run into a folder: the one asked for, or the next free one under `runs`."""
    with store.claimed(plan, target, runs) as partial:
        started = time.perf_counter()
        data = play(plan, progress, partial)
        partial.finish(bytes(data.to_netcdf(engine="scipy")), time.perf_counter() - started)
        return partial.target


def play(plan: Plan, progress: Progress = quiet, partial: store.Partial | None = None) -> xr.Dataset:
    """Run what is planned, but for what an interrupted run left."""
    done, total = 0, plan.work.total

    def tick(rounds: int) -> None:
        nonlocal done
        done += rounds
        progress(done, total)

    gathered = _gathered(plan, tick, partial)
    curves = [gathered.curves(index) for index in range(len(plan.labels))]
    parts = [_dataset(one, label) for one, label in zip(curves, plan.labels, strict=True)]
    data = xr.concat(parts, "agent") if len(parts) > 1 else parts[0]
    data.attrs = {
        "experiment": plan.spec.name,
        "spec": plan.spec.model_dump_json(),
        "unfog": __version__,
        "engine": plan.engine,
    }
    return data.assign_attrs(note=plan.note) if plan.note else data


def _gathered(plan: Plan, tick: Tick, partial: store.Partial | None) -> Gathering:
    """All pieces, played now or found where an interrupted run left them."""
    work, found = plan.work, set[Piece]()
    gathered = Gathering(work)
    for piece, part in () if partial is None else partial.blocks(work.jobs):
        gathered.add(piece, part)
        found.add(piece)
        tick(work.work_of(piece))
    for task, parts in work.results([piece for piece in work.pieces if piece not in found], tick):
        if partial is not None:
            partial.save(task, parts)
        for piece, part in zip(task, parts, strict=True):
            gathered.add(piece, part)
    return gathered


def _dataset(curves: Curves, suffix: str) -> xr.Dataset:
    dims = ("agent", "trial", "round")
    first = next(iter(curves.values.values()))
    coords = {
        "agent": [name + suffix for name in curves.agents],
        "trial": range(first.shape[1]),
        "round": curves.rounds,
    }
    data = xr.Dataset({name: (dims, values) for name, values in curves.values.items()}, coords)
    for kind, found in (("mean", curves.mean), ("se", curves.se)):
        data = data.assign({f"{name}_{kind}": (("agent", "curve"), values) for name, values in found.items()})
    return data.assign_coords(curve=curves.curve) if len(curves.curve) else data


def open_run(folder: str | Path) -> xr.Dataset:
    """The Dataset of a finished run folder, checked against its hash."""
    _, curves = store.read(Path(folder))
    data = xr.load_dataset(io.BytesIO(curves), engine="scipy")
    return data.assign_coords(agent=data["agent"].astype(str))
