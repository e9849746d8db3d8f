"""Requests that mean no good, as bytes on a real socket: each is refused by its name and changes nothing."""

import random
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import pytest

from tests.serve import fuzz
from tests.serve.running import Running, running
from tests.serve.wires import DECIDE, Reply, exchanged, request

GOOD = b'{"context": {"steps": 1, "sleep": 2}}'
AT = "/v1/problems/walks"


class Place(NamedTuple):
    """A service with a problem and a decision."""

    running: Running
    port: int
    decision: str

    def state(self) -> tuple[int, str]:
        """The last event, and a hash of all that is remembered."""
        (store,) = self.running.service.open_stores.stores()
        return store.processor.log.last, store.problem("walks").state_hash()

    def refused(self, *parts: bytes, ends: bool = False) -> Reply:
        """The answer, after which all is as it was."""
        before = self.state()
        (found,) = exchanged(self.port, *parts, ends=ends)
        assert self.state() == before
        assert self.running.http.get("/healthz").status_code == 200
        return found


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    path: Path = tmp_path_factory.mktemp("hostile") / "a.unfog"
    with running(path) as found:
        found.make()
        made = found.http.post(DECIDE, json={"context": {"steps": 1.0, "sleep": 2.0}}).json()
        yield Place(found, int(found.url.rsplit(":", 1)[1]), made["id"])


def context(steps: str) -> bytes:
    return b'{"context": {"steps": %s, "sleep": 1}}' % steps.encode()


def test_what_is_no_json_is_400(place: Place) -> None:
    for body in [
        *(
            context(x)
            for x in ("NaN", "Infinity", "-Infinity", "1e999", "-1e999", "01", "1.", "+1", "0x1", "")
        ),
        *(b"", b"{", b"nothing", b"[" * 100_000, b'{"a":' * 100_000, b"[" * 17 + b"]" * 17, b'"' + b"a" * 99),
        *(b'{"context": {"steps": 1, "steps": 2, "sleep": 1}}', b'{"context": 1, "context": 2}'),
        *(b"\xff\xfe", b'{"context": "\xed\xa0\x80"}', GOOD + b"x", b"\xef\xbb\xbf" + GOOD, GOOD + b"\0"),
        context("1" * 5000),
    ]:
        found = place.refused(request(body=body))
        assert (found.status, found.problem["status"]) == (400, 400), body[:60]
        assert "cannot be read" in found.problem["detail"], body[:60]
        assert len(found.body) < 1000, body[:60]


def test_what_is_no_such_field_is_422_and_named(place: Place) -> None:
    for body, field in [
        *((context(x), "context.steps") for x in ('"1"', "true", "[]", "{}", "1e308", "1" + "0" * 400)),
        *((b"[]", "requests"), (b"1", "body"), (b'"a"', "body"), (b"null", "body"), (b"true", "body")),
        *((b"{}", "context"), (b'{"context": null}', "context"), (b'{"context": {}}', "context.steps")),
        (b'{"context": {"steps": 1, "sleep": 1, "more": 1}}', "context.more"),
        (b'{"context": {"steps": 1, "sleep": 1}, "more": 1}', "more"),
        (b'{"context": {"steps": 1, "sleep": 1}, "unit": 1.5}', "unit"),
        (b'{"context": {"steps": 1, "sleep": 1}, "unit": ""}', "unit"),
        (b'{"context": {"steps": 1, "sleep": 1}, "unit": "\\ud800"}', "unit"),
        (b'{"context": {"steps": 1, "sleep": 1}, "unit": "a\\u0000"}', "unit"),
        (b'{"context": {"steps": 1, "sleep": 1}, "key": true}', "key"),
        (b'{"context": {"steps": 1, "sleep": 1}, "key": "%s"}' % (b"k" * 5000), "key"),
        (b'{"context": {"steps": 1, "sleep": 1}, "arms": ["nobody"]}', "arms"),
        (b'{"context": {"steps": 1, "sleep": 1}, "arms": {"send": [1e308, 1]}}', "arms.send"),
        (b'{"context": {"steps": 1, "sleep": 1}, "measured_at": "now"}', "measured_at"),
        (b'{"context": {"steps": 1, "sleep": 1}, "noise_cov": [[1, 2], [2, 1]]}', "noise_cov"),
        (b'{"context": {"steps": 1, "sleep": 1}, "logged_arm": "nobody"}', "logged_arm"),
        (b'{"context": {"steps": 1, "sleep": 1}, "logged_arm": "send", "probability": 0}', "probability"),
        (b'{"context": {"steps": 1, "sleep": 1}, "probability": 0.5}', "probability"),
        (b'{"requests": [{"context": {"steps": 1, "sleep": 1}}, {"context": 1}]}', "requests[1].context"),
        (b'{"requests": [{"context": {"steps": 1, "sleep": 1}}], "key": "k"}', "key"),
        (b"[" + b",".join([b'{"context": {"steps": 1, "sleep": 1}}'] * 1001) + b"]", "requests"),
    ]:
        found = place.refused(request(body=body))
        assert (found.status, found.problem["field"]) == (422, field), found.problem
        assert {"detail", "allowed", "value"} <= found.problem.keys(), body[:60]
        assert len(found.body) < 3000, body[:60]


