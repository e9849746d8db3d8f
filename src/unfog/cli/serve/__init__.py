"""`unfog serve`: decisions over HTTP, and a page that shows whether they work."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unfog.cli.live.common import Sync
from unfog.cli.serve import keys

if TYPE_CHECKING:
    from unfog.serve.server import Started

EXAMPLE = (
    "Examples: unfog serve --demo   |   unfog serve --store walks.unfog   |"
    "   unfog serve keys add --store walks.unfog --scope decide --scope report --problem walks   |"
    "   unfog serve --store walks.unfog --host 0.0.0.0 --backups copies"
)

app = typer.Typer(
    epilog=EXAMPLE,
    invoke_without_command=True,
    rich_markup_mode=None,
)
app.add_typer(keys.app, name="keys")


@app.callback()
def command(
    context: typer.Context,
    store: Annotated[
        str | None,
        typer.Option(
            metavar="STORE",
            help="The file of the store, made where there is none; or a database that several services share,"
            " postgresql://user@host/name.",
        ),
    ] = None,
    host: Annotated[
        str,
        typer.Option(
            help="Where to listen. An address that other machines can reach is refused until there are keys."
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="0 takes one that is free, and says it.")
    ] = 8000,
    sync: Sync = "full",
    allow_module: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODULE", help="Code that problems may name, as module:name; may be given again."
        ),
    ] = None,
    backups: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Where POST /v1/backup puts copies.")
    ] = None,
    advertise: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Where others reach this service, if not where it listens: services that share a database"
            " pass requests on to each other there.",
        ),
    ] = None,
    rate: Annotated[
        float, typer.Option(min=0.01, help="Requests a second of one caller: a key, or an address without.")
    ] = 10_000.0,
    queue: Annotated[
        int, typer.Option(min=1, max=100_000, help="Requests that may wait; more are told to come again.")
    ] = 512,
    max_body: Annotated[
        int, typer.Option(metavar="BYTES", min=1024, max=1 << 30, help="The largest body of a request.")
    ] = 1 << 20,
    max_bulk: Annotated[
        int,
        typer.Option(
            metavar="BYTES", min=1024, max=1 << 34, help="The largest log, or table, that is taken in."
        ),
    ] = 64 << 20,
    demo: Annotated[
        bool,
        typer.Option(
            "--demo",
            help="Serve a made-up clinic, window, greenhouse and shop; the store goes away unless told.",
        ),
    ] = False,
) -> None:
    """Serve a store over HTTP, with a page, until Ctrl-C or SIGTERM.

    What is answered is written down first. Meanwhile no other process can open the file: ask the service.
    Without keys it answers on this machine alone; as soon as there is one, everybody needs one.
    """
    if context.invoked_subcommand is not None:
        return
    from unfog.cli.serve.demo import serve as serve_demo
    from unfog.serve.server import Wanted, serve
    from unfog.serve.settings import Settings
    from unfog.validation import InputError

    if store is None and not demo:
        raise InputError("store", "not given", "--store FILE; or --demo")
    settings = Settings(
        modules=tuple(allow_module or ()),
        backups=backups,
        queue=queue,
        body=max_body,
        bulk=max_bulk,
        rate=rate,
        advertise=advertise,
    )
    wanted = Wanted(store or "", host, port, sync, settings)
    (serve_demo if demo else serve)(wanted, _say)


def _say(started: "Started") -> None:
    number = f"{started.problems} problem{'s' * (started.problems != 1)}"
    new = ", made just now" if started.new else ""
    others = f"; others reach it at {started.advertised}" if started.advertised != started.url else ""
    said = f"unfog serves {started.store} at {started.url} (page), {number}{new}{others}; stop with Ctrl-C"
    typer.echo(said)
