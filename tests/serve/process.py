"""A service in a process of its own, on a port that stays its own from start to start."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from tests.serve import served

SCRIPT = Path(served.__file__)


class Told(NamedTuple):
    """An answer."""

    status: int
    body: Any


def free_port() -> int:
    """A port that nobody has now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


class Asker:
    """A connection to a port, opened again when it is lost."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)

    def ask(self, method: str, path: str, body: Any = None) -> Told:
        """One request; an OSError or HTTPException where its answer is lost."""
        raw = None if body is None else json.dumps(body)
        try:
            self._connection.request(method, path, raw, {"Content-Type": "application/json"})
            answer = self._connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            raise
        kind = answer.getheader("Content-Type", "")
        lines = [json.loads(line) for line in text.splitlines()] if "ndjson" in kind else None
        return Told(answer.status, json.loads(text) if lines is None else lines)

    def close(self) -> None:
        self._connection.close()


class Process:
    """The service; started again as often as it is wanted."""

    def __init__(self, path: Path, delay: float = 0.0, every: int = 500) -> None:
        self.port, self._command = free_port(), [sys.executable, str(SCRIPT), str(path)]
        self._more = str(delay), str(every)
        self._running: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._running is not None
        return self._running.pid

    def start(self) -> None:
        """Until it is ready."""
        self._running = subprocess.Popen([*self._command, str(self.port), *self._more])
        with closing(Asker(self.port)) as asker:
            while True:
                assert self._running.poll() is None, "the service did not start"
                try:
                    if asker.ask("GET", "/readyz").status == 200:
                        return
                except OSError:
                    time.sleep(0.01)

    def kill(self) -> None:
        """At once."""
        os.kill(self.pid, signal.SIGKILL)
        self._ended()

    def stop(self) -> int:
        """In good order; how it ended."""
        os.kill(self.pid, signal.SIGTERM)
        return self._ended()

    def _ended(self) -> int:
        assert self._running is not None
        code = self._running.wait(timeout=60)
        self._running = None
        return code

    def end(self) -> None:
        """Whatever became of it."""
        if self._running is not None:
            self.kill()
