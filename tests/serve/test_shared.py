"""Two services that share a database: a problem has one owner; whoever is asked, the answer is the same."""

import signal
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from tests.serve.pair import Load, Pair, check
from tests.services import database

pytestmark = pytest.mark.slow
NAME = "walks & naps"
AT = "/v1/problems/walks%20%26%20naps"
LOOKS = (
    "",
    "/belief?unit=ann",
    "/history",
    "/events",
    "/events?since=1&limit=1",
    "/diagnostics",
    "/pending",
    "/predict_rewards?context=%7B%22steps%22%3A1%2C%22sleep%22%3A0%7D",
)
HALF = (
    b"POST /v1/problems/x/decide HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b"Authorization: Bearer %s\r\nContent-Length: 99\r\n\r\n{"
)
ASK = {"context": {"steps": 1.0, "sleep": None}, "unit": "ann"}


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with database() as dsn:
        found = Pair(dsn)
        try:
            found.make(NAME)
            yield found
        finally:
            found.end()


def both(pair: Pair, method: str, path: str, **told: Any) -> tuple[Any, Any]:
    """What the owner answers, and what the other one does."""
    owner = pair.owner(NAME)
    return tuple(pair.ask(one, method, path, **told) for one in (owner, pair.other(owner)))  # type: ignore[return-value]


def test_who_does_not_own_a_problem_answers_like_the_owner(pair: Pair) -> None:
    here, there = both(pair, "POST", f"{AT}/decide", json={**ASK, "key": "k"})
    assert here.status_code == there.status_code == 200
    assert here.json() == there.json()
    reward = f"{AT}/decisions/{here.json()['id']}/reward"
    assert pair.ask(pair.other(pair.owner(NAME)), "POST", reward, json={"value": 1.0}).status_code == 200
    looks = [
        "",
        "/belief?unit=ann",
        "/history",
        "/events",
        "/events?since=1&limit=1",
        "/diagnostics",
        "/pending",
    ]
    for look in [*looks, "/predict_rewards?context=%7B%22steps%22%3A1%2C%22sleep%22%3A0%7D"]:
        here, there = both(pair, "GET", AT + look)
        assert here.status_code == there.status_code == 200, (look, there.text)
        assert here.content == there.content, look
        assert {**here.headers, "date": ""} == {**there.headers, "date": ""}, look
    keyed = {"headers": {"Idempotency-Key": "of the header"}, "json": ASK}
    here, there = both(pair, "POST", f"{AT}/decide", **keyed)
    assert here.json() == there.json()


def test_errors_are_the_owner_s(pair: Pair) -> None:
    made = pair.ask(pair.processes[0], "POST", f"{AT}/decide", json={**ASK, "key": "once"}).json()["id"]
    gone = pair.ask(pair.processes[0], "POST", f"{AT}/decide", json=ASK).json()["id"]
    pair.ask(pair.processes[1], "POST", f"{AT}/decisions/{made}/reward", json={"value": 1.0})
    pair.ask(pair.processes[1], "POST", f"{AT}/decisions/{gone}/cancel")
    wrong = {
        (404, f"{AT}/decisions/nobody/reward"): {"value": 1.0},
        (404, "/v1/problems/nobody/decide"): ASK,
        (409, f"{AT}/decide"): {"context": {"steps": 2.0, "sleep": 1.0}, "key": "once"},
        (409, f"{AT}/decisions/{made}/reward"): {"value": 2.0},
        (410, f"{AT}/decisions/{gone}/reward"): {"value": 2.0},
        (422, f"{AT}/pin"): {"arm": "fly"},
        (404, "/v1/problems/nobody/pin"): {"arm": ""},
    }
    for (status, path), told in wrong.items():
        here, there = both(pair, "POST", path, json=told)
        assert (here.status_code, there.status_code) == (status, status), (path, here.text, there.text)
        assert here.json() == there.json()
        assert there.headers["content-type"] == "application/problem+json"


def test_it_is_passed_on_once_and_with_the_caller_s_own_key(pair: Pair) -> None:
    other = pair.other(pair.owner(NAME))
    again = pair.ask(other, "POST", f"{AT}/decide", json=ASK, headers={"unfog-forwarded": "1"})
    assert again.status_code == 503
    assert "Retry-After" in again.headers
    told = {"headers": {"Authorization": f"Bearer {pair.reader}"}}
    assert pair.ask(other, "GET", AT, **told).status_code == 200
    assert pair.ask(other, "POST", f"{AT}/decide", json=ASK, **told).status_code == 403
    assert pair.ask(other, "GET", AT, headers={"Authorization": "Bearer unfog_no_key"}).status_code == 401


def test_all_problems_and_the_page_are_at_both(pair: Pair) -> None:
    pair.ask(pair.processes[1], "POST", "/v1/problems", json={"name": "second", **_terms(pair)})
    owners = {pair.owner(NAME).url, pair.owner("second").url}
    assert len(owners) == 2  # whoever was asked to make it has it
    for process in pair.processes:
        pair.ask(process, "POST", f"{AT}/decide", json=ASK)
    here, there = both(pair, "GET", "/v1/problems")
    assert here.json() == there.json()
    found = {one["name"]: one for one in there.json()["problems"]}
    assert {one["error"] for one in found.values()} == {None}
    assert (found[NAME]["decisions"] > 1, found["second"]["decisions"]) == (True, 0)
    for page in both(pair, "GET", "/"):
        assert (page.status_code, "<html" in page.text) == (200, True)


def _terms(pair: Pair) -> dict[str, Any]:
    terms = pair.ask(pair.processes[0], "GET", f"{AT}/events?limit=1").json()
    return {part: terms[part] for part in ("context", "arms", "channel", "reward_window")}


def test_a_log_that_is_large_goes_through(pair: Pair) -> None:
    other = pair.other(pair.owner(NAME))
    asked = [{**ASK, "key": f"many-{i}"} for i in range(350)]
    for start in range(2):
        told = [{**one, "key": f"{one['key']}-{start}"} for one in asked]
        assert pair.ask(other, "POST", f"{AT}/decide", json=told).status_code == 200
    log = pair.ask(other, "GET", f"{AT}/events").content
    assert log.count(b"\n") > 700
    lines = {"content": log, "headers": {"Content-Type": "application/x-ndjson"}}
    path = "/v1/problems/copy/events"
    found = [pair.ask(one, "POST", path, **lines).json()["events"] for one in (pair.owner(NAME), other)]
    assert found == [log.count(b"\n"), 0]


def test_what_a_database_has_tools_for_is_said(pair: Pair) -> None:
    for answer in both(pair, "POST", "/v1/backup"):
        assert answer.status_code == 409
        assert "pg_dump" in answer.json()["detail"]


def test_a_unit_is_erased_wherever_it_is(pair: Pair) -> None:
    terms = _terms(pair)
    for number, process in enumerate(pair.processes):  # so that each has one
        pair.ask(process, "POST", "/v1/problems", json={"name": f"of {number}", **terms})
    problems = ("of 0", "of 1", NAME)
    assert len({pair.owner(name).url for name in problems}) == 2
    for name in problems:
        found = pair.ask(
            pair.processes[0], "POST", f"/v1/problems/{quote(name)}/decide", json={**ASK, "unit": "eve"}
        )
        assert found.status_code == 200
    one = pair.ask(pair.processes[0], "POST", "/v1/erase", json={"unit": "eve", "problem": NAME})
    assert one.json() == {"decisions": {NAME: 1}}
    rest = pair.ask(pair.processes[1], "POST", "/v1/erase", json={"unit": "eve"})
    assert rest.json() == {"decisions": {"of 0": 1, "of 1": 1}}
    for answer in both(pair, "POST", "/v1/erase", json={"unit": "eve"}):
        assert (answer.status_code, answer.json()["field"]) == (404, "unit")
    assert pair.said("""SELECT count(*) FROM event WHERE body LIKE '%"eve"%'""") == [(0,)]


@pytest.fixture
def load(pair: Pair) -> Iterator[Load]:
    found = Load(pair, NAME)
    try:
        found.served(pair.processes[0])
        found.served(pair.processes[1])
        yield found
    finally:
        found.end()


def test_an_owner_that_is_stopped_is_taken_over_and_serves_on(pair: Pair, load: Load) -> None:
    owner = pair.owner(NAME)
    other = pair.other(owner)
    owner.send(signal.SIGSTOP)
    try:
        assert load.served(other) < 5
    finally:
        owner.send(signal.SIGCONT)
    assert pair.owner(NAME) is other
    load.served(owner)  # it passes on what it is asked
    assert owner.is_ready()
    load.end()
    assert check(pair, load, NAME) > 100


def test_an_owner_that_ends_in_good_order_hands_over_at_once(pair: Pair, load: Load) -> None:
    owner = pair.owner(NAME)
    other = pair.other(owner)
    with socket.create_connection(("127.0.0.1", owner.port)) as slow:
        slow.sendall(HALF % pair.key.encode())
        load.served(owner)
        owner.send(signal.SIGTERM)
        assert load.served(other) < 2.5  # a lease lasts for three; who is slow may take ten
    assert owner.process.wait() == 0
    assert pair.owner(NAME) is other
    load.end()
    pair.processes.remove(owner)
    assert check(pair, load, NAME) > 100
