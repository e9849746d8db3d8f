"""`unfog show`: the numbers of a finished run."""

import json as jsonlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    import xarray as xr

EXAMPLE = "Example: unfog show runs/fig1-gaussian-001"


def command(
    run: Annotated[Path, typer.Argument(help="A folder made by `unfog run`.")],
    json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON and nothing else.")] = False,
) -> None:
    """Print the table of a finished run."""
    from unfog.lab import store
    from unfog.lab.run import open_run

    data, seconds = open_run(run), store.seconds(run)
    say(data, seconds, json)


def say(data: "xr.Dataset", seconds: float | None, json: bool) -> None:
    """The summary of a run, for people or for programs."""
    from unfog.lab import report

    facts = report.summary(data, seconds)
    typer.echo(jsonlib.dumps(facts, allow_nan=False) if json else report.table(data, seconds))
