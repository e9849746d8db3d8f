"""A clinic where everything happens at random, and a plain list of what a page should show of it."""

import random
from math import isclose, sqrt
from pathlib import Path
from typing import Any

from tests.live.bookkeeping import Book, Entry
from tests.live.ground import ARMS, COORDINATES, Hand, opened, problem
from unfog.live import Problem
from unfog.validation import InputError

UNITS = ["ann", "bob", "cy", None]
VERBS = {"decide": 50, "reward": 25, "reveal": 12, "cancel": 4, "arms": 4, "pin": 4, "shadow": 3}
REACH = 1.959963984540054


class Clinic:
    """Calls at random; decisions by number, each with what was answered and what came of it."""

    def __init__(self, path: Path, seed: int, **terms: Any) -> None:
        self.chance, self.clock = random.Random(seed), Hand()
        self.store = opened(path, self.clock)
        self.live: Problem = problem(self.store, **terms)
        self.decisions: list[dict[str, Any]] = []
        self.arms = list(ARMS)  # all there ever were
        told, agent = self.live.terms, self.store.processor.cache.get("p").runner.agent
        rules = (
            told.reward_window,
            told.default_reward,
            told.update == "at_close",
            told.reward_aggregation,
            told.context_window,
        )
        self.book = Book(*rules, awaits=agent.awaits_context, sees=agent.sees_context)
        self.pinned = False

    def play(self, calls: int) -> None:
        for _ in range(calls):
            self.clock.time += self.chance.choice([0.0, 1.0, 4.0])
            self.book.touch(self.clock.time)
            verb = self.chance.choices([*VERBS], [*VERBS.values()])[0]
            try:
                getattr(self, f"_{verb if self.decisions else 'decide'}")()
            except InputError:
                continue

    def _decide(self) -> None:
        chance, given = self.chance, dict[str, Any]()
        context = [None if chance.random() < 0.1 else chance.gauss(0.5, 2) for _ in COORDINATES]
        if chance.random() < 0.2:
            given["arms"] = chance.sample(ARMS, 2)
        if chance.random() < 0.15:
            given |= {"logged_arm": chance.choice(ARMS)} | chance.choice([{}, {"probability": 0.4}])
        unit = chance.choice(UNITS)
        found = self.live.decide(context, unit=unit, **given)
        free = "logged_arm" not in given and not self.pinned
        kept = {"unit": unit, "noisy": context, "answer": found, "time": self.clock.time, "free": free}
        self.decisions.append(kept | {"logged_arm": "logged_arm" in given, "true": {}})
        self.book.entries[found.id] = Entry(found.id, self.clock.time, found.arm, tuple(context))

    def _one(self) -> dict[str, Any]:
        return self.chance.choice(self.decisions[-15:])

    def _reward(self) -> None:
        one = self._one()["answer"].id
        value = self.chance.gauss(1, 2)
        expected = self.book.reward(one, value)
        assert self.live.reward(one, value).outcome == expected

    def _reveal(self) -> None:
        one = self._one()
        names = self.chance.sample(COORDINATES, self.chance.choice([1, 2]))
        true = {name: self.chance.gauss(0, 1) for name in names}
        expected = self.book.reveal(one["answer"].id, true, self.clock.time)
        assert self.live.reveal(one["answer"].id, true).outcome == expected
        if expected != "known":
            one["true"] = true | one["true"]

    def _cancel(self) -> None:
        one = self._one()["answer"].id
        expected = self.book.cancel(one)
        assert self.live.cancel(one).outcome == expected

    def _arms(self) -> None:
        verb = self.chance.choice(["retire_arm", "restore_arm", "restore_arm", "add_arm"])
        arm = self.chance.choice(ARMS) if verb != "add_arm" else f"new {len(self.arms)}"
        getattr(self.live, verb)(arm)
        self.arms += [arm] * (verb == "add_arm")

    def _pin(self) -> None:
        if self.pinned or self.chance.random() < 0.5:
            self.live.unpin_arm()
            self.pinned = False
        else:
            self.live.pin_arm("a")
            self.pinned = True

    def _shadow(self) -> None:
        shadows = [name for name in self.store.processor.cache.get("p").runners if name]
        if "naive" in shadows and self.chance.random() < 0.4:
            self.live.remove_shadow("naive")
        else:
            self.live.add_shadow("naive" if shadows else "alg1")


def same(found: float | None, wanted: float | None) -> bool:
    if found is None or wanted is None:
        return found is wanted
    return isclose(found, wanted, rel_tol=1e-9, abs_tol=1e-12)


def weight(one: dict[str, Any], shadow: str) -> float | None:
    """What a decision counts for a shadow, from the answer that its caller had."""
    answer = one["answer"]
    others = answer.shadows[shadow]["probabilities"]
    if answer.probability is None:
        return None
    supported = all(answer.probabilities.get(arm, 0.0) > 0 for arm, q in others.items() if q > 0)
    if not one["logged_arm"] and not supported:
        return None
    return float(others.get(answer.arm, 0.0) / answer.probability)


def mean(values: list[float]) -> dict[str, Any]:
    """With its interval, by the book."""
    n = len(values)
    found = sum(values) / n if n else None
    if n < 2 or found is None:
        return {"mean": found, "low": None, "high": None, "count": n}
    reach = REACH * sqrt(sum((x - found) ** 2 for x in values) / (n - 1) / n)
    return {"mean": found, "low": found - reach, "high": found + reach, "count": n}
