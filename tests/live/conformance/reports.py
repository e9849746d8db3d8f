"""Rewards, true contexts, decisions that were never shown, and waits."""

from typing import Any

import pytest

from tests.live.conformance.places import (
    SHOWN,
    Place,
    nothing_learnt,
    refused,
    unchanged,
)
from unfog.live import ConflictError, DecisionClosedError, NotFoundError, Receipt
from unfog.validation import InputError


def check_a_reward_is_learnt_once(place: Place) -> None:
    live = place.made()
    made, other = live.decide(SHOWN), live.decide(SHOWN)
    before = live.state_hash()
    receipt = live.reward(made.id, 1.25)
    assert receipt == Receipt(live.events()[-1]["seq"], "learnt", "learnt")
    assert receipt.learnt
    assert live.state_hash() != before
    assert live.pending() == [other.id]
    with nothing_learnt(live):
        assert live.reward(made.id, 1.25).outcome == "known"
    said = "value: 2.0; allowed: the reward it has, 1.25; several are combined where update is 'at_close'"
    refused(live, lambda: live.reward(made.id, 2.0), said, ConflictError)
    said = "decision: 'nobody'; allowed: the id of a decision of this problem"
    refused(live, lambda: live.reward("nobody", 1.0), said, NotFoundError)
    assert (live.belief().attrs["rewards_learnt"], live.describe()["rewards"]) == (1, 1)


def check_a_reward_is_one_that_may_be(place: Place) -> None:
    ranged, binary = place.made(reward_range=(-5, 5)), place.made(rewards="binary", agent="alg1")
    made, other = ranged.decide(SHOWN), binary.decide(SHOWN)
    with unchanged(ranged), pytest.raises(InputError, match=r"^value: 5\.5; allowed: .*-5.*5"):
        ranged.reward(made.id, 5.5)
    for value in (0.5, 2, True):
        with unchanged(binary), pytest.raises(InputError, match=r"^value: "):
            binary.reward(other.id, value)
    assert ranged.reward(made.id, -5).learnt
    assert binary.reward(other.id, 1).learnt


def check_the_first_reward_counts_where_it_is_to(place: Place) -> None:
    live = place.made(reward_aggregation="first")
    made = live.decide(SHOWN)
    live.reward(made.id, 1.0)
    assert live.reward(made.id, 2.0).outcome == "ignored"
    assert live.reward(made.id, 1.0).outcome == "known"
    assert live.belief().attrs["rewards_learnt"] == 1


def check_a_wait_that_is_over(place: Place) -> None:
    live = place.made(reward_window="10m", default_reward=0.5)
    paid, late = live.decide(SHOWN), live.decide(SHOWN)
    place.clock.time += 599
    assert live.pending() == [paid.id, late.id]
    assert live.reward(paid.id, 1.0).outcome == "kept"  # only then is it known that the default is not due
    place.clock.time += 1
    assert live.reward(late.id, 1.0).outcome == "late"
    assert live.pending() == []
    expired = [event for event in live.events() if event["kind"] == "expire"]
    assert [(one["decision"], one["expired"], one["value"]) for one in expired] == [
        (paid.id, "reward", 1.0),
        (late.id, "reward", 0.5),
    ]
    assert live.belief().attrs["rewards_learnt"] == 2


def check_without_a_default_nothing_is_learnt_of_who_is_late(place: Place) -> None:
    live = place.made(reward_window=60)
    made = live.decide(SHOWN)
    place.clock.time += 61
    assert live.pending() == []  # to look is enough
    assert live.events()[-1]["value"] is None
    assert live.reward(made.id, 1.0).outcome == "late"
    found = live.diagnostics().attrs
    assert (found["late"], found["expired"], found["rewards"], found["join_rate"]) == (1, 1, 0, 0.0)


COMBINED = {"last": 4.0, "first": 1.0, "sum": 7.0, "mean": 7 / 3, "max": 4.0, "min": 1.0}


def check_rewards_are_combined_when_the_wait_is_over(place: Place) -> None:
    for combine, expected in COMBINED.items():
        live = place.made(reward_window=60, update="at_close", reward_aggregation=combine)
        made, never = live.decide(SHOWN), live.decide(SHOWN)
        for value in (1.0, 2.0, 4.0):
            assert live.reward(made.id, value).outcome == "kept"
        assert live.belief().attrs["rewards_learnt"] == 0
        place.clock.time += 60
        assert live.pending() == []
        values = {event["decision"]: event["value"] for event in live.events() if event["kind"] == "expire"}
        assert values == {made.id: pytest.approx(expected), never.id: None}, combine
        assert live.belief().attrs["rewards_learnt"] == 1


