"""What was decided on is remembered: once for each reading, until its reward and after it."""

import copy
from typing import Any

import numpy as np
import pytest

import unfog
from tests.each import each
from unfog.adapters.sklearn import Denoiser
from unfog.adapters.wrap import Contexts, Names, Table, readings
from unfog.maths.arrays import Array

MEAN = np.array([5.0, -2.0])
COV = np.array([[2.0, 0.7], [0.7, 1.0]])
NOISE = np.array([[1.0, -0.3], [-0.3, 0.6]])
READING = np.array([[6.0, -1.0]])


def denoiser(**options: Any) -> Denoiser:
    """With a bias to learn about, so that the same reading never gives the same context twice."""
    return Denoiser(NOISE, 2 * COV, MEAN, COV, **options)


def decided(contexts: Contexts, *told: Any, **options: Any) -> Array:
    with contexts.deciding(*told, **options) as found:
        return found


def learnt(contexts: Contexts, *told: Any, **options: Any) -> Array:
    with contexts.learning(*told, **options) as found:
        return found


def test_decisions_on_equal_readings_are_learnt_from_in_their_order() -> None:
    """Three of them in one call and in two, rewarded one by one."""
    contexts, by_hand = Contexts(denoiser()), denoiser()
    right = np.array([by_hand.transform_one(READING[0]) for _ in range(3)])
    assert np.abs(np.diff(right, axis=0)).min() > 0.01
    np.testing.assert_array_equal(decided(contexts, READING[[0, 0]]), right[:2])
    np.testing.assert_array_equal(decided(contexts, READING), right[2:])
    for one in right:
        np.testing.assert_array_equal(learnt(contexts, READING), [one])


def test_to_ask_for_scores_is_no_decision() -> None:
    """Before it, the decision to come is meant; after it, the latest. The sensor is learnt about once."""
    contexts, by_hand = Contexts(denoiser()), denoiser()
    right = np.array([by_hand.transform_one(READING[0]) for _ in range(3)])
    twice = READING[[0, 0]]
    np.testing.assert_array_equal(contexts.asking(twice), right[:2])
    np.testing.assert_array_equal(decided(contexts, twice), right[:2])
    np.testing.assert_array_equal(contexts.asking(READING), right[1:2])
    np.testing.assert_array_equal(decided(contexts, READING), right[2:])
    np.testing.assert_array_equal(learnt(contexts, READING[[0, 0, 0]]), right)


def test_what_does_not_wait_is_a_row_of_a_log() -> None:
    contexts = Contexts(denoiser())
    first = decided(contexts, READING)
    found = learnt(contexts, READING[[0, 0]])
    alone = contexts.denoiser.transform(READING)
    np.testing.assert_array_equal(found[:1], first)
    np.testing.assert_allclose(found[1:], alone, rtol=1e-12)
    assert np.abs(alone - first).min() > 0.01


def test_a_history_is_learnt_from_as_it_was_decided_on() -> None:
    """A row of an old log, two rounds that were learnt from, and one that was not: all are learnt afresh."""
    contexts = Contexts(denoiser())
    right = decided(contexts, READING[[0, 0, 0]])
    learnt(contexts, READING[[0, 0]])
    found = learnt(contexts, READING[[0, 0, 0, 0]], afresh=True)
    np.testing.assert_array_equal(found[1:], right)
    np.testing.assert_allclose(found[:1], contexts.denoiser.transform(READING), rtol=1e-12)
    np.testing.assert_array_equal(learnt(contexts, READING[[0, 0]], afresh=True), right[1:])
    assert len(contexts.waiting) == 0


@pytest.mark.parametrize("verb", ["deciding", "learning"])
def test_where_the_bandit_refuses_nothing_has_happened(verb: str) -> None:
    contexts, by_hand = Contexts(denoiser()), denoiser()
    right = [by_hand.transform_one(READING[0])]
    if verb == "learning":
        decided(contexts, READING)
    with pytest.raises(RuntimeError), getattr(contexts, verb)(READING):
        raise RuntimeError
    again = decided if verb == "deciding" else learnt
    np.testing.assert_array_equal(again(contexts, READING), right)


ABOUT: list[dict[str, Any]] = [
    {"group": "a"},
    {"group": "b"},
    {"group": "b", "noise_cov": 3 * NOISE},
    {"noise_cov": 3 * NOISE},
    {},
]


def told(about: dict[str, Any]) -> dict[str, Any]:
    return {{"group": "groups"}.get(name, name): [value] for name, value in about.items()}


def test_the_same_numbers_from_another_device_are_another_reading() -> None:
    """Decided in one order and rewarded in another, each said again: none gets the context of another."""
    contexts, by_hand = Contexts(denoiser()), denoiser()
    right = [by_hand.transform_one(READING[0], **about) for about in ABOUT]
    for about, one in zip(ABOUT, right, strict=True):
        np.testing.assert_array_equal(decided(contexts, READING, **told(about)), [one])
    for place in (2, 1, 0):
        np.testing.assert_array_equal(learnt(contexts, READING, **told(ABOUT[place])), right[place][None])
    fresh = by_hand.transform(READING, groups=["a"])
    np.testing.assert_allclose(learnt(contexts, READING, groups=["a"]), fresh, rtol=1e-12)
    for place in (3, 4):  # what is not said again is as it was said
        np.testing.assert_array_equal(learnt(contexts, READING), right[place][None])


