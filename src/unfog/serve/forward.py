"""A request for a problem that another process serves: it is passed on once, with the caller's own key.

Once, because two processes that each take the other for the owner would pass it on for ever. What the other
one answers is the answer; where it cannot be reached nothing is known, and the caller asks again.
"""

import asyncio
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import urlsplit

from starlette.types import Scope

from unfog.live.errors import Elsewhere
from unfog.serve.calls import Answer
from unfog.serve.refusals import busy

MARK = b"unfog-forwarded"
PASSED = (b"authorization", b"content-type", b"idempotency-key")
BACK = ("Retry-After", "WWW-Authenticate", "Allow")
PATIENCE = 15.0  # seconds


async def forwarded(
    found: Elsewhere, scope: Scope, headers: Mapping[bytes, bytes], body: bytes, path: str | None = None
) -> Answer:
    """What the process at another address answers; to a request of its own, where a `path` is given."""
    if MARK in headers:
        raise busy(f"This process does not serve the problem, and was asked by one that does not: {found}.")
    raw = scope.get("raw_path") or scope["path"].encode()
    target = raw.decode("ascii") + (f"?{text.decode('ascii')}" if (text := scope["query_string"]) else "")
    method = scope["method"] if path is None else "GET"
    passed = {name.decode(): headers[name].decode("latin-1") for name in PASSED if name in headers}
    passed[MARK.decode()] = "1"
    return await asyncio.to_thread(_asked, found.url, method, path or target, passed, body)


def _asked(url: str, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
    place = urlsplit(url)
    kind = HTTPSConnection if place.scheme == "https" else HTTPConnection
    connection = kind(place.netloc, timeout=PATIENCE)
    try:
        connection.request(method, place.path.rstrip("/") + target, body or None, headers)
        answer = connection.getresponse()
        back = {name: value for name in BACK if (value := answer.getheader(name)) is not None}
        kind_of = answer.getheader("Content-Type", "application/json")
        return Answer(answer.read(), answer.status, kind_of, back)
    except (OSError, HTTPException):
        raise busy("The process that serves the problem cannot be reached; ask again.") from None
    finally:
        connection.close()
