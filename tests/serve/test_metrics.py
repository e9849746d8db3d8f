"""What Prometheus is told: counts against what was done, labels of what there is alone."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

import unfog
from tests.serve.running import TERMS, Running, running
from unfog.live import StoreError
from unfog.serve.metrics import SECONDS, Times


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Running]:
    now = [1000.0]
    with running(tmp_path / "a.unfog", clock=lambda: now[0]) as found:
        found.service.now = now  # type: ignore[attr-defined]
        found.make()
        yield found


def told(service: Running) -> dict[tuple[str, tuple[str, ...]], float]:
    """All samples by name and labels."""
    text = service.http.get("/metrics").text
    return {
        (one.name, tuple(one.labels.values())): one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
    }


def decide(service: Running, steps: float = 1.5) -> str:
    found = service.http.post("/v1/problems/walks/decide", json={"context": {"steps": steps, "sleep": -2.0}})
    return str(found.json()["id"])


def test_events_are_counted_by_kind_and_outcome(service: Running) -> None:
    first, second = decide(service), decide(service)
    at = "/v1/problems/walks/decisions"
    service.http.post(f"{at}/{first}/reward", json={"value": 1.0})
    service.http.post(f"{at}/{first}/reward", json={"value": 2.0})  # refused
    service.http.post(f"{at}/{second}/cancel")
    service.http.post("/v1/problems/walks/pin", json={"arm": "send"})
    found = told(service)
    assert {labels: x for (name, labels), x in found.items() if name == "unfog_events_total"} == {
        ("problem", "done", "walks"): 1,
        ("decide", "done", "walks"): 2,  # kind, outcome, problem
        ("reward", "learnt", "walks"): 1,
        ("cancel", "cancelled", "walks"): 1,
        ("pin", "done", "walks"): 1,
    }
    assert found["unfog_requests_total", ("decide", "200")] == 2
    assert found["unfog_requests_total", ("reward", "409")] == 1
    assert found["unfog_decide_seconds_count", ()] == 2
    assert found["unfog_commit_seconds_count", ()] >= 5
    assert (found["unfog_ready", ()], found["unfog_queue_length", ()]) == (1, 0)


def test_what_waits_and_whether_readings_fit(service: Running) -> None:
    first = decide(service)
    service.service.now[0] = 1060.0  # type: ignore[attr-defined]
    decide(service, 40.0)  # twenty deviations off
    found = told(service)
    assert found["unfog_pending", ("walks",)] == 2
    assert found["unfog_oldest_pending_seconds", ("walks",)] == pytest.approx(60.0, abs=1e-6)
    data = service.service.open_stores.store("walks").problem("walks").diagnostics()
    assert found["unfog_innovation_chi2", ("walks",)] > 4
    assert data.attrs["pending"] == 2
    service.http.post(f"/v1/problems/walks/decisions/{first}/reward", json={"value": 1.0})
    found = told(service)
    assert (found["unfog_pending", ("walks",)], found["unfog_oldest_pending_seconds", ("walks",)]) == (1, 0)


def test_a_name_that_nobody_made_is_no_label(service: Running) -> None:
    for at in ("/v1/problems/hostile", "/v1/problems/hostile/belief", "/hostile", "/v1/hostile"):
        service.http.get(at)
        service.http.post(f"{at}/decide", json={"context": {}})
        service.http.request("HOSTILE", at)
    service.http.post("/v1/problems", json={"name": "hostile", **TERMS, "agent": "hostile"})
    assert "hostile" not in service.http.get("/metrics").text.lower()


def test_times_fall_into_their_buckets() -> None:
    times = Times()
    for seconds in (0.0005, 0.001, 0.0011, 3.0, 60.0):
        times.add(seconds)
    found = dict(times.buckets())
    assert [found[str(bound)] for bound in (0.001, 0.0025, 2.5, 10.0)] == [2, 3, 3, 4]
    assert (found["+Inf"], len(found)) == (5, len(SECONDS) + 1)
    assert times.total == pytest.approx(63.0026)


def test_counts_are_of_this_process_alone(tmp_path: Path) -> None:
    with unfog.live.open(tmp_path / "a.unfog") as store:
        store.problem("walks", **TERMS).decide({"steps": 1.0, "sleep": 2.0})
        assert dict(store.processor.written) == {
            ("walks", "problem", "done"): 1,
            ("walks", "decide", "done"): 1,
        }
        store.import_events(list(store.export("walks")), "again")
        assert store.processor.written["again", "decide", "imported"] == 1
    with unfog.live.open(tmp_path / "a.unfog") as store:
        store.problem("walks").belief()
        assert dict(store.processor.written) == {}


def test_what_was_not_kept_is_not_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    with unfog.live.open(tmp_path / "a.unfog") as store:
        walks = store.problem("walks", **TERMS)
        walks.decide([1.0, 2.0])
        monkeypatch.setattr(store.processor.log.backend, "write", full)
        with pytest.raises(StoreError):
            walks.decide([1.0, 2.0])
        monkeypatch.undo()
        assert store.processor.written["walks", "decide", "done"] == 1
        with store.batch():
            walks.decide([1.0, 2.0])
            assert store.processor.written["walks", "decide", "done"] == 1  # its commit is still to come
        assert store.processor.written["walks", "decide", "done"] == 2