def test_fifty_megabytes_are_not_read(place: Place) -> None:
    size = 50 << 20
    told = place.refused(request(headers=[f"Content-Length: {size}"]), b"[" * 1000)
    untold = place.refused(request(headers=["Transfer-Encoding: chunked"]), *[_chunk(b" " * (1 << 20))] * 50)
    assert [one.status for one in (told, untold)] == [413, 413]
    assert "allowed: 1048576" in told.problem["detail"]
    assert "more than 1048576" in untold.problem["detail"]


def _chunk(body: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(body), body)


def test_other_kinds_of_bodies_are_415(place: Place) -> None:
    for kind in [None, "text/plain", "application/x-www-form-urlencoded", "a", "", "json"]:
        assert place.refused(request(body=GOOD, kind=kind)).status == 415, kind


def test_a_key_that_would_be_passed_over_is_refused(place: Place) -> None:
    """Who sends it counts on being able to ask again."""
    for path, body in [("arms", b'{"add": ["new"]}'), ("pin", b'{"arm": "send"}')]:
        found = place.refused(request(f"{AT}/{path}", body, headers=["Idempotency-Key: k"]))
        assert (found.status, found.problem["field"]) == (422, "Idempotency-Key"), path


def test_a_kind_may_say_more(place: Place) -> None:
    (found,) = exchanged(place.port, request(body=GOOD, kind="Application/JSON; charset=utf-8"))
    assert found.status == 200


def test_a_name_of_somebody_else_is_403(place: Place) -> None:
    for host in ["evil.example", "evil.example:8000", "localhost.evil.example", "10.0.0.1", ""]:
        for made in (request(body=GOOD, host=host), request("/v1/problems", method="GET", host=host)):
            found = place.refused(made)
            assert (found.status, found.problem["title"]) == (403, "Forbidden"), host


def test_other_methods_are_405(place: Place) -> None:
    for method in ["GET", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "TRACE"]:
        found = place.refused(request(method=method))
        assert (found.status, found.headers["allow"]) == (405, "POST"), method
        assert method == "HEAD" or found.problem["status"] == 405, method


def test_what_is_no_method_is_no_http(place: Place) -> None:
    for method in ["HELLO", "get", "G\0T", "POST POST"]:
        assert place.refused(request(method=method)).status == 400, method


def test_head_says_what_get_would_without_its_body(place: Place) -> None:
    asked = [request("/healthz", method=method, kind=None) for method in ("HEAD", "GET")]
    (head,), (whole,) = (exchanged(place.port, one) for one in asked)
    assert head.headers["content-length"] == whole.headers["content-length"] == str(len(whole.body))
    assert head.status == whole.status == 200
    raw = exchanged(
        place.port, asked[0] + asked[1], number=2
    )  # a body would stand where the next answer does
    assert [one.status for one in raw] == [200, 200]


def test_what_is_not_there_is_404(place: Place) -> None:
    for path in [
        *(
            "/page/../app.py",
            "/page/..%2fapp.py",
            "/page/%2e%2e/app.py",
            "/page/%2e%2e%2fapp.py",
            "/page//etc",
        ),
        *("/page/..\\app.py", "/page/%00index.html", "/page/index.html%00", "/page/", "/page", "/page/."),
        *(
            "//etc/passwd",
            "/../../etc/passwd",
            "/%2e%2e/%2e%2e/etc/passwd",
            "/page/index.html/",
            "/v1",
            "/v1/",
        ),
        *("/v1/problems/", "/v1/problems//decide", "/V1/problems", "/nothing", "/v1/problems/walks/nothing"),
        *("/v1/problems/walks/", "/v1/problems/walks/decisions/1", "/v1/problems/walks/decide/", "/%ff%fe"),
        "/" + "a" * 30_000,
    ]:
        found = place.refused(request(path, method="GET", kind=None))
        assert (found.status, found.problem["title"]) == (404, "Not Found"), path[:60]


def test_odd_names_of_problems_are_not_found(place: Place) -> None:
    for name in [
        "..",
        ".",
        "walks ",
        "WALKS",
        "walks\n",
        "a/b",
        "%",
        "\0",
        "é",
        "\u202e",
        "'; drop table",
        "{name}",
        "a" * 500,
    ]:
        found = place.refused(request(f"/v1/problems/{quote(name, safe='')}/decide", GOOD))
        assert found.status == 404, found
        assert found.problem["status"] == 404, name[:60]


def test_odd_names_are_not_given(place: Place) -> None:
    for name in ["..", ".", "\0", "a/b", "\u202ea", "a\n", " ", "", "\ud800", "a" * 5000]:
        text = f'{{"name": {_quoted(name)}, "context": ["x"], "arms": ["a"]}}'.encode()
        found = place.refused(request("/v1/problems", text))
        assert (found.status, found.problem["field"]) == (422, "name"), found


