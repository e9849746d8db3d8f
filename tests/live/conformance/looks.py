"""What can be looked at, a story with calls of all kinds, and bad arguments."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
import xarray as xr

import unfog
from tests.live.conformance.places import (
    BIAS,
    MEAN,
    NOISE,
    SHOWN,
    SPREAD,
    Live,
    Place,
    kinds,
    new_name,
    refused,
    unchanged,
)
from tests.live.ground import ARMS, CHANNEL, COORDINATES, Hand
from unfog.live import NotFoundError
from unfog.live.words import in_words
from unfog.validation import InputError


def check_the_log_says_what_happened(place: Place) -> None:
    live = place.made(reward_window=60)
    place.clock.time += 5
    made = live.decide(SHOWN, unit="ann", key="k")
    live.reward(made.id, 1.0)
    live.reveal(made.id, {"x": 1.0})
    live.cancel(live.decide(SHOWN).id)
    live.retire_arm("a")
    live.pin_arm("b")
    live.add_shadow("naive")
    said = ["problem", "decide", "reward", "reveal", "decide", "cancel", "arms", "pin", "shadow"]
    assert kinds(live) == said
    events = live.events()
    numbers = [event["seq"] for event in events]
    assert numbers == sorted({*numbers})
    assert live.events(numbers[3]) == events[4:]
    assert live.events(numbers[-1]) == []
    decided = events[1]
    assert (decided["unit"], decided["key"], decided["time"]) == ("ann", "k", place.clock.time)
    assert {name: decided[name] for name in ("arm", "probability", "denoised", "sd", "number")} == {
        name: getattr(made, name) for name in ("arm", "probability", "denoised", "sd", "number")
    }


def check_what_there_is_to_know(place: Place) -> None:
    live = place.made(reward_window="1h", context_window=90, epsilon=0.1)
    live.decide(SHOWN, unit="ann")
    live.reward(live.decide(SHOWN, unit="bob").id, 1.0)
    description = live.describe()
    assert str(live) == in_words(description)
    assert description.pop("learnt")["context"]["x"]["missing"] == 0
    assert description == {
        "name": live.name,
        "agent": "unfog",
        "seed": 11,
        "context": COORDINATES,
        "columns": COORDINATES,
        "arms": ARMS,
        "retired": [],
        "pinned": None,
        "shadows": [],
        "units": ["ann", "bob"],
        "units_total": 2,
        "reward_kind": "numeric",
        "channel": True,
        "epsilon": 0.1,
        "reward_window": 3600.0,
        "context_window": 90.0,
        "note": None,
        "decisions": 2,
        "decisions_today": 2,
        "rewards": 1,
        "pending": 1,
        "alarm": [],
    }
    terms = live.terms
    assert (terms.context, terms.reward_window, terms.seed, terms.agent) == (
        tuple(COORDINATES),
        3600.0,
        11,
        "unfog",
    )
    plain = place.made(channel=None, agent="unfog")
    assert plain.note == plain.describe()["note"]
    assert "ordinary contextual bandit" in plain.note
    refused(plain, lambda: plain.decide([0.0, None]), NOTHING_KNOWN)


def check_what_was_learnt_in_words(place: Place) -> None:
    """Of an agent that is told how noisy readings are and nothing else."""
    live = place.made(context={"x": 0.5, "y": 0, "day": ["am", "pm"]}, channel=None)
    for i in range(24):
        x, y, day = i % 5 - 1.0, None if i % 4 else 3.0, "am" if i % 3 else "pm"
        decision = live.decide({"x": x, "y": y, "day": day}, unit=f"unit {i % 6}")
        live.reward(decision.id, 300.0 + 7 * (i % 5) + i % 2)
        if i % 5 == 0:
            live.reveal(decision.id, {"x": x + 1})
    text = str(live)
    assert text == in_words(json.loads(json.dumps(live.describe(), allow_nan=False)))
    counts = "24 decisions for 6 units, 24 rewards learnt, 5 true contexts shown"
    assert text.startswith(f"{live.name} (agent hedged): {counts}\n")
    assert "y: exact; usually 3.00; differs from time to time by 0; missing in 75 %" in text
    assert "too low on average, by the truths of 5 units" in text


NOTHING_KNOWN = "context.y: None; allowed: a number: without a channel nothing says what it would have been"


def check_what_is_believed(place: Place) -> None:
    live = place.made()
    live.decide(SHOWN, unit="ann")
    found, away = live.belief(), np.array(SHOWN) - MEAN
    gain = BIAS @ np.linalg.inv(SPREAD + NOISE + BIAS)
    np.testing.assert_allclose(found["bias"], gain @ away, rtol=1e-9)
    np.testing.assert_allclose(found["bias_sd"], np.sqrt(np.diag(BIAS - gain @ BIAS)), rtol=1e-9)
    assert (found.attrs["unit"], found.attrs["units"], found.attrs["rewards_learnt"]) == ("ann", 1, 0)
    assert found["theta"].sel(arm="a", term="x").item() == 0.0
    said = "unit: 'nobody'; allowed: a unit that decisions were made for"
    refused(live, lambda: live.belief("nobody"), said, NotFoundError)


def check_what_arms_are_expected_to_earn(place: Place) -> None:
    """Of a regression on what was learnt, where readings are taken for the truth."""
    live = place.made(agent="naive", channel=None, standardise=False)
    rng = np.random.default_rng(5)
    contexts, rewards = rng.normal(size=(6, 2)), rng.normal(size=6)
    for context, reward in zip(contexts, rewards, strict=True):
        live.reward(live.decide(context, logged_arm="b").id, reward)
    with unchanged(live):
        found = live.predict_rewards({"x": 0.5, "y": -1.0})
        few = live.predict_rewards(SHOWN, arms=["c"])
    rows = np.column_stack([np.ones(6), contexts])
    theta = np.linalg.solve(np.eye(3) + rows.T @ rows, rows.T @ rewards)
    assert found["arm"].values.tolist() == ARMS
    np.testing.assert_allclose(live.belief()["theta"].sel(arm="b"), theta, atol=1e-9)
    deviation = (found["high"] - found["low"]) / 3.29 / 2000**0.5  # of the mean of so many draws
    away = (found["mean"] - np.array([0.0, theta @ [1.0, *SHOWN], 0.0])) / deviation
    assert abs(away).max() < 4
    assert found["probability_best"].sum().item() == pytest.approx(1)
    assert few["arm"].values.tolist() == ["c"]
    assert few["probability_best"].values.tolist() == [1.0]


def check_what_is_expected_hangs_on_whose_reading_it_is(place: Place) -> None:
    """Of a biased unit's reading, and of one that is all but noise, other contexts are believed."""
    live = place.made(agent="temporal")
    for i in range(8):
        made = live.decide([6.0, -1.0], unit="ann", measured_at=i, logged_arm="b")
        live.reward(made.id, 3.0)
    asked: list[dict[str, Any]] = [{"unit": "bob"}, {"unit": "ann"}, {"unit": "bob", "noise_cov": [1e6, 1e6]}]
    reading: dict[str, Any] = {"context": [6.0, -1.0], "measured_at": 10.0}
    found = [live.predict_rewards(**reading, **one)["mean"].sel(arm="b").item() for one in asked]
    made = live.decide([6.0, -1.0], unit="bob", measured_at=10.0, noise_cov=[1e6, 1e6])
    assert [*made.denoised.values()] == pytest.approx(MEAN.tolist(), abs=0.01)
    assert len({*found}) == 3
    again = live.predict_rewards([6.0, -1.0], measured_at=10.0, unit="ann")["mean"].sel(arm="b").item()
    assert again == found[1]


