"""What a connection may take: how many there are, how long and how large the head of a request may be.

Bodies have limits of their own in exchange.py, and answer with a status; who is that slow or that large
before saying what is wanted gets no more than the end of the connection.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST = 900  # at a time: a process may have 1,024 files open, unless told
HEAD_SECONDS = 10.0
HEAD_BYTES = 64 << 10
FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: 0\r\n"
    b"cache-control: no-store\r\n\r\n"
)


class Bounded(HttpToolsProtocol):
    """HTTP as uvicorn speaks it, within bounds."""

    def __init__(self, *told: Any, **named: Any) -> None:
        """Nothing has come yet."""
        super().__init__(*told, **named)
        self._in_head, self._size = True, 0
        self._late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """One too many is told so, and ended."""
        super().connection_made(transport)
        if len(self.connections) > MOST:
            transport.write(FULL)
            transport.close()
        else:
            self._wait()

    def data_received(self, data: bytes) -> None:
        """Where the head of a request goes on, look how large it has become."""
        super().data_received(data)
        if not self._in_head:
            return
        self._size += len(data)
        if self._size > HEAD_BYTES and not self.transport.is_closing():
            self.send_400_response("The head of the request is too large.")
        self._wait()

    def on_message_begin(self) -> None:
        """A head begins."""
        self._in_head, self._size = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """A head is there."""
        self._in_head = False
        if self._late is not None:
            self._late.cancel()
            self._late = None
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over."""
        if self._late is not None:
            self._late.cancel()
        super().connection_lost(exc)

    def _wait(self) -> None:
        """For the rest of a head, not for ever."""
        if self._late is None:
            self._late = self.loop.call_later(HEAD_SECONDS, self._end)

    def _end(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()
