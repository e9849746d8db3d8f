"""Run an experiment: from a spec to a Dataset of curves, kept in a run folder if one is asked for."""

import io
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import xarray as xr

from unfog.agents.assemble import Agent
from unfog.agents.catalogue import Catalogue, with_own
from unfog.inputs import InputError, count
from unfog.lab import store
from unfog.lab.spec import Spec, describe, load, parse
from unfog.simulate import MOST_SEED, Curves, choice, gather, plan
from unfog.simulate.job import Job
from unfog.simulate.schedule import results
from unfog.version import __version__
from unfog.worlds.problem import Problem


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
    workers: int = 1,
    out: str | Path | None = None,
    progress: Progress = quiet,
) -> xr.Dataset:
    """Cumulative losses with dims (agent, trial, round).

    `experiment` is a name of the catalog, a TOML file, a spec or a problem. With `out` the result is also
    kept in that folder, which must not exist yet; an interrupted run of the same spec is resumed there.
    Agents are names of the catalogue or, without `out`, rows of your own.
    """
    count("workers", workers)
    names, own = (None, []) if agents is None else with_own(agents)
    changes = {
        "rounds": None if rounds is None else count("rounds", rounds),
        "trials": None if trials is None else count("trials", trials),
        "seed": None if seed is None else count("seed", seed, 0, MOST_SEED),
        "agents": names,
        "engine": engine,
        "precision": precision,
    }
    if isinstance(experiment, str | Path):
        spec = load(experiment, changes, own)
    elif isinstance(experiment, Spec):
        spec = with_run(experiment, changes, own)
    else:
        fields = describe(experiment)
        if fields is None:
            return _run_indescribable(experiment, changes, own, workers, out, progress)
        spec = with_run(Spec(problem=fields), changes, own)
    if out is None:
        return _simulate(spec, spec.settings(), workers, progress, None, own)
    if own:
        raise InputError("out", str(out), "nothing, for agents that are not in the catalogue")
    keep(spec, Path(out), workers=workers, progress=progress)
    return open_run(out)


def _run_indescribable(
    problem: Problem,
    changes: Mapping[str, Any],
    own: Sequence[Agent],
    workers: int,
    out: str | Path | None,
    progress: Progress,
) -> xr.Dataset:
    """Run a problem that no spec can describe: it cannot be kept or resumed."""
    if out is not None:
        raise InputError("out", str(out), "nothing, for a problem that a TOML file cannot describe")
    alike = "gaussian" if problem.rewards.kind == "gaussian" else "logistic"  # to check the agents by
    spec = with_run(Spec(problem={"kind": alike}), changes, own)
    told = spec.model_copy(update={"problem": {"kind": "python", "problem": repr(problem)}})
    return _simulate(told, [("", problem)], workers, progress, None, own)


def with_run(spec: Spec, changes: Mapping[str, Any], own: Sequence[Agent] = ()) -> Spec:
    """The spec with fields of [run] changed; None leaves a field as it is."""
    changed = {field: value for field, value in changes.items() if value is not None}
    data = spec.model_dump(exclude={"name"})
    return parse({**data, "run": {**data["run"], **changed}}, spec.name, own)


def keep(
    spec: Spec,
    target: Path | None = None,
    *,
    runs: Path = Path("runs"),
    workers: int = 1,
    progress: Progress = quiet,
) -> Path:
    """Run into a folder: the one asked for, or the next free one under `runs`."""
    count("workers", workers)
    spec, _ = settled(spec, workers)
    with store.claimed(spec, target, runs) as partial:
        started = time.perf_counter()
        data = _simulate(spec, spec.settings(), workers, progress, partial)
        partial.finish(bytes(data.to_netcdf(engine="scipy")), time.perf_counter() - started)
        return partial.target


def settled(
    spec: Spec,
    workers: int = 1,
    own: Sequence[Agent] = (),
    settings: Sequence[tuple[str, Problem]] | None = None,
) -> tuple[Spec, str]:
    """The spec with its engine and precision chosen, and why: a stored spec must say what it was."""
    problems = [problem for _, problem in settings or spec.settings()]
    jobs = [_plan(spec, problem, workers, own)[0]._replace(engine=spec.run.engine) for problem in problems]
    engine, reason = choice.resolve_all(jobs, spec.run.trials, workers)
    precision = spec.run.precision
    if engine != "numpy" and precision is None:
        precision = import_module("unfog.simulate.engines.jax").precision(jobs[0])
    run = spec.run.model_copy(update={"engine": engine, "precision": precision})
    return spec.model_copy(update={"run": run}), f"{engine}: {reason}"


def _plan(spec: Spec, problem: Problem, workers: int, own: Sequence[Agent] = ()) -> tuple[Job, list[range]]:
    r, rows = spec.run, Catalogue(problem.rewards.kind, own)
    return plan(
        problem,
        [rows[name] for name in r.agents],
        rounds=r.rounds,
        trials=r.trials,
        seed=r.seed,
        points=r.points,
        decompose=r.decompose,
        engine=r.engine,
        precision=r.precision,
        workers=workers,
        settings=sum(map(len, spec.sweep.values())) or 1,
    )


def _simulate(
    spec: Spec,
    settings: list[tuple[str, Problem]],
    workers: int,
    progress: Progress,
    partial: store.Partial | None,
    own: Sequence[Agent] = (),
) -> xr.Dataset:
    spec, why = settled(spec, workers, own, settings)
    total = len(settings) * len(spec.run.agents) * spec.run.rounds * spec.run.trials
    done = 0

    def tick(rounds: int) -> None:
        nonlocal done
        done += rounds
        progress(done, total)

    parts = []
    for index, (suffix, problem) in enumerate(settings):
        curves = _one_setting(spec, index, problem, workers, tick, partial, own)
        parts.append(_dataset(curves, suffix))
    data = xr.concat(parts, "agent") if len(parts) > 1 else parts[0]
    data.attrs = {
        "experiment": spec.name,
        "spec": spec.model_dump_json(),
        "unfog": __version__,
        "engine": why,
    }
    notes = [problem.note for _, problem in settings if problem.note]
    return data.assign_attrs(note=notes[0]) if notes else data


def _one_setting(
    spec: Spec,
    index: int,
    problem: Problem,
    workers: int,
    tick: Callable[[int], None],
    partial: store.Partial | None,
    own: Sequence[Agent],
) -> Curves:
    job, batches = _plan(spec, problem, workers, own)
    found = {} if partial is None else _resume(job, index, partial, tick)
    pending = [piece for batch in batches for piece in _without(batch, found)]
    for trials, curves in results(job, pending, workers, tick):
        if partial is not None:
            partial.save(index, trials, curves)
        found[trials] = curves
    return gather(job, found)


def _resume(job: Job, index: int, partial: store.Partial, tick: Callable[[int], None]) -> dict[range, Any]:
    """What an interrupted run left; the batches may have been cut otherwise."""
    found: dict[range, Any] = {}
    for trials in partial.finished(index):
        curves = partial.load(index, trials)
        if curves is not None:
            found[trials] = curves
            tick(len(trials) * len(job.agents) * int(job.grid[-1]))
    return found


def _without(batch: range, found: Iterable[range]) -> list[range]:
    """What of a batch of trials is still to be done."""
    pieces, start = [], batch.start
    for have in sorted(found, key=lambda trials: trials.start):
        if have.stop > start and have.start < batch.stop:
            pieces.append(range(start, have.start))
            start = have.stop
    return [piece for piece in [*pieces, range(start, batch.stop)] if len(piece)]


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
