"""`unfog plot`: the figure of a finished run, or of a finished suite of runs; and --plot of `unfog run`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from unfog.cli.show import say_older

EXAMPLE = "Examples: unfog plot runs/fig1-gaussian-001 --out figures   |   unfog plot runs/rivals-001"
FOLDER = Path("figures")
USUAL = "figures/"  # what --plot alone stands for: no file ends like this

Plot = Annotated[
    str | None,
    typer.Option(
        metavar="[FILE]",
        help="In the end draw the figure, too, as `unfog plot` does: into figures/, or FILE.svg, FILE.pdf"
        " or FILE.png.",
    ),
]


def command(
    run: Annotated[Path, typer.Argument(help="A folder made by `unfog run`, of a suite, too.")],
    out: Annotated[Path, typer.Option(help="Where the figure goes.")] = FOLDER,
) -> None:
    """Draw the regret curves of a finished run, or the ratios of a suite, as SVG, PDF and PNG."""
    from unfog.lab import kept
    from unfog.lab.target import made_folder

    made_folder("out", out)
    kept.folder(run)
    say_older(run)
    for path in drawn(run, out / run.resolve().name):
        typer.echo(path)


class MayPlot(TyperCommand):
    """A command whose --plot may stand alone: the word after it is its FILE only if it looks like one."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Say what --plot alone stands for."""
        said = [_spelled(args, place) for place in range(len(args))]
        return super().parse_args(ctx, said)


def _spelled(args: Sequence[str], place: int) -> str:
    """A word of the command line; --plot without a file has its folder written out."""
    if args[place] != "--plot" or "--" in args[:place]:
        return args[place]
    following = args[place + 1] if place + 1 < len(args) else "-"
    alone = following.startswith("-") or Path(following).suffix in ("", ".toml")
    return f"--plot={USUAL}" if alone else "--plot"


def checked(plot: str | None) -> str | None:
    """Refuse a file that cannot be a figure, before anything long is begun."""
    from unfog.lab.figures import FORMATS
    from unfog.lab.target import made_folder
    from unfog.validation import InputError, nearest

    if plot is None:
        return None
    path, kinds = Path(plot), [f".{kind}" for kind in FORMATS]
    if plot != USUAL and (path.suffix not in kinds or path.is_dir()):
        allowed = f"alone, or with a file that ends in {', '.join(kinds)}"
        near = nearest(path.suffix, kinds)
        raise InputError("--plot", repr(plot), allowed, str(path.with_suffix(near)) if near else "")
    made_folder("--plot", FOLDER if plot == USUAL else path.parent)
    return plot


def say_drawn(run: Path, plot: str | None) -> None:
    """Draw a finished run where --plot asks for it, and say where the figure is."""
    from unfog.lab.terminal import files

    if plot is None:
        return
    paths = drawn(run, FOLDER / run.resolve().name) if plot == USUAL else drawn(run, Path(plot), whole=True)
    typer.echo(files("figure", paths), err=True)


def drawn(run: Path, target: Path, *, whole: bool = False) -> list[Path]:
    """The files of a run's figure: one in each format, or where `target` is a whole name that one alone."""
    from unfog.lab import figures, kept
    from unfog.lab.rivals import figure, folder

    suite = folder.is_suite(run)
    chart = figure.figure(folder.read(run)) if suite else figures.figure(kept.opened(run))
    formats = (target.suffix[1:],) if whole else figures.FORMATS
    return figures.save(chart, target.parent, target.stem if whole else target.name, formats)
