"""`unfog reproduce`: the published figures, from nothing to tables and pictures."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unfog.cli.run import Data, Engine, Precision, Rounds, Seed, Trials, Workers

if TYPE_CHECKING:
    from unfog.lab.spec import Spec

EXAMPLE = (
    "Examples: unfog reproduce   |   unfog reproduce fig1 --trials 400   |   unfog reproduce fig-actions"
)
PANELS = {"fig1": ("fig1-gaussian", "fig1-logistic", "fig1-movielens")}
DEFAULT = ("fig1", "fig-actions")


def command(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Experiments, or fig1 for all three panels; the published figures unless told."),
    ] = None,
    rounds: Rounds = None,
    trials: Trials = None,
    seed: Seed = None,
    engine: Engine = None,
    precision: Precision = None,
    workers: Workers = None,
    data: Data = None,
    runs: Annotated[Path, typer.Option(help="Where the run folders go.")] = Path("runs"),
    out: Annotated[Path, typer.Option(help="Where the figures go.")] = Path("figures"),
) -> None:
    """Run experiments, print their tables, draw their figures."""
    from unfog.cli.progress import choose_engine
    from unfog.lab import datasets, figures
    from unfog.lab.run import open_run
    from unfog.lab.spec import load
    from unfog.simulate.execute.processes import cores

    datasets.look_in(data)
    changes = {"rounds": rounds, "trials": trials, "seed": seed, "engine": engine, "precision": precision}
    workers = cores() if workers is None else workers
    wanted = list(names or DEFAULT)
    singles = dict.fromkeys(single for name in wanted for single in PANELS.get(name, (name,)))
    specs = [choose_engine(load(name, changes), workers) for name in singles]
    kept = {name: _one(spec, runs, out, workers) for name, spec in zip(singles, specs, strict=True)}
    for name in wanted:
        if name in PANELS:
            chart = figures.panels([open_run(kept[single]) for single in PANELS[name]])
            typer.echo(f"{name}: {', '.join(map(str, figures.save(chart, out, name)))}")


def _one(spec: "Spec", runs: Path, out: Path, workers: int) -> Path:
    """One experiment: its run, its table, its figure."""
    from unfog.cli.progress import bar
    from unfog.lab import figures, report, store
    from unfog.lab.run import keep, open_run

    with bar(spec.name) as progress:
        target = keep(spec, runs=runs, workers=workers, progress=progress)
    found = open_run(target)
    paths = figures.save(figures.figure(found), out, spec.name)
    typer.echo(report.table(found, store.seconds(target)))
    typer.echo(f"kept in {target}; figure: {', '.join(map(str, paths))}\n")
    return target
