"""Forwarding: requests for problems that another process serves, passed on once with the caller's key.

Only once, because two processes that each take the other for the owner would pass a request on for ever. The
answer of the other process is the answer. It is waited for as long as the other process owns the problem: a
process that was stopped keeps its connections, but loses its lease. If no answer came nobody knows what was
done, and the caller has to retry.

Each request has a connection of its own (`Line`): HTTP/1.1 on the event loop. It takes no thread, so a
process that does not answer holds up only those who wait for it.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, Self
from urllib.parse import urlsplit

import h11

from unfog.live.errors import Elsewhere
from unfog.serve.errors import JSON, Refused, busy
from unfog.serve.responses import Answer

if TYPE_CHECKING:
    from starlette.types import Scope

MARK = b"unfog-forwarded"
PASSED = (b"authorization", b"content-type", b"idempotency-key")
BACK = (b"retry-after", b"www-authenticate", b"allow")
LOOK = 0.5  # seconds after which to look whether the other process still has the problem
MOST = 200  # requests that may be with other processes
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


def asked_by(scope: "Scope", headers: Mapping[bytes, bytes], body: bytes, path: str | None = None) -> Asked:
    """A caller's request as another process is to see it; or one of our own for a caller, at a `path`."""
    if MARK in headers:
        raise busy("This process does not serve the problem, and was asked by another that does not.")
    raw = scope.get("raw_path") or scope["path"].encode()
    target = raw.decode("ascii") + (f"?{text.decode('ascii')}" if (text := scope["query_string"]) else "")
    passed = [(name.decode(), headers[name].decode("latin-1")) for name in PASSED if name in headers]
    method = scope["method"] if path is None else "GET"
    return Asked(method, path or target, (*passed, (MARK.decode(), "1")), body)


class Line:
    """A connection to another process, for one request; closed by whoever opened it."""

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


class Away:
    """Requests that are with other processes; used by the event loop alone."""

    def __init__(self) -> None:
        """None yet."""
        self._count = 0

    async def ask(self, other: Elsewhere, asked: Asked, still: Callable[[], Awaitable[bool]]) -> Answer:
        """What the other process answers; `still` says whether it has the problem."""
        if self._count >= MOST:
            raise busy(f"{MOST} requests wait for other processes already; nothing was done.")
        self._count += 1
        try:
            return await _answered(other.url, asked, still)
        finally:
            self._count -= 1


async def _answered(url: str, asked: Asked, still: Callable[[], Awaitable[bool]]) -> Answer:
    try:
        line = await Line.to(url)
    except FAILURES:
        raise busy("The process that serves the problem cannot be reached; nothing was done.") from None
    try:
        head = await _while(line.ask(asked), still)
        if any(name == b"content-length" for name, _ in head.headers):
            whole = b"".join([part async for part in line.parts()])
            line.close()
            return _answer(head, whole)
    except FAILURES:
        line.close()
        raise _unknown("did not answer") from None
    except BaseException:
        line.close()
        raise
    return _answer(head, _rest(line))


async def _while(work: Awaitable[h11.Response], still: Callable[[], Awaitable[bool]]) -> h11.Response:
    """What comes of it, as long as the other process has the problem."""
    task = asyncio.ensure_future(work)
    try:
        while not (await asyncio.wait([task], timeout=LOOK))[0]:
            if not await still():
                raise _unknown("lost it before it answered")
        return task.result()
    finally:
        task.cancel()


async def _rest(line: Line) -> AsyncIterator[bytes]:
    """What comes after the head; a long answer is never held as a whole."""
    try:
        async for part in line.parts():
            yield part
    finally:
        line.close()


def _answer(head: h11.Response, body: bytes | AsyncIterator[bytes]) -> Answer:
    told = {name: value.decode("latin-1") for name, value in head.headers}
    back = {name.decode(): told[name] for name in BACK if name in told}
    return Answer(body, head.status_code, told.get(b"content-type", JSON), back)


def _unknown(what: str) -> Refused:
    return busy(f"The process that served the problem {what}; to ask again with the same key tells more.")
