"""Addresses of clusters: HOST:PORT is asked for, and somebody must listen there.

It is tried at once, before a library of clusters is imported: those try for long.
"""

import socket

from unfog.validation import InputError

PATIENCE = 10.0  # seconds for a machine to answer
MOST_PORT = 2**16 - 1


def endpoint(address: str) -> tuple[str, int] | None:
    """The host and the port of HOST:PORT, whatever comes before ://; None where it is no such thing."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if not host or not (port.isascii() and port.isdecimal()) or not 0 < int(port[:9]) <= MOST_PORT:
        return None
    return host.removeprefix("[").removesuffix("]"), int(port)


def refuse_silence(address: str, whom: str) -> None:
    """Complain of an address where nobody listens; of one that is no HOST:PORT nothing is known."""
    found = endpoint(address)
    if found is None:
        return
    try:
        socket.create_connection(found, PATIENCE).close()
    except (OSError, UnicodeError) as error:
        raise InputError("on", repr(address), f"{whom} that answers ({error})") from None
