"""More than can be done, a disk that fails, a log that is being read: nothing is half done."""

import asyncio
import random
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import unfog
from tests.live.decider import TERMS
from tests.serve import kills
from tests.serve.gates import Asked, Gate, opened
from tests.serve.process import Process
from tests.serve.running import starting, until_ready
from unfog.live import snapshot
from unfog.serve import service as services
from unfog.serve.settings import Settings

NEVER = 1e9


def ask(i: int) -> dict[str, Any]:
    return {"context": {"steps": i / 10, "sleep": -1.0}, "key": f"k{i}"}


def keys(path: Path) -> list[str]:
    with unfog.live.open(path) as store:
        return sorted(event["key"] for event in store.events("walks") if event["kind"] == "decide")


def test_past_the_queue_nothing_is_decided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "EVERY", NEVER)
    store, disk = opened(tmp_path / "a.unfog")
    with starting(store, Settings(queue=4)) as found:
        until_ready(found)
        found.make()
        gate = Gate(disk)
        gate.open.clear()
        first = Asked(found, ask(0))
        assert gate.reached.acquire(timeout=30)
        waiting = [Asked(found, ask(i)) for i in range(1, 5)]
        writer = found.service.writer(store)
        while len(writer._queue) < 4:
            time.sleep(0.01)
        last = store.processor.log.last
        refused = [found.http.post("/v1/problems/walks/decide", json=ask(i)) for i in range(5, 20)]
        assert {(one.status_code, one.headers["Retry-After"]) for one in refused} == {(503, "1")}
        assert {one.headers["Content-Type"] for one in refused} == {"application/problem+json"}
        assert store.processor.log.last == last == 2
        assert found.http.get("/healthz").status_code == 200
        gate.open.set()
        for one in (first, *waiting):
            one.join()
        assert [one.status for one in (first, *waiting)] == [200] * 5
        again = found.http.post("/v1/problems/walks/decide", json=ask(5))
        assert (again.status_code, again.json()["number"]) == (200, 5)
    assert keys(tmp_path / "a.unfog") == [f"k{i}" for i in range(6)]


def test_a_commit_that_fails_is_told_to_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "EVERY", 0.05)
    store, disk = opened(tmp_path / "a.unfog")
    with starting(store) as found:
        until_ready(found)
        found.make()
        before = found.http.post("/v1/problems/walks/decide", json=ask(0)).json()
        disk.fail(range(10**9))
        wrong: dict[str, Any] = {"context": {"steps": True, "sleep": 1.0}}
        several = [*(Asked(found, ask(i)) for i in range(1, 9)), Asked(found, wrong)]
        for one in several:
            one.join()
        assert [(one.status, one.after) for one in several[:-1]] == [(503, "1")] * 8
        assert several[-1].status in (422, 503)
        for _ in range(10):  # also once it was looked for what has expired, which needs no commit
            assert found.http.get("/readyz").status_code == 503
            time.sleep(0.02)
        assert found.http.get("/healthz").status_code == 200
        disk.fail(())
        until_ready(found)
        after = found.http.post("/v1/problems/walks/decide", json=ask(3))
        assert (after.status_code, after.json()["number"]) == (200, 1)
        assert found.http.post("/v1/problems/walks/decide", json=ask(0)).json() == before
        assert found.http.post("/v1/problems/walks/replay", json={"verify": True}).json()["same"]
    assert keys(tmp_path / "a.unfog") == ["k0", "k3"]


