"""Anything in any order: the store against a bookkeeping that knows the table of delays alone."""

import tempfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from tests.live.bookkeeping import Book, Entry
from tests.live.ground import ARMS, COORDINATES, Hand, opened, problem, replayed, theta
from unfog.live import ConflictError, Decision, Problem, Receipt
from unfog.live.config import FIELDS
from unfog.validation import InputError

SUM: dict[str, Any] = {"update": "at_close", "reward_aggregation": "sum"}
MEAN: dict[str, Any] = {"reward_aggregation": "mean"}
KINDS: dict[str, dict[str, Any]] = {
    "at once": {"reward_window": 60, "context_window": 200},
    "after wait": {
        "reward_window": 60,
        "update": "at_close",
        "reward_aggregation": "sum",
        "context_window": 90,
    },
    "default": {
        "reward_window": 60,
        "default_reward": 0.0,
        "reward_aggregation": "mean",
        "context_window": 30,
    },
    "no wait": {"agent": "naive", "reward_aggregation": "first", "channel": None, "standardise": False},
    "naive, default": {"agent": "naive", "channel": None, "reward_window": 40, "default_reward": -1.0},
    "late": {"agent": "late", "reward_window": 60, "context_window": 100},
    "late, short": {"agent": "late", "reward_window": 100, "update": "at_close", "context_window": 40},
    "setting 2": {"agent": "alg2", "context_window": 90},
    "setting 2, default": {
        "agent": "unfog-delayed",
        "reward_window": 60,
        "default_reward": 0.5,
        "context_window": 90,
    },
    "setting 2, short": {
        "agent": "unfog-delayed",
        "reward_window": 90,
        "update": "at_close",
        "context_window": 40,
    },
    "chain": {"agent": "alg1", "rewards": "binary", "reward_window": 60},
    "looks back": {"agent": "alg1-exact-smoothing", "reward_window": 60},
    "vectors": {"features": "product", "arms": {"a": [1, 0], "b": [0, 1], "c": [1, 1]}, "reward_window": 60},
}
VALUES = [0.0, 1.0]
KEYS = st.sampled_from([None, None, "k1", "k2", "k3"])
NUMBERS = st.sampled_from([-1.5, 0.0, 0.25, 3.0])
SOME = st.integers(0, 10_000)
LATER = st.sampled_from([0.0, 0.0, 0.0, 0.5, 10, 45, 120])
REPORTS = st.sampled_from(["reward", "reward", "reward", "reward", "cancel", "xy", "xy", "xy", "x", "y"])


