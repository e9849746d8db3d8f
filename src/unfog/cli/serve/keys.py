"""`unfog serve keys`: who may do what. They are kept beside the store, and may change while it is served."""

import json as jsonlib
import time
from typing import Annotated

import typer

ADD = "Example: unfog serve keys add --store walks.unfog --scope decide --scope report --problem walks"
LIST = "Example: unfog serve keys list --store walks.unfog"
REVOKE = "Example: unfog serve keys revoke 3f2a9c01 --store walks.unfog"

app = typer.Typer(
    help="Add, list and revoke keys. A service that runs notices within two seconds.",
    epilog=ADD,
    no_args_is_help=True,
    rich_markup_mode=None,
)

Kept = Annotated[str, typer.Option("--store", metavar="STORE", help="The store whose keys they are.")]


@app.command("add", epilog=ADD)
def add(
    store: Kept,
    scope: Annotated[
        list[str],
        typer.Option(
            help="decide: ask for decisions; report: rewards, true contexts, void; read: look at all"
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

    made, text = auth.made(scope, problem or [], note, time.time())
    ring_of(store).add(made)
    typer.echo(text)
    typer.echo("unfog: this key is shown once and kept nowhere; put it where you keep secrets", err=True)


@app.command("list", epilog=LIST)
def show(
    store: Kept,
    json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False,
) -> None:
    """List the keys of a store: what each is for, never its secret."""
    from unfog.serve.key_storage import ring_of

    _refuse_missing(store)
    found = ring_of(store).load().values()
    told = [{name: x for name, x in key._asdict().items() if name != "digest"} for key in found]
    if json:
        typer.echo(jsonlib.dumps(told))
        return
    for key in found:
        problems = "all problems" if key.problems is None else ", ".join(key.problems)
        made = f"made {_day(key.created)}" + ("" if key.revoked is None else f", revoked {_day(key.revoked)}")
        parts = (key.id, ", ".join(key.scopes), problems, made, *([key.note] if key.note else []))
        typer.echo("   ".join(parts))
    if not found:
        typer.echo("no keys")


@app.command("revoke", epilog=REVOKE)
def revoke(
    key: Annotated[str, typer.Argument(metavar="ID", help="As `unfog serve keys list` shows it.")],
    store: Kept,
) -> None:
    """Revoke a key. With the last one gone nobody is let in: a service does not open up by that."""
    from unfog.serve.key_storage import ring_of

    _refuse_missing(store)
    ring_of(store).revoke(key, time.time())
    typer.echo(f"revoked {key}")


def _refuse_missing(store: str) -> None:
    """Complain of a file that is not there; keys may be there before their store is."""
    from unfog import _io
    from unfog.serve.key_storage import KeyFile, ring_of
    from unfog.validation import InputError

    ring = ring_of(store)
    if isinstance(ring, KeyFile) and _io.is_missing(store) and _io.is_missing(ring.path):
        allowed = "a store that is there, or one that has keys"
        raise InputError("store", f"there is no {store}", allowed, _io.near(store))


def _day(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds))
