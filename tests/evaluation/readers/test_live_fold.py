"""Events that are malformed are refused with their line and field; the channel of the terms is in the log."""

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.each import each
from tests.evaluation.readers import logs
from tests.live.ground import opened, problem
from unfog.evaluation.readers import read
from unfog.validation import InputError

CHANNEL = {
    "context_mean": [4.0, -1.5],
    "context_cov": [[1.0, 0.3], [0.3, 2.0]],
    "noise_cov": [[0.5, -0.1], [-0.1, 0.7]],
    "bias_cov": [[0.4, 0.1], [0.1, 0.2]],
    "bias": [0.3, -0.2],
}


def events(folder: Path, **terms: Any) -> list[dict[str, Any]]:
    """Terms, then three decisions, each followed by its reward."""
    with opened(folder) as store:
        walks = problem(store, epsilon=0.3, **terms)
        for i in range(3):
            walks.reward(walks.decide([0.5 * i, 1.0 - i]).id, 1.0 + i)
        return list(walks.events())


def at(line: int, **parts: Any) -> Callable[[list[dict[str, Any]]], object]:
    return lambda found: found[line - 1].update(parts)


def without(line: int, field: str) -> Callable[[list[dict[str, Any]]], object]:
    return lambda found: found[line - 1].pop(field)


SPOILT: list[tuple[Any, str]] = [
    (without(4, "kind"), "line 4, kind: nothing; allowed: text"),
    (without(4, "problem"), "line 4, problem: nothing; allowed: text"),
    (at(4, kind=["decide"]), "line 4, kind: ['decide']; allowed: text"),
    (without(4, "decision"), "line 4, decision: nothing; allowed: text"),
    (without(5, "decision"), "line 5, decision: nothing; allowed: text"),
    (at(5, decision=["d"]), "line 5, decision: ['d']; allowed: text"),
    (
        without(4, "agent_probabilities"),
        "line 4, agent_probabilities: nothing; allowed: a number for each name, in {}",
    ),
    (at(4, agent_probabilities={"a": "x"}), "line 4, agent_probabilities.a: 'x'; allowed: a number"),
    (
        at(4, agent_probabilities={"z": 1.0}),
        "line 4, agent_probabilities: 'z'; allowed: arms of that time: a, b, c",
    ),
    (without(4, "context"), "line 4, context: nothing; allowed: a number for each name, in {}"),
    (at(4, context=[1, 2]), "line 4, context: [1, 2]; allowed: a number for each name, in {}"),
    (at(4, context={"x": "far"}), "line 4, context.x: 'far'; allowed: a number"),
    (at(4, arm=None), "line 4, arm: nothing; allowed: text"),
    (at(4, probability="p"), "line 4, probability: 'p'; allowed: a number"),
    (at(4, time="noon"), "line 4, time: 'noon'; allowed: a number"),
    (at(4, unit=3), "line 4, unit: 3; allowed: text"),
    (at(5, value="x"), "line 5, value: 'x'; allowed: a number"),
    (at(5, value=None), "line 5, value: nothing; allowed: a number"),
    (at(5, kind="reveal", context=3), "line 5, context: 3; allowed: a number for each name, in {}"),
    (at(5, kind="expire", expired="reward", value=True), "line 5, value: True; allowed: a number"),
    (at(5, kind="arms", add="d"), "line 5, add: 'd'; allowed: a list of names"),
    (without(1, "epsilon"), "line 1, epsilon: nothing; allowed: a number"),
    (at(1, context=3), "line 1, context: 3; allowed: a list of names"),
    (at(1, arms=[1, 2]), "line 1, arms: [1, 2]; allowed: a list of names"),
    (at(1, channel={"noise_cov": [1, 2]}), "channel.context_mean: missing; allowed: "),
]


@pytest.fixture(name="whole", scope="module")
def _whole(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The events that tests spoil a copy of."""
    found = events(tmp_path_factory.mktemp("whole"))
    assert [one["kind"] for one in found] == ["problem", *["decide", "reward"] * 3]
    return found


@each("spoil, words", SPOILT)
def test_a_malformed_event(spoil: Any, words: str, whole: list[dict[str, Any]], tmp_path: Path) -> None:
    found = deepcopy(whole)
    spoil(found)
    with pytest.raises(InputError) as error:
        read(logs.lines(tmp_path / "log.ndjson", found))
    assert str(error.value).startswith(words)


def test_the_channel_of_the_terms_is_in_the_log(tmp_path: Path) -> None:
    found = read(logs.lines(tmp_path / "log.ndjson", events(tmp_path, channel=CHANNEL)))
    for name, value in CHANNEL.items():
        np.testing.assert_array_equal(getattr(found.channel, name), value)
    assert found.rows(slice(1, 3)).channel is found.channel


def test_without_a_channel_there_is_none(tmp_path: Path) -> None:
    plain = events(tmp_path)
    plain[0]["channel"] = None
    assert read(logs.lines(tmp_path / "log.ndjson", plain)).channel is None