def check_whether_it_works(place: Place) -> None:
    live = place.made(reward_window=60)
    made = [live.decide([0.5, None if i == 3 else -1.0], logged_arm=ARMS[i % 2]) for i in range(5)]
    live.reward(made[0].id, 1.0)
    live.reward(made[2].id, 2.0)
    live.cancel(made[1].id)
    live.reveal(made[0].id, {"x": 1.5})
    found = live.diagnostics()
    counts = {
        name: found.attrs[name] for name in ("decisions", "rewards", "cancelled", "revealed", "pending")
    }
    assert counts == {"decisions": 5, "rewards": 2, "cancelled": 1, "revealed": 1, "pending": 2}
    assert found["chosen"].values.tolist() == [3.0, 2.0, 0.0]
    assert found["readings"].values.tolist() == [5.0, 4.0]
    assert found["reward_mean"].sel(arm="a").item() == 1.5
    assert found["rmse_noisy"].sel(coordinate="x").item() == pytest.approx(1.0)
    assert any("gap" in note for note in found.attrs["notes"])


def check_the_past(place: Place) -> None:
    live = place.made()
    made = [live.decide([i, -i], unit="ann" if i % 2 else "bob") for i in range(6)]
    live.reward(made[1].id, 2.0)
    live.reveal(made[1].id, {"y": 0.5})
    found = live.history()
    json.dumps(found, allow_nan=False)
    points = found["points"]
    assert (found["decisions"], found["kept"], found["last_number"]) == (6, 6, 5)
    assert [found["arms"][arm] for arm in points["arm"]] == [one.arm for one in made]
    assert points["noisy"]["x"] == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert points["reward"] == [None, 2.0, None, None, None, None]
    assert points["true"]["y"] == [None, 0.5, None, None, None, None]
    assert live.history("ann")["points"]["number"] == [1, 3, 5]
    assert len(live.history(points=2)["points"]["number"]) == 2


