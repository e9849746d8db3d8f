"""Calls with nonsense, drawn at random; each is to work, or to be refused by the name of a field."""

import random
from collections.abc import Callable
from datetime import datetime
from typing import Any

import numpy as np

from tests.live.ground import replayed
from unfog.live import Problem
from unfog.live.requests import ARGUMENTS
from unfog.validation import InputError

JUNK: list[Any] = [
    *(float("nan"), float("inf"), -float("inf"), 1e308, -1e308, 5e-324, 10**400, -(10**400), 10**5000),
    *(-1, 0.5, 2, True, False, None, "", " ", "1", "a", "x", "nan", b"x", b"", "\0", "a\0", "\ud800", "\n"),
    *("é\ud83d", "k" * 5000, "\u202e", object(), object, len, 1j, np.nan, np.float32("inf"), np.bool_(True)),
    *(np.int64(3), [], {}, (), set(), [[]], [None], [None, None], [1], [1, 2, 3], [[1, 2], [3]], [[1, 2]]),
    *([1, [2]], ["1", "2"], [True, 1.0], [1e308, 1], [10**400, 1], {"x": 1}, {"x": 1, "y": {}}, {1: 2}),
    *({None: 1}, {"x": 1, "y": 2, "z": 3}, {"x": "1", "y": 2}, {"\ud800": 1}, {b"x": 1}, {("x",): 1}),
    *(np.zeros((0,)), np.zeros((2, 2)), np.array("a"), np.array([np.nan, 1]), np.array([None, 1])),
    *(np.array([1, 2], dtype=object), np.zeros((1, 2, 1)), datetime.min, datetime.max, range(2), {"a"}),
    *(iter([1, 2]), [[1.0, 2.0], [2.0, 1.0]], -np.eye(2)),
]
FIELDS = (
    *("context", "unit", "arms", "key", "measured_at", "noise_sd", "noise_cov", "logged_arm", "probability"),
    *("decision", "value", "arm", "vector", "add", "retire", "restore", "agent", "requests", "rewards"),
)


def calls(live: Problem, id_: str, dice: random.Random) -> tuple[str, Any]:
    """A verb with something in its place that may not belong there; what it is about, and the call."""
    junk, more = dice.choice(JUNK), dice.choice(JUNK)
    name = dice.choice(ARGUMENTS[1:])
    verbs: list[tuple[str, Any]] = [
        ("decide", lambda: live.decide(junk)),
        ("decide", lambda: live.decide([junk, 1.0])),
        ("decide", lambda: live.decide({"x": 1.0, "y": junk})),
        ("decide", lambda: live.decide([0.5, 1.0], **{name: junk})),
        (
            "decide",
            lambda: live.decide([0.5, 1.0], logged_arm="a", **{name: junk} if name != "logged_arm" else {}),
        ),
        ("decide", lambda: live.decide([0.5, 1.0], arms={"a": junk, "b": more})),
        ("decide", lambda: live.decide_many([{"context": [0.0, 1.0]}, {"context": [0.0, 1.0], name: junk}])),
        ("decide", lambda: live.decide_many(junk)),
        ("reward", lambda: live.reward(junk, 1.0)),
        ("reward", lambda: live.reward(id_, junk)),
        ("reward", lambda: live.reward(junk, more, key=junk)),
        ("reward", lambda: live.reward(id_, 0.25, key=junk)),
        ("reward", lambda: live.reward_many(junk)),
        ("reward", lambda: live.reward_many({id_: junk})),
        ("reveal", lambda: live.reveal(junk, [1.0, 2.0])),
        ("reveal", lambda: live.reveal(id_, junk)),
        ("reveal", lambda: live.reveal(id_, {"x": junk})),
        ("reveal", lambda: live.reveal(id_, [1.0, junk], key=more)),
        ("cancel", lambda: live.cancel(junk)),
        ("cancel", lambda: live.cancel(junk, key=more)),
        ("arms", lambda: live.add_arm(junk, more)),
        ("arms", lambda: live.add_arm("a", junk)),
        ("arms", lambda: live.retire_arm(junk)),
        ("arms", lambda: live.restore_arm(junk)),
        ("pin", lambda: live.pin_arm(junk)),
        ("shadow", lambda: live.add_shadow(junk)),
    ]
    return dice.choice(verbs)


def refusal(call: Callable[[], Any]) -> InputError | None:
    """What is said against it; any other error is one."""
    try:
        call()
    except InputError as error:
        return error
    return None


def as_it_was(live: Problem) -> None:
    """All arms may be chosen again."""
    for arm, active in live.processor.cache.get(live.name).arms.active.copy().items():
        if not active:
            live.restore_arm(arm)
    live.unpin_arm()


def throw(live: Problem, number: int, seed: int, **more: Any) -> tuple[int, int]:
    """So many calls; how many worked, and how many were refused. What is pinned by chance is unpinned."""
    dice, done, refused, log = random.Random(seed), 0, 0, live.processor.log
    ids = [live.decide([0.1 * i, 1.0], **more).id for i in range(8)]
    before = live.state_hash()
    for i in range(number):
        kind, call = calls(live, dice.choice(ids), dice)
        last = log.last
        error = refusal(call)
        if error is None:
            done, before = done + 1, ""
            as_it_was(live)
            continue
        refused += 1
        assert error.field.split("[")[0].split(".")[0] in FIELDS, error
        assert str(error).isprintable(), repr(str(error))
        assert log.last == last, (kind, str(error))
        if i % 20 == 0:  # the log is as it was, and what is remembered is what the log says
            before = before or replayed(live)
            assert live.state_hash() == before
    return done, refused
