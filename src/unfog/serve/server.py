"""The server process: from the operator's options to a service that listens, and an orderly shutdown.

Where the service may listen is decided by the address that a host name resolves to, not by the name. It does
not listen beyond this machine without keys.

Connections are bounded (`Bounded`): in number, and in the time and size of a request's head. Bodies have
limits of their own in serve/responses.py, and get an answer with a status. A client whose head is too slow is
disconnected.

SIGTERM or an interrupt stops accepting connections. Requests under way are finished and committed, a snapshot
is written, and the store is closed. Clients who have not sent their request by then, or whose request takes
more than some seconds, are told to retry. A second signal does not wait for open requests and connections.
Either way the exit code is 0: the process was told to stop, and it did.
"""

import asyncio
import errno
import logging
import socket
import sys
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path
from tempfile import TemporaryFile
from types import FrameType
from typing import Any, NamedTuple

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from unfog import live
from unfog.live.errors import StoreError
from unfog.serve.app import application
from unfog.serve.auth import Authentication, Keyed, KeyStorage, LocalhostOnly
from unfog.serve.http_client import check_address
from unfog.serve.key_storage import hide_password, is_database, ring_of
from unfog.serve.service import Service, Single, Stores
from unfog.serve.settings import Settings
from unfog.validation import InputError

MOST = 900  # connections at a time: by default a process may have 1,024 open files
HEAD_SECONDS = 10.0
HEAD_BYTES = 64 << 10

FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: 0\r\n"
    b"cache-control: no-store\r\n\r\n"
)

PATIENCE = 10  # seconds for unfinished requests when the service stops
IDLE = 30  # seconds after which an idle connection is closed
REACHED = "the address of this service as others reach it, such as http://10.0.0.5:8000"
SWITCH = 0.0005  # seconds after which a computing thread yields to the one that answers requests


class ServeOptions(NamedTuple):
    """Which problems to serve, and where."""

    store: str  # a file, or the address of a database
    host: str = "127.0.0.1"
    port: int = 8000
    sync: str = "full"
    settings: Settings = Settings()


class Started(NamedTuple):
    """The service that has started to listen."""

    store: str
    url: str
    advertised: str  # the URL that other processes use
    problems: int
    new: bool  # whether the store has just been created


def serve(options: ServeOptions, say: Callable[[Started], None]) -> None:
    """Serve until a signal says to stop; `say` is called once requests are accepted."""
    if options.settings.advertise is not None:
        check_address("advertise", options.settings.advertise, REACHED)
    _check_backups(options.settings.backups)
    sock = bound(options.host, options.port)
    with sock:
        auth = make_auth(ring_of(options.store), options.store, sock)
        is_new = not is_database(options.store) and not Path(options.store).exists()
        url = url_of(sock)
        public_url = advertised(options.settings.advertise, sock, is_database(options.store))
        stores = open_stores(options, public_url)
        service = Service(stores, options.settings, auth)

        def listening() -> None:
            stores.announce(public_url)
            say(Started(hide_password(options.store), url, public_url, len(stores.names()), is_new))

        run(service, sock, listening)
    if service.failed:
        raise StoreError(service.failed)


def open_stores(options: ServeOptions, url: str) -> Stores:
    """Open a store; a database is shared with other processes, which reach this one at `url`."""
    if is_database(options.store):
        from unfog.live.postgres.ownership import Shared

        return Shared(options.store, url, sync=options.sync)
    return Single(live.open(options.store, sync=options.sync))


def make_auth(keys: KeyStorage, store: str, sock: socket.socket) -> Authentication:
    """The authentication that the socket's address requires: keys, if other machines can reach it."""
    if is_loopback(sock):
        return Keyed(keys, unless=LocalhostOnly())
    if not any(key.revoked is None for key in keys.load().values()):
        host = sock.getsockname()[0]
        raise InputError(
            "host",
            f"{host} can be reached from other machines, and there are no keys",
            "127.0.0.1; or make a key first:"
            f" unfog serve keys add --store {hide_password(store)} --scope admin",
        )
    return Keyed(keys)


def _check_backups(folder: Path | None) -> None:
    """Check at startup, not at the first copy, that the folder can be written to."""
    if folder is None:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        value = f"{folder} ({error.strerror or 'no reason given'})"
        raise InputError("backups", value, "a folder that can be made, and written to") from None