def check_a_reward_waits_for_its_true_context(place: Place) -> None:
    """Where agents learn from true contexts alone."""
    live = place.made(agent="alg2", context_window=60)
    made, dropped = live.decide(SHOWN), live.decide(SHOWN)
    for one in (made, dropped):
        assert live.reward(one.id, 1.0).outcome == "waits"
    assert live.belief().attrs["rewards_learnt"] == 0
    said = "context.y: missing; allowed: the complete context: 'alg2' cannot learn from a part of it"
    refused(live, lambda: live.reveal(made.id, {"x": 1.0}), said)
    assert live.reveal(made.id, [1.0, -2.0]).outcome == "learnt"
    assert live.belief().attrs["rewards_learnt"] == 1
    place.clock.time += 60
    live.decide(SHOWN)
    (expired,) = (event for event in live.events() if event["kind"] == "expire")
    assert (expired["decision"], expired["expired"]) == (dropped.id, "context")
    assert live.reveal(dropped.id, [1.0, -2.0]).outcome == "late"
    assert live.belief().attrs["rewards_learnt"] == 1


def check_true_contexts(place: Place) -> None:
    for agent, outcome in (("unfog", "noted"), ("late", "learnt")):
        live = place.made(agent=agent, context_window=60)
        made, later = live.decide(SHOWN), live.decide(SHOWN)
        assert live.reveal(made.id, {"x": 1.0}).outcome == outcome
        with nothing_learnt(live):
            assert live.reveal(made.id, {"x": 1.0}).outcome == "known"
        said = "context.x: 2.0; allowed: the value revealed before, 1"
        refused(live, lambda live=live, made=made: live.reveal(made.id, {"x": 2.0}), said, ConflictError)  # type: ignore[misc]
        assert live.reveal(made.id, [1.0, -2.5]).outcome == outcome
        place.clock.time += 60
        assert live.reveal(later.id, [1.0, -2.0]).outcome == "late"
        found = live.diagnostics()
        assert found["true_contexts"].values.tolist() == [1.0, 1.0]
        assert float(found["rmse_noisy"].sel(coordinate="y")) == pytest.approx(1.5)
        news = [one for one in live.events() if one["kind"] == "reveal" and one["outcome"] != "known"]
        assert [one["context"] for one in news] == [
            {"x": 1.0},
            {"x": 1.0, "y": -2.5},
            {"x": 1.0, "y": -2.0},
        ]


def check_a_decision_that_was_never_shown(place: Place) -> None:
    live = place.made()
    paid, cancelled = live.decide(SHOWN), live.decide(SHOWN)
    live.reward(paid.id, 1.0)
    assert live.cancel(cancelled.id)[1:] == ("cancelled", "nothing will be learnt from this decision")
    with nothing_learnt(live):
        assert live.cancel(cancelled.id).outcome == "known"
    said = f"decision: '{paid.id}'; allowed: a decision without a reward: that of this one is learnt already"
    refused(live, lambda: live.cancel(paid.id), said, DecisionClosedError)
    for call in (lambda: live.reward(cancelled.id, 1.0), lambda: live.reveal(cancelled.id, {"x": 1.0})):
        message = f"decision: '{cancelled.id}'; allowed: a decision that was not cancelled"
        refused(live, call, message, DecisionClosedError)
    assert live.pending() == []
    assert live.diagnostics().attrs["cancelled"] == 1


def check_several_rewards_at_once(place: Place) -> None:
    live = place.made(reward_range=(-5, 5))
    one, two, paid = (live.decide(SHOWN).id for _ in range(3))
    live.reward(paid, 1.0, key="used")
    found = live.reward_many({one: 0.5, two: -0.5}, keys={two: "k"})
    assert {name: receipt.outcome for name, receipt in found.items()} == {one: "learnt", two: "learnt"}
    assert [event["value"] for event in live.events()[-2:]] == [0.5, -0.5]
    assert live.events()[-1]["key"] == "k"
    with unchanged(live):
        assert live.reward_many({two: -0.5}, keys={two: "k"}) == {two: found[two]}
        assert live.reward_many({}) == {}
    new, newer = live.decide(SHOWN).id, live.decide(SHOWN).id
    cases: list[tuple[Any, Any, str, type[InputError]]] = [
        ({new: 1.0, "nobody": 1.0}, None, "decision", NotFoundError),
        ({new: 1.0, newer: 9.0}, None, "value", InputError),
        ([1.0], None, "rewards", InputError),
        ({new: 1.0}, {new: "used"}, "key", ConflictError),
        ({new: 1.0}, {newer: "misplaced"}, "keys", InputError),
        ({new: 1.0}, ["n"], "keys", InputError),
        ({new: 1.0, newer: 1.0}, {new: "n", newer: "n"}, f"keys.{newer}", ConflictError),
    ]
    for rewards, keys, field, kind in cases:
        with unchanged(live), pytest.raises(InputError) as caught:
            live.reward_many(rewards, keys=keys)
        assert (caught.value.field, type(caught.value)) == (field, kind)
    assert live.pending() == [new, newer]
