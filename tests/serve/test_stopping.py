"""What becomes of requests that are under way when the service stops."""

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import unfog
from tests.serve.running import Running
from tests.serve.test_bounds import POST, connected, rest, status
from unfog.live import snapshot
from unfog.serve import server
from unfog.serve.auth import LocalhostOnly
from unfog.serve.service import Service, Single
from unfog.serve.settings import Settings

REPLAY = b"POST /v1/problems/walks/replay HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"


class Stopped(threading.Thread):
    """A service as a process runs it, until it is told to stop."""

    def __init__(self, path: Path) -> None:
        super().__init__(daemon=True)
        self.service = Service(Single(unfog.live.open(path, sync="normal")), Settings(), LocalhostOnly())
        self.server = server.Server(self.service, lambda: None)
        self.server.config.port = 0
        self.start()
        while not self.server.started:
            assert self.is_alive(), "the service did not start"
            time.sleep(0.01)

    def run(self) -> None:
        self.server.run()

    def stop(self) -> None:
        self.server.should_exit = True


@contextmanager
def stopping(path: Path) -> Iterator[tuple[Running, Stopped]]:
    """With a problem."""
    thread = Stopped(path)
    port = thread.server.servers[0].sockets[0].getsockname()[1]
    found = Running(f"http://127.0.0.1:{port}", thread.service)
    while found.http.get("/readyz").status_code != 200:
        time.sleep(0.01)
    found.make()
    try:
        yield found, thread
    finally:
        thread.stop()
        thread.join(20)
        found.http.close()
    assert not thread.is_alive()


def test_who_has_sent_half_of_a_body_is_told_so_at_once(tmp_path: Path) -> None:
    with stopping(tmp_path / "a.unfog") as (found, thread), connected(found) as half:
        half.sendall(POST + b'Content-Length: 90\r\n\r\n{"context"')
        time.sleep(0.1)
        thread.stop()
        thread.join(server.PATIENCE / 2)
        assert not thread.is_alive()
        said = rest(half)
        assert (status(said), b"retry-after: 1" in said, b"nothing was done" in said) == (503, True, True)


@pytest.mark.slow
def test_what_takes_too_long_is_given_up_without_a_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    begun, go_on, read = threading.Event(), threading.Event(), snapshot._replayed

    def slow(*told: Any) -> Any:
        begun.set()
        assert go_on.wait(20)
        return read(*told)

    monkeypatch.setattr(snapshot, "_replayed", slow)
    monkeypatch.setattr(server, "PATIENCE", 1)
    with caplog.at_level(logging.WARNING), stopping(tmp_path / "a.unfog") as (found, thread):
        with connected(found) as asked:
            asked.sendall(
                b"POST /v1/problems/walks/replay HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
            )
            assert begun.wait(10)
            thread.stop()
            said = rest(asked)
        go_on.set()
    assert (status(said), b"retry-after: 1" in said, b"not known" in said) == (503, True, True)
    assert not [one for one in caplog.records if one.exc_info]
