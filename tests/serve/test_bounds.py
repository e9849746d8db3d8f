"""What a request may take: size, time, connections. Raw bytes over a socket, as no client would send them."""

import re
import socket
import time
from collections.abc import Iterator

import pytest

from tests.serve.running import Running, running
from unfog.serve import responses, server
from unfog.serve.settings import Settings

POST = b"POST /v1/problems/walks/decide HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("bounds") / "a.unfog", Settings(body=4096)) as found:
        found.make()
        yield found


def connected(service: Running) -> socket.socket:
    host, port = service.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=10)


def answered(service: Running, *parts: bytes) -> bytes:
    """What comes back."""
    with connected(service) as found:
        try:
            for part in parts:
                found.sendall(part)
        except (BrokenPipeError, ConnectionResetError):
            pass
        return rest(found)


def rest(found: socket.socket) -> bytes:
    """All that comes until an answer is whole, or the service ends the connection."""
    said = b""
    try:
        while not is_whole(said) and (part := found.recv(65536)):
            said += part
    except ConnectionResetError:
        pass
    return said


def is_whole(said: bytes) -> bool:
    head, mark, body = said.partition(b"\r\n\r\n")
    length = re.search(rb"\r\ncontent-length: (\d+)", head.lower())
    return bool(mark) and length is not None and len(body) >= int(length[1])


def status(said: bytes) -> int:
    return int(said.split(b" ")[1])


def test_a_body_that_says_it_is_too_large_is_not_read(service: Running) -> None:
    for length in (b"4097", b"52428800", b"9" * 19):
        assert status(answered(service, POST + b"Content-Length: " + length + b"\r\n\r\n")) == 413


def test_a_body_in_pieces_is_counted(service: Running) -> None:
    piece = b"400\r\n" + b" " * 1024 + b"\r\n"
    said = answered(service, POST + b"Transfer-Encoding: chunked\r\n\r\n", *[piece] * 64)
    assert (status(said), b"more than 4096 bytes" in said) == (413, True)
    few = answered(service, POST + b"Transfer-Encoding: chunked\r\n\r\n", piece, b"2\r\n{}\r\n0\r\n\r\n")
    assert status(few) == 422


def test_fifty_megabytes_are_refused_and_the_next_request_is_answered(service: Running) -> None:
    found = service.http.post("/v1/problems/walks/decide", content=b"[" * (50 << 20))
    assert found.status_code == 413
    assert service.http.get("/v1/problems/walks").status_code == 200


def test_two_lengths_are_no_request(service: Running) -> None:
    """What a proxy may read one way and we another."""
    both = POST + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    twice = POST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}"
    for raw in (both, twice):
        assert status(answered(service, raw)) == 400


def test_deep_nesting_is_refused(service: Running) -> None:
    for text in ("[" * 2000, '{"context":' * 300 + "1" + "}" * 300, "[" * 17 + "]" * 17):
        found = service.http.post(
            "/v1/problems/walks/decide", content=text, headers={"Content-Type": "application/json"}
        )
        assert found.status_code == 400


def test_a_slow_body_is_given_up(service: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(responses, "PATIENCE", 0.3)
    said = answered(service, POST + b"Content-Length: 20\r\n\r\n{")
    assert (status(said), b"did not come within 0.3 seconds" in said) == (408, True)


def test_a_slow_head_is_given_up(service: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also after a request that was answered, and where nothing is sent at all."""
    monkeypatch.setattr(server, "HEAD_SECONDS", 0.3)
    for first in (b"", b"GET /heal", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /heal"):
        with connected(service) as found:
            found.sendall(first)
            started, said = time.monotonic(), b""
            found.settimeout(5)
            while part := found.recv(65536):
                said += part
            assert time.monotonic() - started < 4  # it is ended, not waited for
            assert said.count(b"HTTP/1.1 200") == first.count(b"\r\n\r\n")


def test_a_large_head_is_refused(service: Running) -> None:
    line = b"X-More: " + b"x" * 1000 + b"\r\n"
    with connected(service) as found:
        found.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + line * 60)
        time.sleep(0.1)
        found.sendall(line * 10)
        assert status(found.recv(65536)) == 400  # nothing is awaited any more
    assert service.http.get("/healthz").status_code == 200


def test_one_connection_too_many_is_told_so(service: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    service.http.get("/healthz")  # this one stays
    monkeypatch.setattr(server, "MOST", 3)
    others = [connected(service) for _ in range(2)]
    try:
        for one in others:
            one.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert status(one.recv(65536)) == 200
        said = answered(service, b"")
        assert (status(said), b"retry-after: 1" in said) == (503, True)
        assert service.http.get("/healthz").status_code == 200
    finally:
        for one in others:
            one.close()