def _quoted(text: str) -> str:
    return '"' + "".join(f"\\u{ord(letter):04x}" for letter in text) + '"'


def test_odd_ids_of_decisions_are_not_found(place: Place) -> None:
    for id_ in ["nobody", "0", "0-", "1-00000000", "%2e%2e", "a%2Fb", "%00", "-1", "0" * 3000]:
        found = place.refused(request(f"{AT}/decisions/{id_}/reward", b'{"value": 1}'))
        assert found.status in (404, 422), found
        assert found.problem["status"] == found.status, id_[:60]


def test_queries_are_held_to_what_there_is(place: Place) -> None:
    for path, field in [
        *((f"{AT}/events?since={x}", "since") for x in ("-1", "a", "1e3", "9" * 30, "%00", "", "1.0")),
        *((f"{AT}/events?limit=-1", "limit"), (f"{AT}/events?more=1", "more"), (f"{AT}/events?=1", "")),
        *((f"{AT}/events?since=1&since=2", "since"), (f"{AT}/belief?unit=nobody", "unit")),
        *(
            (f"{AT}/predict_rewards?context=NaN", "context"),
            (f"{AT}/predict_rewards?context=%5B1%5D", "context"),
        ),
        (f"{AT}/predict_rewards", "context"),
    ]:
        found = place.refused(request(path, method="GET", kind=None))
        assert (found.status, found.problem["field"]) in ((422, field), (404, field)), found


def test_queries_that_cannot_be_read(place: Place) -> None:
    for query in ["%ff", "a=%", "&".join("since=1" for _ in range(100)), "\xff"]:
        assert place.refused(request(f"{AT}/events?{query}", method="GET", kind=None)).status in (400, 422), (
            query[:60]
        )


def test_what_is_no_http_ends_the_connection(place: Place) -> None:
    """With a 400 or without a word; never with more than that, and nobody else is bothered."""
    for raw in [
        *(
            b"\r\n\r\n\r\n",
            b"hello\r\n\r\n",
            b"\x16\x03\x01\x02\x00\x01",
            b"GET / HTTP/9.9\r\n\r\n",
            b"\0" * 100,
        ),
        request(headers=["Content-Length: -1"]),
        request(headers=["Content-Length: 5", "Content-Length: 6"], body=b"hello"),
        request(headers=["Content-Length: 0x5"], body=b"hello"),
        request(headers=["Transfer-Encoding: chunked", "Content-Length: 5"], body=b"0\r\n\r\n"),
        request(headers=["Transfer-Encoding: chunked"], body=b"zz\r\nhello\r\n0\r\n\r\n"),
        request(headers=["Transfer-Encoding: chunked"], body=b"ffffffffffffffffffff\r\n"),
        request(headers=["Transfer-Encoding: gzip, nonsense"], body=GOOD),
        request(headers=["A b: c"]),
        request(headers=["X: " + "a" * 200_000]),
        request(headers=[f"X-{i}: {'a' * 50}" for i in range(5000)]),
        request("/" + "a" * 200_000),
    ]:
        assert place.refused(raw, ends=True).status in (0, 400, 413, 415, 431), raw[:60]


def test_half_a_request_is_nothing(place: Place) -> None:
    whole = request(body=GOOD)
    for cut in (1, 10, len(whole) // 2, len(whole) - 1):
        assert place.refused(whole[:cut], ends=True).status in (0, 400)


def test_pipelined_requests_are_answered_in_their_order(place: Place) -> None:
    """The next one in the same bytes, after a good one and after a refused one."""
    raw = request(body=GOOD) + request(body=b"{") + request("/nothing") + request(body=GOOD)
    found = exchanged(place.port, raw, number=4)
    assert [one.status for one in found] == [200, 400, 404, 200]


def test_a_body_that_is_not_wanted_is_not_the_next_request(place: Place) -> None:
    """What is refused before its body was read does not leave its body behind as a request."""
    inner = request(body=GOOD)
    before = place.state()
    found = exchanged(place.port, request("/nothing", inner), request(body=b"{"), number=2)
    assert [one.status for one in found] in ([404, 400], [404, 0])
    assert place.state() == before


def test_a_slow_body_keeps_nobody_waiting(place: Place) -> None:
    """It comes byte by byte, and others are answered between any two of them."""
    whole, before = request(body=GOOD), place.state()
    with socket.create_connection(("127.0.0.1", place.port), timeout=30) as slow:
        for i in range(len(whole) - 1):
            slow.sendall(whole[i : i + 1])
            if i % 10 == 0:
                assert place.running.http.get("/healthz").status_code == 200
        assert place.state() == before
        slow.sendall(whole[-1:])
        assert slow.recv(1000).startswith(b"HTTP/1.1 200")


@pytest.mark.slow
def test_requests_at_random(place: Place) -> None:
    told = fuzz.thrown(place.running, place.port, 800, random.Random(5))
    assert set(told) <= fuzz.STATUSES
    assert told[200] > 20
    assert told[422] > 200