def test_what_is_said_may_be_written_in_another_way() -> None:
    contexts, flat = Contexts(denoiser()), np.diag([2.0, 0.5])
    first = decided(contexts, READING, noise_cov=[[2.0, 0.5]], groups=np.array(["a"]))
    np.testing.assert_array_equal(learnt(contexts, READING, noise_cov=flat[None], groups=["a"]), first)


def test_only_the_latest_decisions_are_remembered() -> None:
    contexts, rows = Contexts(denoiser(), remember=2), MEAN + np.arange(8.0).reshape(4, 2)
    found = decided(contexts, rows[:3])
    by_itself = contexts.denoiser.transform(rows)
    again = learnt(contexts, rows)
    np.testing.assert_array_equal(again[1:3], found[1:])
    np.testing.assert_allclose(again[[0, 3]], by_itself[[0, 3]], rtol=1e-12)
    assert np.abs(by_itself[:3] - found).min() > 1e-3


@pytest.mark.parametrize("variances", [False, True])
def test_rows_of_a_log_are_told_their_precision_and_their_device(variances: bool) -> None:
    """As many rows as columns, too: variances of rows are then no covariance of all."""
    fitted = denoiser()
    for t in range(5):
        fitted.transform_one(READING[0] + t, group=1)
    rows, groups = MEAN + np.arange(6.0).reshape(3, 2), [1, "1", 1]
    covs = np.array([1.0, 2.0, 5.0])[:, None, None] * NOISE
    flat = np.linalg.diagonal(covs)
    covs = np.stack([np.diag(one) for one in flat]) if variances else covs
    right = np.concatenate(
        [fitted.transform(rows[[i]], noise_cov=covs[[i]], groups=[groups[i]]) for i in range(3)]
    )
    for places in ([0, 1, 2], [0, 1], [1, 2]):
        said = [(flat if variances else covs)[i] for i in places], [groups[i] for i in places]
        found = learnt(Contexts(copy.deepcopy(fitted)), rows[places], *said)
        np.testing.assert_allclose(found, right[places], rtol=1e-12)


def test_of_some_rows_more_is_said_than_of_others() -> None:
    fitted = denoiser().fit(MEAN + np.arange(20.0).reshape(10, 2))
    rows, said = MEAN + np.arange(8.0).reshape(4, 2), [None, 3 * NOISE, None, 3 * NOISE]
    whose = ["a", None, None, "b"]
    found = learnt(Contexts(copy.deepcopy(fitted)), rows, said, whose)
    for row, cov, group, one in zip(rows, said, whose, found, strict=True):
        right = copy.deepcopy(fitted).transform_one(row, noise_cov=cov, group=group)
        np.testing.assert_allclose(one, right, rtol=1e-12)


@each("said", [{"noise_cov": [NOISE]}, {"groups": ["a"]}, {"noise_cov": 3.0}])
def test_what_is_said_of_rows_is_said_of_each(said: dict[str, Any]) -> None:
    [field] = said
    for verb in (decided, learnt, Contexts.asking):
        with pytest.raises(unfog.InputError, match=f"^{field}: .*; allowed: one for each row, 2 of them$"):
            verb(Contexts(denoiser()), np.zeros((2, 2)), **said)


@each("bad", ["text", [[1.0], [1.0, 2.0]], [[np.inf, 1.0]], [[True, False]], np.zeros((2, 2, 2)), []])
def test_readings_are_rows_of_numbers(bad: Any) -> None:
    with pytest.raises(unfog.InputError, match=r"^contexts: .*; allowed: rows of numbers, nan where"):
        readings("contexts", bad)


def test_equal_readings_have_equal_bytes() -> None:
    other = np.frombuffer(np.array([0x7FF8000000000001, 0], np.uint64).tobytes(), float)
    assert np.isnan(other[0])
    assert readings("x", other).tobytes() == readings("x", [np.nan, -0.0]).tobytes()


def both(output: str, as_is: list[Any]) -> tuple[Array, dict[Any, Any], Array]:
    """The same reading as a row and by name, and what the denoiser says of it."""
    row = Table(Contexts(denoiser(output=output)), as_is).asking("X", [[6.0, 1.0, -1.0]], None, None)[0]
    named = Names(Contexts(denoiser(output=output)), ["one"], ["heat", "wind"])
    with named.deciding({"wind": -1.0, "one": 1.0, "heat": 6.0}, None, None) as context:
        return row, context, denoiser(output=output).transform_one(READING[0])


def test_columns_stay_where_they_were_and_what_else_is_said_follows() -> None:
    row, context, right = both("mean+sd", [1])
    np.testing.assert_array_equal(row, [right[0], 1.0, right[1], right[2], right[3]])
    names = ["heat", "wind", "heat_2", "wind_2"]
    assert context == {"one": 1.0} | dict(zip(names, right.tolist(), strict=True))
    assert len(right) == 4


@each("as_is", [[3], [0, 1, 2]])
def test_columns_that_pass_as_they_are_are_columns_of_the_context(as_is: list[int]) -> None:
    with pytest.raises(unfog.InputError, match=r"^as_is: .*; allowed: columns of a context that has 3"):
        both("mean", as_is)


def test_a_column_that_passes_as_it_is_cannot_be_lost() -> None:
    contexts = Contexts(denoiser())
    with pytest.raises(unfog.InputError, match=r"^contexts: nan in a column that passes as it is"):
        Table(contexts, [0]).asking("X", [[np.nan, 6.0, -1.0]], None, None)
    assert len(contexts.waiting) == 0
