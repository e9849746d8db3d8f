"""Finished runs and suites: `unfog show` prints their numbers, `unfog plot` draws their figure.

What a user names as a run is checked first: only a folder of ordinary files is read.
"""

import json as jsonlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from unfog.lab.tables import files

if TYPE_CHECKING:
    import xarray as xr

    from unfog.lab.baselines.report import Comparison

SHOW_EXAMPLE = "Examples: unfog show runs/fig1-gaussian-001 --tails   |   unfog show runs/baselines-001"
PLOT_EXAMPLE = "Examples: unfog plot runs/fig1-gaussian-001 --out figures   |   unfog plot runs/baselines-001"
FOLDER = Path("figures")
USUAL = "figures/"  # what --plot alone stands for: no file ends like this
MOST_BYTES = 10**8  # of each of the small files of a run

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
Plot = Annotated[
    str | None,
    typer.Option(
        metavar="[FILE]",
        help="In the end draw the figure, too, as `unfog plot` does: into figures/, or FILE.svg, FILE.pdf"
        " or FILE.png.",
    ),
]


def show_command(
    run: Annotated[Path, typer.Argument(help="A folder made by `unfog run`, of a suite, too.")],
    json: Json = False,
    parts: Parts = False,
    tails: Tails = False,
) -> None:
    """Print the table of a finished run."""
    from unfog.lab import run_folder
    from unfog.lab.baselines import folder

    checked_folder(run)
    if folder.is_suite(run):
        refuse_columns(parts or tails)
        say_suite(folder.read(run), json)
        return
    data, seconds = open_dataset(run), run_folder.seconds(run)
    say(data, seconds, json, parts=parts, tails=tails)


def say(data: "xr.Dataset", seconds: float | None, json: bool, **columns: bool) -> None:
    """The summary of a run, for people or for programs."""
    from unfog.lab import report

    if json:
        typer.echo(jsonlib.dumps(report.summary(data, seconds), allow_nan=False))
    else:
        typer.echo(report.table(data, seconds, **columns))


def say_suite(comparison: "Comparison", json: bool) -> None:
    """The ratios of a suite, for people or for programs."""
    from unfog.lab.baselines.report import plain

    typer.echo(jsonlib.dumps(plain(comparison), allow_nan=False) if json else str(comparison))


def refuse_columns(has_columns: bool) -> None:
    """Refuse columns of an experiment's table for a suite, which has a table of its own."""
    from unfog.validation import InputError

    if has_columns:
        allowed = "neither for a suite; `unfog show runs/baselines-001/fig1-gaussian --tails` has them"
        raise InputError("--parts, --tails", "columns of one experiment", allowed)


def plot_command(
    run: Annotated[Path, typer.Argument(help="A folder made by `unfog run`, of a suite, too.")],
    out: Annotated[Path, typer.Option(help="Where the figure goes.")] = FOLDER,
) -> None:
    """Draw the regret curves of a finished run, or the ratios of a suite, as SVG, PDF and PNG."""
    from unfog.lab.run_folder import made_folder

    made_folder("out", out)
    checked_folder(run)
    for path in draw_run(run, out / run.resolve().name):
        typer.echo(path)


def draw_run(run: Path, target: Path, *, single: bool = False) -> list[Path]:
    """Draw a run; return the figure's files: one in each format, or only `target` if `single` is true."""
    from unfog.lab import figures
    from unfog.lab.baselines import folder, report
    from unfog.plotting import FORMATS, save

    suite = folder.is_suite(run)
    chart = report.figure(folder.read(run)) if suite else figures.figure(open_dataset(run))
    formats = (target.suffix[1:],) if single else FORMATS
    return save(chart, target.parent, target.stem if single else target.name, formats)


def say_drawn(run: Path, plot: str | None) -> None:
    """Draw a finished run if --plot asks for it, and say where the figure is."""
    if plot is None:
        return
    paths = (
        draw_run(run, FOLDER / run.resolve().name)
        if plot == USUAL
        else draw_run(run, Path(plot), single=True)
    )
    typer.echo(files("figure", paths), err=True)


def checked(plot: str | None) -> str | None:
    """Check the argument of --plot before anything long is begun; return it."""
    from unfog.lab.run_folder import made_folder
    from unfog.plotting import FORMATS, check_installed
    from unfog.validation import InputError, nearest

    if plot is None:
        return None
    path, kinds = Path(plot), [f".{kind}" for kind in FORMATS]
    if plot != USUAL and (path.suffix not in kinds or path.is_dir()):
        allowed = f"alone, or with a file that ends in {', '.join(kinds)}"
        near = nearest(path.suffix, kinds)
        raise InputError("--plot", repr(plot), allowed, str(path.with_suffix(near)) if near else "")
    check_installed()
    made_folder("--plot", FOLDER if plot == USUAL else path.parent)
    return plot


class MayPlot(TyperCommand):
    """A command whose --plot may stand alone: the word after it is its FILE only if it looks like one."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments with the folder of a lone --plot written out."""
        words = [_spell_out_plot(args, i) for i in range(len(args))]
        return super().parse_args(ctx, words)


def _spell_out_plot(args: Sequence[str], index: int) -> str:
    """A word of the command line; --plot without a file has its folder written out."""
    if args[index] != "--plot" or "--" in args[:index]:
        return args[index]
    following = args[index + 1] if index + 1 < len(args) else "-"
    is_alone = following.startswith("-") or Path(following).suffix in ("", ".toml")
    return f"--plot={USUAL}" if is_alone else "--plot"


def checked_folder(run: Path) -> Path:
    """Check that a run folder holds ordinary files, none too large to be read; return the folder."""
    from unfog import _io
    from unfog.lab import run_folder
    from unfog.lab.baselines import folder
    from unfog.validation import InputError

    small, allowed = (run_folder.RUN, run_folder.TIMING, folder.REQUEST, folder.TABLE), run_folder.MADE
    for name in (*small, run_folder.SPEC, run_folder.CURVES):
        path = run / name
        try:
            if not os.path.lexists(path):
                continue
        except ValueError as error:
            raise InputError("run", f"{str(run)!r} cannot be read ({error})", allowed) from None
        _io.check_file("run", path, allowed, MOST_BYTES if name in small else None)
    if not _io.is_folder(run):
        raise InputError("run", f"no folder {str(run)!r}", allowed, _io.near(run))
    return run


def open_dataset(run: Path) -> "xr.Dataset":
    """The Dataset of a finished run."""
    from unfog.lab.run import open_run

    return open_run(run)
