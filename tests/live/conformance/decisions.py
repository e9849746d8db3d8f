"""Decisions: what they say, and what may be told with a reading."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tests.live.conformance.places import (
    SHOWN,
    Place,
    believed,
    refused,
    unchanged,
)
from tests.live.ground import ARMS, CHANNEL, COORDINATES
from unfog.live import ConflictError
from unfog.validation import InputError


def check_a_decision_says_what_was_believed(place: Place) -> None:
    live = place.made(agent="gaps")
    readings: list[list[float | None]] = [[0.5, -1.0], [3.0, None], [None, -4.0]]
    for number, reading in enumerate(readings):
        made = live.decide(reading, unit=f"unit {number}")
        mean, sd = believed(reading)
        assert made.number == number
        assert made.arm in ARMS
        assert [*made.probabilities] == ARMS
        assert sum(made.probabilities.values()) == pytest.approx(1)
        assert made.probability == made.probabilities[made.arm]
        assert [*made.denoised] == [*made.sd] == COORDINATES
        assert [*made.denoised.values()] == pytest.approx(mean)
        assert [*made.sd.values()] == pytest.approx(sd)
        assert made.shadows == {}
    ids = [event["decision"] for event in live.events()[1:]]
    assert len({*ids}) == 3
    assert live.pending() == ids


def check_a_context_comes_in_any_form(place: Place) -> None:
    live = place.made()
    forms: list[Any] = [[0.5, -1], (0.5, -1.0), {"y": -1, "x": np.float64(0.5)}]
    forms.append(np.array([0.5, -1.0]))
    found = [live.decide(form, unit=f"unit {i}").denoised for i, form in enumerate(forms)]
    assert found == [found[0]] * len(forms)
    contexts = [event["context"] for event in live.events()[1:]]
    assert contexts == [{"x": 0.5, "y": -1.0}] * len(forms)


def check_what_is_missing_comes_in_any_form(place: Place) -> None:
    live = place.made()
    rows: list[Any] = [{"x": 0.5, "y": gap} for gap in (None, np.nan, np.float32("nan"), Decimal("NaN"))]
    rows += [[0.5, np.nan], np.array([0.5, np.nan]), {"x": Decimal("0.5"), "y": pd.NA}]
    series = pd.Series({"x": 0.5, "person": "ann", "y": None})
    frames = [pd.DataFrame({"x": [0.5], "y": [None]}), pl.DataFrame({"y": [None], "n": [1], "x": [0.5]})]
    rows += [series, *frames, pa.table({"x": [0.5], "y": [None]})]
    for i, row in enumerate(rows):
        live.decide(row, unit=i, measured_at=np.nan, probability=pd.NA)
    assert [event["context"] for event in live.events()[1:]] == [{"x": 0.5, "y": None}] * len(rows)
    made = live.decide(SHOWN)
    live.reveal(made.id, series)
    assert live.events()[-1]["context"] == {"x": 0.5}
    for row in ({"x": True, "y": 1}, {"x": "0.5", "y": 1}, [0.5, np.bool_(True)]):
        with unchanged(live), pytest.raises(InputError, match=r"^context\b"):
            live.decide(row)


def check_units_and_arms_are_texts_or_integers(place: Place) -> None:
    live = place.made(arms=[1, 2.0, np.int64(3)])
    units: list[Any] = [7, "7", 7.0, np.int64(7)]
    made = [live.decide(SHOWN, unit=unit, arms=["1", 3]) for unit in units]
    assert live.describe()["units"] == ["7"]
    assert {event["arms"][0] for event in live.events()[1:]} == {"1"}
    assert {*made[0].probabilities} == {"1", "3"}
    assert float(live.belief(7)["bias"][0]) == float(live.belief("7")["bias"][0])
    assert live.decide(SHOWN, logged_arm=2).arm == "2"
    live.add_arm(4)
    live.retire_arm(1)
    live.restore_arm(1)
    live.pin_arm(4)
    assert live.decide(SHOWN).arm == "4"
    assert live.describe()["arms"] == ["1", "2", "3", "4"]
    bad: list[dict[str, Any]] = [{"unit": unit} for unit in (7.5, True, np.bool_(True), 10**300)]
    bad += [{"arms": arms} for arms in ([1, "1"], [1, True], [1.5], {1: None, "1": None})]
    for more in [*bad, {"logged_arm": False}]:
        with unchanged(live), pytest.raises(InputError, match=f"^{next(iter(more))}"):
            live.decide(SHOWN, **more)


def check_frames_are_answered_in_kind(place: Place) -> None:
    live = place.made()
    plain, asked = place.made(), [(0.5, -1.0, 7, "a"), (3.0, None, 8, "b"), (1.0, 2.0, 7, None)]
    requests = [
        {"context": {"x": x, "y": y}, "unit": unit, "key": key, "measured_at": None}
        for x, y, unit, key in asked
    ]
    expected = plain.decide_many(requests)
    x, y, units, keys = map(list, zip(*asked, strict=True))
    columns = {"y": y, "note": [True] * 3, "x": x, "person": units, "id": keys}
    index = ["i", "j", "k"]
    for frame in (pd.DataFrame(columns, index), pl.DataFrame(columns), pa.table(columns)):
        live = place.made()
        answer = live.decide_many(frame, unit="person", key="id")
        assert type(answer) is type(frame)
        rows = nw.from_native(answer, eager_only=True)
        assert rows["arm"].to_list() == [one.arm for one in expected]
        assert rows["unit"].to_list() == ["7", "8", "7"]
        assert rows["denoised.x"].to_list() == [one.denoised["x"] for one in expected]
        assert rows["probability.a"].to_list() == [one.probabilities["a"] for one in expected]
        again = nw.from_native(live.decide_many(frame[:2], unit="person", key="id"), eager_only=True)
        assert again["decision"].to_list() == rows["decision"].to_list()[:2]
        paid = rows.with_columns(nw.new_series("reward", [1.0, None, 2.0], backend=rows.implementation))
        receipts = nw.from_native(live.reward_many(paid.to_native()), eager_only=True)
        assert [one for one in receipts["outcome"].to_list() if isinstance(one, str)] == ["learnt"] * 2
        assert live.pending() == [rows["decision"].to_list()[1]]
        assert list(getattr(answer, "index", index)) == index
    bad = columns | {"person": [7, None, 7]}
    with unchanged(live), pytest.raises(InputError, match=r"^requests\[1\].unit: missing"):
        live.decide_many(pl.DataFrame(bad), unit="person")
    with unchanged(live), pytest.raises(InputError, match=r"^context.y: .*did you mean 'yy'"):
        live.decide_many(pl.DataFrame({"x": x, "yy": y}))
    for name in ("unit", "key", "measured_at"):
        with unchanged(live), pytest.raises(InputError, match=f"^{name}: no column 'persn'.*mean 'person'"):
            live.decide_many(pl.DataFrame(columns), **{name: "persn"})
    with unchanged(live), pytest.raises(InputError, match=r"^unit: 'person'; allowed: none but for a frame"):
        live.decide_many(requests, unit="person")
    twice = {"decision": [expected[0].id] * 2, "reward": [1.0, 2.0]}
    with unchanged(live), pytest.raises(InputError, match=r"^row 2, decision: .*each decision once"):
        live.reward_many(pa.table(twice))


def check_events_as_frames(place: Place) -> None:
    live = place.made()
    live.reward(live.decide({"x": 0.5, "y": None}, unit=7).id, 1)
    events = live.events()
    for kind, library in (("pandas", pd.DataFrame), ("polars", pl.DataFrame), ("pyarrow", pa.Table)):
        frame = events.to_frame(kind)
        assert isinstance(frame, library)
        rows = nw.from_native(frame, eager_only=True)
        assert rows["kind"].to_list() == ["problem", "decide", "reward"]
        assert rows["context.x"].to_list()[1] == 0.5
        assert rows["value"].to_list()[2] == 1
        assert json.loads(rows["config"].to_list()[0])["context"] == COORDINATES
    assert isinstance(events.to_frame(), pd.DataFrame)
    with pytest.raises(InputError, match=r"kind: 'panda'.*did you mean 'pandas'"):
        events.to_frame("panda")


def check_each_unit_has_a_bias_of_its_own(place: Place) -> None:
    live = place.made()
    first = live.decide(SHOWN)
    for _ in range(3):
        live.decide([4.0, 4.0], unit="ann")
    assert live.decide(SHOWN, unit="bob").denoised == first.denoised
    ann, bob = live.belief("ann"), live.belief("bob")
    assert float(ann["bias"][0]) > float(bob["bias"][0])
    assert float(ann["bias_sd"][0]) < float(bob["bias_sd"][0])
    assert live.describe()["units"] == ["ann", "bob"]


def check_a_reading_may_have_a_noise_of_its_own(place: Place) -> None:
    live = place.made(agent="temporal")
    faint, own, loud = (
        live.decide(SHOWN, unit=f"unit {i}", noise_cov=noise, measured_at=5.0).sd["x"]
        for i, noise in enumerate(([0.01, 0.01], None, [[50.0, 0.0], [0.0, 50.0]]))
    )
    assert faint < own < loud
    full = [[0.25, 0.0], [0.0, 0.8]]  # 0.8 is that of the channel
    alike: list[dict[str, Any]] = [{"noise_sd": {"x": 0.5}}, {"noise_cov": full}]
    exact: list[dict[str, Any]] = [{"noise_sd": {"x": 0.0}}, {"noise_cov": [0.0, 0.8]}]
    for noises in (alike, exact, [{"noise_sd": 0.3}, {"noise_cov": 0.09}]):
        known = [live.decide(SHOWN, unit=str(noise), measured_at=5.0, **noise).sd for noise in noises]
        assert known[0] == known[1]
        one, other = (live.predict_rewards(SHOWN, measured_at=5.0, unit="new", **noise) for noise in noises)
        assert one.identical(other)
    with unchanged(live), pytest.raises(InputError, match=r"^noise_cov: given beside noise_sd"):
        live.decide(SHOWN, noise_sd=0.5, noise_cov=full)
    plain = place.made(agent="coupled")
    for more in ({"noise_sd": 0.1}, {"noise_cov": 0.1}):
        (field,) = more
        with (
            unchanged(plain),
            pytest.raises(InputError, match=rf"^{field}: given for one reading; allowed: "),
        ):
            plain.decide(SHOWN, **dict[str, Any](more))


def check_the_noise_of_a_reading_counts_for_every_agent(place: Place) -> None:
    """As usual, it changes nothing; larger, the reading counts less. It is logged; truths may come late."""
    channel = {**CHANNEL, "noise_cov": [[0.5, 0.2], [0.2, 0.8]]}
    for agent in ("unfog", "late", "drift", "hedged"):
        plain, same, noisy = (place.made(agent=agent, channel=channel, seed=3) for _ in range(3))
        for i, reading in enumerate(([0.5, -1.0], [1.5, None], [2.0, 0.3], [-1.0, 2.0])):
            own: dict[str, Any] = {"noise_cov": channel["noise_cov"]}
            none: dict[str, Any] = {}
            answers = [
                live.decide(reading, unit="ann", **more) for live, more in ((plain, none), (same, own))
            ]
            other = noisy.decide(reading, unit="ann", noise_sd={"x": 9.0, "y": 9.0})
            first, second = answers
            assert first.arm == second.arm
            for name in COORDINATES:
                assert second.denoised[name] == pytest.approx(first.denoised[name], rel=1e-9, abs=1e-9)
                assert second.sd[name] == pytest.approx(first.sd[name], rel=1e-9)
            assert other.sd["x"] > first.sd["x"]
            for live, made in ((plain, first), (same, second), (noisy, other)):
                live.reward(made.id, 0.1 * i)
                live.reveal(made.id, {"x": 0.2})
        event = noisy.events()[1]
        assert event["noise_sd"] == {"x": 9.0, "y": 9.0}
        assert place.store_of(noisy.name).replay(verify=True)[noisy.name].same


def check_times_of_readings(place: Place) -> None:
    live, noon = place.made(agent="temporal"), datetime(2026, 1, 1, 12, tzinfo=UTC)
    live.decide(SHOWN, unit="ann", measured_at=noon)
    live.decide(SHOWN, unit="bob", measured_at=5)
    live.decide(SHOWN, unit="cat", measured_at="2026-01-01T13:00:00+01:00")
    live.decide(SHOWN, unit="dan", measured_at=pd.Timestamp(noon))
    assert [event["measured_at"] for event in live.events()[1:]] == [
        noon.timestamp(),
        5.0,
        *[noon.timestamp()] * 2,
    ]
    assert live.predict_rewards(SHOWN, unit="bob", measured_at=5.0)["arm"].values.tolist() == ARMS
    for call in (
        lambda: live.decide(SHOWN, unit="bob", measured_at=4.0),
        lambda: live.decide_many([{"context": SHOWN, "unit": "bob", "measured_at": 7.0}, ASK_OF_BOB]),
        lambda: live.predict_rewards(SHOWN, unit="bob", measured_at=4.0),
    ):
        with unchanged(live), pytest.raises(InputError, match=r"^(requests\[1\]\.)?measured_at: "):
            call()
    with (
        unchanged(live),
        pytest.raises(InputError, match=r"^measured_at: 2026-01-01T12:00:00 has no time zone"),
    ):
        live.decide(SHOWN, unit="bob", measured_at=noon.replace(tzinfo=None))
    with (
        unchanged(live),
        pytest.raises(InputError, match=r"^measured_at: 2026-01-01T12:00:00 has no time zone"),
    ):
        live.decide(SHOWN, unit="bob", measured_at="2026-01-01 12:00")


ASK_OF_BOB = {"context": SHOWN, "unit": "bob", "measured_at": 6.0}


def check_some_arms_for_one_decision(place: Place) -> None:
    live = place.made(epsilon=0.5)
    for arms in (["c", "a"], ["b"]):
        found = [live.decide([i / 3 - 2, 1.0], arms=arms) for i in range(12)]
        assert {one.arm for one in found} == {*arms}
        assert all([*one.probabilities] == arms for one in found)
        assert min(min(one.probabilities.values()) for one in found) >= 0.5 / len(arms)
    assert [*live.decide(SHOWN).probabilities] == ARMS
    assert [event.get("arms") for event in live.events()[-2:]] == [["b"], None]


def check_an_arm_that_somebody_else_chose(place: Place) -> None:
    live = place.made(epsilon=0.3)
    told, untold = live.decide(SHOWN, logged_arm="b", probability=0.25), live.decide(SHOWN, logged_arm="c")
    assert (told.arm, told.probability, untold.arm, untold.probability) == ("b", 0.25, "c", None)
    assert sum(told.probabilities.values()) == pytest.approx(1)
    assert told.probabilities["b"] > 0.099
    assert live.reward(told.id, 1.0).learnt
    live.retire_arm("a")
    assert live.decide(SHOWN, logged_arm="a").arm == "a"


def check_arms_that_come_with_the_decision(place: Place) -> None:
    live = place.made(features="product", arms=None, arm_size=2, epsilon=0.2)
    made = live.decide(SHOWN, arms={"new": [1.0, 0.5], "newer": [-0.5, 1.0]})
    assert [*made.probabilities] == ["new", "newer"]
    assert live.reward(made.id, 1.0).learnt
    found = live.predict_rewards(SHOWN, arms={"new": [1.0, 0.5]})
    assert found["arm"].values.tolist() == ["new"]
    assert live.describe()["arms"] == []
    for arms in (None, ["new"], {"new": [1.0]}):
        with unchanged(live), pytest.raises(InputError, match=r"^arms"):
            live.decide(SHOWN, arms=arms)


def check_a_key_stands_for_one_request(place: Place) -> None:
    """Whatever has happened since: what was answered stays answered."""
    live = place.made(reward_window=60)
    made = live.decide(SHOWN, unit="ann", key="of a decision")
    cancelled = live.decide(SHOWN)
    paid = live.reward(made.id, 1.0, key="of a reward")
    shown = live.reveal(made.id, {"x": 1.0}, key="of a context")
    gone = live.cancel(cancelled.id, key="of a cancellation")
    live.add_arm("d")
    live.retire_arm(made.arm)
    place.clock.time += 100
    live.decide(SHOWN)
    with unchanged(live):
        assert live.decide(SHOWN, unit="ann", key="of a decision") == made
        assert live.decide_many([{"context": SHOWN, "unit": "ann", "key": "of a decision"}]) == [made]
        assert live.reward(made.id, 1.0, key="of a reward") == paid
        assert live.reward_many({made.id: 1.0}, keys={made.id: "of a reward"}) == {made.id: paid}
        assert live.reveal(made.id, {"x": 1.0}, key="of a context") == shown
        assert live.cancel(cancelled.id, key="of a cancellation") == gone
    for call in (
        lambda: live.decide([0.5, 0.0], unit="ann", key="of a decision"),
        lambda: live.decide(SHOWN, key="of a decision"),
        lambda: live.reward(made.id, 2.0, key="of a reward"),
        lambda: live.reveal(made.id, {"y": 1.0}, key="of a context"),
        lambda: live.cancel(cancelled.id, key="of a reward"),
    ):
        with (
            unchanged(live),
            pytest.raises(ConflictError, match=r"^key: 'of a \w+'; allowed: a new key") as caught,
        ):
            call()
        assert caught.value.field == "key"


def check_several_decisions_at_once(place: Place) -> None:
    """They are those that would have been made one by one."""
    several, single = place.made(), place.made()
    asked: list[dict[str, Any]] = [{"context": [i, -1.0], "unit": f"unit {i % 2}"} for i in range(4)]
    asked[1] |= {"arms": ["c", "a"], "key": "k"}
    asked[2] |= {"logged_arm": "b", "probability": 0.5}
    found = several.decide_many(asked)
    assert [one._replace(id="") for one in found] == [single.decide(**one)._replace(id="") for one in asked]
    assert [one.id for one in found] == several.pending()
    assert several.decide_many(asked[1:2]) == found[1:2]
    assert several.decide_many([]) == []
    for bad, said in {
        ("context", 5): "requests[1].context: 5; allowed: a mapping by name, or 2 values: x, y",
        ("arms", ("z",)): "requests[1].arms: 'z'; allowed: a, b, c",
        ("arm", "a"): "requests[1].arm: no such field (did you mean 'arms'?); allowed: "
        "context, unit, arms, key, measured_at, noise_sd, noise_cov, logged_arm, probability",
    }.items():
        name, value = bad
        refused(several, lambda a={"context": SHOWN, name: value}: several.decide_many([asked[0], a]), said)  # type: ignore[misc]
    one, other = ({"context": [x, 0.0], "key": "new"} for x in (0.0, 1.0))
    said = "requests[1].key: 'new'; allowed: a key for each request of a batch"
    refused(several, lambda: several.decide_many([one, other]), said, ConflictError)
    first, second = several.decide_many([one, one])
    assert first == second
