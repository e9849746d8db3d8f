"""`unfog serve --demo`: a store that is filled with a made-up past, and a present that goes on."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unfog.lab.demo_live import Life
    from unfog.serve.server import Started, Wanted

PATIENT = 30  # times that the service is asked again: it may be busy with others


def serve(wanted: "Wanted", say: "Callable[[Started], None]") -> None:
    """Fill a new store, in a folder that goes away unless one is told, and serve it while life goes on."""
    from unfog.cli.progress import bar
    from unfog.lab import demo_live
    from unfog.serve import server
    from unfog.serve.key_storage import is_database, shown
    from unfog.validation import InputError

    if is_database(wanted.store):
        allowed = "a file that does not exist yet, or nothing: the demo makes its store itself"
        raise InputError("store", shown(wanted.store), allowed)
    stop = threading.Event()
    with _place(wanted.store) as path:
        with bar("demo") as progress:
            lives = demo_live.filled(path, time.time(), progress=progress)

        def listening(started: "Started") -> None:
            say(started)
            threading.Thread(target=_go_on, args=(lives, started.url, stop), daemon=True).start()

        try:
            server.serve(wanted._replace(store=str(path)), listening)
        finally:
            stop.set()


@contextmanager
def _place(store: str) -> Iterator[Path]:
    if store:
        yield Path(store)
        return
    with TemporaryDirectory(prefix="unfog-demo-") as folder:
        yield Path(folder) / "demo.unfog"


def _go_on(lives: "Sequence[Life]", url: str, stop: threading.Event) -> None:
    """Over HTTP, as anybody would; it ends with the service, or when keys are asked for."""
    from unfog.lab import demo_live
    from unfog.live import StoreError
    from unfog.serve import Client, Refused

    with suppress(StoreError, Refused), Client(url, retries=PATIENT) as client:
        demo_live.go_on(lives, client, stop, time.time)
