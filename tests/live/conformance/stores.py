"""Terms, logs that travel, replays, and units that are erased."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.live.conformance.places import (
    SHOWN,
    Live,
    Place,
    new_name,
    unchanged,
)
from tests.live.ground import ARMS, CHANNEL, COORDINATES
from unfog.live import ConflictError, DecisionClosedError, NotFoundError
from unfog.validation import InputError


def check_terms_of_a_problem_that_is_there(place: Place) -> None:
    if not place.has_names:
        return
    live = place.made(reward_window="30m", reward_aggregation="mean", update="at_close")
    store = place.store_of(live.name)
    assert live.name in store.names()
    with unchanged(live):
        same: list[dict[str, Any]] = [{}, {"reward_window": 1800}, {"arms": ARMS, "seed": 11}]
        for again in same:
            assert store.problem(live.name, **again).state_hash() == live.state_hash()
        other: dict[str, Any] = {"seed": 12, "reward_window": "31m", "arms": ["a", "b"], "agent": "naive"}
        for field, value in other.items():
            with pytest.raises(InputError, match=rf"^{field}: .*; allowed: what the problem was"):
                store.problem(live.name, **{field: value})
    misspelt: dict[str, Any] = {"reward_sds": 2.0}
    with pytest.raises(InputError, match=r"^reward_sds: no such field \(did you mean 'reward_sd'\?\)"):
        store.problem(live.name, **misspelt)


def check_bad_terms_make_no_problem(place: Place) -> None:
    name = new_name()
    store = place.store_of(name)
    good: dict[str, Any] = {"context": COORDINATES, "arms": ARMS, "channel": CHANNEL}
    bad: dict[str, Any] = {
        "agent": "nobody",
        "reward_window": "soon",
        "epsilon": 2.0,
        "channel": {"noise_cov": 1},
    }
    bad |= {"context": None, "arms": ["a", "a"], "rewards": "many", "features": "round", "seed": -1}
    for field, value in bad.items():
        with pytest.raises(InputError) as caught:
            store.problem(name, **good | {field: value})
        assert caught.value.field.startswith(field)
    assert name not in store.names()
    if place.has_names:
        with pytest.raises(NotFoundError, match=r"^name: .*; or the terms of a new problem$"):
            store.problem(name)
        with pytest.raises(NotFoundError, match=r"^name: "):
            list(store.events(name))


def lived(place: Place) -> Live:
    """A problem with a bit of everything, of two units that no other problem has."""
    live = place.made(agent="late", reward_window=600)
    live.add_shadow("naive")
    for i in range(6):
        made = live.decide([i / 2, -1.0], unit=f"{live.name} {'ann' if i % 2 else 'bob'}", key=f"k{i}")
        if i != 3:
            live.reward(made.id, i / 3)
        if i < 2:
            live.reveal(made.id, {"x": i / 4})
    live.add_arm("d")
    return live


def check_a_log_goes_out_and_comes_in(place: Place) -> None:
    live, name = lived(place), new_name()
    here, there = place.store_of(live.name), place.store_of(name)
    lines = [*here.export(live.name)]
    assert [json.loads(line) for line in lines] == live.events() == [*here.events(live.name)]
    assert [*here.events(live.name, live.events()[2]["seq"])] == live.events()[3:]
    assert there.import_events(lines, name) == len(lines)
    assert there.import_events([line.rstrip("\n") for line in lines], name) == 0
    copy = there.problem(name)
    assert copy.state_hash() == live.state_hash()
    assert copy.decide(SHOWN, key="new") == live.decide(SHOWN, key="new")
    with unchanged(copy), pytest.raises(ConflictError, match=r"^key: 'k0'"):
        copy.decide(SHOWN, key="k0")


def check_a_log_that_is_none_changes_nothing(place: Place) -> None:
    live, name = lived(place), new_name()
    there = place.store_of(name)
    lines = [*place.store_of(live.name).export(live.name)]
    wrong = json.dumps(json.loads(lines[2]) | {"arm": "nobody"})
    cases: list[tuple[int, list[str]]] = [(1, []), (1, ["{}"]), (1, ["not JSON"]), (1, lines[1:])]
    cases += [(3, [*lines[:2], wrong]), (len(lines) + 1, [*lines, "[1, 2]"])]
    for number, bad in cases:
        with pytest.raises(InputError, match=rf"^line {number}\b"):
            there.import_events(bad, name)
        assert name not in there.names()
    there.import_events(lines[:4], name)
    other = [*lines[:3], json.dumps(json.loads(lines[3]) | {"key": "another"})]
    with unchanged(there.problem(name)), pytest.raises(ConflictError, match=r"^line 4: "):
        there.import_events(other, name)


def check_a_replay_says_whether_the_log_is_what_is_remembered(place: Place) -> None:
    live = lived(place)
    store, number = place.store_of(live.name), len(live.events())
    with unchanged(live):
        found = store.replay(problem=live.name)
        assert found == {live.name: (number, 6, 0, True)}
        assert store.replay(verify=True, problem=live.name) == {live.name: (number, 6, 6, True)}


def check_a_unit_is_erased(place: Place) -> None:
    live, other = lived(place), lived(place)
    store, ann, bob = place.store_of(live.name), f"{live.name} ann", f"{live.name} bob"
    mine = [event["decision"] for event in live.events() if event.get("unit") == ann]
    kept = live.belief(bob)["bias"].values.tolist()
    with unchanged(other):
        assert store.erase(unit=ann, problem=live.name) == {live.name: 3}
    assert ann not in json.dumps(live.events())
    assert live.describe()["units"] == [bob]
    assert live.belief(bob)["bias"].values.tolist() == kept
    assert live.diagnostics().attrs["decisions"] == 3
    calls: list[Callable[[], object]] = [
        lambda: live.reward(mine[1], 1.0),
        lambda: live.reveal(mine[1], {"y": 1.0}),
        lambda: live.cancel(mine[1]),
    ]
    for call in calls:
        with unchanged(live), pytest.raises(DecisionClosedError, match=r"^decision: .*erased"):
            call()
    with pytest.raises(NotFoundError, match=r"^unit: "):
        live.belief(ann)
    with pytest.raises(NotFoundError, match=r"^unit: "):
        store.erase(unit=ann)
    assert store.erase(unit=bob) == {live.name: 3}
    assert live.decide(SHOWN, unit=ann).number == 6
    assert store.replay(problem=live.name)[live.name].same
