"""What happened, as diagnostics count it: against what a caller would count by hand."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.live.played import terms
from unfog.live import Problem, Store
from unfog.live import open as open_store

READING = [0.5, -0.3]


class Clock:
    """A time that stands still until it is moved."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Iterator[Store]:
    with open_store(tmp_path / "counted.unfog", sync="normal", clock=clock) as found:
        yield found


def counts(store: Store, *names: str) -> tuple[Any, ...]:
    """Now, and again when the log is read from its beginning."""
    attrs = store.problem("walks").diagnostics().attrs
    before = store.problem("walks").state_hash()
    assert store.replay()["walks"].same
    assert store.problem("walks").state_hash() == before
    return tuple(attrs[name] for name in names)


def wait(walks: Problem, clock: Clock, seconds: float) -> None:
    """Until then, and one more event, before which all is settled that is due."""
    clock.now += seconds
    walks.pin_arm("send")


CAME = ("answered", "expired", "join_rate")


@pytest.mark.parametrize(("update", "default"), [("immediate", None), ("at_close", None), ("at_close", 0.0)])
def test_who_does_not_answer_has_not_come_in_time(
    store: Store, clock: Clock, update: str, default: float | None
) -> None:
    walks = store.problem("walks", **terms("unfog", update=update, default_reward=default))
    made = [walks.decide(READING) for _ in range(4)]
    walks.reward(made[0].id, 1.0)
    wait(walks, clock, 50)
    assert counts(store, *CAME) == (1, 3, 0.25)
    assert walks.reward(made[1].id, 1.0).outcome == "late"
    assert counts(store, *CAME, "late") == (1, 3, 0.25, 1)


def test_what_never_was_shown_counts_for_nothing(store: Store, clock: Clock) -> None:
    """Whether the decision was closed when it was cancelled, or open, or still waited."""
    walks = store.problem("walks", **terms("late"))
    paid, waited, opened, closed = (walks.decide(READING) for _ in range(4))
    walks.reward(paid.id, 1.0)
    walks.cancel(waited.id)
    wait(walks, clock, 50)
    assert counts(store, *CAME) == (1, 2, 1 / 3)
    walks.cancel(opened.id)
    wait(walks, clock, 100)
    assert closed.id not in store.processor.cache.get("walks").open
    assert counts(store, *CAME) == (1, 1, 0.5)
    walks.cancel(closed.id)
    walks.cancel(closed.id, key="again")
    assert counts(store, *CAME, "cancelled") == (1, 0, 1.0, 3)


@pytest.mark.parametrize("agent", ["unfog", "late"])
def test_who_is_erased_is_counted_no_more(store: Store, clock: Clock, agent: str) -> None:
    walks = store.problem("walks", **terms(agent))
    of = {unit: [walks.decide(READING, unit=unit) for _ in range(4)] for unit in ("ann", "bob")}
    walks.reward(of["bob"][0].id, 1.0)
    walks.reward(of["ann"][0].id, 1.0)
    wait(walks, clock, 200)
    for unit in ("ann", "bob"):
        walks.cancel(of[unit][1].id)
        walks.reward(of[unit][2].id, 1.0)
        walks.reveal(of[unit][2].id, [0.0, 0.0])
    names = ("decisions", *CAME, "late", "late_contexts", "cancelled")
    assert counts(store, *names) == (8, 2, 4, 1 / 3, 2, 2, 2)
    store.erase(unit="ann")
    assert counts(store, *names) == (
        4,
        1,
        2,
        1 / 3,
        1,
        1,
        1,
    )
    store.erase(unit="bob")
    erased = counts(store, "decisions", "answered", "expired", "late", "late_contexts", "cancelled")
    assert erased == (0, 0, 0, 0, 0, 0)
    assert np.isnan(counts(store, "join_rate"))


def judged(store: Store) -> tuple[Any, ...]:
    found = store.problem("walks").diagnostics()
    paid = found["reward_mean"].where(found["rewarded"] > 0).dropna("arm").values.tolist()
    return (*counts(store, "rewards", "judged"), paid)


@pytest.mark.parametrize("agent", ["alg2", "unfog-delayed"])
def test_a_reward_that_awaits_its_context_counts_when_it_is_learnt(store: Store, agent: str) -> None:
    walks = store.problem("walks", **terms(agent, reward_window=None, arms=["send"]))
    learnt, cancelled, waits = (walks.decide(READING) for _ in range(3))
    for made, value in ((learnt, 1.0), (cancelled, 5.0), (waits, 7.0)):
        assert walks.reward(made.id, value).outcome == "waits"
    assert judged(store) == (0, 0, [])
    walks.cancel(cancelled.id)
    walks.reveal(learnt.id, [0.2, 0.1])
    assert judged(store) == (1, 1, [1.0])
    assert counts(store, "answered", "cancelled", "pending") == (2, 1, 0)


def test_a_reward_whose_context_never_came_counts_for_nothing(store: Store, clock: Clock) -> None:
    walks = store.problem("walks", **terms("alg2", reward_window=None, arms=["send"]))
    walks.reward(walks.decide(READING).id, 5.0)
    wait(walks, clock, 121)
    wait(walks, clock, 1)
    assert judged(store) == (0, 0, [])
    assert counts(store, "dropped", "answered") == (1, 1)


@pytest.mark.parametrize("agent", ["alg2", "unfog-delayed"])
def test_it_is_judged_the_same_whichever_comes_first(store: Store, agent: str) -> None:
    """All of the tallies: what was expected of rewards does not hang on the order of reward and context."""
    rng, found = np.random.default_rng(2), []
    worlds = [(rng.normal(size=2), rng.normal(size=2), float(2 * rng.normal())) for _ in range(40)]
    for order in ("reward", "reveal"):
        walks = store.problem(order, **terms(agent, reward_window=None, arms=["send"]))
        for noisy, true, paid in worlds:
            made = walks.decide(noisy)
            if order == "reward":
                walks.reward(made.id, paid)
            walks.reveal(made.id, true)
            if order == "reveal":
                walks.reward(made.id, paid)
        found.append(store.processor.cache.get(order).watch.tallies)
    assert found[0].judged == 40
    assert 0 < found[0].inside[0] < 40
    assert found[0].inside.tolist() == found[1].inside.tolist()


def test_decisions_of_a_day_are_those_since_midnight(store: Store, clock: Clock, tmp_path: Path) -> None:
    walks = store.problem("walks", **terms("unfog"))
    clock.now = 20_000 * 86_400.0 - 1
    walks.decide(READING)
    assert walks.describe()["decisions_today"] == 1
    clock.now += 1
    assert walks.describe()["decisions_today"] == 0
    walks.decide(READING)
    clock.now += 86_399
    walks.decide(READING)
    assert (walks.describe()["decisions_today"], walks.describe()["decisions"]) == (2, 3)
    store.close()
    with open_store(tmp_path / "counted.unfog", sync="normal", clock=clock) as again:
        assert again.problem("walks").describe()["decisions_today"] == 2
        assert again.replay()["walks"].same
        clock.now += 1
        assert again.problem("walks").describe()["decisions_today"] == 0
