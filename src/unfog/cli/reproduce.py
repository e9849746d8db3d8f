"""`unfog reproduce`: the published figures, from nothing to tables and pictures."""

from pathlib import Path
from typing import Annotated

import typer

from unfog.cli.run import Engine, Precision, Rounds, Seed, Trials, Workers

EXAMPLE = "Examples: unfog reproduce   |   unfog reproduce fig1-gaussian --trials 400"
DEFAULT = ("fig1-gaussian", "fig1-logistic", "fig-actions")


def command(
    names: Annotated[
        list[str] | None, typer.Argument(help="Experiments; the published figures unless told.")
    ] = None,
    rounds: Rounds = None,
    trials: Trials = None,
    seed: Seed = None,
    engine: Engine = None,
    precision: Precision = None,
    workers: Workers = None,
    runs: Annotated[Path, typer.Option(help="Where the run folders go.")] = Path("runs"),
    out: Annotated[Path, typer.Option(help="Where the figures go.")] = Path("figures"),
) -> None:
    """Run experiments, print their tables, draw their figures."""
    from unfog.cli.progress import bar, choose_engine
    from unfog.lab import figures, report, store
    from unfog.lab.run import keep, open_run
    from unfog.lab.spec import load
    from unfog.simulate.workers import cores

    changes = {"rounds": rounds, "trials": trials, "seed": seed, "engine": engine, "precision": precision}
    workers = cores() if workers is None else workers
    specs = [choose_engine(load(name, changes), workers) for name in names or DEFAULT]
    for spec in specs:
        with bar(spec.name) as progress:
            target = keep(spec, runs=runs, workers=workers, progress=progress)
        data = open_run(target)
        paths = figures.save(figures.figure(data), out, spec.name)
        typer.echo(report.table(data, store.seconds(target)))
        typer.echo(f"kept in {target}; figure: {', '.join(map(str, paths))}\n")
