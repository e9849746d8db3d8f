"""Requests that are passed on: what comes of them when the other process is slow, gone, or breaks off."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from unfog.live.errors import Elsewhere
from unfog.serve import forwarding
from unfog.serve.errors import Refused
from unfog.serve.forwarding import FAILURES, Asked, Away, asked_by
from unfog.serve.responses import Answer

ASKED = Asked("POST", "/v1/problems/p/decide?x=1", (("authorization", "Bearer k"),), b"{}")
STREAM = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\none\n\r\n"


async def yes() -> bool:
    return True


async def no() -> bool:
    return False


@asynccontextmanager
async def other(*parts: bytes, end: bool = True) -> AsyncIterator[tuple[Elsewhere, list[bytes]]]:
    """A process that answers with these bytes, and then ends the connection or does not."""
    seen: list[bytes] = []
    over = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.readuntil(b"{}"))
        writer.write(b"".join(parts))
        if not end:
            await over.wait()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        try:
            yield Elsewhere("there", f"http://{host}:{port}/under/"), seen
        finally:
            over.set()


def told(*parts: bytes, end: bool = True, still: Callable[[], Awaitable[bool]] = yes) -> tuple[Answer, bytes]:
    """What is passed back, and what the other process was sent."""

    async def ask() -> tuple[Answer, bytes]:
        async with other(*parts, end=end) as (there, seen):
            answer = await asyncio.wait_for(Away().ask(there, ASKED, still), 20)
            if not isinstance(answer.body, bytes):
                answer = answer._replace(body=b"".join([part async for part in answer.body]))
            return answer, seen[0]

    return asyncio.run(ask())


def test_it_goes_out_as_it_came_and_comes_back_as_it_is() -> None:
    head = b"HTTP/1.1 503 Busy\r\ncontent-type: application/problem+json\r\nretry-after: 7\r\nx-own: 1\r\n"
    answer, sent = told(head + b"content-length: 2\r\n\r\n{}", end=False)
    assert answer == Answer(b"{}", 503, "application/problem+json", {"retry-after": "7"})
    assert sent.startswith(b"POST /under/v1/problems/p/decide?x=1 HTTP/1.1\r\n")
    assert b"\r\nauthorization: Bearer k\r\n" in sent.replace(b"Authorization", b"authorization")


def test_a_long_answer_comes_in_parts_and_one_that_breaks_off_is_no_answer() -> None:
    answer, _ = told(STREAM, b"4\r\ntwo\n\r\n0\r\n\r\n")
    assert answer.body == b"one\ntwo\n"
    with pytest.raises(FAILURES):
        told(STREAM)


def test_who_lost_the_problem_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forwarding, "LOOK", 0.01)
    with pytest.raises(Refused, match="lost it before it answered; to ask again with the same key"):
        told(end=False, still=no)


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{}", b"no HTTP\r\n\r\n"])
def test_who_does_not_answer_is_told_of(said: bytes) -> None:
    with pytest.raises(Refused, match="did not answer; to ask again with the same key tells more") as found:
        told(said)
    assert (found.value.status, found.value.headers) == (503, {"Retry-After": "1"})


def test_who_cannot_be_reached_has_done_nothing() -> None:
    with pytest.raises(Refused, match="cannot be reached; nothing was done"):
        asyncio.run(Away().ask(Elsewhere("there", "http://127.0.0.1:9"), ASKED, yes))


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
    first = asked_by(scope, headers, b"")
    assert (first.method, first.target) == ("GET", "/v1/problems/a%20b?x=%20")
    assert dict(first.headers) == {
        "authorization": "Bearer k",
        "content-type": "application/json",
        "unfog-forwarded": "1",
    }
    with pytest.raises(Refused, match="asked by another that does not") as found:
        asked_by(scope, {name.encode(): value.encode() for name, value in first.headers}, b"")
    assert found.value.status == 503
