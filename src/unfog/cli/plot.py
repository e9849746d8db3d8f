"""`unfog plot`: the figure of a finished run."""

from pathlib import Path
from typing import Annotated

import typer

EXAMPLE = "Example: unfog plot runs/fig1-gaussian-001 --out figures"


def command(
    run: Annotated[Path, typer.Argument(help="A folder made by `unfog run`.")],
    out: Annotated[Path, typer.Option(help="Where the figure goes.")] = Path("figures"),
) -> None:
    """Draw the regret curves of a finished run as SVG, PDF and PNG."""
    from unfog.lab import figures
    from unfog.lab.run import open_run

    for path in figures.save(figures.figure(open_run(run)), out, run.resolve().name):
        typer.echo(path)
