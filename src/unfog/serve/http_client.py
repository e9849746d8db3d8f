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
from contextlib import closing, suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from time import sleep
from typing import Any, NamedTuple
from urllib.parse import SplitResult, urlsplit

from unfog.live.errors import StoreError
from unfog.serve.errors import JSON, LINES, raised
from unfog.validation import InputError, shown

FIRST, LONGEST = 0.1, 30.0  # seconds before asking again: at first, and at most
LONG = 3600.0  # seconds for what goes through a whole log
LATER = (429, 502, 503, 504)  # statuses of "not now"


class Reply(NamedTuple):
    """What came back."""

    status: int
    body: bytes
    after: float  # seconds after which to ask again, as the service wants it


class Sent(NamedTuple):
    """What goes out."""

    method: str
    path: str
    body: bytes | None
    headers: dict[str, str]


class Wire:
    """Where the service is, and how patient one is with it. Threads may share it."""

    def __init__(self, url: str, key: str | None, timeout: float, retries: int) -> None:
        """Nothing is asked yet."""
        place = check_address("url", url, "the address of a service, such as http://127.0.0.1:8000")
        self.url, self._timeout, self._retries = url.rstrip("/"), timeout, retries
        self._secure, self._host, self._under = place.scheme == "https", place.netloc, place.path.rstrip("/")
        self._headers = {"Accept": JSON}
        if key is not None:
            self._headers["Authorization"] = f"Bearer {key}"
        self._idle, self._pid = deque[HTTPConnection](), os.getpid()
        weakref.finalize(self, _close, self._idle)

    def ask(
        self,
        method: str,
        path: str,
        told: Any = None,
        *,
        again: bool,
        lines: str | None = None,
        long: bool = False,
    ) -> bytes:
        """What the service answers; asked `again` where it may be and there is no answer yet."""
        sent = self._sent(method, path, told, lines)
        for attempt in range(self._retries + 1):
            last = attempt == self._retries or not again
            try:
                reply = self._alone(sent, long) if long or not again else self._kept(sent)
            except (OSError, HTTPException) as error:
                if last:
                    raise StoreError(f"{self.url} does not answer: {_reason(error)}") from error
                reply = Reply(0, b"", 0.0)
            if reply.status and (last or reply.status not in LATER):
                return _answer(reply)
            sleep(_pause(attempt, reply.after))
        raise AssertionError("the last attempt returns or raises")

    def _sent(self, method: str, path: str, told: Any, lines: str | None) -> Sent:
        """With a body of JSON or of lines, if there is one."""
        if lines is not None:
            body, kind = lines.encode(), {"Content-Type": LINES}
        elif told is not None:
            body, kind = json.dumps(told, allow_nan=False).encode(), {"Content-Type": JSON}
        else:
            return Sent(method, self._under + path, None, self._headers)
        return Sent(method, self._under + path, body, self._headers | kind)

    def _kept(self, sent: Sent) -> Reply:
        """Over a connection that was kept; one that the service has closed meanwhile is made anew at once."""
        old = self._taken()
        if old is not None:
            with suppress(ConnectionError, HTTPException):
                return self._over(old, sent)
        return self._over(self._new(self._timeout), sent)

    def _over(self, connection: HTTPConnection, sent: Sent) -> Reply:
        """Over this connection, which is kept for the next one only where all went well."""
        whole = False
        try:
            reply, whole = _exchanged(connection, sent)
        finally:
            if not whole:
                connection.close()
        if whole:
            self._idle.append(connection)
        return reply

    def _alone(self, sent: Sent, long: bool) -> Reply:
        """Over a connection of its own."""
        with closing(self._new(LONG if long else self._timeout)) as connection:
            return _exchanged(connection, sent)[0]

    def _taken(self) -> HTTPConnection | None:
        """A connection that nobody uses, if there is one; after a fork the parent's are not ours."""
        if self._pid != os.getpid():
            self._pid = os.getpid()
            _close(self._idle)
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _new(self, timeout: float) -> HTTPConnection:
        kind = HTTPSConnection if self._secure else HTTPConnection
        return kind(self._host, timeout=timeout)

    def close(self) -> None:
        """Close connections that nobody uses."""
        _close(self._idle)


def check_address(field: str, url: str, allowed: str) -> SplitResult:
    """The parts of a service's address; a wrong one is refused, and not shown if it may hold a password."""
    try:
        place = urlsplit(url)
        sound = place.scheme in ("http", "https") and place.hostname and place.port != 0
    except (ValueError, AttributeError, TypeError):
        sound = False
    if not sound or place.username is not None or place.query or place.fragment:
        raise InputError(field, "with a name or a password" if "@" in str(url) else shown(url), allowed)
    return place


def _exchanged(connection: HTTPConnection, sent: Sent) -> tuple[Reply, bool]:
    """What came back, and whether the connection may be used again."""
    connection.request(sent.method, sent.path, sent.body, sent.headers)
    answer = connection.getresponse()
    reply = Reply(answer.status, answer.read(), _seconds(answer.getheader("Retry-After")))
    return reply, not answer.will_close


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
