"""`unfog plot`: the figure of a finished run, or of a finished suite of runs."""

from pathlib import Path
from typing import Annotated

import typer

from unfog.cli.show import say_older

EXAMPLE = "Examples: unfog plot runs/fig1-gaussian-001 --out figures   |   unfog plot runs/rivals-001"


def command(
    run: Annotated[Path, typer.Argument(help="A folder made by `unfog run`, of a suite, too.")],
    out: Annotated[Path, typer.Option(help="Where the figure goes.")] = Path("figures"),
) -> None:
    """Draw the regret curves of a finished run, or the ratios of a suite, as SVG, PDF and PNG."""
    from unfog.lab import figures, kept
    from unfog.lab.rivals import figure, folder
    from unfog.lab.target import made_folder

    made_folder("out", out)
    kept.folder(run)
    say_older(run)
    suite = folder.is_suite(run)
    chart = figure.figure(folder.read(run)) if suite else figures.figure(kept.opened(run))
    for path in figures.save(chart, out, run.resolve().name):
        typer.echo(path)