def check_the_state_hash_is_of_all_that_is_remembered(place: Place) -> None:
    live = place.made(reward_window=60)
    seen = [live.state_hash()]
    for change in (
        lambda: live.decide(SHOWN),
        lambda: live.reward(live.pending()[0], 1.0),
        lambda: live.retire_arm("a"),
        lambda: live.pin_arm("b"),
        lambda: live.add_shadow("naive"),
    ):
        change()
        seen.append(live.state_hash())
    assert len({*seen}) == len(seen)
    with unchanged(live):
        live.describe(), live.belief(), live.diagnostics(), live.history(), live.predict_rewards(SHOWN)


def check_all_of_it_is_as_in_a_file(place: Place) -> None:
    """To the last bit, of calls of all kinds."""
    clock, name = Hand(place.clock.time), new_name()
    with TemporaryDirectory() as folder, unfog.live.open(f"{folder}/own.unfog", clock=clock) as store:
        expected = story(store.problem, clock, name)
        found = story(place.problem, place.clock, name)
        for one, other in zip(found, expected, strict=True):
            if isinstance(other, xr.Dataset):
                xr.testing.assert_identical(one, other)
            else:
                assert one == other


def story(make: Callable[..., Live], clock: Hand, name: str) -> list[Any]:
    """What everything answered; ids and numbers of events are each store's own."""
    terms: dict[str, Any] = {"context": COORDINATES, "arms": ARMS, "channel": CHANNEL, "seed": 11}
    live = make(name, **terms, agent="late", reward_window=timedelta(hours=1))
    said: list[Any] = [live.add_shadow("naive")]
    made = [live.decide({"x": 1.5, "y": None}, unit="ann", key="first")]
    made.append(live.decide(np.array([0.5, -1.0]), unit="bob", arms=["a", "c"]))
    made.append(
        live.decide((2, -2), logged_arm="b", probability=0.25, measured_at=datetime(2026, 1, 1, tzinfo=UTC))
    )
    made += live.decide_many([{"context": [x, -x], "unit": "ann", "key": f"many {x}"} for x in range(4)])
    said += [live.reward(made[0].id, 1.25), live.reveal(made[0].id, {"x": np.float64(1.0)})]
    said += [live.cancel(made[1].id), live.reward(made[2].id, -0.5, key="paid")]
    said += live.reward_many({one.id: one.number / 7 for one in made[3:5]}).values()
    said += [live.add_arm("d"), live.retire_arm("a"), live.restore_arm("a")]
    said += [live.update_arms(add={"e": None}, retire=["d"]), live.pin_arm("e")]
    made.append(live.decide([0.0, 0.0]))
    said += [live.unpin_arm(), live.remove_shadow("naive")]
    made.append(live.decide([1.0, 1.0], unit="bob"))
    clock.time += 1800
    places = {one.id: one.number for one in made}
    return [
        [one.outcome for one in said],
        [one._replace(id="") for one in made],
        [places[one] for one in live.pending()],
        live.describe(),
        live.belief("ann"),
        live.belief(),
        live.predict_rewards({"x": 1, "y": None}, unit="bob", arms=["a", "b"]),
        live.diagnostics(),
        json.loads(json.dumps(live.history("ann", points=3))),
        (live.name, live.note, live.terms._replace(uid="", channel=None)),
    ]


