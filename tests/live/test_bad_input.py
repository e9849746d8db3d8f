"""Bad input is refused by the name of its field, and changes nothing: what JSON cannot say, and at random."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unfog
from tests.live.ground import ARMS, CHANNEL, COORDINATES, opened, problem
from tests.live.nonsense import throw
from unfog.live import Problem
from unfog.live.snapshot import replay
from unfog.validation import InputError

NAN, INF, HUGE = float("nan"), float("inf"), 10**5000
PYTHON: list[tuple[str, str, Any]] = [
    ("decide", "context.y", [1, INF]),
    ("decide", "context.x", [HUGE, 1]),
    ("decide", "context.1", {1: 1}),
    ("decide", "context", np.zeros((2, 2))),
    ("decide", "context", b"xy"),
    ("reward", "value", NAN),
    ("reward", "value", -INF),
    ("reward", "value", HUGE),
    ("reward", "value", [1.0]),
    ("reveal", "context", {"x": NAN}),
    ("add_arm", "vector", [NAN]),
]


def test_what_no_json_says(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        live = problem(store)
        made = live.decide([0.5, 1.0])
        before, events = live.state_hash(), live.events()
        for verb, field, value in PYTHON:
            with pytest.raises(InputError) as caught:
                getattr(live, verb)(*([] if verb == "decide" else [made.id]), value)
            assert caught.value.field == field, (verb, value)
        for more in ({"unit": "\ud800"}, {"unit": "a\0"}, {"arms": np.array("a")}, {"measured_at": INF}):
            with pytest.raises(InputError, match=f"^{next(iter(more))}: "):
                live.decide([0.5, 1.0], **more)
        with pytest.raises(InputError, match=r"^agent\.no_such_module:agent: "):
            live.add_shadow("no_such_module:agent")
        assert (live.state_hash(), live.events()) == (before, events)


KINDS: list[dict[str, Any]] = [
    {"features": "product", "arms": {"a": [1.0, 0.0], "b": [0.0, 1.0]}},
    {"agent": "late", "reward_window": 3600, "default_reward": 0.0},
    {"agent": "naive", "channel": None, "rewards": "binary"},
    {"arms": None, "arm_size": 2, "features": "product"},
]
TERMS: dict[str, Any] = {"context": COORDINATES, "arms": ARMS, "channel": CHANNEL, "seed": 11}
BROUGHT: dict[str, Any] = {"arms": {"a": [1.0, 0.0], "b": [0.0, 1.0]}}


@contextmanager
def made(place: str, path: Path, kind: int) -> Iterator[Problem]:
    """A problem of this kind, in a file or in memory."""
    if place == "memory":
        yield unfog.Bandit(name="p", **TERMS | KINDS[kind])
        return
    with opened(path) as store:
        yield problem(store, **KINDS[kind])


@pytest.mark.parametrize("place", ["file", "memory"])
@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_at_random(tmp_path: Path, kind: int, place: str) -> None:
    fuzz(tmp_path, kind, 500 if place == "file" else 300, place=place)


def fuzz(path: Path, kind: int, number: int, seed: int = 0, place: str = "file") -> None:
    with made(place, path, kind) as live:
        done, refused = throw(live, number, 10 * seed + kind, **BROUGHT if "arm_size" in KINDS[kind] else {})
        assert refused > 0.8 * number
        assert done > 0
        assert replay(live.processor, "p", verify=True).same
