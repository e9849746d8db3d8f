"""The client of a service: code that was written for a store runs unchanged."""

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unfog
from tests.live.ground import Hand
from tests.serve.running import TERMS, Running, running
from unfog._extras import EXTRA_OF
from unfog.live import ConflictError, NotFoundError, Problem, Store, StoreError
from unfog.serve import Client, ServiceError, auth
from unfog.serve.auth import Keyed
from unfog.serve.client import RemoteProblem, terms_to_json
from unfog.serve.key_storage import ring_of
from unfog.serve.settings import Settings
from unfog.validation import InputError


@pytest.fixture(name="clock")
def _clock() -> Hand:
    return Hand()


@pytest.fixture(name="service")
def _service(tmp_path: Path, clock: Hand) -> Iterator[Running]:
    settings = Settings(backups=tmp_path / "copies")
    with running(tmp_path / "served.unfog", settings, clock=clock) as found:
        yield found


@pytest.fixture(name="client")
def _client(service: Running) -> Iterator[Client]:
    with Client(service.url) as found:
        yield found


@pytest.fixture(name="store")
def _store(tmp_path: Path, clock: Hand) -> Iterator[Store]:
    with unfog.live.open(tmp_path / "own.unfog", sync="normal", clock=clock) as found:
        yield found


def lived(place: Store | Client) -> Problem | RemoteProblem:
    """A problem with decisions of two units, rewarded and not."""
    walks = place.problem("walks", **TERMS)
    made = [walks.decide([i, None if i == 3 else -i], unit="ann" if i % 2 else "bob") for i in range(8)]
    walks.reward_many({one.id: one.number / 7 for one in made[:5]})
    walks.retire_arm("send")
    return walks


