"""What the commands of `unfog live` share: opening a store or a service, reading and printing JSON.

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
        typer.Option(help="The address of a service to use instead of a file; then leave out STORE."),
    ],
    "service_key_file": Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The file with the service's key; by default UNFOG_KEY has it."),
    ],
}


@dataclass(frozen=True)
class Place:
    """Where problems are: the file of a store, or the URL of a service and a key for it."""

    text: str
    key: str | None = None

    def __str__(self) -> str:
        """The path or URL as it was given."""
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
Decided = Annotated[str, typer.Argument(metavar="ID", help="The id that `unfog live decide` printed.")]
Key = Annotated[
    str | None, typer.Option(help="An idempotency key: a retry with the same key gives the same answer.")
]
Sync = Annotated[
    str,
    typer.Option(help="full: answers survive a power cut; normal: they survive a killed process."),
]


@contextmanager
def opened(location: Place, sync: str = "full", *, create: bool = False) -> Iterator["Store | Client"]:
    """Open a store, which must exist unless `create` is true, or connect to a service."""
    from unfog import _io, live
    from unfog.serve import Client
    from unfog.validation import InputError

    if location.remote:
        with Client(location.text, location.key) as client:
            yield client
        return
    if not create and not location.path.exists():
        allowed = "a store that is there; `unfog live create` creates one"
        raise InputError("store", f"there is no {location}", allowed, _io.near(location.path))
    with live.open(location.path, sync=sync) as store:
        yield store


def check_known(store: "Store | Client", name: str) -> None:
    """Check that a problem exists, without importing the code that it may need."""
    from unfog.live import NotFoundError

    if name not in store.names():
        raise NotFoundError("name", repr(name), ", ".join(store.names()) or "none: the store is empty")


def text_of(field: str, word: str) -> str:
    """An argument of the command line, or all of stdin for a dash."""
    from unfog.validation import InputError

    try:
        return sys.stdin.read() if word == "-" else word
    except ValueError as error:
        raise InputError(field, f"stdin cannot be read ({error})", "text in UTF-8") from None


def parsed(field: str, text: str, example: str) -> Any:
    """Parse JSON, refusing NaN and repeated names."""
    from unfog.live.transfer import check_constant
    from unfog.validation import InputError

    try:
        return json.loads(text, parse_constant=check_constant, object_pairs_hook=_check_distinct)
    except (ValueError, RecursionError) as error:
        raise InputError(field, text.strip() or "nothing", f"JSON such as {example} ({error})") from None


def read_named(field: str, text: str, example: str) -> Any:
    """JSON, or NAME=VALUE between commas: numbers, texts, and nothing where a value is missing."""
    from unfog.validation import InputError

    if text.lstrip()[:1] in ("[", "{") or "=" not in text:
        return parsed(field, text, example)
    values: dict[str, Any] = {}
    for part in text.split(","):
        name, sign, value = (piece.strip() for piece in part.partition("="))
        if not name or not sign or name in values:
            raise InputError(
                field, part.strip() or "nothing", f"each NAME=VALUE once; or JSON such as {example}"
            )
        values[name] = _read_value(value)
    return values


def _read_value(text: str) -> float | str | None:
    """A number if it is one, None for nothing, otherwise the text itself."""
    try:
        value = json.loads(text) if text else None
    except ValueError:
        return text
    return value if value is None or type(value) in (int, float) else text


def read_names(field: str, text: str) -> Any:
    """Names between commas, or JSON."""
    if text.lstrip()[:1] in ("[", "{"):
        return parsed(field, text, '["send", "wait"]')
    return [name.strip() for name in text.split(",")]


def _check_distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("a name stands twice")
    return fields


def read_file(field: str, path: Path) -> str:
    """The text of a file."""
    from unfog import _io
    from unfog.validation import InputError

    try:
        return path.read_text("utf-8")
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        near = _io.near(path) if _io.is_missing(path) else ""
        allowed = "a file that can be read, in UTF-8"
        raise InputError(field, f"{path} cannot be read ({why})", allowed, near) from None


def say(answer: Mapping[str, Any]) -> None:
    """One JSON object on one line."""
    typer.echo(json.dumps(answer, allow_nan=False))


def say_receipt(receipt: "Receipt", **more: str) -> None:
    """Print the receipt of a report, with fields in front of it."""
    say({**more, **receipt._asdict()})


def write(path: Path, texts: Iterable[str], store: "Store | Client") -> None:
    """Write a file atomically; it must not be the store or one of its files."""
    from unfog._io import write_atomically

    refuse_store("out", path, store)
    write_atomically(path, (text.encode() for text in texts))


def refuse_store(field: str, path: Path, store: "Store | Client") -> None:
    """Raise InputError if the file to be written is the store or one of its files."""
    from unfog.live import Store
    from unfog.validation import InputError

    if not isinstance(store, Store):
        return
    own_names = [
        store.path.name,
        *(f"{store.path.name}-{part}" for part in ("wal", "shm", "holder", "journal", "keys")),
    ]
    resolved = path.expanduser().resolve()
    if resolved.parent == store.path.parent and resolved.name in own_names:
        raise InputError(field, str(path), "another file: this one is the store's")


class Anywhere(TyperCommand):
    """A command whose STORE, the first argument, may be left out when --url is given."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the URL in the place of a missing STORE."""
        values, _, _ = self.make_parser(ctx).parse_args(list(args))
        url = values.get("url")
        names = [param.name for param in self.params if isinstance(param, TyperArgument)]
        words = sum(isinstance(values.get(name or ""), str) for name in names)
        lacks_store = isinstance(url, str) and words < len(names)
        return super().parse_args(ctx, [str(url), *args] if lacks_store else args)


def anywhere(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a service to a command; they replace its STORE."""

    @wraps(command)
    def wrapper(
        *, store: Place, url: str | None = None, service_key_file: Path | None = None, **arguments: Any
    ) -> None:
        command(store=_resolve_location(store, url, service_key_file), **arguments)

    signature = inspect.signature(command)
    more = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in OPTIONS.items()
    ]
    vars(wrapper)["__signature__"] = signature.replace(parameters=[*signature.parameters.values(), *more])
    wrapper.__annotations__ = {**command.__annotations__, **OPTIONS}
    return wrapper


def _resolve_location(store: Place, url: str | None, key_file: Path | None) -> Place:
    """The store or service of a command; its key is in a file, since other users can see arguments."""
    from unfog.validation import InputError

    key = None if key_file is None else read_file("service-key-file", key_file).strip()
    location = Place(store.text if url is None else url, key)
    if not location.remote and (url is not None or key is not None):
        raise InputError("url", location.text, "the address of a service, such as http://127.0.0.1:8000")
    return location
