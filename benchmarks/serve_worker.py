"""A service to be measured, in a process of its own: serve_worker.py PATH PORT full|normal|none|echo.

`none` decides and learns as ever but writes no events down; `echo` is the same server with nothing behind it
but JSON in and out. When it is stopped it says on the standard output how long
snapshots have kept others waiting.
"""

import json
import logging
import socket
import sys
from collections.abc import Sequence
from time import perf_counter
from types import FrameType
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from unfog.live import Store, snapshot
from unfog.live.backend import Change, Row
from unfog.live.log import EventLog
from unfog.live.snapshot import content
from unfog.live.sqlite import SqliteBackend
from unfog.live.state import State
from unfog.serve import server
from unfog.serve.auth import LocalhostOnly
from unfog.serve.service import Service, Single
from unfog.serve.settings import Settings

pauses: list[float] = []


class Nowhere(SqliteBackend):
    """A file that has the terms of problems, and no events."""

    def write(self, rows: Sequence[Row], change: Change | None = None) -> None:  # noqa: ARG002
        """Terms alone."""
        terms = [row for row in rows if row.kind == "problem"]
        if terms:
            super().write(terms)


def timed(state: State) -> Any:
    """What a snapshot is written from; while it is put together everybody waits."""
    started = perf_counter()
    found = content(state)
    pauses.append(perf_counter() - started)
    return found


class Plain(uvicorn.Server):
    """Ends with the code 0 when it is told to."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """Stop."""
        self.should_exit = True


async def echo(request: Request) -> JSONResponse:
    """What was said."""
    return JSONResponse(await request.json())


def plain(port: int) -> None:
    """The echo, on the same server."""
    routes = [Route("/{rest:path}", echo, methods=["POST"])]
    told = uvicorn.Config(Starlette(routes=routes), port=port, log_config=None, access_log=False)
    Plain(told).run()


def main(path: str, port: int, what: str) -> None:
    """Serve until it is stopped."""
    logging.basicConfig(level=logging.WARNING)
    if what == "echo":
        plain(port)
        return
    backend = Nowhere(path, "normal") if what == "none" else SqliteBackend(path, what)
    snapshot.content = timed
    service = Service(Single(Store(EventLog(backend), None)), Settings(rate=1e9), LocalhostOnly())
    server.run(service, socket.create_server(("127.0.0.1", port), backlog=2048), lambda: None)
    print(json.dumps(pauses))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
