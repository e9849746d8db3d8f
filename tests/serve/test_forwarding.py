"""Requests that are passed on: what comes of them when the other process is slow, gone, or breaks off."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from unfog.live.errors import ServedElsewhereError
from unfog.serve import forwarding
from unfog.serve.errors import ServiceError
from unfog.serve.forwarding import Away, ForwardedRequest, forwarded_request
from unfog.serve.responses import Answer

KEY = "grüße-1".encode()
HEADERS = ((b"authorization", b"Bearer k"), (b"idempotency-key", KEY))
ASKED = ForwardedRequest("POST", b"/v1/problems/p'%7b/decide?x='1%20\"", HEADERS, b"{}")
STREAM = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\none\n\r\n"


async def yes() -> bool:
    return True


async def no() -> bool:
    return False


@asynccontextmanager
async def other(*parts: bytes, end: bool = True) -> AsyncIterator[tuple[ServedElsewhereError, list[bytes]]]:
    """A process that answers with these bytes, and then ends the connection or does not."""
    seen: list[bytes] = []
    over = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            seen.append(await reader.readuntil(b"{}"))
            writer.write(b"".join(parts))
            if not end:
                await over.wait()
        finally:  # also where the loop ends before
            writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        try:
            yield ServedElsewhereError("there", f"http://{host}:{port}/under/"), seen
        finally:
            over.set()


async def sent(there: ServedElsewhereError, still: Callable[[], Awaitable[bool]] = yes) -> Answer:
    away = Away()
    try:
        answer = await asyncio.wait_for(away.ask(there, ASKED, still), 20)
        return answer._replace(body=await answer.content())
    finally:
        await away.close()


def told(*parts: bytes, end: bool = True, still: Callable[[], Awaitable[bool]] = yes) -> tuple[Answer, bytes]:
    """What is passed back, and what the other process was sent."""

    async def ask() -> tuple[Answer, bytes]:
        async with other(*parts, end=end) as (there, seen):
            return await sent(there, still), seen[0]

    return asyncio.run(ask())


def test_it_goes_out_as_it_came_and_comes_back_as_it_is() -> None:
    """With nothing of httpx's own: no more headers, no other way to write an address."""
    head = b"HTTP/1.1 503 Busy\r\ncontent-type: application/problem+json\r\nretry-after: 7\r\nx-own: 1\r\n"
    answer, out = told(head + b"content-length: 2\r\n\r\n{}", end=False)
    assert answer == Answer(b"{}", 503, "application/problem+json", {"retry-after": "7"})
    first, *headers = out.removesuffix(b"\r\n\r\n{}").split(b"\r\n")
    assert first == b"POST /under/v1/problems/p'%7b/decide?x='1%20\" HTTP/1.1"
    found = {name.lower(): value for name, value in (one.split(b": ", 1) for one in headers)}
    assert found.pop(b"host").startswith(b"127.0.0.1:")
    assert found == dict(HEADERS) | {b"connection": b"close", b"content-length": b"2"}


def test_what_is_set_for_httpx_in_the_environment_is_nothing_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert told(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")[0].body == b"{}"


def test_an_answer_that_says_to_ask_elsewhere_is_the_answer() -> None:
    head = b"HTTP/1.1 307 Else\r\nlocation: http://127.0.0.1:9/\r\nset-cookie: a=b\r\n"
    assert told(head + b"content-length: 0\r\n\r\n")[0] == Answer(b"", 307)


def test_each_has_a_connection_of_its_own() -> None:
    """One that was kept might be that of a process that has gone away since."""

    async def ask() -> tuple[int, int]:
        async with other(STREAM, b"0\r\n\r\n", end=False) as (there, seen):
            away = Away()
            for _ in range(3):
                await (await away.ask(there, ASKED, yes)).content()
            await asyncio.sleep(0)
            pool = away._client._transport._pool  # type: ignore[attr-defined]
            return len(seen), len(pool.connections)

    assert asyncio.run(asyncio.wait_for(ask(), 20)) == (3, 0)


def test_a_long_answer_comes_in_parts_and_one_that_breaks_off_is_no_answer() -> None:
    answer, _ = told(STREAM, b"4\r\ntwo\n\r\n0\r\n\r\n")
    assert answer.body == b"one\ntwo\n"
    with pytest.raises(ServiceError, match="did not answer"):
        told(STREAM)


def test_who_falls_silent_in_the_middle_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forwarding, "SILENT", 0.05)
    for head in (STREAM, b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{}"):
        with pytest.raises(ServiceError, match="did not answer"):
            told(head, end=False)


def test_who_lost_the_problem_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forwarding, "LOOK", 0.01)
    with pytest.raises(ServiceError, match="lost it before it answered; retry with the same idempotency key"):
        told(end=False, still=no)


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{}", b"no HTTP\r\n\r\n"])
def test_who_does_not_answer_is_told_of(said: bytes) -> None:
    with pytest.raises(ServiceError, match="did not answer; retry with the same idempotency key") as found:
        told(said)
    assert (found.value.status, found.value.headers) == (503, {"Retry-After": "1"})


def test_who_cannot_be_reached_has_done_nothing() -> None:
    with pytest.raises(ServiceError, match="cannot be reached; nothing was done"):
        asyncio.run(sent(ServedElsewhereError("there", "http://127.0.0.1:9")))


def test_no_more_than_so_many_wait_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forwarding, "MOST", 2)
    monkeypatch.setattr(forwarding, "LOOK", 0.05)

    async def ask() -> list[object]:
        async with other(end=False) as (there, _):
            away = Away()
            first = await asyncio.gather(
                *(away.ask(there, ASKED, no) for _ in range(3)), return_exceptions=True
            )
            return [*first, *await asyncio.gather(away.ask(there, ASKED, no), return_exceptions=True)]

    said = [str(one) for one in asyncio.run(asyncio.wait_for(ask(), 20))]
    assert ["already" in one for one in said] == [False, False, True, False]


def test_what_was_passed_on_is_not_passed_on_again() -> None:
    scope = {
        "method": "GET",
        "path": "/v1/problems/a b",
        "raw_path": b"/v1/problems/a%20b",
        "query_string": b"x=%20",
    }
    headers = {b"authorization": b"Bearer k", b"cookie": b"no", b"content-type": b"application/json"}
    first = forwarded_request(scope, headers, b"")
    assert (first.method, first.target) == ("GET", b"/v1/problems/a%20b?x=%20")
    assert dict(first.headers) == {
        b"authorization": b"Bearer k",
        b"content-type": b"application/json",
        b"unfog-forwarded": b"1",
    }
    with pytest.raises(ServiceError, match="asked by another that does not") as found:
        forwarded_request(scope, dict(first.headers), b"")
    assert found.value.status == 503