CALLS: list[tuple[str, str, tuple[Any, ...], dict[str, Any]]] = [
    ("decide", "context.x", ({"x": "1", "y": 1},), {}),
    ("decide", "context.x", ([True, 1],), {}),
    ("decide", "context.y", ([1, 1e308],), {}),
    ("decide", "context.y", ({"x": 1},), {}),
    ("decide", "context.z", ({"x": 1, "y": 1, "z": 1},), {}),
    ("decide", "context", ([1],), {}),
    ("decide", "context", ("xy",), {}),
    ("decide", "context", (None,), {}),
    ("decide", "unit", (SHOWN,), {"unit": ""}),
    ("decide", "arms", (SHOWN,), {"arms": ["z"]}),
    ("decide", "arms", (SHOWN,), {"arms": []}),
    ("decide", "arms[1]", (SHOWN,), {"arms": ["a", "a"]}),
    ("decide", "arms", (SHOWN,), {"arms": {"a": [1, 2]}}),
    ("decide", "key", (SHOWN,), {"key": "k" * 5000}),
    ("decide", "measured_at", (SHOWN,), {"measured_at": "now"}),
    ("decide", "noise_sd", (SHOWN,), {"noise_sd": -1.0}),
    ("decide", "noise_sd.z", (SHOWN,), {"noise_sd": {"z": 1.0}}),
    ("decide", "noise_cov", (SHOWN,), {"noise_cov": [[1, 2], [2, 1]]}),
    ("decide", "logged_arm", (SHOWN,), {"logged_arm": "z"}),
    ("decide", "logged_arm", (SHOWN,), {"logged_arm": "b", "arms": ["a"]}),
    ("decide", "probability", (SHOWN,), {"logged_arm": "a", "probability": 1.5}),
    ("decide", "probability", (SHOWN,), {"probability": 0.5}),
    ("decide_many", "requests", (5,), {}),
    ("reward", "value", ("open", "1"), {}),
    ("reward", "value", ("open", 1e308), {}),
    ("reward", "decision", (None, 1.0), {}),
    ("reward", "decision", ("nobody", 1.0), {}),
    ("reward", "key", ("open", 1.0), {"key": ""}),
    ("reveal", "context", ("open", {}), {}),
    ("reveal", "context", ("open", {"x": None}), {}),
    ("reveal", "context.z", ("open", {"z": 1}), {}),
    ("reveal", "decision", ("nobody", {"x": 2.0}), {}),
    ("cancel", "decision", ("nobody",), {}),
    ("cancel", "decision", ({},), {}),
    ("add_arm", "arm", ("",), {}),
    ("add_arm", "arms.d", ("d", [1.0, 2.0]), {}),
    ("retire_arm", "retire", ("z",), {}),
    ("restore_arm", "restore", ("a",), {}),
    ("pin_arm", "arm", ("z",), {}),
    ("add_shadow", "agent", ("nobody",), {}),
    ("remove_shadow", "agent", ("naive",), {}),
    ("predict_rewards", "context", ([1],), {}),
    ("predict_rewards", "arms", (SHOWN,), {"arms": ["z"]}),
    ("belief", "unit", ("nobody",), {}),
    ("history", "unit", ("nobody",), {}),
    ("history", "points", (), {"points": 0}),
    ("events", "since", (-1,), {}),
]


def check_bad_arguments_are_refused_by_their_field(place: Place) -> None:
    live = place.made()
    opened = live.decide(SHOWN).id
    with unchanged(live):
        for verb, field, args, more in CALLS:
            with pytest.raises(InputError) as caught:
                getattr(live, verb)(*(opened if one == "open" else one for one in args), **more)
            assert caught.value.field == field, (verb, args, more, str(caught.value))
