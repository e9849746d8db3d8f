"""A command on a store that can be asked of a service instead: --url, and then the STORE may be left out."""

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperArgument, TyperCommand

from unfog.cli.live.common import Place, read_file

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
