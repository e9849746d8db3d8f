"""Bad input is refused by the name of its field, and changes nothing."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.live.ground import opened, problem
from tests.live.nonsense import throw
from unfog.live import Conflict, Gone, Problem, Unknown
from unfog.validation import InputError

NAN, INF, HUGE = float("nan"), float("inf"), 10**5000
CASES: list[tuple[str, str, Any, Any]] = [
    ("decide", "context.x", ([NAN, 1],), {}),
    ("decide", "context.y", ([1, INF],), {}),
    ("decide", "context.x", ([True, 1],), {}),
    ("decide", "context.x", (["1", 1],), {}),
    ("decide", "context.x", ([HUGE, 1],), {}),
    ("decide", "context.x", ([1e308, 1],), {}),
    ("decide", "context.y", ({"x": 1},), {}),
    ("decide", "context.z", ({"x": 1, "y": 1, "z": 1},), {}),
    ("decide", "context.1", ({1: 1},), {}),
    ("decide", "context", ([1],), {}),
    ("decide", "context", ([[1, 2]],), {}),
    ("decide", "context", (np.zeros((2, 2)),), {}),
    ("decide", "context", ("xy",), {}),
    ("decide", "context", (b"xy",), {}),
    ("decide", "context", (None,), {}),
    ("decide", "unit", ([1, 2],), {"unit": ""}),
    ("decide", "unit", ([1, 2],), {"unit": "a\0"}),
    ("decide", "unit", ([1, 2],), {"unit": "\ud800"}),
    ("decide", "unit", ([1, 2],), {"unit": 5}),
    ("decide", "arms[0]", ([1, 2],), {"arms": [1]}),
    ("decide", "arms[1]", ([1, 2],), {"arms": ["a", "a"]}),
    ("decide", "arms", ([1, 2],), {"arms": ["z"]}),
    ("decide", "arms", ([1, 2],), {"arms": []}),
    ("decide", "arms", ([1, 2],), {"arms": "a"}),
    ("decide", "arms", ([1, 2],), {"arms": np.array("a")}),
    ("decide", "arms", ([1, 2],), {"arms": {"a": [1, 2]}}),
    ("decide", "key", ([1, 2],), {"key": "k" * 5000}),
    ("decide", "at", ([1, 2],), {"at": NAN}),
    ("decide", "at", ([1, 2],), {"at": "now"}),
    ("decide", "noise", ([1, 2],), {"noise": -1.0}),
    ("decide", "noise", ([1, 2],), {"noise": [[1, 2], [2, 1]]}),
    ("decide", "forced", ([1, 2],), {"forced": "z"}),
    ("decide", "probability", ([1, 2],), {"forced": "a", "probability": 0}),
    ("decide", "probability", ([1, 2],), {"forced": "a", "probability": 1.5}),
    ("decide", "probability", ([1, 2],), {"probability": 0.5}),
    ("reward", "value", ("open", NAN), {}),
    ("reward", "value", ("open", -INF), {}),
    ("reward", "value", ("open", True), {}),
    ("reward", "value", ("open", "1"), {}),
    ("reward", "value", ("open", HUGE), {}),
    ("reward", "value", ("open", 1e308), {}),
    ("reward", "value", ("open", 5.5), {}),
    ("reward", "value", ("open", [1.0]), {}),
    ("reward", "value", ("paid", 0.5), {}),
    ("reward", "decision", ("0-nobody", 1.0), {}),
    ("reward", "decision", (None, 1.0), {}),
    ("reward", "decision", ("\0", 1.0), {}),
    ("reward", "decision", ("void", 1.0), {}),
    ("reward", "key", ("open", 1.0), {"key": "used"}),
    ("reveal", "context.x", ("open", {"x": NAN}), {}),
    ("reveal", "context", ("open", {"x": None}), {}),
    ("reveal", "context", ("open", {}), {}),
    ("reveal", "context.z", ("open", {"z": 1}), {}),
    ("reveal", "context.x", ("shown", {"x": 2.0}), {}),
    ("reveal", "decision", ("void", {"x": 2.0}), {}),
    ("reveal", "decision", ("0-nobody", {"x": 2.0}), {}),
    ("void", "decision", ("paid",), {}),
    ("void", "decision", ({},), {}),
    ("add_arm", "arm", ("",), {}),
    ("add_arm", "add", ("a",), {}),
    ("add_arm", "arms.d", ("d", [1.0, 2.0]), {}),
    ("add_arm", "vector", ("d", [NAN]), {}),
    ("retire_arm", "retire", ("z",), {}),
    ("restore_arm", "restore", ("a",), {}),
    ("freeze", "arm", ("z",), {}),
    ("shadow", "agent", ("oracle",), {}),
    ("shadow", "agent", ("nobody",), {}),
    ("shadow", "agent.no_such_module:agent", ("no_such_module:agent",), {}),
    ("decide_many", "asked", (5,), {}),
    ("decide_many", "asked[0].arm", ([{"context": [1, 2], "arm": "a"}],), {}),
    (
        "decide_many",
        "asked[1].key",
        ([{"context": [1, 2], "key": "new"}, {"context": [1, 2], "key": "used"}],),
        {},
    ),
    ("reward_many", "rewards", ([1.0],), {}),
]


@pytest.fixture
def live(tmp_path: Path) -> Problem:
    """Rewards from -5 to 5, for an hour."""
    return problem(opened(tmp_path), reward_range=(-5, 5), wait="1h")


def test_by_hand(live: Problem) -> None:
    ids = {name: live.decide([0.5, 1.0]).id for name in ("open", "paid", "void", "shown")}
    live.reward(ids["paid"], 1.0, key="used")
    live.void(ids["void"])
    live.reveal(ids["shown"], {"x": 1.0})
    before, events = live.fingerprint(), len(live.events())
    for verb, field, args, more in CASES:
        with pytest.raises(InputError) as caught:
            getattr(live, verb)(*(ids.get(x, x) if isinstance(x, str) else x for x in args), **more)
        assert caught.value.field == field, (verb, args, caught.value)
        assert str(caught.value).encode()
    assert live.fingerprint() == before
    assert len(live.events()) == events
    live.processor.close()


@pytest.mark.parametrize(
    ("kind", "call"),
    [
        (Unknown, lambda live, _: live.reward("0-nobody", 1.0)),
        (Unknown, lambda live, _: Problem(live.processor, "nobody")),
        (Gone, lambda live, id_: live.void(id_)),
        (Conflict, lambda live, id_: live.reward(id_, 2.0)),
    ],
)
def test_refusals_of_their_own_kind(live: Problem, kind: type[InputError], call: Any) -> None:
    id_ = live.decide([0.5, 1.0]).id
    live.reward(id_, 1.0)
    with pytest.raises(kind):
        call(live, id_)
    live.processor.close()


@pytest.mark.parametrize("value", [0.5, 2, -1, NAN, True])
def test_rewards_of_0_or_1(tmp_path: Path, value: Any) -> None:
    with opened(tmp_path) as store:
        live = problem(store, agent="alg1", rewards="bernoulli")
        id_ = live.decide([0, 1]).id
        with pytest.raises(InputError, match="0 or 1"):
            live.reward(id_, value)


def test_nothing_is_known_of_what_was_lost_without_a_channel(tmp_path: Path) -> None:
    with opened(tmp_path) as store, pytest.raises(InputError, match=r"context\.y"):
        problem(store, channel=None).decide([0, None])


KINDS: list[dict[str, Any]] = [
    {"features": "product", "arms": {"a": [1.0, 0.0], "b": [0.0, 1.0]}},
    {"agent": "late", "wait": 3600, "default_reward": 0.0},
    {"agent": "naive", "channel": None, "rewards": "bernoulli"},
    {"arms": None, "arm_size": 2, "features": "product"},
]
BROUGHT: dict[str, Any] = {"arms": {"a": [1.0, 0.0], "b": [0.0, 1.0]}}


@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_at_random(tmp_path: Path, kind: int) -> None:
    fuzz(tmp_path, kind, 500)


def fuzz(path: Path, kind: int, number: int, seed: int = 0) -> None:
    with opened(path) as store:
        live = problem(store, **KINDS[kind])
        done, refused = throw(live, number, 10 * seed + kind, **BROUGHT if "arm_size" in KINDS[kind] else {})
        assert refused > 0.8 * number
        assert done > 0
        assert store.replay(verify=True)["p"].same
