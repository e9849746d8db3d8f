"""Requests as operations see them, and answers as they are sent: bounded bodies, headers, JSON in parts.

The past of 200,000 decisions is some 50 MB of JSON. Encoding that at once would keep the interpreter busy for
a second, and nobody else would be answered meanwhile. So long lists are encoded some values at a time.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from unfog.live import Problem, Store
from unfog.serve.errors import JSON, PROBLEM, Refusal, ServiceError, encode
from unfog.serve.settings import Settings
from unfog.validation import InputError

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

PATIENCE = 30.0  # seconds to receive a body, and to send a part of an answer
POLICY = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"

ALWAYS = (
    (b"cache-control", b"no-store"),
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)

VALUES = 2000  # of a list that are encoded at once, in some hundreds of microseconds
LETTERS = 1 << 16  # characters that are sent at a time


class Call(NamedTuple):
    """A call of an operation."""

    store: Store  # that has the problem, or to which the operation applies
    settings: Settings
    name: str = ""  # of the problem
    decision: str = ""
    body: Any = None  # validated by serve/schemas.py; text if it is NDJSON
    query: Mapping[str, str] = {}
    key: str | None = None  # of the header `Idempotency-Key`

    @property
    def problem(self) -> Problem:
        """The problem of the call."""
        return Problem(self.store.processor, self.name)

    def once(self, key: str | None) -> str | None:
        """The key of the body or of the header; if both have one, they must agree."""
        if key is not None and self.key is not None and key != self.key:
            raise InputError("key", repr(key), "as in the header Idempotency-Key, or in one place only")
        return self.key if key is None else key

    def number(self, field: str, least: int, most: int, default: int) -> int:
        """Read an integer from the query."""
        text = self.query.get(field)
        if text is None:
            return default
        if not text.isascii() or not text.isdigit() or len(text) > 20 or not least <= int(text) <= most:
            raise InputError(field, repr(text), f"a whole number from {least} to {most}")
        return int(text)


class Answer(NamedTuple):
    """An HTTP response."""

    body: bytes | AsyncIterator[bytes]
    status: int = 200
    kind: str = JSON
    headers: Mapping[str, str] = {}

    async def content(self) -> bytes:
        """The whole body."""
        return self.body if isinstance(self.body, bytes) else b"".join([part async for part in self.body])


def headers_of(scope: "Scope") -> dict[bytes, bytes]:
    """Headers by their names in lower case; the last one of each name."""
    return dict(scope["headers"])


async def body_of(receive: "Receive", headers: Mapping[bytes, bytes], most: int) -> bytes:
    """Read a whole body; refuse it as soon as it is too large or too slow."""
    try:
        async with asyncio.timeout(PATIENCE):
            return await _read_all(receive, headers, most)
    except TimeoutError:
        detail = f"The body did not come within {PATIENCE:g} seconds; nothing was done."
        raise ServiceError(408, detail, {"Connection": "close"}) from None


async def _read_all(receive: "Receive", headers: Mapping[bytes, bytes], most: int) -> bytes:
    length = headers.get(b"content-length", b"0")
    if not length.isdigit() or int(length[:20]) > most:
        raise ServiceError(413, f"The body has {length[:20].decode('latin-1')} bytes; allowed: {most}.")
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ServiceError(400, "The body was cut short.")
        part = message.get("body", b"")
        size += len(part)
        if size > most:
            raise ServiceError(413, f"The body has more than {most} bytes.")
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


def as_json(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    """An answer with this value as JSON."""
    return Answer(encode(value).encode(), status, JSON, headers or {})


def as_problem(refusal: Refusal) -> Answer:
    """An answer with this refusal."""
    return Answer(encode(refusal.body).encode(), refusal.status, PROBLEM, refusal.headers)


def written(value: Any) -> Iterator[bytes]:
    """Encode a value as `encode` does, and yield it in parts."""
    chunks, size = list[str](), 0
    for part in _encode_parts(value):
        chunks.append(part)
        size += len(part)
        if size >= LETTERS:
            yield "".join(chunks).encode()
            chunks, size = [], 0
    yield "".join(chunks).encode()


def _encode_parts(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield "{"
        for i, (name, one) in enumerate(value.items()):
            yield f"{',' if i else ''}{encode(name)}:"
            yield from _encode_parts(one)
        yield "}"
    elif isinstance(value, list) and len(value) > VALUES:
        for start in range(0, len(value), VALUES):
            yield ("," if start else "[") + encode(value[start : start + VALUES])[1:-1]
        yield "]"
    else:
        yield encode(value)


async def sent(answer: Answer, send: "Send", head_only: bool = False) -> None:
    """Send an answer, with the headers that all answers have."""
    headers = [
        *ALWAYS,
        (b"content-type", answer.kind.encode()),
        *((name.lower().encode(), value.encode()) for name, value in answer.headers.items()),
    ]
    content = answer.body if isinstance(answer.body, bytes) else None
    if content is not None:
        headers.append((b"content-length", str(len(content)).encode()))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    if content is None and not head_only:
        assert not isinstance(answer.body, bytes)
        await _send_parts(answer.body, send)
        return
    await send({"type": "http.response.body", "body": b"" if head_only or content is None else content})


async def _send_parts(parts: AsyncIterator[bytes], send: "Send") -> None:
    async for part in parts:
        async with asyncio.timeout(PATIENCE):  # a client that does not read must not block others
            await send({"type": "http.response.body", "body": part, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
