"""Batches: all of it or nothing, one commit, and again with the same keys."""

from pathlib import Path
from typing import Any

import pytest

from tests.live.ground import Hand, opened, problem
from unfog.live import Problem
from unfog.validation import InputError

ONE = {"context": [1.0, 2.0]}


def refused(
    live: Problem, asked: list[dict[str, Any]], field: str, kind: type[InputError] = InputError
) -> None:
    """By its field, with nothing decided."""
    before, events = live.state_hash(), len(live.events())
    with pytest.raises(kind) as error:
        live.decide_many(asked)
    assert error.value.field == field
    assert (live.state_hash(), len(live.events())) == (before, events)


def test_times_of_a_batch_do_not_go_back(tmp_path: Path) -> None:
    with opened(tmp_path, Hand()) as store:
        live = problem(store, "p", agent="temporal")
        refused(live, [{**ONE, "measured_at": 5.0}, {**ONE, "measured_at": 4.0}], "requests[1].measured_at")
        units = ({"measured_at": 5.0, "unit": "x"}, {"measured_at": 4.0, "unit": "y"})
        assert len(live.decide_many([ONE | unit for unit in units])) == 2


def test_one_unit_for_agents_that_look_back(tmp_path: Path) -> None:
    with opened(tmp_path, Hand()) as store:
        live = problem(store, "p", agent="coupled")
        refused(live, [{**ONE, "unit": "x"}, {**ONE, "unit": "y"}], "requests[1].unit")


def test_rewards_again_with_their_keys_count_once(tmp_path: Path) -> None:
    """Also when the window is over meanwhile: a key has its answer."""
    clock = Hand()
    with opened(tmp_path, clock) as store:
        live = problem(store, "p", reward_window=60, update="at_close", reward_aggregation="sum")
        made = [one.id for one in live.decide_many([ONE, ONE])]
        paid, keys = dict.fromkeys(made, 1.5), {one: f"key of {one}" for one in made}
        first = live.reward_many(paid, keys=keys)
        assert live.reward_many(paid, keys=keys) == first
        clock.time += 61
        assert live.reward_many(paid, keys=keys) == first
        live.pending()  # a look, which writes down what has expired
        learnt = [one["value"] for one in live.events() if one["kind"] == "expire"]
        assert learnt == [1.5, 1.5]
