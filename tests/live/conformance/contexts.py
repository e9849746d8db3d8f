"""Contexts that are stated coordinate by coordinate: readings, categories, cycles."""

from typing import Any

import pandas as pd
import polars as pl
import pytest

from tests.live.conformance.places import Live, Place, new_name, nothing_learnt, refused, unchanged
from tests.live.ground import ARMS
from unfog import Category, Cycle, Reading
from unfog.live import ConflictError
from unfog.validation import InputError

DAYS: list[str | int] = ["mon", "tue", 3]
CONTEXT: dict[str, Any] = {
    "steps": 1200,
    "mood": Reading(0.6, mean=5, sd=2),
    "age": 0,
    "hour": Cycle(24),
    "weekday": Category(DAYS),
}
ROW: dict[str, Any] = {"steps": 1648, "mood": 4, "age": 31, "hour": 21, "weekday": "tue"}
COLUMNS = ["steps", "mood", "age", "hour.cos", "hour.sin", "weekday=mon", "weekday=tue", "weekday=3"]
BAD: list[tuple[str, Any]] = [  # the field of the error, and what stands under its coordinate
    ("context.steps", -1),
    ("context.steps", "much"),
    ("context.steps", True),
    ("context.steps", None),
    ("context.steps.noise_sd", {}),
    ("context.steps.noise_sd", {"noise_sd": -1}),
    ("context.steps.context_sd", {"noise_sd": 1, "context_sd": 3}),
    ("context.steps.sd", {"noise_sd": 1, "sd": 0}),
    ("context.steps.sd", {"noise_sd": 1, "sd": 1, "between_sd": 2}),
    ("context.steps.mean", {"noise_sd": 1, "mean": "a"}),
    ("context.day.levels", ["mon"]),
    ("context.day.levels[1]", ["mon", "mon"]),
    ("context.day.level", {"level": ["mon", "tue"]}),
    ("context.day.other", {"levels": ["mon", "tue"], "other": 1}),
    ("context.hour.period", {"period": 0}),
]


def made(place: Place, **more: Any) -> Live:
    return place.problem(new_name(), **{"context": CONTEXT, "arms": ARMS, "seed": 11} | more)


def contexts(live: Live) -> list[Any]:
    return [event["context"] for event in live.events()[1:] if "context" in event]


def check_a_context_by_coordinate(place: Place) -> None:
    live = made(place)
    assert live.terms.agent == "hedged"
    assert live.describe()["context"] == [*ROW]
    assert live.describe()["columns"] == COLUMNS
    d = live.decide(ROW, unit="ann")
    assert [*d.denoised] == [*d.sd] == [*ROW]
    assert (d.denoised["age"], d.sd["age"]) == (31, 0)  # exact
    assert (d.denoised["hour"], d.sd["hour"]) == (21, 0)
    assert d.denoised["weekday"] == {"mon": 0, "tue": 1, "3": 0}
    assert d.sd["steps"] > 0
    assert live.reward(d.id, 320.0).learnt
    logged = live.events()[1]
    assert [*logged["context"]] == [*logged["denoised"]] == COLUMNS
    assert live.history()["coordinates"] == COLUMNS
    forms = [[*ROW.values()], pd.Series(ROW | {"person": 7}), pd.DataFrame([ROW]), pl.DataFrame([ROW])]
    for form in forms:
        live.decide(form, unit="ann")
        assert live.events()[-1]["context"] == logged["context"]
    live.decide(ROW | {"weekday": 3.0})  # as a column of integers with gaps has it
    assert live.events()[-1]["context"]["weekday=3"] == 1
    assert live.predict_rewards(ROW, unit="ann")["arm"].values.tolist() == ARMS


def check_coordinates_may_be_missing(place: Place) -> None:
    live = made(place)
    for name in ROW:
        d = live.decide(ROW | {name: None}, unit="ann")
        assert [*d.denoised] == [*ROW]
        assert d.denoised["age"] == 31
        logged = live.events()[-1]["context"]
        assert [x for x in COLUMNS if logged[x] is None] == [x for x in COLUMNS if x.startswith(name)]
    days = live.decide(ROW | {"weekday": None}).denoised["weekday"]
    assert sum(days.values()) == pytest.approx(1)
    assert days["tue"] > max(days["mon"], days["3"])  # it was Tuesday so far


def check_levels_that_are_not_listed(place: Place) -> None:
    live = made(place)
    said = "context.weekday: 'tues' (did you mean 'tue'?); allowed: one of the levels: mon, tue, 3; others"
    with unchanged(live), pytest.raises(InputError) as caught:
        live.decide(ROW | {"weekday": "tues"})
    assert str(caught.value).startswith(said)
    open_ = made(place, context={"day": Category(["mon", "tue"], other=True)})
    assert open_.decide({"day": "fri"}).denoised == {"day": {"mon": 0, "tue": 0, "other": 1}}


