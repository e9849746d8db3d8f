"""One request to another process, and its answer, over a connection of its own: HTTP/1.1 on the event loop.

No thread waits meanwhile, so that a process which does not answer holds up nobody but those who wait for it.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import NamedTuple, Self
from urllib.parse import urlsplit

import h11

CONNECT = 2.0  # seconds to connect
SILENT = 30.0  # seconds between two parts of an answer
PORTS = {"http": 80, "https": 443}
PART = 1 << 16  # bytes that are read at a time
FAILURES = (OSError, h11.ProtocolError, TimeoutError)  # of a line


class Asked(NamedTuple):
    """What is asked for."""

    method: str
    target: str  # path and query, as they stand in the first line
    headers: tuple[tuple[str, str], ...]
    body: bytes


class Line:
    """Used for one request; closed by whoever opened it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, url: str) -> None:
        """It is connected."""
        self._reader, self._writer, self._place = reader, writer, urlsplit(url)
        self._state = h11.Connection(h11.CLIENT)

    @classmethod
    async def to(cls, url: str) -> Self:
        """Connect."""
        place = urlsplit(url)
        secure = place.scheme == "https"
        port = place.port or PORTS[place.scheme]
        async with asyncio.timeout(CONNECT):
            reader, writer = await asyncio.open_connection(place.hostname, port, ssl=secure or None)
        return cls(reader, writer, url)

    async def ask(self, asked: Asked) -> h11.Response:
        """Send it; the head of what comes back."""
        target = self._place.path.rstrip("/") + asked.target
        more = [("Host", self._place.netloc), ("Connection", "close")]
        if asked.body or asked.method == "POST":
            more.append(("Content-Length", str(len(asked.body))))
        self._send(h11.Request(method=asked.method, target=target, headers=[*more, *asked.headers]))
        self._send(h11.Data(data=asked.body))
        self._send(h11.EndOfMessage())
        await self._writer.drain()
        found = await self._next()
        while isinstance(found, h11.InformationalResponse):
            found = await self._next()
        assert isinstance(found, h11.Response)
        return found

    async def parts(self) -> AsyncIterator[bytes]:
        """The body as it comes; an error where the rest of it does not."""
        while True:
            async with asyncio.timeout(SILENT):
                found = await self._next()
            if isinstance(found, h11.Data):
                yield bytes(found.data)
            else:
                return

    def close(self) -> None:
        """Whatever is still on its way is not waited for."""
        with suppress(OSError):
            self._writer.close()

    def _send(self, event: "h11.Request | h11.Data | h11.EndOfMessage") -> None:
        told = self._state.send(event)
        if told:
            self._writer.write(told)

    async def _next(self) -> object:
        while (found := self._state.next_event()) is h11.NEED_DATA:
            self._state.receive_data(await self._reader.read(PART))
        if isinstance(found, h11.ConnectionClosed):
            raise h11.RemoteProtocolError("the connection ended before the answer")
        return found
