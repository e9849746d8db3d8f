"""Forwarding: requests for problems that another process serves, passed on once with the caller's key.

Only once, because two processes that each take the other for the owner would pass a request on for ever. The
answer of the other process is returned unchanged. We wait for it as long as the other process owns the
problem: a suspended process keeps its connections, but loses its lease. If no answer comes, nobody knows what
was done, and the caller has to retry.

Each request has a connection of its own. On a reused connection, a process that has gone away would look like
one that does not answer; if no connection can be made, nothing was done.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from unfog.live.errors import ServedElsewhereError
from unfog.serve.errors import JSON, ServiceError, busy
from unfog.serve.responses import Answer

if TYPE_CHECKING:
    import httpx
    from starlette.types import Scope

MARK = b"unfog-forwarded"
PASSED = (b"authorization", b"content-type", b"idempotency-key")
BACK = ("retry-after", "www-authenticate", "allow")
LOOK = 0.5  # seconds between checks that the other process still owns the problem
MOST = 200  # forwarded requests that may wait for answers
CONNECT = 2.0  # seconds to connect
SILENT = 30.0  # seconds allowed between two parts of an answer


class ForwardedRequest(NamedTuple):
    """A request to another process."""

    method: str
    target: bytes  # path and query, as in the request line
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes


def forwarded_request(
    scope: "Scope", headers: Mapping[bytes, bytes], body: bytes, path: str | None = None
) -> ForwardedRequest:
    """A caller's request as it is forwarded; with `path`, a GET request on the caller's behalf."""
    if MARK in headers:
        raise busy("This process does not serve the problem, and was asked by another that does not.")
    caller_headers = ((name, headers[name]) for name in PASSED if name in headers)
    all_headers = (*caller_headers, (MARK, b"1"))
    if path is not None:
        return ForwardedRequest("GET", path.encode(), all_headers, body)
    query = scope["query_string"]
    target = scope["raw_path"] + (b"?" + query if query else b"")
    return ForwardedRequest(scope["method"], target, all_headers, body)


class Away:
    """Forwards requests to other processes; used by the event loop alone."""

    def __init__(self) -> None:
        """No request is forwarded yet."""
        import httpx

        self._count = 0
        self._client = httpx.AsyncClient(
            trust_env=False,  # no proxies
            verify=ssl.create_default_context(),  # what the machine trusts, not httpx's list
            timeout=httpx.Timeout(None, connect=CONNECT),  # an answer may take long to begin
            limits=httpx.Limits(max_connections=None),  # MOST limits them
        )

    async def ask(
        self, other: ServedElsewhereError, request: ForwardedRequest, is_owner: Callable[[], Awaitable[bool]]
    ) -> Answer:
        """Forward a request and return the answer; `is_owner` says whether the process has the problem."""
        if self._count >= MOST:
            raise busy(f"{MOST} requests wait for other processes already; nothing was done.")
        self._count += 1
        try:
            return await self._send(other.url, request, is_owner)
        finally:
            self._count -= 1

    async def close(self) -> None:
        """Close the client."""
        await self._client.aclose()

    async def _send(
        self, url: str, request: ForwardedRequest, is_owner: Callable[[], Awaitable[bool]]
    ) -> Answer:
        import httpx

        target = urlsplit(url).path.rstrip("/").encode() + request.target
        headers = [*request.headers, (b"connection", b"close")]
        # httpx would normalise some targets in a URL, and it logs URLs, which may contain units.
        outgoing = httpx.Request(
            request.method, url, headers=headers, content=request.body, extensions={"target": target}
        )
        try:
            response = await _wait_while_owned(self._client.send(outgoing, stream=True), is_owner)
        except (httpx.ConnectError, httpx.ConnectTimeout):
            raise busy("The process that serves the problem cannot be reached; nothing was done.") from None
        except httpx.HTTPError:
            raise _outcome_unknown("did not answer") from None
        reply_headers = {name: response.headers[name] for name in BACK if name in response.headers}
        kind = response.headers.get("content-type", JSON)
        answer = Answer(_stream_body(response), response.status_code, kind, reply_headers)
        is_long = "content-length" not in response.headers
        return answer if is_long else answer._replace(body=await answer.content())


async def _wait_while_owned(
    work: "Coroutine[Any, Any, httpx.Response]", is_owner: Callable[[], Awaitable[bool]]
) -> "httpx.Response":
    """Wait for the response as long as the other process has the problem."""
    task = asyncio.create_task(work)
    try:
        while not (await asyncio.wait([task], timeout=LOOK))[0]:
            if not await is_owner() and not task.done():
                raise _outcome_unknown("lost it before it answered")
        return task.result()
    finally:
        task.cancel()


async def _stream_body(response: "httpx.Response") -> AsyncIterator[bytes]:
    """Yield the body as it arrives; raise if it breaks off."""
    import httpx

    async with aclosing(response):
        parts = response.aiter_bytes()
        try:
            while True:
                async with asyncio.timeout(SILENT):
                    part = await anext(parts, None)
                if part is None:
                    return
                yield part
        except (httpx.HTTPError, TimeoutError):
            raise _outcome_unknown("did not answer") from None


def _outcome_unknown(what: str) -> ServiceError:
    return busy(
        f"The process that served the problem {what}; retry with the same idempotency key to find out."
    )