def test_a_disk_that_can_be_read_but_not_written_is_not_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk: what has expired can be looked for, and nothing be written."""
    monkeypatch.setattr(services, "EVERY", 0.02)
    store, disk = opened(tmp_path / "a.unfog")
    full = threading.Event()

    def refuse(connection: Any) -> None:
        if full.is_set():
            raise disk.error()

    with starting(store) as found:
        until_ready(found)
        found.make()
        disk.at_commit = refuse
        full.set()
        assert found.http.post("/v1/problems/walks/decide", json=ask(0)).status_code == 503
        for _ in range(10):
            assert found.http.get("/v1/problems/walks").status_code == 200
            assert found.http.get("/readyz").status_code == 503
            time.sleep(0.02)
        full.clear()
        until_ready(found)
        assert found.http.post("/v1/problems/walks/decide", json=ask(0)).status_code == 200


def test_what_was_done_before_a_commit_of_somebody_else_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who reads the log has it committed first. Where that fails, what was queued is gone, and is not
    acknowledged by the commit at the end of the batch, which has nothing left to write.
    """
    monkeypatch.setattr(services, "EVERY", NEVER)
    store, disk = opened(tmp_path / "a.unfog")
    with starting(store) as found:
        until_ready(found)
        found.make()
        writer, handle = found.service.writer(store), store.problem("walks")
        lost: list[Any] = []

        def fails() -> None:
            disk.fail([1])
            try:
                list(store.events("walks"))
            finally:
                disk.fail(())

        with store.processor.lock:  # both in one batch
            loop = next(iter(found.service._tasks)).get_loop()

            async def both() -> None:
                asked = [writer.ask(lambda: handle.decide([1.0, 1.0], key="k0")), writer.ask(fails)]
                for one in asked:
                    try:
                        lost.append(await one)
                    except Exception as error:  # noqa: BLE001
                        lost.append(error)

            done = asyncio.run_coroutine_threadsafe(both(), loop)
        done.result(30)
        assert [type(one).__name__ for one in lost] == ["StoreError", "StoreError"]
        again = found.http.post("/v1/problems/walks/decide", json=ask(0))
        assert (again.status_code, again.json()["number"]) == (200, 0)


def test_not_ready_while_a_log_is_read(tmp_path: Path) -> None:
    store, _ = opened(tmp_path / "a.unfog")
    store.problem("walks", **TERMS)
    gate, read = threading.Event(), store.processor.cache.load
    reading = threading.Event()

    def slow(name: str) -> None:
        reading.set()
        assert gate.wait(30)
        read(name)

    store.processor.cache.load = slow  # type: ignore[method-assign]
    with starting(store) as found:
        assert reading.wait(30)
        asked = [found.http.get("/readyz"), found.http.post("/v1/problems/walks/decide", json=ask(0))]
        assert [(one.status_code, one.headers["Retry-After"]) for one in asked] == [(503, "1")] * 2
        assert found.http.get("/healthz").status_code == 200
        assert store.processor.log.last == 1
        gate.set()
        until_ready(found)
        assert found.http.post("/v1/problems/walks/decide", json=ask(0)).status_code == 200


@pytest.mark.slow
def test_stopped_under_load(tmp_path: Path) -> None:
    """All that was acknowledged is there, it ends well, and the next start need not read the log."""
    process, over = Process(tmp_path / "a.unfog", every=10**9), threading.Event()
    process.start()
    kills.make(process)
    clients = [kills.Client(process.port, number, over) for number in range(16)]
    for client in clients:
        client.start()
    try:
        time.sleep(1.0)
        assert process.stop() == 0
        with unfog.live.open(tmp_path / "a.unfog") as store:
            read = [
                snapshot.restore_state(store.processor.log, name, store.processor.made(name))[1]
                for name in store.names()
            ]
        assert read == [0, 0]
        process.start()
        time.sleep(0.2)
        over.set()
        for client in clients:
            client.join()
        assert [client.wrong for client in clients if client.wrong] == []
        said = [one for client in clients for one in client.said]
        kills.replayed(process, verify=True)
        kills.check(process, said, random.Random(1))
        assert len(said) > 50
    finally:
        over.set()
        process.end()


def test_who_waits_for_the_disk_keeps_nobody_else_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A decision with a key has to ask the file, which somebody else may be using: others are answered."""
    monkeypatch.setattr(services, "EVERY", NEVER)
    store, _ = opened(tmp_path / "a.unfog")
    with starting(store) as found:
        until_ready(found)
        found.make()
        assert found.http.post("/v1/problems/walks/decide", json=ask(0)).status_code == 200
        with store.processor.log._commits:
            waiting = Asked(found, ask(1))
            while not store.processor._batches:
                time.sleep(0.01)
            assert found.http.get("/healthz", timeout=5).status_code == 200
        waiting.join()
        assert waiting.status == 200
