"""`unfog show`: the numbers of a finished run, or of a finished suite of runs."""

import json as jsonlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    import xarray as xr

    from unfog.lab.rivals.table import Comparison

EXAMPLE = "Examples: unfog show runs/fig1-gaussian-001 --tails   |   unfog show runs/rivals-001"

Json = Annotated[bool, typer.Option("--json", help="Print the summary as JSON and nothing else.")]
Parts = Annotated[
    bool,
    typer.Option(
        "--parts",
        help="In the table, also the parts of regret (cb, ee1, ee2), and regret by other yardsticks.",
    ),
]
Tails = Annotated[
    bool,
    typer.Option(
        "--tails",
        help="In the table, also the 50 and 99 % quantiles over trials, and the share of trials whose regret"
        " grows linearly: in the last quarter of the rounds by at least 0.9 of what it grew by in the quarter"
        " before (in --json: q50, q99, linear_share).",
    ),
]


def command(
    run: Annotated[Path, typer.Argument(help="A folder made by `unfog run`, of a suite, too.")],
    json: Json = False,
    parts: Parts = False,
    tails: Tails = False,
) -> None:
    """Print the table of a finished run."""
    from unfog.lab import kept, store
    from unfog.lab.rivals import folder

    kept.folder(run)
    say_older(run)
    if folder.is_suite(run):
        refuse_columns(parts or tails)
        say_suite(folder.read(run), json)
        return
    data, seconds = kept.opened(run), store.seconds(run)
    say(data, seconds, json, parts=parts, tails=tails)


def say_older(run: Path) -> None:
    """A word on a folder of an older layout."""
    from unfog.lab import finished
    from unfog.lab.rivals import folder

    said = folder.older(run) if folder.is_suite(run) else finished.older(run)
    if said is not None:
        typer.echo(f"unfog: {said}", err=True)


def say(data: "xr.Dataset", seconds: float | None, json: bool, **columns: bool) -> None:
    """The summary of a run, for people or for programs."""
    from unfog.lab import report

    if json:
        typer.echo(jsonlib.dumps(report.summary(data, seconds), allow_nan=False))
    else:
        typer.echo(report.table(data, seconds, **columns))


def say_suite(found: "Comparison", json: bool) -> None:
    """The ratios of a suite, for people or for programs."""
    from unfog.lab.rivals.table import plain

    typer.echo(jsonlib.dumps(plain(found), allow_nan=False) if json else str(found))


def refuse_columns(wanted: bool) -> None:
    """A suite has a table of its own."""
    from unfog.validation import InputError

    if wanted:
        allowed = "neither for a suite; `unfog show runs/rivals-001/fig1-gaussian --tails` has them"
        raise InputError("--parts, --tails", "columns of one experiment", allowed)
