"""Requests to a service with the standard library alone: connections are reused, and requests retried.

If an answer is lost, nobody knows whether the request was carried out. So only safe requests are retried:
those that change nothing, and those with an idempotency key. Any other gets a connection of its own, which
the service cannot have closed meanwhile, and fails if no answer comes.
"""

import json
import os
import random
import weakref
from collections import deque
from contextlib import closing, suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from time import sleep
from typing import Any, NamedTuple
from urllib.parse import SplitResult, urlsplit

from unfog.live.errors import StoreError
from unfog.serve.errors import JSON, LINES, raised
from unfog.validation import InputError, display

FIRST, LONGEST = 0.1, 30.0  # seconds before the first retry, and before any retry at most
LONG = 3600.0  # timeout in seconds of requests that go through a whole log
LATER = (429, 502, 503, 504)  # statuses of "not now"


class Reply(NamedTuple):
    """An HTTP response."""

    status: int
    body: bytes
    after: float  # seconds to wait before a retry, as the service asks


class Request(NamedTuple):
    """An HTTP request."""

    method: str
    path: str
    body: bytes | None
    headers: dict[str, str]


class Wire:
    """Connections to a service, with timeouts and retries. Threads may share it."""

    def __init__(self, url: str, key: str | None, timeout: float, retries: int) -> None:
        """No request is sent yet."""
        parts = check_address("url", url, "the address of a service, such as http://127.0.0.1:8000")
        self.url, self._timeout, self._retries = url.rstrip("/"), timeout, retries
        self._secure, self._host = parts.scheme == "https", parts.netloc
        self._base_path = parts.path.rstrip("/")
        self._headers = {"Accept": JSON}
        if key is not None:
            self._headers["Authorization"] = f"Bearer {key}"
        self._idle, self._pid = deque[HTTPConnection](), os.getpid()
        weakref.finalize(self, _close, self._idle)

    def ask(
        self,
        method: str,
        path: str,
        data: Any = None,
        *,
        again: bool,
        lines: str | None = None,
        long: bool = False,
    ) -> bytes:
        """Send a request and return the body of the answer; `again`: whether it may be retried."""
        request = self._build_request(method, path, data, lines)
        for attempt in range(self._retries + 1):
            is_last = attempt == self._retries or not again
            try:
                reply = self._send_alone(request, long) if long or not again else self._send_reusing(request)
            except (OSError, HTTPException) as error:
                if is_last:
                    raise StoreError(f"{self.url} does not answer: {_describe(error)}") from error
                reply = Reply(0, b"", 0.0)
            if reply.status and (is_last or reply.status not in LATER):
                return _check_reply(reply)
            sleep(_compute_pause(attempt, reply.after))
        raise AssertionError("the last attempt returns or raises")

    def _build_request(self, method: str, path: str, data: Any, lines: str | None) -> Request:
        """Build a request with a body of JSON or NDJSON, if there is one."""
        if lines is not None:
            body, content_type = lines.encode(), {"Content-Type": LINES}
        elif data is not None:
            body, content_type = json.dumps(data, allow_nan=False).encode(), {"Content-Type": JSON}
        else:
            return Request(method, self._base_path + path, None, self._headers)
        return Request(method, self._base_path + path, body, self._headers | content_type)

    def _send_reusing(self, request: Request) -> Reply:
        """Send it over an idle connection; if the service has closed that, over a new one."""
        idle = self._take_idle()
        if idle is not None:
            with suppress(ConnectionError, HTTPException):
                return self._send_over(idle, request)
        return self._send_over(self._make_connection(self._timeout), request)

    def _send_over(self, connection: HTTPConnection, request: Request) -> Reply:
        """Send it over this connection, which is kept for the next request only if all went well."""
        can_reuse = False
        try:
            reply, can_reuse = _exchange(connection, request)
        finally:
            if not can_reuse:
                connection.close()
        if can_reuse:
            self._idle.append(connection)
        return reply

    def _send_alone(self, request: Request, long: bool) -> Reply:
        """Send it over a connection of its own."""
        with closing(self._make_connection(LONG if long else self._timeout)) as connection:
            return _exchange(connection, request)[0]

    def _take_idle(self) -> HTTPConnection | None:
        """Take an idle connection, if there is one; after a fork, drop those of the parent process."""
        if self._pid != os.getpid():
            self._pid = os.getpid()
            _close(self._idle)
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _make_connection(self, timeout: float) -> HTTPConnection:
        kind = HTTPSConnection if self._secure else HTTPConnection
        return kind(self._host, timeout=timeout)

    def close(self) -> None:
        """Close idle connections."""
        _close(self._idle)


def check_address(field: str, url: str, allowed: str) -> SplitResult:
    """Return the parts of a service's address. The error does not show one that may hold a password."""
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except (ValueError, AttributeError, TypeError):
        is_valid = False
    if not is_valid or parts.username is not None or parts.query or parts.fragment:
        raise InputError(field, "with a name or a password" if "@" in str(url) else display(url), allowed)
    return parts


def _exchange(connection: HTTPConnection, request: Request) -> tuple[Reply, bool]:
    """Send a request; return the reply, and whether the connection can be reused."""
    connection.request(request.method, request.path, request.body, request.headers)
    answer = connection.getresponse()
    reply = Reply(answer.status, answer.read(), _parse_seconds(answer.getheader("Retry-After")))
    return reply, not answer.will_close


def _close(idle: deque[HTTPConnection]) -> None:
    while idle:
        idle.pop().close()


def _check_reply(reply: Reply) -> bytes:
    """Return the body, or raise the error that it describes."""
    if reply.status < 400:
        return reply.body
    raise raised(reply.status, reply.body)


def _parse_seconds(text: str | None) -> float:
    """Seconds from a header `Retry-After`; dates are ignored."""
    return float(text) if text is not None and text.isascii() and text.isdigit() else 0.0


def _compute_pause(attempt: int, after: float) -> float:
    """Exponential backoff with jitter, but no less than `after` unless that exceeds the limit."""
    delay = FIRST * 2**attempt * random.uniform(0.5, 1.5)
    return min(max(delay, after * random.uniform(1.0, 1.25)), LONGEST)


def _describe(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
