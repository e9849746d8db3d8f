"""What the commands of `unfog live` share: a store or a service, JSON in and out, files by rename.

With --url a command on a store asks a service instead, and then the STORE may be left out.
"""

import inspect
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperArgument, TyperCommand

if TYPE_CHECKING:
    from unfog.live import Receipt, Store
    from unfog.serve import Client

CONTEXT = '{"steps": 1648, "sleep": null}'
OPTIONS = {
    "url": Annotated[
        str | None,
        typer.Option(help="Ask the service at this address, instead of a file; STORE may then be left out."),
    ],
    "service_key_file": Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where its key is; unless given, the key is that of UNFOG_KEY."),
    ],
}


@dataclass(frozen=True)
class Place:
    """Where problems are: the file of a store, or the address of a service and a key that it takes."""

    text: str
    key: str | None = None

    def __str__(self) -> str:
        """As it was given."""
        return self.text

    @property
    def remote(self) -> bool:
        """Whether it is a service."""
        return self.text.startswith(("http://", "https://"))

    @property
    def path(self) -> Path:
        """The file."""
        return Path(self.text)


StoreFile = Annotated[
    Place,
    typer.Argument(
        metavar="STORE", parser=Place, help="The file of the store; or the address of a service, as --url."
    ),
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of the problem.")]
Decided = Annotated[str, typer.Argument(metavar="ID", help="The id that `unfog live decide` gave.")]
Key = Annotated[
    str | None, typer.Option(help="A key of your own: asked again with it, the answer is the same.")
]
Sync = Annotated[
    str,
    typer.Option(help="full: what is answered outlives a power cut; normal: it outlives a killed process."),
]


@contextmanager
def opened(place: Place, sync: str = "full", *, create: bool = False) -> Iterator["Store | Client"]:
    """The store, closed at the end; one that is not there is made only where that is meant. Or a service."""
    from unfog import _io, live
    from unfog.serve import Client
    from unfog.validation import InputError

    if place.remote:
        with Client(place.text, place.key) as client:
            yield client
        return
    if not create and not place.path.exists():
        allowed = "a store that is there; `unfog live make` makes one"
        raise InputError("store", f"there is no {place}", allowed, _io.near(place.path))
    with live.open(place.path, sync=sync) as store:
        yield store


def check_known(store: "Store | Client", name: str) -> None:
    """Refuse the name of a problem that there is not; its code need not be there, to read its log."""
    from unfog.live import Unknown

    if name not in store.names():
        raise Unknown("name", repr(name), ", ".join(store.names()) or "none: the store is empty")


def text_of(field: str, word: str) -> str:
    """A word of the command line, or all of stdin for a dash."""
    from unfog.validation import InputError

    try:
        return sys.stdin.read() if word == "-" else word
    except ValueError as error:
        raise InputError(field, f"stdin cannot be read ({error})", "text in UTF-8") from None


def parsed(field: str, text: str, example: str) -> Any:
    """What a text says in JSON: no NaN, no name twice."""
    from unfog.live.transfer import refuse_constant
    from unfog.validation import InputError

    try:
        return json.loads(text, parse_constant=refuse_constant, object_pairs_hook=_distinct)
    except (ValueError, RecursionError) as error:
        raise InputError(field, text.strip() or "nothing", f"JSON such as {example} ({error})") from None


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands twice")
    return found


def read_file(field: str, path: Path) -> str:
    """The text of a file."""
    from unfog import _io
    from unfog.validation import InputError

    try:
        return path.read_text("utf-8")
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else error
        near = _io.near(path) if _io.is_missing(path) else ""
        allowed = "a file that can be read, in UTF-8"
        raise InputError(field, f"{path} cannot be read ({said})", allowed, near) from None


def say(answer: Mapping[str, Any]) -> None:
    """One JSON object on one line."""
    typer.echo(json.dumps(answer, allow_nan=False))


def say_receipt(receipt: "Receipt", **more: str) -> None:
    """What became of something reported."""
    say({**more, **receipt._asdict()})


def write(path: Path, texts: Iterable[str], store: "Store | Client") -> None:
    """A file that appears whole or not at all; it must not take the place of the store."""
    from unfog._io import write_atomically

    refuse_store("out", path, store)
    write_atomically(path, (text.encode() for text in texts))


def refuse_store(field: str, path: Path, store: "Store | Client") -> None:
    """Complain of a file to be written that is the store, or lies beside it as a part of it."""
    from unfog.live import Store
    from unfog.validation import InputError

    if not isinstance(store, Store):
        return
    own = [
        store.path.name,
        *(f"{store.path.name}-{part}" for part in ("wal", "shm", "holder", "journal", "keys")),
    ]
    found = path.expanduser().resolve()
    if found.parent == store.path.parent and found.name in own:
        raise InputError(field, str(path), "another file: this one is the store's")


class Anywhere(TyperCommand):
    """With an address and a word too few, the word that is missing is the STORE, which comes first."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the address where the STORE would be."""
        given, _, _ = self.make_parser(ctx).parse_args(list(args))
        url = given.get("url")
        places = [one.name for one in self.params if isinstance(one, TyperArgument)]
        words = sum(isinstance(given.get(name or ""), str) for name in places)
        missing = isinstance(url, str) and words < len(places)
        return super().parse_args(ctx, [str(url), *args] if missing else args)


def anywhere(command: Callable[..., None]) -> Callable[..., None]:
    """The command with these options, which are made one with its STORE."""

    @wraps(command)
    def asked(
        *, store: Place, url: str | None = None, service_key_file: Path | None = None, **told: Any
    ) -> None:
        command(store=_place(store, url, service_key_file), **told)

    own = inspect.signature(command)
    more = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in OPTIONS.items()
    ]
    vars(asked)["__signature__"] = own.replace(parameters=[*own.parameters.values(), *more])
    asked.__annotations__ = {**command.__annotations__, **OPTIONS}
    return asked


def _place(store: Place, url: str | None, key_file: Path | None) -> Place:
    """A key is read from a file: words of a command line can be seen by others on the machine."""
    from unfog.validation import InputError

    key = None if key_file is None else read_file("service-key-file", key_file).strip()
    place = Place(store.text if url is None else url, key)
    if not place.remote and (url is not None or key is not None):
        raise InputError("url", place.text, "the address of a service, such as http://127.0.0.1:8000")
    return place
