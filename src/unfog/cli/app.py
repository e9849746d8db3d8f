"""The `unfog` command with its subcommands.

A module of its own, so that `main` can turn an interrupt into one line while it is still being imported.
"""

from typing import Annotated

import typer

from unfog.cli import data, evaluate, live, paper, results, run, serve
from unfog.cli import list as listing
from unfog.version import __version__

app = typer.Typer(
    help="Contextual bandits that see their context through noise: run, compare, reproduce.",
    epilog="Examples: unfog run fig1-gaussian --trials 20   |   unfog list agents drift   |"
    "   unfog --install-completion",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"unfog {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Say the version.")
    ] = False,
) -> None:
    pass


app.command("list", epilog=listing.LIST_EXAMPLE)(listing.list_command)
app.command("explain", epilog=listing.EXPLAIN_EXAMPLE)(listing.explain_command)
app.command("run", cls=results.MayPlot, epilog=run.RUN_EXAMPLE)(run.run_command)
app.command("show", epilog=results.SHOW_EXAMPLE)(results.show_command)
app.command("plot", epilog=results.PLOT_EXAMPLE)(results.plot_command)
app.command("reproduce", epilog=run.REPRODUCE_EXAMPLE)(run.reproduce_command)
app.command("bounds", epilog=paper.BOUNDS_EXAMPLE)(paper.command)
app.command("evaluate", epilog=evaluate.EXAMPLE)(evaluate.command)
app.add_typer(paper.app, name="check")
app.add_typer(data.app, name="data")
app.add_typer(live.app, name="live")
app.add_typer(serve.app, name="serve")