def test_logs_come_and_go(client: Client, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    walks = lived(client)
    lines = list(client.export("walks"))
    assert store.import_events(lines) == len(lines) == len(walks.events())
    assert list(store.export("walks")) == lines
    assert store.problem("walks").state_hash() == walks.state_hash()
    assert client.import_events(lines, "copy") == len(lines)
    assert client.names() == ["walks", "copy"]
    found = store.replay(verify=True)["walks"]
    assert client.replay(verify=True) == {"walks": found, "copy": found}
    monkeypatch.setattr("unfog.serve.client.LINES", 4)
    assert list(client.export("walks")) == lines
    assert [one["seq"] for one in client.events("walks", 3)] == list(range(4, len(lines) + 1))
    assert client.erase(unit="ann") == {"copy": 4, "walks": 4}


def test_a_copy_is_a_store(client: Client, clock: Hand, tmp_path: Path) -> None:
    walks = lived(client)
    made = client.backup("monday.unfog")
    assert made["bytes"] == (tmp_path / "copies" / "monday.unfog").stat().st_size
    with unfog.live.open(tmp_path / "copies" / "monday.unfog", clock=clock) as copy:
        assert copy.problem("walks").state_hash() == walks.state_hash()


def test_terms_that_json_does_not_have(client: Client) -> None:
    rng = np.random.default_rng(3)
    true = rng.normal(size=(200, 2))
    found = unfog.calibrate(true + rng.normal(0, 0.5, (200, 2)), true, groups=np.arange(200) % 10)
    given: dict[str, Any] = {
        "context": ("a", "b"),
        "arms": {"x": np.ones(2), "y": np.zeros(2)},
        "features": "product",
        "channel": found.channel,
        "agent": unfog.AGENTS["unfog"],
        "reward_window": timedelta(minutes=30),
        "seed": 3,
        "prior_cov": np.eye(2),
    }
    made = client.problem("p", **given)
    again = client.problem("p", **given)
    assert again.terms.reward_window == made.terms.reward_window == 1800
    assert made.terms.channel is not None
    np.testing.assert_array_equal(made.terms.channel.noise_cov, found.channel.noise_cov)
    with pytest.raises(InputError, match=r"^seed: 4; allowed: what the problem was created with: 3$"):
        client.problem("p", seed=4)


Errors = list[tuple[type[Exception], str]]


def wrongs(place: Store | Client, clock: Hand) -> Errors:
    """Calls that are refused, and how."""
    walks = place.problem("walks", **TERMS)
    made = walks.decide([0.0, 0.0], key="k")
    walks.cancel(walks.decide([0.0, 0.0], key="v").id)
    walks.reward(made.id, 1.0)
    calls: list[Any] = [
        lambda: walks.decide([0.0, 1.0], key="k"),
        lambda: walks.decide({"steps": 1.0}),
        lambda: walks.decide({"steps": "one", "sleep": 0.0}),
        lambda: walks.decide([0.0, 0.0], arms=["none"]),
        lambda: walks.decide_many([{"context": [0, 0]}, {"context": [0, 0], "arms": ["none"]}]),
        lambda: walks.decide_many([{"contexts": [0, 0]}]),
        lambda: walks.decide_many([{"context": [0, 0], "key": "k2"}, {"context": [0, 1], "key": "k2"}]),
        lambda: walks.reward(made.id, 2.0),
        lambda: walks.reward("0-nobody", 2.0),
        lambda: walks.reward_many({made.id: 2.0}),
        lambda: walks.reveal(made.id, {}),
        lambda: walks.add_arm("send"),
        lambda: walks.pin_arm("none"),
        lambda: walks.remove_shadow("naive"),
        lambda: walks.add_shadow("nobody"),
        lambda: walks.belief("nobody"),
        lambda: place.problem("nothing"),
        lambda: list(place.events("nothing")),
        lambda: place.problem("walks", epsilon=0.5),
        lambda: place.problem("other", contexts=["x"]),  # type: ignore[call-arg]
        lambda: place.problem("other", context=["x"], arms=["a"], channel={"noise_cov": 1}),
        lambda: place.import_events(['{"kind": "decide", "problem": "x"}\n']),
        lambda: place.erase(unit="nobody"),
    ]
    found: Errors = []
    for call in calls:
        with pytest.raises((InputError, StoreError)) as caught:
            call()
        found.append((type(caught.value), str(caught.value).replace(made.id, "<id>")))
    clock.time += 7200
    walks.decide([0.0, 0.0])
    return found


def test_errors_are_those_of_a_store(client: Client, store: Store, clock: Hand) -> None:
    ours, theirs = wrongs(store, clock), wrongs(client, clock)
    assert theirs == ours
    assert {kind for kind, _ in ours} == {InputError, ConflictError, NotFoundError}


def test_what_json_cannot_say_is_refused_here(client: Client) -> None:
    walks = client.problem("walks", **TERMS)
    made = walks.decide([0.0, 0.0])
    for call, field in (
        (lambda: walks.reward(made.id, float("nan")), "value"),
        (lambda: walks.decide([np.inf, 0.0]), "context[0]"),
        (lambda: walks.decide({1: 0.0}), "context"),
        (lambda: walks.decide({"steps": object(), "sleep": 1.0}), "context.steps"),
        (lambda: walks.decide([0.0, 0.0], measured_at=datetime(2026, 1, 1)), "measured_at"),
        (lambda: walks.decide([0.0, 0.0], key="\n"), "key"),
        (lambda: client.import_events(["{}"], allow_modules=["os"]), "allow_modules"),
        (lambda: client.problem("a/b").describe(), "name"),
    ):
        with pytest.raises(InputError) as caught:
            call()
        assert caught.value.field == field
    assert len(walks.events()) == 2


NO_ADDRESSES: list[Any] = [
    "",
    "walks.unfog",
    "ftp://here",
    "http://",
    "http://a?b",
    "http://[",
    "http://a:b",
    5,
]


def test_addresses_that_are_none() -> None:
    for url in (*NO_ADDRESSES, "http://me:secret@here"):
        with pytest.raises(InputError, match=r"^url: ") as caught:
            Client(url)
        assert "secret" not in str(caught.value)


def test_who_is_no_service_of_ours(service: Running) -> None:
    with pytest.raises(StoreError, match=r"^what answers there is no service of unfog"):
        Client(service.url).get("/docs")


def test_the_key_is_sent_and_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "keyed.unfog"
    (admin, chief), (decider, told) = (auth.made([scope], [], "", 0.0) for scope in ("admin", "decide"))
    for key in (admin, decider):
        ring_of(str(path)).add(key)
    monkeypatch.delenv("UNFOG_KEY", raising=False)
    with running(path, auth=Keyed(ring_of(str(path)))) as found:
        Client(found.url, chief).problem("walks", **TERMS)
        with pytest.raises(ServiceError, match=r"^This takes a key: .* Tell a key .* UNFOG_KEY\.$") as caught:
            Client(found.url).problem("walks")
        assert caught.value.status == 401
        monkeypatch.setenv("UNFOG_KEY", f"{told}\n")
        client = Client(found.url)
        walks = client.problem("walks")  # though it may not look
        assert walks.decide([0.0, 0.0]).number == 0
        with pytest.raises(
            ServiceError, match=r"^This key is not for this: it takes the scope read"
        ) as caught:
            walks.describe()
        assert caught.value.status == 403
    assert told not in repr(client) + repr(walks)
    with pytest.raises(InputError) as refused:
        Client(found.url, key="séc")
    assert "séc" not in str(refused.value)


def test_a_client_needs_nothing_that_serves() -> None:
    """Nor what checks the bodies of requests, though that is installed with the core."""
    without = ["pydantic", "pydantic_core", *EXTRA_OF]
    use = 'import unfog; unfog.serve.Client("http://127.0.0.1:1", retries=0); unfog.serve.ServiceError'
    code = f"import sys\nsys.modules.update(dict.fromkeys({without}))\n{use}"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_nobody_there() -> None:
    with pytest.raises(StoreError, match=r"^http://127\.0\.0\.1:1 does not answer: Connection refused$"):
        Client("http://127.0.0.1:1", retries=0).names()


def test_bodies_are_what_curl_would_send(client: Client, service: Running) -> None:
    """A key of the caller's own stands in the log; where there is none, one of the client's."""
    walks = client.problem("walks", **TERMS)
    walks.decide([0.0, 0.0], key="mine")
    walks.decide([0.0, 0.0])
    keys = [one["key"] for one in walks.events()[1:]]
    assert keys[0] == "mine"
    assert len(keys[1]) == 32
    assert json.loads(service.http.get("/v1/problems").text)["problems"][0]["decisions"] == 2


def test_true_contexts_of_a_study_are_sent_to_agents_that_use_them_alone() -> None:
    true = np.arange(12.0)[:, None]
    channel = unfog.calibrate(true + np.tile([[0.5], [-0.5], [0.1]], (4, 1)), true).channel
    for agent, is_sent in ((None, False), ("unfog", False), ("empirical", True), ("mine:agent", True)):
        sent = terms_to_json({"context": ["x"], "channel": channel, "agent": agent})["channel"]
        assert ("sample" in sent) is is_sent, agent
