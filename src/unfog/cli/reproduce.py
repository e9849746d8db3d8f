"""`unfog reproduce`: the published figures, from nothing to tables and pictures."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unfog.cli import complete
from unfog.cli.run import Data, Engine, On, Precision, Rounds, Seed, Trials, Workers

if TYPE_CHECKING:
    from unfog.lab.prepare import Plan

EXAMPLE = (
    "Examples: unfog reproduce   |   unfog reproduce fig1 --trials 400   |   unfog reproduce fig-actions"
)
PANELS = {"fig1": ("fig1-gaussian", "fig1-logistic", "fig1-movielens")}
DEFAULT = ("fig1", "fig-actions")


def command(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Experiments, or fig1 for all three panels; the published figures unless told.",
            autocompletion=complete.experiments,
        ),
    ] = None,
    rounds: Rounds = None,
    trials: Trials = None,
    seed: Seed = None,
    engine: Engine = None,
    precision: Precision = None,
    workers: Workers = None,
    on: On = None,
    data: Data = None,
    runs: Annotated[Path, typer.Option(help="Where the run folders go.")] = Path("runs"),
    out: Annotated[Path, typer.Option(help="Where the figures go.")] = Path("figures"),
) -> None:
    """Run experiments, print their tables, draw their figures."""
    from unfog.cli.progress import planned
    from unfog.lab import datasets, figures
    from unfog.lab.run import open_run
    from unfog.lab.spec import load
    from unfog.lab.target import made_folder
    from unfog.lab.terminal import files

    made_folder("out", out)
    made_folder("runs", runs)
    datasets.look_in(data)
    changes = {"rounds": rounds, "trials": trials, "seed": seed, "engine": engine, "precision": precision}
    wanted = list(names or DEFAULT)
    singles = dict.fromkeys(single for name in wanted for single in PANELS.get(name, (name,)))
    _refuse_unknown(singles)
    plans = {name: planned(load(name, changes), workers, on) for name in singles}
    kept = {name: _one(plan, runs, out) for name, plan in plans.items()}
    for name in wanted:
        if name in PANELS:
            chart = figures.panels([open_run(kept[single]) for single in PANELS[name]])
            typer.echo(files(name, figures.save(chart, out, name)))


def _refuse_unknown(names: Iterable[str]) -> None:
    """Complain of what is like a name that this command alone knows; others are refused elsewhere."""
    from unfog.lab.spec import catalog
    from unfog.validation import InputError, nearest

    known = [*PANELS, *catalog()]
    for name in names:
        near = nearest(name, known)
        if name not in known and near and near == nearest(name, PANELS) and not Path(name).exists():
            allowed = f"{', '.join(PANELS)}, a name from `unfog list experiments`, or a .toml file"
            raise InputError("experiment", f"{name!r} is neither known nor a file", allowed, near)


def _one(plan: "Plan", runs: Path, out: Path) -> Path:
    """One experiment: its run, its table, its figure."""
    from unfog.cli.progress import watching
    from unfog.lab import figures, report, store
    from unfog.lab.run import keep, open_run
    from unfog.lab.terminal import files

    with watching(plan) as progress:
        target = keep(plan, runs=runs, progress=progress)
    found = open_run(target)
    paths = figures.save(figures.figure(found), out, plan.spec.name)
    typer.echo(report.table(found, store.seconds(target)))
    typer.echo(f"kept in {target}")
    typer.echo(files("figure", paths) + "\n")
    return target
