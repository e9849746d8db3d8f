"""A service whose disk waits or fails as a test wants, and whose log is read when a test wants it."""

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn

from tests.live.faults import Disk
from tests.serve.running import Running
from unfog.live import Store
from unfog.live.file import File
from unfog.live.log import Log
from unfog.serve.doors import Open
from unfog.serve.server import config
from unfog.serve.service import Service
from unfog.serve.settings import Settings
from unfog.serve.shelf import Single


class Gate:
    """Each commit waits for it while it is shut; how many came to it."""

    def __init__(self, disk: Disk) -> None:
        self.open = threading.Event()
        self.open.set()
        self.reached = threading.Semaphore(0)
        disk.at_commit = self._pass

    def _pass(self, connection: sqlite3.Connection) -> None:
        self.reached.release()
        assert self.open.wait(30)


def opened(path: Path) -> tuple[Store, Disk]:
    """A store on a disk that may fail."""
    disk = Disk()
    return Store(Log(File(path, "normal", connect=disk.connect)), None), disk


@contextmanager
def starting(store: Store, settings: Settings | None = None) -> Iterator[Running]:
    """Serve it; it may not be ready yet."""
    service = Service(Single(store), settings or Settings(), Open())
    server = uvicorn.Server(config(service))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the service did not start"
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    found = Running(f"http://127.0.0.1:{port}", service)
    try:
        yield found
    finally:
        found.http.close()
        server.should_exit = True
        thread.join()


def until_ready(found: Running) -> None:
    while found.http.get("/readyz").status_code != 200:
        time.sleep(0.01)


class Asked(threading.Thread):
    """One request, by a thread of its own; its answer when it is there."""

    def __init__(self, found: Running, body: dict[str, Any]) -> None:
        super().__init__(daemon=True)
        self._found, self._body = found, body
        self.status, self.after = 0, ""
        self.start()

    def run(self) -> None:
        answer = self._found.http.post("/v1/problems/walks/decide", json=self._body)
        self.status, self.after = answer.status_code, answer.headers.get("Retry-After", "")
