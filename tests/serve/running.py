"""A real service on a real socket, for tests: in a thread of this process, on a store of its own."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import uvicorn

import unfog
from unfog.live import Store
from unfog.serve.auth import Authentication, LocalhostOnly
from unfog.serve.server import config
from unfog.serve.service import Service, Single
from unfog.serve.settings import Settings

TERMS: dict[str, Any] = {
    "context": ["steps", "sleep"],
    "arms": ["send", "wait"],
    "channel": {
        "context_mean": [1.0, -2.0],
        "context_cov": [[2.0, 0.3], [0.3, 1.0]],
        "noise_cov": [0.5, 0.8],
        "bias_cov": [0.3, 0.4],
    },
    "seed": 11,
    "reward_window": "1h",
}


class Running:
    """Where it is, and how to ask it."""

    def __init__(self, url: str, service: Service) -> None:
        self.url, self.service = url, service
        self.http = httpx.Client(base_url=url, timeout=30)

    def make(self, name: str = "walks", **terms: Any) -> dict[str, Any]:
        found = self.http.post("/v1/problems", json={"name": name, **TERMS, **terms})
        assert found.status_code in (200, 201), found.text
        told: dict[str, Any] = found.json()
        return told


@contextmanager
def running(
    path: Path,
    settings: Settings | None = None,
    auth: Authentication | None = None,
    clock: Any = None,
    port: int = 0,
) -> Iterator[Running]:
    """Serve the store at a path, on a port that is free or told, until the end of the block."""
    store = unfog.live.open(path, sync="normal", clock=clock)
    with starting(store, settings, auth, port) as found:
        until_ready(found)
        yield found


@contextmanager
def starting(
    store: Store, settings: Settings | None = None, auth: Authentication | None = None, port: int = 0
) -> Iterator[Running]:
    """Serve a store; it may not be ready yet."""
    service = Service(Single(store), settings or Settings(), auth or LocalhostOnly())
    server = uvicorn.Server(config(service, "127.0.0.1", port))
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