class Machine(RuleBasedStateMachine):
    """One problem of one store, and its book."""

    kind = "at once"

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.clock, self.keys = Hand(), dict[str, tuple[Any, Any]]()
        self.terms = KINDS[self.kind]
        self.arms, self.retired, self.pinned = list(ARMS), set[str](), ""
        self.live = self.open()
        told, agent = self.live.terms, self.live.processor.cache.get("p").runner.agent
        rules = (
            told.reward_window,
            told.default_reward,
            told.update == "at_close",
            told.reward_aggregation,
            told.context_window,
        )
        self.book = Book(*rules, awaits=agent.awaits_context, sees=agent.sees_context)
        for x in (0.5, 2.0):
            self.decided(self.live.decide((x, 1.0)), (x, 1.0), {})

    def open(self) -> Problem:
        self.store = opened(Path(self.folder.name), self.clock)
        return problem(self.store, **self.terms)

    def teardown(self) -> None:
        if "folder" in vars(self):
            found = self.store.replay(verify=True)["p"]
            assert found.same
            assert found.decisions == found.verified == len(self.book.entries)
            self.store.close()
            self.folder.cleanup()

    def call(self, asked: Any, key: str | None, verb: Any, expected: Any) -> Any:
        """Call, and hold the outcome against what the book says, which is asked only if the key is new."""
        if key in self.keys:
            before, first = self.live.state_hash(), self.keys[key]
            if first[0] == asked:
                assert verb() == first[1]
            else:
                with pytest.raises(ConflictError, match="key"):
                    verb()
            assert self.live.state_hash() == before
            return None
        self.book.touch(self.clock.time)
        told = expected()
        if isinstance(told, type):
            for _ in range(2):  # the first may write down what has expired
                with pytest.raises(told):
                    verb()
                before = self.live.state_hash() if _ == 0 else before
            assert self.live.state_hash() == before
            return None
        found = verb()
        if key is not None:
            self.keys[key] = asked, found
        return found

    def told(self, kind: str, id_: str, key: str | None, verb: Any, expected: Any, *asked: Any) -> None:
        found = self.call((kind, id_, *asked), key, lambda: verb(id_, *asked, key=key), expected)
        if isinstance(found, Receipt):
            told = self.said
            assert found.outcome == told
            if told != "known" or key is not None:
                self.book.events.append((kind, id_, told))

    def judged(self, verdict: Any) -> Any:
        self.said = verdict
        return verdict

    @property
    def available(self) -> list[str]:
        return [one for one in self.arms if one not in self.retired]

    @rule(
        context=st.tuples(NUMBERS, NUMBERS),
        lost=st.booleans(),
        unit=st.sampled_from([None, "ann", "bob"]),
        key=KEYS,
        some=st.booleans(),
        forced=st.booleans(),
        n=SOME,
    )
    def decide(
        self, context: Any, lost: bool, unit: str | None, key: str | None, some: bool, forced: bool, n: int
    ) -> None:
        if lost and self.terms.get("channel", "") is not None:
            context = (context[0], None)
        more: dict[str, Any] = {"unit": None if self.kind == "looks back" else unit}
        if some and not self.pinned and self.available:
            more["arms"] = self.available[n % len(self.available) :]
        if forced and self.available:
            more |= {"logged_arm": self.available[-1], "probability": 0.25}
        none = InputError if not self.available else ""
        found = self.call(
            ("decide", context, more), key, lambda: self.live.decide(context, key=key, **more), lambda: none
        )
        if isinstance(found, Decision) and found.id not in self.book.entries:
            self.decided(found, context, more)

    def decided(self, found: Decision, context: Any, more: dict[str, Any]) -> None:
        choice = more.get("arms", self.available)
        assert found.number == len(self.book.entries)
        assert list(found.probabilities) == choice
        assert sum(found.probabilities.values()) == pytest.approx(1)
        if self.pinned:
            assert found.probabilities[self.pinned] == 1
        else:
            assert min(found.probabilities.values()) >= FIELDS["epsilon"].default / len(choice) - 1e-15
        expected = more.get("probability", found.probabilities[found.arm])
        assert found.arm == more.get("logged_arm", self.pinned or found.arm)
        assert found.probability == expected
        self.book.entries[found.id] = Entry(found.id, self.clock.time, found.arm, context)
        self.book.events.append(("decide", found.id))

    @rule(what=REPORTS, n=SOME, value=st.sampled_from(VALUES), key=KEYS, x=NUMBERS, later=LATER)
    def report(self, what: str, n: int, value: float, key: str | None, x: float, later: float) -> None:
        self.clock.time += later
        if what == "reward":
            self.reward(n, value, key)
        elif what == "cancel":
            self.cancel(n, key)
        else:
            self.reveal(n, x, value, what, key)

    @rule(what=REPORTS, n=SOME, value=st.sampled_from(VALUES), later=LATER)
    def repeat(self, what: str, n: int, value: float, later: float) -> None:
        """The same decision twice, without a key: known, combined or in conflict."""
        self.report(what, n, value, None, 0.25, later)
        self.report(what, n, value if n % 2 else 1.0 - value, None, 0.25, 0.0)

    def reward(self, n: int, value: float, key: str | None) -> None:
        id_ = self.one(n)
        value = value if self.kind == "chain" else 0.5 + 0.75 * value  # no two sums of such are the same
        self.told(
            "reward", id_, key, self.live.reward, lambda: self.judged(self.book.reward(id_, value)), value
        )

    def reveal(self, n: int, x: float, y: float, part: str, key: str | None) -> None:
        id_ = self.one(n)
        told = {name: value for name, value in (("x", x), ("y", y)) if name in part}
        told |= {name: self.book.entries[id_].told.get(name, told[name]) for name in told if n % 3}
        verdict = lambda: self.judged(self.book.reveal(id_, told, self.clock.time))  # noqa: E731
        self.told("reveal", id_, key, self.live.reveal, verdict, told)

    def cancel(self, n: int, key: str | None) -> None:
        id_ = self.one(n)
        self.told("cancel", id_, key, self.live.cancel, lambda: self.judged(self.book.cancel(id_)))

    def one(self, n: int) -> str:
        return list(self.book.entries)[-1 - n % len(self.book.entries)]

    @rule(n=SOME, change=st.sampled_from(["retire", "restore", "pin", "unpin", "add"]))
    def update_arms(self, n: int, change: str) -> None:
        arm = f"new {n % 4}" if change == "add" else self.arms[n % len(self.arms)]
        fine = {
            "retire": arm not in self.retired and arm != self.pinned,
            "restore": arm in self.retired,
            "pin": arm not in self.retired,
            "unpin": True,
            "add": arm not in self.arms,
        }[change]
        live = self.live
        verbs: dict[str, Any] = {
            "retire": lambda: live.retire_arm(arm),
            "restore": lambda: live.restore_arm(arm),
            "pin": lambda: live.pin_arm(arm),
            "unpin": live.unpin_arm,
            "add": lambda: live.add_arm(arm, [0.5, n % 3] if self.kind == "vectors" else None),
        }
        found = self.call(None, None, verbs[change], lambda: "done" if fine else InputError)
        if found is None:
            return
        assert found.outcome == "done"
        self.book.events.append(("pin" if change in ("pin", "unpin") else "arms", None, "done"))
        self.retired = self.retired - {arm} if change == "restore" else self.retired
        self.retired = self.retired | {arm} if change == "retire" else self.retired
        self.pinned = arm if change == "pin" else "" if change == "unpin" else self.pinned
        self.arms += [arm] if change == "add" else []

    @rule(
        n=SOME,
        what=st.sampled_from(["nan", "no id", "no arm", "no unit", "no coordinate", "empty", "half"]),
    )
    def nonsense(self, n: int, what: str) -> None:
        id_ = self.one(n)
        verbs: dict[str, Any] = {
            "nan": lambda: self.live.reward(id_, float("nan")),
            "no id": lambda: self.live.reward("0-nobody", 1.0),
            "no arm": lambda: self.live.decide([0, 0], arms=["nobody"]),
            "no unit": lambda: self.live.decide([0, 0], unit=""),
            "no coordinate": lambda: self.live.reveal(id_, {"z": 1.0}),
            "empty": lambda: self.live.reveal(id_, {}),
            "half": lambda: self.live.decide([0]),
        }
        if what in ("no id", "no arm"):  # known only to the state, after what has expired was written down
            self.call(None, None, verbs[what], lambda: InputError)
            return
        before = self.live.state_hash()
        with pytest.raises(InputError):
            verbs[what]()
        assert self.live.state_hash() == before

    @rule(snapshot=st.booleans())
    def reopen(self, snapshot: bool) -> None:
        before = self.live.state_hash()
        self.store.close()
        self.live = self.open()
        if not snapshot:
            self.live.processor.log.discard("p")
        assert self.live.state_hash() == before

    @invariant()
    def as_in_the_book(self) -> None:
        if "live" not in vars(self):
            return
        state = self.live.processor.cache.get("p")  # to ask for `pending` would let things expire
        assert [one.id for one in state.open.values() if not one.settled] == self.book.pending()
        found = [_event(one) for one in self.live.events()[1:]]
        assert found == self.book.events
        assert state.runner.learnt == len(self.book.learnt())
        if len(self.book.events) % 4 == 0:
            assert self.live.state_hash() == replayed(self.live)
        if self.kind in ("no wait", "naive, default"):
            self.as_in_the_textbook()

    def as_in_the_textbook(self) -> None:
        """An ordinary bandit's theta is a regression on what was learnt."""
        mean, _ = theta(self.live)
        for place, arm in enumerate(self.arms):
            rows = [(1.0, *one.noisy) for one in self.book.learnt() if one.arm == arm]
            paid = [one.paid for one in self.book.learnt() if one.arm == arm]
            x = np.array(rows, dtype=float).reshape(-1, 1 + len(COORDINATES))
            expected = np.linalg.solve(np.eye(3) + x.T @ x, x.T @ np.array(paid, dtype=float))
            np.testing.assert_allclose(mean[3 * place : 3 * place + 3], expected, rtol=0, atol=1e-9)


def _event(one: dict[str, Any]) -> tuple[Any, ...]:
    if one["kind"] == "expire":
        rest = (one["expired"], one["value"]) if one["expired"] == "reward" else (one["expired"],)
        return "expire", one["decision"], *rest
    said = (one["outcome"],) if one["kind"] != "decide" else ()
    return one["kind"], one["decision"], *said


def play(kind: str, examples: int) -> None:
    made = seed(zlib.crc32(kind.encode()))(type("Machine", (Machine,), {"kind": kind}))
    run_state_machine_as_test(made, settings=settings(max_examples=examples, stateful_step_count=30))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_any_order(kind: str) -> None:
    play(kind, 10)
