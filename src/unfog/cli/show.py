"""`unfog show`: the numbers of a finished run."""

import json as jsonlib
from pathlib import Path
from typing import Annotated

import typer

EXAMPLE = "Example: unfog show runs/fig1-gaussian-001"


def command(
    run: Annotated[Path, typer.Argument(help="A folder made by `unfog run`.")],
    json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON and nothing else.")] = False,
) -> None:
    """Print the table of a finished run."""
    from unfog.lab import report, store
    from unfog.lab.run import open_run

    data, seconds = open_run(run), store.seconds(run)
    typer.echo(jsonlib.dumps(report.summary(data, seconds)) if json else report.table(data, seconds))