def check_true_contexts_by_coordinate(place: Place) -> None:
    live = made(place)
    d = live.decide(ROW | {"weekday": None}, unit="ann")
    assert live.reveal(d.id, {"steps": 2410, "weekday": "mon"}).learnt
    told = {"steps": 2410, "weekday=mon": 1, "weekday=tue": 0, "weekday=3": 0}
    assert live.events()[-1]["context"] == told
    with nothing_learnt(live):
        assert live.reveal(d.id, {"weekday": "mon"}).outcome == "known"
        assert live.reveal(d.id, pd.Series({"weekday": "mon", "person": 7})).outcome == "known"
    with pytest.raises(ConflictError, match=r"^context.weekday=mon: "):
        live.reveal(d.id, {"weekday": "tue"})
    for context in ({"weekday": "sun"}, {"weekday": None}, {"week": "mon"}, {"hour": "noon"}):
        with unchanged(live), pytest.raises(InputError, match=r"^context\b"):
            live.reveal(d.id, context)


def check_frames_by_coordinate(place: Place) -> None:
    live, other = made(place), made(place)
    rows = [ROW, ROW | {"weekday": None, "steps": None}]
    expected = other.decide_many([{"context": row} for row in rows])
    answer = live.decide_many(pl.DataFrame(rows, infer_schema_length=None))
    assert answer["arm"].to_list() == [one.arm for one in expected]
    for name in ("steps", "hour"):
        assert answer[f"denoised.{name}"].to_list() == [one.denoised[name] for one in expected]
    days = [one.denoised["weekday"]["tue"] for one in expected]
    assert answer["denoised.weekday=tue"].to_list() == days
    assert contexts(live) == contexts(other)


def check_decisions_of_elsewhere_by_coordinate(place: Place) -> None:
    live, other = made(place), made(place)
    header = "decision,steps,context.mood,age,hour,weekday,arm,reward,true.steps,true.weekday,probability\n"
    table = f"{header}a,1648,,31,21,tue,b,2,1500,tue,0.5\nb,,4,31,,,a,,,3.0,\n"
    assert live.import_decisions(table) == 2
    assert live.import_decisions(table) == 2  # changes nothing
    d = other.decide(ROW | {"mood": None}, logged_arm="b", probability=0.5, key="a")
    other.reward(d.id, 2)
    other.reveal(d.id, {"steps": 1500, "weekday": "tue"})
    last = other.decide(ROW | {"steps": None, "hour": None, "weekday": None}, logged_arm="a", key="b")
    other.reveal(last.id, {"weekday": 3})
    assert contexts(live) == contexts(other)
    assert live.belief().identical(other.belief())
    for bad, field in ((table.replace("tue,b", "sun,b"), "row 2.context.weekday"), (header, "context.hour")):
        text = bad.replace("hour", "our") if bad == header else bad
        with unchanged(live), pytest.raises(InputError) as caught:
            live.import_decisions(text)
        assert caught.value.field == field


def check_a_log_by_coordinate_goes_out_and_comes_in(place: Place) -> None:
    live, name = made(place), new_name()
    unit = f"{live.name} ann"
    for i in range(6):
        d = live.decide(ROW | {"steps": None if i == 2 else 1000 * i, "hour": i}, unit=unit if i else "bob")
        live.reward(d.id, 100.0 * i)
        live.reveal(d.id, {"steps": 900 * i, "weekday": "tue"})
    here, there = place.store_of(live.name), place.store_of(name)
    assert here.replay(verify=True, problem=live.name)[live.name].same
    lines = [*here.export(live.name)]
    assert there.import_events(lines, name) == len(lines)
    copy = there.problem(name)
    assert copy.state_hash() == live.state_hash()
    assert copy.decide(ROW, key="new") == live.decide(ROW, key="new")
    assert here.erase(unit=unit, problem=live.name) == {live.name: 5}
    assert "900" not in "".join(str(event.get("context")) for event in live.events()[1:] if event.get("unit"))
    assert here.replay(verify=True, problem=live.name)[live.name].same


def check_what_is_said_of_a_context_is_checked_by_field(place: Place) -> None:
    for field, value in BAD:
        name = new_name()
        with pytest.raises(InputError) as caught:
            place.problem(name, context={"age": 0, field.split(".")[1]: value}, arms=ARMS)
        assert caught.value.field == field, (value, str(caught.value))
        assert name not in place.store_of(name).names()
    both = {"context": {"x": 1}, "channel": {"noise_cov": 1}}
    bad: list[dict[str, Any]] = [{"context": {}}, {"context": {"": 1}}, both]
    for terms in bad:
        with pytest.raises(InputError, match=r"^(context|channel)"):
            place.problem(new_name(), arms=ARMS, **terms)
    misplaced: dict[str, Any] = {"context": {"x": 1}, "arms": ARMS, "context_sd": 3}
    with pytest.raises(InputError, match=r"^context_sd: no such field \(did you mean 'Reading\(sd=\)'"):
        place.problem(new_name(), **misplaced)
    live = made(place)
    for row, field in ((ROW | {"steps": "a"}, "context.steps"), (ROW | {"age": True}, "context.age")):
        with unchanged(live), pytest.raises(InputError) as caught:
            live.decide(row)
        assert caught.value.field == field
    said = "noise_sd.weekday: no such coordinate; allowed: steps, mood, age"
    refused(live, lambda: live.decide(ROW, noise_sd={"weekday": 1.0}), said)
