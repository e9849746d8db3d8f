"""The service over a real socket: every verb answers as `unfog.live` does."""

from pathlib import Path
from typing import Any

import pytest

import unfog
from tests.serve.running import running
from unfog.live import Problem
from unfog.live.cache import StateCache
from unfog.live.inspection import plain
from unfog.serve.auth import Keyed, made
from unfog.serve.key_storage import KeyFile


def test_a_decision_from_first_to_last(tmp_path: Path) -> None:
    with running(tmp_path / "a.unfog") as found:
        about = found.make()
        assert (about["created"], found.make()["created"]) == (True, False)
        made = found.http.post(
            "/v1/problems/walks/decide", json={"context": {"steps": 1.5, "sleep": None}, "unit": "ann"}
        ).json()
        at = f"/v1/problems/walks/decisions/{made['id']}"
        assert found.http.post(f"{at}/reward", json={"value": 1.25}).json()["outcome"] == "learnt"
        assert found.http.post(f"{at}/reveal", json={"context": {"steps": 1.0}}).json()["outcome"] == "noted"
        belief = found.http.get("/v1/problems/walks/belief", params={"unit": "ann"}).json()
    with unfog.live.open(tmp_path / "a.unfog") as store:
        events = store.problem("walks").events()
        assert [one["kind"] for one in events] == ["problem", "decide", "reward", "reveal"]
        assert {name: events[1][name] for name in ("arm", "denoised", "sd", "number")} == {
            name: made[name] for name in ("arm", "denoised", "sd", "number")
        }
        told = plain(store.problem("walks").belief("ann"))
        assert {name: belief[name] for name in told} == told


def test_a_log_that_is_taken_in_does_not_make_the_service_unready(tmp_path: Path) -> None:
    with running(tmp_path / "a.unfog") as found:
        found.make()
        (store,) = found.service.open_stores.stores()
        ask = {"context": {"steps": 1.5, "sleep": None}}
        with store.processor.cache.reserved("walks"):
            assert found.http.post("/v1/problems/walks/decide", json=ask).status_code == 503
            assert found.http.get("/readyz").status_code == 200
        assert found.http.post("/v1/problems/walks/decide", json=ask).status_code == 200


def test_one_problem_that_fails_keeps_nobody_from_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load, seen = StateCache.load, Problem.describe

    def fails(*given: Any) -> None:
        raise ZeroDivisionError("1648 steps of ann")

    with running(tmp_path / "a.unfog") as found:
        found.make()
        found.make("poisoned")
    monkeypatch.setattr(
        StateCache, "load", lambda self, name: fails() if name == "poisoned" else load(self, name)
    )
    monkeypatch.setattr(Problem, "describe", lambda self: fails() if self.name == "poisoned" else seen(self))
    with running(tmp_path / "a.unfog") as found:
        told = {one["name"]: one for one in found.http.get("/v1/problems").json()["problems"]}
        assert told["poisoned"]["error"] == "it failed with ZeroDivisionError"
        assert (told["walks"]["error"], told["walks"]["decisions"]) == (None, 0)
        assert found.http.get("/metrics").status_code == 200
        ask = {"context": {"steps": 1.5, "sleep": None}}
        assert found.http.post("/v1/problems/walks/decide", json=ask).status_code == 200


def test_names_of_other_problems_are_not_told_to_who_may_not_know(tmp_path: Path) -> None:
    ring = KeyFile(str(tmp_path / "a.unfog"))
    keys = {name: made(["read"], names, "", 0.0) for name, names in (("ghost", ["ghost"]), ("all", []))}
    for key, _ in keys.values():
        ring.add(key)
    with running(tmp_path / "a.unfog") as found:
        found.make("secret")
    with running(tmp_path / "a.unfog", auth=Keyed(ring)) as found:
        for name, tells in (("ghost", False), ("all", True)):
            head = {"Authorization": f"Bearer {keys[name][1]}"}
            answer = found.http.get("/v1/problems/ghost", headers=head)
            assert (answer.status_code, answer.json()["field"]) == (404, "name")
            assert ("secret" in answer.text) is tells
