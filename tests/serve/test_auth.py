"""Who may come in, over a real socket: without keys this machine alone, with keys nobody without one."""

import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.serve.running import TERMS, Running, running
from unfog.serve import service as services
from unfog.serve.auth import Keyed, LocalhostOnly, made
from unfog.serve.key_storage import KeyFile
from unfog.serve.operations import OPERATIONS
from unfog.serve.settings import Settings

SCOPES = ("decide", "report", "read", "admin")


def key(path: Path, *scopes: str, problems: tuple[str, ...] = ()) -> dict[str, str]:
    """A new key, as a header."""
    one, text = made(scopes, problems, "", 0.0)
    KeyFile(path).add(one)
    return {"Authorization": f"Bearer {text}"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "walks.unfog"


@pytest.fixture
def service(path: Path) -> Iterator[Running]:
    """With one problem, and keys."""
    admin = key(path, "admin")
    with running(path, auth=Keyed(KeyFile(path), unless=LocalhostOnly())) as found:
        for name in ("walks", "sleep"):
            made = found.http.post("/v1/problems", json={"name": name, **TERMS}, headers=admin)
            assert made.status_code == 201
        yield found


def refresh(service: Running) -> None:
    service.service.auth.refresh()


def address(path: str) -> str:
    return path.replace("{name}", "walks").replace("{id}", "0-x")


def asked(service: Running, method: str, path: str, headers: dict[str, str] | None = None) -> httpx.Response:
    content = "{}" if method == "POST" else None
    more = {"Content-Type": "application/json"} if method == "POST" else {}
    return service.http.request(method, path, content=content, headers={**more, **(headers or {})})


ADDRESSES = [(one.method, address(one.path), one.scope) for one in OPERATIONS]
ADDRESSES += [("GET", "/v1/problems", "read"), ("GET", "/metrics", "read")]


def test_every_address_asks_for_a_key(service: Running) -> None:
    for method, at, _ in ADDRESSES:
        found = asked(service, method, at)
        assert (at, found.status_code) == (at, 401)
        assert found.headers["www-authenticate"] == 'Bearer realm="unfog"'
        assert found.headers["content-type"] == "application/problem+json"


def test_what_is_no_key_is_refused(service: Running) -> None:
    for told in ("Bearer", "Bearer x", "Basic dTpw", "Bearer unfog_00000000_x", "bearer"):
        found = service.http.get("/v1/problems", headers={"Authorization": told})
        assert (found.status_code, found.json()["title"]) == (401, "Unauthorized")


def test_what_is_nobodys_secret_needs_no_key(service: Running) -> None:
    for at in ("/", "/healthz", "/readyz", "/openapi.json"):
        assert service.http.get(at).status_code == 200


@pytest.mark.parametrize("scope", SCOPES)
def test_a_scope_is_for_what_it_says(service: Running, path: Path, scope: str) -> None:
    """Of what a key is not for nothing is done, and the answer is 403; else it is whatever else is wrong."""
    own = key(path, scope)
    refresh(service)
    for method, at, wanted in ADDRESSES:
        refused = asked(service, method, at, own).status_code == 403
        assert (at, refused) == (at, scope not in (wanted, "admin"))


def test_a_key_of_one_problem_does_not_reach_others(service: Running, path: Path) -> None:
    own = key(path, "admin", problems=("walks", "new"))
    refresh(service)
    assert service.http.get("/v1/problems/walks", headers=own).status_code == 200
    for name in ("sleep", "nobody"):  # whether there is such a problem is not told
        found = service.http.get(f"/v1/problems/{name}", headers=own)
        assert (found.status_code, "scope read with this problem" in found.json()["detail"]) == (403, True)
    listed = service.http.get("/v1/problems", headers=own).json()["problems"]
    assert [one["name"] for one in listed] == ["walks"]
    for at, body in (("/v1/erase", {"unit": "ann"}), ("/v1/backup", {})):
        assert service.http.post(at, json=body, headers=own).status_code == 403
    assert service.http.get("/metrics", headers=own).status_code == 403
    told = [
        service.http.post("/v1/problems", json={"name": name, **TERMS}, headers=own).status_code
        for name in ("new", "other")
    ]
    assert told == [201, 403]


@pytest.mark.slow
def test_keys_that_come_and_go_are_noticed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "EVERY", 0.05)
    with running(path, auth=Keyed(KeyFile(path), unless=LocalhostOnly())) as service:

        def status(headers: dict[str, str] | None = None) -> int:
            return service.http.get("/v1/problems", headers=headers).status_code

        def becomes(wanted: int, headers: dict[str, str] | None = None) -> bool:
            until = time.monotonic() + 10
            while (found := status(headers)) != wanted and time.monotonic() < until:
                time.sleep(0.05)
            return found == wanted

        assert status() == 200
        first = key(path, "read")
        assert becomes(401)
        assert status(first) == 200
        KeyFile(path).revoke(next(iter(KeyFile(path).load())), 1.0)
        assert becomes(401, first)
        KeyFile(path).path.unlink()  # no keys any more: that opens nothing
        service.service.auth.refresh()
        assert status() == 401
        KeyFile(path).path.write_text("{")
        service.service.auth.refresh()
        assert status(first) == 503
        KeyFile(path).path.unlink()
        last = key(path, "read")
        service.service.auth.refresh()
        assert (status(last), status()) == (200, 401)


HOSTS: list[tuple[dict[str, str], int]] = [
    ({"Host": "localhost:99"}, 200),
    ({"Host": "127.0.0.1"}, 200),
    ({"Host": "127.0.0.2:8000"}, 200),
    ({"Host": "[::1]:8000"}, 200),
    ({"Host": "evil.example"}, 403),
    ({"Host": "evil.example:127.0.0.1"}, 403),
    ({"Host": "127.0.0.1.evil.example"}, 403),
    ({"Host": "10.0.0.1"}, 403),
    ({"Host": ""}, 403),
    ({"Host": "localhost", "Origin": "http://evil.example"}, 403),
    ({"Host": "localhost", "Origin": "null"}, 403),
    ({"Host": "localhost:80", "Origin": "http://localhost:90"}, 403),
    ({"Host": "localhost:80", "Origin": "http://localhost:80"}, 200),
]


def test_without_keys_pages_of_others_are_kept_out(path: Path) -> None:
    with running(path) as service:
        for headers, status in HOSTS:
            assert service.http.get("/v1/problems", headers=headers).status_code == status


def test_a_caller_has_a_rate_and_others_have_their_own(path: Path) -> None:
    one, two = key(path, "read"), key(path, "read")
    with running(path, Settings(rate=5), Keyed(KeyFile(path))) as service:
        answers = [service.http.get("/v1/problems", headers=one) for _ in range(12)]
        assert [found.status_code for found in answers[:5]] == [200] * 5
        assert answers[-1].status_code == 429
        assert int(answers[-1].headers["retry-after"]) >= 1
        assert service.http.get("/v1/problems", headers=two).status_code == 200
        unknown = [service.http.get("/v1/problems").status_code for _ in range(12)]
        assert (unknown[0], unknown[-1]) == (401, 429)
        assert service.http.get("/healthz").status_code == 200
