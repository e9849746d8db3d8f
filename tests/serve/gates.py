"""A service whose disk waits or fails as a test wants, and whose log is read when a test wants it."""

import sqlite3
import threading
from pathlib import Path
from typing import Any

from tests.live.faults import Disk
from tests.serve.running import Running
from unfog.live import Store
from unfog.live.log import EventLog
from unfog.live.sqlite import SqliteBackend


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
    return Store(EventLog(SqliteBackend(path, "normal", connect=disk.connect)), None), disk


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
