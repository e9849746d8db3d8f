"""A bad line between client and service: nothing is lost, nothing is done twice."""

import random
import shutil
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.serve.flaky import FAULTS, flaky
from tests.serve.running import TERMS, Running, running
from unfog.live import StoreError
from unfog.serve import Client, http_client

SUMMED = TERMS | {"update": "at_close", "reward_aggregation": "sum"}


@pytest.fixture(name="service")
def _service(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path / "served.unfog") as found:
        yield found


class Dice:
    """Faults that a seed decides; how often each came."""

    def __init__(self, share: float) -> None:
        self._random, self._share, self._lock = random.Random(5), share, threading.Lock()
        self.came: Counter[str] = Counter()

    def __call__(self, method: str, path: str) -> str | None:
        with self._lock:
            if self._random.random() >= self._share:
                return None
            found = self._random.choice(FAULTS)
            self.came[found] += 1
            return found


@pytest.mark.slow
def test_nothing_is_lost_and_nothing_doubled(service: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rewards of a decision are summed here, so that one that counted twice would show."""
    monkeypatch.setattr(http_client, "FIRST", 0.0001)
    Client(service.url).problem("walks", **SUMMED)
    dice = Dice(0.5)

    def visit(client: Client, unit: str) -> list[str]:
        walks, made = client.problem("walks"), []
        for number in range(12):
            made.append(walks.decide([number, -2.0], unit=unit).id)
            assert walks.reward(made[-1], 1.0).outcome == "kept"
            assert walks.reward(made[-1], 1.0).outcome == "kept"  # one more, not the same again
            walks.reveal(made[-1], {"steps": float(number)})
        made += [one.id for one in walks.decide_many([{"context": [x, 0.0], "unit": unit} for x in range(5)])]
        assert {one.outcome for one in walks.reward_many(dict.fromkeys(made[-5:], 2.0)).values()} == {"kept"}
        walks.cancel(made[0])
        return made

    with (
        flaky(service.url, dice) as line,
        Client(line, retries=40) as client,
        ThreadPoolExecutor(4) as threads,
    ):
        found = list(threads.map(lambda unit: visit(client, unit), ["ann", "bob", "cid", "dee"]))
    assert set(dice.came) == set(FAULTS)
    assert sum(dice.came.values()) > 100
    events = Client(service.url).problem("walks").events()
    decided = [one["decision"] for one in events if one["kind"] == "decide"]
    assert sorted(decided) == sorted(one for made in found for one in made)
    paid = Counter(one["decision"] for one in events if one["kind"] == "reward")
    assert paid == {one: 2 if place < 12 else 1 for made in found for place, one in enumerate(made)}
    assert Counter(one["kind"] for one in events) == {
        "problem": 1,
        "decide": 4 * 17,
        "reward": 4 * (24 + 5),
        "reveal": 4 * 12,
        "cancel": 4,
    }


def test_what_is_not_safe_to_repeat_is_asked_once(service: Running) -> None:
    walks = Client(service.url).problem("walks", **TERMS)
    asked = []

    def fault(method: str, path: str) -> str | None:
        asked.append(path)
        return "answer lost" if method == "POST" else None

    with flaky(service.url, fault) as line, Client(line) as client:
        there = client.problem("walks")
        calls: list[Any] = [
            lambda: there.add_arm("call"),
            lambda: there.pin_arm("call"),
            lambda: there.add_shadow("naive"),
            lambda: there.import_decisions("steps,sleep,arm\n1,2,send\n"),
        ]
        for call in calls:
            with pytest.raises(StoreError, match=r"^http://127.0.0.1:\d+ does not answer: "):
                call()
    assert [path.rsplit("/", 1)[1] for path in asked] == ["walks", "arms", "pin", "shadow", "import"]
    kinds = [one["kind"] for one in walks.events()]
    assert kinds == ["problem", "arms", "pin", "shadow", "decide"]


@pytest.mark.parametrize("fault", ["not now", "too fast", "request lost"])
def test_it_gives_up_in_the_end(service: Running, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(http_client, "sleep", waits.append)
    Client(service.url).problem("walks", **TERMS)
    with (
        flaky(service.url, lambda method, path: fault if method == "POST" else None) as line,
        Client(line, retries=4) as client,
        pytest.raises(StoreError),
    ):
        client.problem("walks").decide([0.0, 0.0])
    assert len(waits) == 4
    for attempt, wait in enumerate(waits):
        assert 0.5 * http_client.FIRST * 2**attempt <= wait <= 1.5 * http_client.FIRST * 2**attempt
    assert len(Client(service.url).problem("walks").events()) == 1


def test_it_is_asked_again_when_the_service_wants_it(
    service: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []

    def ready_again(seconds: float) -> None:
        waits.append(seconds)
        service.service.ready = True

    monkeypatch.setattr(http_client, "sleep", ready_again)
    with Client(service.url) as client:
        walks = client.problem("walks", **TERMS)
        service.service.ready = False
        assert walks.decide([0.0, 0.0]).number == 0
    assert [1.0 <= one <= 1.25 for one in waits] == [True]


@pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl")
def test_through_a_proxy_that_speaks_tls(
    service: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A certificate that is trusted is taken; one that is not is not."""
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=here"]
    more = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(cert)]
    subprocess.run([*words, *more], check=True, capture_output=True)
    with flaky(service.url, lambda method, path: None, tls=(cert, key)) as line:
        assert line.startswith("https://")
        with pytest.raises(StoreError, match="certificate verify failed"):
            Client(line, retries=0).names()
        monkeypatch.setenv("SSL_CERT_FILE", str(cert))
        with Client(line) as client:
            assert client.problem("walks", **TERMS).decide([0.0, 0.0]).number == 0


def test_a_service_that_comes_back_is_found_again(tmp_path: Path) -> None:
    """A connection that was kept is closed by then: that is no failure, and not waited for."""
    with running(tmp_path / "a.unfog") as first:
        client = Client(first.url, retries=0)
        client.problem("walks", **TERMS).decide([0.0, 0.0])
        idle = list(client._wire._idle)
        assert len(idle) == 1
        assert idle[0].sock is not None
        idle[0].sock.shutdown(2)
        assert client.problem("walks").decide([0.0, 0.0]).number == 1
        client.close()
        assert not client._wire._idle
