"""Requests to a service with the standard library alone: connections that are kept, and asking again.

A lost answer says nothing of whether the thing was done. So only what may be asked twice is asked again: what
changes nothing, and what carries a key. The rest goes over a connection of its own, which cannot have been
closed meanwhile, and fails with the first answer that does not come.
"""

import json
import os
import random
import weakref
from collections import deque
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from time import sleep
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from unfog.inputs import InputError
from unfog.live.errors import StoreError
from unfog.serve.raised import raised

FIRST, LONGEST = 0.1, 30.0  # seconds before asking again: at first, and at most
LATER = (429, 502, 503, 504)  # statuses of "not now"
LINES = "application/x-ndjson"


class Reply(NamedTuple):
    """What came back."""

    status: int
    body: bytes
    after: float  # seconds after which to ask again, as the service wants it


class Wire:
    """Where the service is, and how patient one is with it. Threads may share it."""

    def __init__(self, url: str, key: str | None, timeout: float, retries: int) -> None:
        """Nothing is asked yet."""
        place = urlsplit(url) if isinstance(url, str) else urlsplit("")
        if place.scheme not in ("http", "https") or not place.hostname or place.query or place.fragment:
            raise InputError("url", repr(url), "the address of a service, such as http://127.0.0.1:8000")
        self.url, self._timeout, self._retries = url.rstrip("/"), timeout, retries
        self._secure, self._host, self._under = place.scheme == "https", place.netloc, place.path.rstrip("/")
        self._headers = {"Accept": "application/json"}
        if key is not None:
            self._headers["Authorization"] = f"Bearer {key}"
        self._idle, self._pid = deque[HTTPConnection](), os.getpid()
        weakref.finalize(self, _close, self._idle)

    def ask(
        self, method: str, path: str, told: Any = None, *, again: bool, lines: str | None = None
    ) -> bytes:
        """What the service answers; asked `again` where it may be and there is no answer yet."""
        body = None if told is None else json.dumps(told, allow_nan=False).encode()
        headers = dict(self._headers)
        if lines is not None:
            body, headers["Content-Type"] = lines.encode(), LINES
        elif body is not None:
            headers["Content-Type"] = "application/json"
        for attempt in range(self._retries + 1):
            last = attempt == self._retries or not again
            try:
                reply = self._tried(method, path, body, headers, kept=again)
            except (OSError, HTTPException) as error:
                if last:
                    raise StoreError(f"{self.url} does not answer: {_reason(error)}") from error
                reply = Reply(0, b"", 0.0)
            if reply.status and (last or reply.status not in LATER):
                return _answer(reply)
            sleep(_pause(attempt, reply.after))
        raise AssertionError("the last attempt returns or raises")

    def _tried(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], *, kept: bool
    ) -> Reply:
        """Once. A kept connection that the service has closed meanwhile is made anew, without a pause."""
        old = self._taken() if kept else None
        if old is not None:
            try:
                return self._sent(old, method, path, body, headers, kept)
            except (ConnectionError, HTTPException):
                pass
        return self._sent(self._new(), method, path, body, headers, kept)

    def _sent(
        self,
        connection: HTTPConnection,
        method: str,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str],
        kept: bool,
    ) -> Reply:
        """Over this connection, which is kept for the next one only where all went well."""
        whole = False
        try:
            connection.request(method, self._under + path, body, dict(headers))
            answer = connection.getresponse()
            reply = Reply(answer.status, answer.read(), _seconds(answer.getheader("Retry-After")))
            whole = kept and not answer.will_close
        finally:
            if not whole:
                connection.close()
        if whole:
            self._idle.append(connection)
        return reply

    def _taken(self) -> HTTPConnection | None:
        """A connection that nobody uses, if there is one; after a fork the parent's are not ours."""
        if self._pid != os.getpid():
            self._pid = os.getpid()
            _close(self._idle)
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _new(self) -> HTTPConnection:
        kind = HTTPSConnection if self._secure else HTTPConnection
        return kind(self._host, timeout=self._timeout)

    def close(self) -> None:
        """Close connections that nobody uses."""
        _close(self._idle)


def _close(idle: deque[HTTPConnection]) -> None:
    while idle:
        idle.pop().close()


def _answer(reply: Reply) -> bytes:
    """The body, or the error that it tells of."""
    if reply.status < 400:
        return reply.body
    raise raised(reply.status, reply.body)


def _seconds(told: str | None) -> float:
    """Of a header `Retry-After`; a date is not waited for."""
    return float(told) if told is not None and told.isascii() and told.isdigit() else 0.0


def _pause(attempt: int, told: float) -> float:
    """Longer each time, and not all callers at once; never before the service wants to be asked again."""
    grown = FIRST * 2**attempt * random.uniform(0.5, 1.5)
    return min(max(grown, told * random.uniform(1.0, 1.25)), LONGEST)


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
