"""What was decided on is remembered: once for each reading, until its reward and after it."""

import copy
from typing import Any

import numpy as np
import pytest

import unfog
from unfog.adapters.libraries.contexts import Contexts, readings
from unfog.adapters.libraries.names import Names
from unfog.adapters.libraries.tables import Table
from unfog.adapters.sklearn import Denoiser
from unfog.maths.arrays import Array

MEAN = np.array([5.0, -2.0])
COV = np.array([[2.0, 0.7], [0.7, 1.0]])
NOISE = np.array([[1.0, -0.3], [-0.3, 0.6]])
READING = np.array([[6.0, -1.0]])


def denoiser(**options: Any) -> Denoiser:
    """With a bias to learn about, so that the same reading never gives the same context twice."""
    return Denoiser(NOISE, 2 * COV, MEAN, COV, **options)


def test_a_reading_asked_about_again_is_the_same_decision() -> None:
    contexts, by_hand = Contexts(denoiser()), denoiser()
    first = contexts.decide(READING)
    np.testing.assert_array_equal(contexts.decide(READING), first)
    np.testing.assert_array_equal(contexts.learn(READING), first)
    by_hand.transform_one(READING[0])
    np.testing.assert_array_equal(contexts.decide(READING), [by_hand.transform_one(READING[0])])


def test_after_its_reward_a_reading_is_news_again_and_the_old_one_can_still_be_learnt_from() -> None:
    contexts = Contexts(denoiser())
    first = contexts.decide(READING)
    contexts.learn(READING)
    np.testing.assert_array_equal(contexts.learn(READING), first)
    second = contexts.decide(READING)
    assert np.abs(second - first).min() > 0.01
    np.testing.assert_array_equal(contexts.learn(READING), second)


def test_the_same_numbers_from_another_device_are_another_reading() -> None:
    contexts, by_hand = Contexts(denoiser()), denoiser()
    for about in ({"group": "a"}, {"group": "b"}, {"group": "b", "noise_cov": 3 * NOISE}):
        told = {
            "groups": [about["group"]],
            "noise_cov": [about["noise_cov"]] if "noise_cov" in about else None,
        }
        right = [by_hand.transform_one(READING[0], **about)]
        np.testing.assert_array_equal(contexts.decide(READING, **told), right)


def test_only_the_latest_decisions_are_remembered() -> None:
    contexts, rows = Contexts(denoiser(), remember=2), MEAN + np.arange(8.0).reshape(4, 2)
    decided = contexts.decide(rows[:3])
    by_itself = contexts.denoiser.transform(rows)
    learnt = contexts.learn(rows)
    np.testing.assert_array_equal(learnt[1:3], decided[1:])
    np.testing.assert_allclose(learnt[[0, 3]], by_itself[[0, 3]], rtol=1e-12)
    assert np.abs(by_itself[:3] - decided).min() > 1e-3


def test_rows_of_a_log_are_told_their_precision_and_their_device() -> None:
    fitted = denoiser()
    for t in range(5):
        fitted.transform_one(READING[0] + t, group="a")
    contexts, rows = Contexts(copy.deepcopy(fitted)), MEAN + np.arange(6.0).reshape(3, 2)
    covs, groups = np.array([1.0, 2.0, 5.0])[:, None, None] * NOISE, ["a", "b", "a"]
    contexts.decide(rows[1:2], covs[1:2], groups[1:2])
    right = fitted.transform(rows, noise_cov=covs, groups=np.array(groups))
    found = contexts.learn(rows, covs, groups)
    np.testing.assert_allclose(found[[0, 2]], right[[0, 2]], rtol=1e-12)


@pytest.mark.parametrize("said", [{"noise_cov": [NOISE]}, {"groups": ["a"]}, {"noise_cov": 3.0}])
def test_what_is_said_of_rows_is_said_of_each(said: dict[str, Any]) -> None:
    [field] = said
    for way in ("decide", "learn"):
        with pytest.raises(unfog.InputError, match=f"^{field}: .*; allowed: one for each row, 2 of them$"):
            getattr(Contexts(denoiser()), way)(np.zeros((2, 2)), **said)


@pytest.mark.parametrize(
    "bad", ["text", [[1.0], [1.0, 2.0]], [[np.inf, 1.0]], [[True, False]], np.zeros((2, 2, 2)), []]
)
def test_readings_are_rows_of_numbers(bad: Any) -> None:
    with pytest.raises(unfog.InputError, match=r"^contexts: .*; allowed: rows of numbers, nan where"):
        readings("contexts", bad)


def test_equal_readings_have_equal_bytes() -> None:
    other = np.frombuffer(np.array([0x7FF8000000000001, 0], np.uint64).tobytes(), float)
    assert np.isnan(other[0])
    assert readings("x", other).tobytes() == readings("x", [np.nan, -0.0]).tobytes()


def decided(output: str, as_is: list[Any]) -> tuple[Array, dict[Any, Any], Array]:
    """The same reading as a row and by name, and what the denoiser says of it."""
    row = Table(Contexts(denoiser(output=output)), as_is).decide("X", [[6.0, 1.0, -1.0]], None, None)[0]
    named = Names(Contexts(denoiser(output=output)), ["one"])
    context = named.decide({"heat": 6.0, "one": 1.0, "wind": -1.0}, None, None)
    return row, context, denoiser(output=output).transform_one(READING[0])


def test_columns_stay_where_they_were_and_what_else_is_said_follows() -> None:
    row, context, right = decided("mean+sd", [1])
    np.testing.assert_array_equal(row, [right[0], 1.0, right[1], right[2], right[3]])
    names = ["heat", "wind", "heat_2", "wind_2"]
    assert context == {"one": 1.0} | dict(zip(names, right.tolist(), strict=True))
    assert len(right) == 4


@pytest.mark.parametrize("as_is", [[3], [0, 1, 2]])
def test_columns_that_pass_as_they_are_are_columns_of_the_context(as_is: list[int]) -> None:
    with pytest.raises(unfog.InputError, match=r"^as_is: .*; allowed: columns of a context that has 3"):
        decided("mean", as_is)


def test_a_column_that_passes_as_it_is_cannot_be_lost() -> None:
    with pytest.raises(unfog.InputError, match=r"^contexts: nan in a column that passes as it is"):
        Table(Contexts(denoiser()), [0]).decide("X", [[np.nan, 6.0, -1.0]], None, None)


@pytest.mark.parametrize(
    ("context", "said"),
    [
        ([6.0, -1.0], r"^context: \[6.0, -1.0\]; allowed: numbers by name"),
        ({"heat": "hot"}, "^context.heat: 'hot'; allowed: a number, or None where it was lost"),
        ({"heat": True}, "^context.heat: True; allowed: a number, or None"),
        ({"heat": 1.0, "cold": 2.0}, r"^context: cold; allowed: the names \['heat', 'wind'\]"),
    ],
)
def test_names_are_those_of_the_first_context(context: Any, said: str) -> None:
    named = Names(Contexts(denoiser()), ["one"])
    named.decide({"heat": 6.0, "wind": -1.0, "one": 1.0}, None, None)
    with pytest.raises(unfog.InputError, match=said):
        named.decide(context, None, None)
