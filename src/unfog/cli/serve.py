"""`unfog serve`: decisions over HTTP, and a page that shows whether they work.

`unfog serve keys` says who may do what. Keys are kept beside the store, and may change while it is served.
`unfog serve --demo` fills a store with a simulated past, and serves it while the simulation goes on.
"""

import json as jsonlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from unfog.cli.live.common import Sync

if TYPE_CHECKING:
    from unfog.lab.demo_service import Life
    from unfog.serve.server import ServeOptions, Started

EXAMPLE = (
    "Examples: unfog serve --demo   |   unfog serve --store walks.unfog   |"
    "   unfog serve keys add --store walks.unfog --scope decide --scope report --problem walks   |"
    "   unfog serve --store walks.unfog --host 0.0.0.0 --backups copies"
)
ADD = "Example: unfog serve keys add --store walks.unfog --scope decide --scope report --problem walks"
LIST = "Example: unfog serve keys list --store walks.unfog"
REVOKE = "Example: unfog serve keys revoke 3f2a9c01 --store walks.unfog"
PATIENT = 30  # retries of a request, as the service may be busy
app = typer.Typer(
    epilog=EXAMPLE,
    invoke_without_command=True,
    rich_markup_mode=None,
)
keys_app = typer.Typer(
    help="Add, list and revoke keys. A service that runs notices within two seconds.",
    epilog=ADD,
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(keys_app, name="keys")
StoreOption = Annotated[str, typer.Option("--store", metavar="STORE", help="The store whose keys they are.")]


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
    allow_modules: Annotated[
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
            metavar="BYTES", min=1024, max=1 << 34, help="The largest log, or table, that is imported."
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
    from unfog.serve.server import ServeOptions, serve
    from unfog.serve.settings import Settings
    from unfog.validation import InputError

    if store is None and not demo:
        raise InputError("store", "not given", "--store FILE; or --demo")
    settings = Settings(
        allow_modules=tuple(allow_modules or ()),
        backups=backups,
        queue=queue,
        body=max_body,
        bulk=max_bulk,
        rate=rate,
        advertise=advertise,
    )
    wanted = ServeOptions(store or "", host, port, sync, settings)
    (serve_demo if demo else serve)(wanted, _announce)


def _announce(started: "Started") -> None:
    number = f"{started.problems} problem{'s' * (started.problems != 1)}"
    created = ", made just now" if started.new else ""
    others = f"; others reach it at {started.advertised}" if started.advertised != started.url else ""
    announcement = (
        f"unfog serves {started.store} at {started.url} (page), {number}{created}{others}; stop with Ctrl-C"
    )
    typer.echo(announcement)


@keys_app.command("add", epilog=ADD)
def add(
    store: StoreOption,
    scope: Annotated[
        list[str],
        typer.Option(
            help="decide: ask for decisions; report: rewards, true contexts, cancellations; read: look at all"
            " there is; admin: everything, with the problems that the key is for. May be given again."
        ),
    ],
    problem: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="For this problem; may be given again; else all.")
    ] = None,
    note: Annotated[str, typer.Option(help="Whose it is, for you.")] = "",
) -> None:
    """Make a key and print it, once: it is kept nowhere. Callers give it as `Authorization: Bearer KEY`.

    The commands and the client of unfog take it from the environment variable UNFOG_KEY.
    """
    from unfog.serve import auth
    from unfog.serve.key_storage import ring_of

    key, text = auth.made(scope, problem or [], note, time.time())
    ring_of(store).add(key)
    typer.echo(text)
    typer.echo("unfog: this key is shown once and kept nowhere; put it where you keep secrets", err=True)


@keys_app.command("list", epilog=LIST)
def show(
    store: StoreOption,
    json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False,
) -> None:
    """List the keys of a store: what each is for, never its secret."""
    from unfog.serve.key_storage import ring_of

    _check_exists(store)
    keys = ring_of(store).load().values()
    rows = [{name: x for name, x in key._asdict().items() if name != "digest"} for key in keys]
    if json:
        typer.echo(jsonlib.dumps(rows))
        return
    for key in keys:
        problems = "all problems" if key.problems is None else ", ".join(key.problems)
        dates = f"made {_format_time(key.created)}" + (
            "" if key.revoked is None else f", revoked {_format_time(key.revoked)}"
        )
        parts = (key.id, ", ".join(key.scopes), problems, dates, *([key.note] if key.note else []))
        typer.echo("   ".join(parts))
    if not keys:
        typer.echo("no keys")


@keys_app.command("revoke", epilog=REVOKE)
def revoke(
    key: Annotated[str, typer.Argument(metavar="ID", help="As `unfog serve keys list` shows it.")],
    store: StoreOption,
) -> None:
    """Revoke a key. With the last one gone nobody is let in: a service does not open up by that."""
    from unfog.serve.key_storage import ring_of

    _check_exists(store)
    ring_of(store).revoke(key, time.time())
    typer.echo(f"revoked {key}")


def _check_exists(store: str) -> None:
    """Refuse a store that does not exist, unless it already has keys."""
    from unfog import _io
    from unfog.serve.key_storage import KeyFile, ring_of
    from unfog.validation import InputError

    key_store = ring_of(store)
    if isinstance(key_store, KeyFile) and _io.is_missing(store) and _io.is_missing(key_store.path):
        allowed = "a store that is there, or one that has keys"
        raise InputError("store", f"there is no {store}", allowed, _io.near(store))


def _format_time(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds))


def serve_demo(wanted: "ServeOptions", say: "Callable[[Started], None]") -> None:
    """Fill a new store, in a temporary folder by default, and serve it while its sites go on deciding."""
    from unfog.lab import demo_service
    from unfog.lab.progress import bar
    from unfog.serve import server
    from unfog.serve.key_storage import hide_password, is_database
    from unfog.validation import InputError

    if is_database(wanted.store):
        allowed = "a file that does not exist yet, or nothing: the demo makes its store itself"
        raise InputError("store", hide_password(wanted.store), allowed)
    stop = threading.Event()
    with _store_path(wanted.store) as path:
        with bar("demo") as progress:
            lives = demo_service.filled(path, time.time(), progress=progress)

        def listening(started: "Started") -> None:
            say(started)
            threading.Thread(target=_play_demo, args=(lives, started.url, stop), daemon=True).start()

        try:
            server.serve(wanted._replace(store=str(path)), listening)
        finally:
            stop.set()


@contextmanager
def _store_path(store: str) -> Iterator[Path]:
    if store:
        yield Path(store)
        return
    with TemporaryDirectory(prefix="unfog-demo-") as folder:
        yield Path(folder) / "demo.unfog"


def _play_demo(lives: "Sequence[Life]", url: str, stop: threading.Event) -> None:
    """Decide at the demo's sites over HTTP, until the service stops or requires keys."""
    from unfog.lab import demo_service
    from unfog.live import StoreError
    from unfog.serve import Client, ServiceError

    with suppress(StoreError, ServiceError), Client(url, retries=PATIENT) as client:
        demo_service.go_on(lives, client, stop, time.time)