def bound(host: str, port: int) -> socket.socket:
    """Bind a socket to this address and port; port 0 takes a free one."""
    family, kind, protocol, _, address = _resolve(host, port)
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen(1)  # fails now if another process has the port, not once all is ready
    except OSError as error:
        sock.close()
        where = f"{port} at {address[0]}"
        if error.errno == errno.EADDRINUSE:
            raise InputError("port", f"{where} is taken", "a port that is free; 0 takes one") from None
        problem = error.strerror or str(error)
        raise InputError(
            "host", f"{host!r}, port {where}, cannot be had ({problem})", "this machine's own"
        ) from None
    return sock


def _resolve(host: str, port: int) -> tuple[int, int, int, str, tuple[str, int]]:
    allowed = "an address or a name of this machine, such as 127.0.0.1 or 0.0.0.0"
    if not host:
        raise InputError("host", repr(host), allowed)
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        raise InputError("host", repr(host), allowed) from None
    return addresses[0]  # type: ignore[return-value]


def is_loopback(sock: socket.socket) -> bool:
    """Whether only this machine can reach the socket."""
    return ip_address(sock.getsockname()[0].split("%")[0]).is_loopback


def url_of(sock: socket.socket) -> str:
    """The URL of a socket."""
    host, port = sock.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def advertised(option: str | None, sock: socket.socket, shared: bool) -> str:
    """The URL that other processes use: the operator's, or else that of the socket."""
    if option is not None:
        return option.rstrip("/")
    if shared and ip_address(sock.getsockname()[0].split("%")[0]).is_unspecified:
        raise InputError("advertise", f"not given, and nobody comes to {url_of(sock)}", REACHED)
    return url_of(sock)


def run(service: Service, sock: socket.socket, listening: Callable[[], None]) -> None:
    """Serve at a socket until a signal says to stop."""
    sys.setswitchinterval(SWITCH)
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.WARNING)
    Server(service, listening).run([sock])


def config(service: Service, host: str = "127.0.0.1", port: int = 0) -> uvicorn.Config:
    """Configure uvicorn, without an access log: addresses hold private names."""
    return uvicorn.Config(
        application(service),
        host=host,
        port=port,
        http=Bounded,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        proxy_headers=False,  # the client is the peer of the connection: headers can lie
        timeout_graceful_shutdown=PATIENCE,
        timeout_keep_alive=IDLE,
        limit_concurrency=None,
        backlog=2048,
    )


class Server(uvicorn.Server):
    """A server that reports when it listens, and shuts down in an orderly way."""

    def __init__(self, service: Service, listening: Callable[[], None]) -> None:
        """`listening` is called once the server listens."""
        super().__init__(config(service))
        self._service, self._listening = service, listening

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen."""
        await super().startup(sockets)
        if self.started:
            self._listening()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """Stop at the first signal, hurry at the next; none is raised again after shutdown."""
        self.force_exit = self.should_exit
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Commit and release the stores, even in a hurry.

        Problems that other processes can serve are released first, before slow clients have their answers.
        """
        self._service.readers.leave()
        if not self._service.open_stores.single:
            await self._service.stop()
        await super().shutdown(sockets)
        if self.force_exit:
            await self.lifespan.shutdown()


class Bounded(HttpToolsProtocol):
    """uvicorn's HTTP protocol with limits on connections and on the heads of requests."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Nothing is received yet."""
        super().__init__(*args, **kwargs)
        self._in_head, self._size = True, 0
        self._late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Refuse and close a connection beyond the limit."""
        super().connection_made(transport)
        if len(self.connections) > MOST:
            transport.write(FULL)
            transport.close()
        else:
            self._wait()

    def data_received(self, data: bytes) -> None:
        """Count the bytes of the head of a request."""
        super().data_received(data)
        if not self._in_head:
            return
        self._size += len(data)
        if self._size > HEAD_BYTES and not self.transport.is_closing():
            self.send_400_response("The head of the request is too large.")
        self._wait()

    def on_message_begin(self) -> None:
        """Start to count the bytes of a head."""
        self._in_head, self._size = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Stop the timeout: the head is complete."""
        self._in_head = False
        if self._late is not None:
            self._late.cancel()
            self._late = None
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timeout."""
        if self._late is not None:
            self._late.cancel()
        super().connection_lost(exc)

    def _wait(self) -> None:
        """Start the timeout for the rest of a head."""
        if self._late is None:
            self._late = self.loop.call_later(HEAD_SECONDS, self._end)

    def _end(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()
