"""From what an operator says to a service that runs."""

import socket
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryFile
from typing import NamedTuple
from urllib.parse import urlsplit

from unfog import live
from unfog.live.errors import StoreError
from unfog.serve import binding, server
from unfog.serve.doors import Doors, Keyed, Open
from unfog.serve.keys import KeyRing
from unfog.serve.rings import is_database, ring_of, shown
from unfog.serve.service import Service
from unfog.serve.settings import Settings
from unfog.serve.shelf import Shelf, Single
from unfog.validation import InputError


class Wanted(NamedTuple):
    """Which problems to serve, and where."""

    store: str  # a file, or the address of a database
    host: str = "127.0.0.1"
    port: int = 8000
    sync: str = "full"
    settings: Settings = Settings()


class Started(NamedTuple):
    """What listens."""

    store: str
    url: str
    advertised: str  # where others are told to come
    problems: int
    new: bool  # whether the store was made just now


def shelf_of(wanted: Wanted, url: str) -> Shelf:
    """The problems of a store; those of a database are shared with others, who come to `url`."""
    if is_database(wanted.store):
        from unfog.live.postgres.shared import Shared

        return Shared(wanted.store, url, sync=wanted.sync)
    return Single(live.open(wanted.store, sync=wanted.sync))


def doors_of(ring: KeyRing, store: str, opened: socket.socket) -> Doors:
    """With keys; beyond this machine not without."""
    if binding.is_loopback(opened):
        return Keyed(ring, unless=Open())
    if not any(key.revoked is None for key in ring.load().values()):
        host = opened.getsockname()[0]
        raise InputError(
            "host",
            f"{host} can be reached from other machines, and there are no keys",
            f"127.0.0.1; or make a key first: unfog serve keys add --store {shown(store)} --scope admin",
        )
    return Keyed(ring)


def _check_advertised(url: str | None) -> None:
    told = urlsplit(url or "http://x")
    if told.scheme not in ("http", "https") or not told.hostname or told.query or told.fragment:
        raise InputError(
            "advertise", repr(url), "where others reach this service, such as http://10.0.0.2:8000"
        )


def _check_backups(folder: Path | None) -> None:
    """Now, and not when the first copy is asked for."""
    if folder is None:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        said = f"{folder} ({error.strerror or 'no reason given'})"
        raise InputError("backups", said, "a folder that can be made, and written to") from None


def serve(wanted: Wanted, say: Callable[[Started], None]) -> None:
    """Serve until a signal says to stop; `say` is told once requests are taken."""
    _check_advertised(wanted.settings.advertise)
    _check_backups(wanted.settings.backups)
    opened = binding.bound(wanted.host, wanted.port)
    with opened:
        doors = doors_of(ring_of(wanted.store), wanted.store, opened)
        new = not is_database(wanted.store) and not Path(wanted.store).exists()
        url = binding.url_of(opened)
        told = binding.advertised(wanted.settings.advertise, opened, is_database(wanted.store))
        shelf = shelf_of(wanted, told)
        service = Service(shelf, wanted.settings, doors)

        def listening() -> None:
            shelf.announce(told)
            say(Started(shown(wanted.store), url, told, len(shelf.names()), new))

        server.run(service, opened, listening)
    if service.failed:
        raise StoreError(service.failed)
