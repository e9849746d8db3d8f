"""What takes long is bounded, and holds up neither decisions nor the memory of the machine."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest

from tests.serve.running import Running, running
from tests.serve.test_bounds import connected, rest, status
from unfog.live import snapshot
from unfog.serve import handlers, responses
from unfog.serve.errors import ServiceError
from unfog.serve.operations import OPERATIONS
from unfog.serve.service import LARGE, MOST, Room

ROWS = {one.id: one for one in OPERATIONS}
ASK = {"context": {"steps": 1.5, "sleep": None}}
TAKE_IN = (
    b"POST /v1/problems/%s/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n"
    b"Connection: close\r\nContent-Length: 4\r\n\r\n"
)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path / "a.unfog") as found:
        found.make()
        yield found


@pytest.mark.parametrize(("name", "most"), [("history", MOST), ("import_events", LARGE), ("replay", 1)])
def test_so_many_and_no_more(name: str, most: int) -> None:
    room = Room()
    with ExitStack() as places:
        for _ in range(most):
            places.enter_context(room.place(ROWS[name]))
        with pytest.raises(ServiceError) as refused, room.place(ROWS[name]):
            pass
        assert (refused.value.status, int(refused.value.headers["Retry-After"]) > 0) == (503, True)
    with room.place(ROWS[name]):
        pass


def test_logs_and_tables_share_their_places() -> None:
    room = Room()
    with room.place(ROWS["import_events"]), room.place(ROWS["import_decisions"]), pytest.raises(ServiceError):
        room.place(ROWS["import_decisions"]).__enter__()


def test_one_replay_at_a_time_and_decisions_meanwhile(
    service: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on, read = threading.Event(), threading.Event(), snapshot.apply_rows

    def slow(*told: Any) -> Any:
        begun.set()
        assert go_on.wait(10)
        return read(*told)

    monkeypatch.setattr(snapshot, "apply_rows", slow)
    found = list[Any]()
    first = threading.Thread(target=lambda: found.append(service.http.post("/v1/problems/walks/replay")))
    first.start()
    assert begun.wait(10)
    second = service.http.post("/v1/problems/walks/replay")
    assert (second.status_code, second.headers["Retry-After"]) == (503, "5")
    assert service.http.post("/v1/problems/walks/decide", json=ASK).status_code == 200
    go_on.set()
    first.join(10)
    assert (found[0].status_code, found[0].json()["same"]) == (200, True)
    assert service.http.post("/v1/problems/walks/replay").status_code == 200


def test_a_log_too_many_is_refused_before_it_comes(service: Running) -> None:
    """A place is free again once its request is answered."""
    half = [connected(service) for _ in range(LARGE)]
    for i, one in enumerate(half):
        one.sendall(TAKE_IN % b"n%d" % i)
    with connected(service) as third:
        third.sendall(TAKE_IN % b"other")
        refused = rest(third)
    assert (status(refused), b"retry-after: 5" in refused) == (503, True)
    assert service.http.post("/v1/problems/walks/decide", json=ASK).status_code == 200
    for one in half:
        one.sendall(b"nope")
        assert status(rest(one)) in (400, 422)
        one.close()
    with connected(service) as fourth:
        fourth.sendall(TAKE_IN % b"other")
        fourth.settimeout(0.2)
        with pytest.raises(socket.timeout):
            fourth.recv(1)


def test_a_place_is_held_until_the_answer_is_sent(service: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """What streams takes memory for as long as somebody listens."""
    go_on, taken = threading.Event(), service.service.room._taken

    def slow(lines: Iterator[str]) -> Iterator[bytes]:
        yield next(lines).encode()
        assert go_on.wait(10)
        yield b"end"

    monkeypatch.setattr(handlers, "_chunks", slow)
    with service.http.stream("GET", "/v1/problems/walks/events") as answer:
        parts = answer.iter_bytes()
        assert next(parts)
        assert taken[""] == 1
        go_on.set()
        assert list(parts) == [b"end"]
    assert service.http.get("/healthz").status_code == 200
    assert taken[""] == 0


def test_who_does_not_listen_is_given_up(service: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handlers, "_chunks", lambda _: repeat(bytes(1 << 20)))
    monkeypatch.setattr(responses, "PATIENCE", 0.2)
    with connected(service) as deaf:
        deaf.sendall(b"GET /v1/problems/walks/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        deaf.recv(1)
        until = time.monotonic() + 10
        while service.service.room._taken[""] and time.monotonic() < until:
            time.sleep(0.02)
        assert service.service.room._taken[""] == 0


def test_all_that_is_done_beside_the_writers_has_a_place() -> None:
    beside = {one.id for one in OPERATIONS if one.beside}
    assert {one.id for one in OPERATIONS if one.large or one.alone} <= beside
