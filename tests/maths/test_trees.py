"""Steps taken in some places alone: the same numbers as where all are worked on."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from unfog.maths import arrays
from unfog.maths.arrays import Array, Bools, holds_everywhere
from unfog.maths.trees import contiguous, if_any, iterate, map_arrays, update_where, where


@pytest.fixture
def _can_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(arrays._FLOWS, jnp, arrays.Flow(jax.lax.cond, jax.lax.while_loop, calls=True))


class Pair(NamedTuple):
    matrix: Array
    parts: tuple[Array, Array]


def step(state: Pair, by: Array) -> Pair:
    first, second = state.parts
    return Pair(state.matrix * by[..., None, None], (first + by, second - by[..., None]))


def make(rng: np.random.Generator, batch: tuple[int, ...]) -> tuple[Pair, Array]:
    parts = rng.normal(size=batch), rng.normal(size=(*batch, 3))
    return Pair(rng.normal(size=(*batch, 2, 2)), parts), rng.normal(size=batch)


def test_it_is_a_choice_between_two_states() -> None:
    for batch in [(), (7,), (3, 4)]:
        for share in [0.0, 0.5, 1.0]:
            check_it_is_a_choice_between_two_states(batch, share)


def check_it_is_a_choice_between_two_states(batch: tuple[int, ...], share: float) -> None:
    rng = np.random.default_rng(1)
    (state, by), mask = make(rng, batch), np.asarray(rng.random(batch) < share)
    found, after = update_where(mask, step, state, by), step(state, by)
    compiled = jax.jit(update_where, static_argnums=1)(mask, step, state, by)
    for one, old, new, other in zip(*map(jax.tree.leaves, (found, state, after, compiled)), strict=True):
        right = np.where(mask.reshape((*batch, *(1,) * (old.ndim - len(batch)))), new, old)
        np.testing.assert_array_equal(one, right)
        np.testing.assert_allclose(other, right, rtol=1e-15)
    assert type(found) is Pair
    for one, other in zip(*map(jax.tree.leaves, (found, where(mask, after, state))), strict=True):
        np.testing.assert_array_equal(one, other)


def test_nothing_is_worked_out_elsewhere_and_nothing_written_in_place() -> None:
    state, by = make(np.random.default_rng(2), (5,))
    before = map_arrays(np.copy, state)
    mask, seen = np.array([True, False, True, False, False]), list[int]()

    def counted(some: Pair, by: Array) -> Pair:
        seen.append(len(some.matrix))
        return step(some, by)

    update_where(mask, counted, state, by)
    update_where(~mask & mask, counted, state, by)
    assert seen == [2]
    for one, other in zip(jax.tree.leaves(state), jax.tree.leaves(before), strict=True):
        np.testing.assert_array_equal(one, other)


def test_only_what_has_numbers_is_settled() -> None:
    assert holds_everywhere(np.array([True, True]))
    assert holds_everywhere(np.asarray(True))
    assert not holds_everywhere(np.array([True, False]))
    assert not holds_everywhere(jnp.array([True, True]))


@pytest.mark.usefixtures("_can_ask")
@pytest.mark.parametrize("true", [0, 2])
def test_a_compiled_program_makes_what_is_asked_for_alone(true: int) -> None:
    made = list[float]()

    def found(mask: Bools, x: Array) -> Array:
        def make() -> Array:
            jax.debug.callback(lambda total: made.append(float(total)), x.sum())
            return where(mask, 2 * x, x)

        return if_any(mask, make, x)

    mask, x = np.arange(5) < true, np.arange(1.0, 6.0)
    np.testing.assert_array_equal(jax.jit(found)(mask, x), np.where(mask, 2 * x, x))
    jax.effects_barrier()
    assert made == [15.0] * bool(true)


@pytest.mark.parametrize("asks", [True, False])
def test_steps_are_taken_while_any_trial_moves_and_no_more_than_allowed(
    asks: bool, request: pytest.FixtureRequest
) -> None:
    if asks:
        request.getfixturevalue("_can_ask")

    class Halved(NamedTuple):
        left: Array
        steps: Array

    def halved(state: Halved, by: Array) -> Halved:
        return Halved(state.left / by, state.steps + 1)

    left, by = np.array([0.5, 3.0, 9.0, 1e9]), np.array([2.0, 2.0, 3.0, 2.0])
    start = Halved(left, np.zeros(4))
    plain = iterate(lambda at: at.left > 1, halved, start, 6, by)
    np.testing.assert_array_equal(plain.steps, [0, 2, 2, 6])
    compiled = jax.jit(lambda at, by: iterate(lambda at: at.left > 1, halved, at, 6, by))(start, by)
    for one, other in zip(plain, compiled, strict=True):
        np.testing.assert_array_equal(one, other)


def test_in_c_order_values_and_shapes_are_the_same() -> None:
    state = Pair(np.arange(6.0).reshape(2, 3).T, (np.asarray(1.5), np.broadcast_to(np.arange(3.0), (2, 3))))
    found = contiguous((state, None, ()))
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves((state, None, ())), strict=True):
        assert one.flags.c_contiguous
        np.testing.assert_array_equal(one, other, strict=True)
    assert type(found[0]) is Pair
    assert found[1:] == (None, ())


def test_what_is_in_c_order_is_not_copied() -> None:
    state = Pair(np.ones((2, 2)), (np.asarray(1.0), np.ones(3).reshape(1, 3)))
    assert contiguous(state) is state
    other = state._replace(matrix=np.arange(4.0).reshape(2, 2).T)
    assert contiguous(other).parts is state.parts
