"""The `unfog` command and its subcommands."""

from typing import Annotated

import typer

from unfog.cli import bounds, check, data, evaluate, explain, live, plot, reproduce, run, serve, show
from unfog.cli import list as list_command
from unfog.version import __version__

app = typer.Typer(
    help="Contextual bandits that see their context through noise: run, compare, reproduce.",
    epilog="Examples: unfog run fig1-gaussian --trials 20   |   unfog list agents drift   |"
    "   unfog --install-completion",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"unfog {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version.")
    ] = False,
) -> None:
    pass


app.command("list", epilog=list_command.EXAMPLE)(list_command.command)
app.command("explain", epilog=explain.EXAMPLE)(explain.command)
app.command("run", cls=plot.MayPlot, epilog=run.EXAMPLE)(run.command)
app.command("show", epilog=show.EXAMPLE)(show.command)
app.command("plot", epilog=plot.EXAMPLE)(plot.command)
app.command("reproduce", epilog=reproduce.EXAMPLE)(reproduce.command)
app.command("bounds", epilog=bounds.EXAMPLE)(bounds.command)
app.command("evaluate", epilog=evaluate.EXAMPLE)(evaluate.command)
app.add_typer(check.app, name="check")
app.add_typer(data.app, name="data")
app.add_typer(live.app, name="live")
app.add_typer(serve.app, name="serve")
