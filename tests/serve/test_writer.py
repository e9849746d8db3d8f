"""What the event loop does itself is short: by what was measured, and by what is asked for."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.serve.running import Running, running
from unfog.live.problem import Problem
from unfog.serve import app, schemas, writer
from unfog.serve.operations import FEW, OPERATIONS
from unfog.serve.writer import WorkTimes

DECIDE = next(one for one in OPERATIONS if one.id == "decide")
ASK = {"context": {"x": 1.0, "y": 2.0}}


def test_short_is_what_was_short_lately() -> None:
    found = WorkTimes()
    assert not found.is_short("a")
    found.add("a", writer.SHORT / 10)
    assert found.is_short("a")
    assert not found.is_short("b")
    for _ in range(5):
        found.add("a", 100 * writer.SHORT)
        assert not found.is_short("a")
    for _ in range(40):
        found.add("a", writer.SHORT / 10)
    assert found.is_short("a")


@pytest.mark.parametrize("vectors", [False, True])
def test_many_arms_in_one_decision_are_not_short(vectors: bool) -> None:
    for number, short in ((FEW, True), (FEW + 1, False)):
        names = [f"a{i}" for i in range(number)]
        body = schemas.DecisionRequest(context={}, arms={one: [1.0] for one in names} if vectors else names)
        assert DECIDE.short(body) is short
    assert not DECIDE.short(schemas.DecisionRequests(requests=[schemas.DecisionRequest(context={})]))


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path / "a.unfog") as found:
        terms = {"name": "shop", "context": ["x", "y"], "arm_size": 2, "features": "product"}
        assert found.http.post("/v1/problems", json=terms).status_code == 201
        yield found


@pytest.mark.parametrize(("step", "loop"), [(0.0, [False, True, True, True]), (1.0, [False] * 4)])
def test_work_is_done_by_the_loop_once_it_has_shown_to_be_short(
    service: Running, monkeypatch: pytest.MonkeyPatch, step: float, loop: list[bool]
) -> None:
    """The first is measured. However short it is, many arms are not."""
    threads, decide, now = list[str](), Problem.decide, [0.0]

    def seen(problem: Problem, *told: Any, **named: Any) -> Any:
        threads.append(threading.current_thread().name)
        return decide(problem, *told, **named)

    def clock() -> float:
        now[0] += step
        return now[0]

    monkeypatch.setattr(Problem, "decide", seen)
    monkeypatch.setattr(writer, "thread_time", clock)
    few = {**ASK, "arms": {"a": [1.0, 0.0], "b": [0.0, 1.0]}}
    many = {**ASK, "arms": {f"a{i}": [1.0, 0.0] for i in range(FEW + 1)}}
    for body in (few, few, few, few, many):
        assert service.http.post("/v1/problems/shop/decide", json=body).status_code == 200
    assert ["writer of" not in one for one in threads] == [*loop, False]


def test_a_large_body_is_not_read_by_the_loop(service: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    threads, read = list[int](), app._body

    def seen(*told: Any) -> Any:
        threads.append(threading.get_ident())
        return read(*told)

    monkeypatch.setattr(app, "_body", seen)
    large = {**ASK, "arms": {f"a{i}".zfill(100): [1.0, 0.0] for i in range(app.SMALL // 100)}}
    small = {**ASK, "arms": {"a": [1.0, 0.0]}}
    for body in (small, large, small):
        assert service.http.post("/v1/problems/shop/decide", json=body).status_code == 200
    assert threads[0] == threads[2] != threads[1]
