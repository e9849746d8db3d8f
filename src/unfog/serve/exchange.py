"""Bytes in and out: a body read up to its limit, an answer with the headers that all answers have."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

from starlette.types import Receive, Scope, Send

from unfog.serve.calls import Answer
from unfog.serve.media import JSON, PROBLEM, encode
from unfog.serve.refusals import Refusal, Refused

PATIENCE = 30.0  # seconds for a body, and for a part of an answer to be taken
POLICY = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"
ALWAYS = (
    (b"cache-control", b"no-store"),
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


def as_json(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    """An answer that says it in JSON."""
    return Answer(encode(value).encode(), status, JSON, headers or {})


def as_problem(found: Refusal) -> Answer:
    """A refusal."""
    return Answer(encode(found.body).encode(), found.status, PROBLEM, found.headers)


def headers_of(scope: Scope) -> dict[bytes, bytes]:
    """By their names in small letters; the last of several of the same name."""
    return dict(scope["headers"])


async def body_of(receive: Receive, headers: Mapping[bytes, bytes], most: int) -> bytes:
    """All of a body, refused as soon as it is known to be too large, or takes too long to come."""
    try:
        async with asyncio.timeout(PATIENCE):
            return await _all_of(receive, headers, most)
    except TimeoutError:
        said = f"The body did not come within {PATIENCE:g} seconds; nothing was done."
        raise Refused(408, said, {"Connection": "close"}) from None


async def _all_of(receive: Receive, headers: Mapping[bytes, bytes], most: int) -> bytes:
    told = headers.get(b"content-length", b"0")
    if not told.isdigit() or int(told[:20]) > most:
        raise Refused(413, f"The body has {told[:20].decode('latin-1')} bytes; allowed: {most}.")
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Refused(400, "The body was cut short.")
        part = message.get("body", b"")
        size += len(part)
        if size > most:
            raise Refused(413, f"The body has more than {most} bytes.")
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


async def sent(answer: Answer, send: Send, head_only: bool = False) -> None:
    """Send it."""
    headers = [
        *ALWAYS,
        (b"content-type", answer.kind.encode()),
        *((name.lower().encode(), value.encode()) for name, value in answer.headers.items()),
    ]
    whole = answer.body if isinstance(answer.body, bytes) else None
    if whole is not None:
        headers.append((b"content-length", str(len(whole)).encode()))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    if whole is None and not head_only:
        assert not isinstance(answer.body, bytes)
        await _streamed(answer.body, send)
        return
    await send({"type": "http.response.body", "body": b"" if head_only or whole is None else whole})


async def _streamed(parts: AsyncIterator[bytes], send: Send) -> None:
    async for part in parts:
        async with asyncio.timeout(PATIENCE):  # who does not listen must not hold the place of others
            await send({"type": "http.response.body", "body": part, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
