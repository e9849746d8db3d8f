"""Where the service listens, decided by the address that a name comes to, not by the name."""

import errno
import socket
from ipaddress import ip_address
from urllib.parse import urlsplit

from unfog.validation import InputError


def bound(host: str, port: int) -> socket.socket:
    """A socket at this address and port, which does not listen yet; port 0 takes one that is free."""
    found = _resolved(host, port)
    family, kind, protocol, _, address = found
    opened = socket.socket(family, kind, protocol)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(address)
        opened.listen(1)  # a port that another process has is seen now, and not when all is ready
    except OSError as error:
        opened.close()
        where = f"{port} at {address[0]}"
        if error.errno == errno.EADDRINUSE:
            raise InputError("port", f"{where} is taken", "a port that is free; 0 takes one") from None
        said = error.strerror or str(error)
        raise InputError(
            "host", f"{host!r}, port {where}, cannot be had ({said})", "this machine's own"
        ) from None
    return opened


def _resolved(host: str, port: int) -> tuple[int, int, int, str, tuple[str, int]]:
    allowed = "an address or a name of this machine, such as 127.0.0.1 or 0.0.0.0"
    if not host:
        raise InputError("host", repr(host), allowed)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        raise InputError("host", repr(host), allowed) from None
    return found[0]  # type: ignore[return-value]


def is_loopback(opened: socket.socket) -> bool:
    """Whether only this machine can reach it."""
    return ip_address(opened.getsockname()[0].split("%")[0]).is_loopback


def url_of(opened: socket.socket) -> str:
    """How it is reached."""
    host, port = opened.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def advertised(told: str | None, opened: socket.socket, shared: bool) -> str:
    """Where others are told to come: as the operator says, or where it listens if that says it."""
    allowed = "the address of this service as others reach it, such as http://10.0.0.5:8000"
    if told is None:
        if shared and ip_address(opened.getsockname()[0].split("%")[0]).is_unspecified:
            raise InputError("advertise", f"not given, and nobody comes to {url_of(opened)}", allowed)
        return url_of(opened)
    try:
        place = urlsplit(told)
        sound = place.scheme in ("http", "https") and place.hostname and place.port != 0
    except ValueError:
        sound = False
    if not sound or place.username is not None or place.query or place.fragment:
        raise InputError("advertise", "what was given", allowed)  # it may hold a password
    return told.rstrip("/")
