"""The world in time: its courses have the covariances that the constants say, and agents are told them."""

from typing import Any

import numpy as np
import pytest

from tests.each import each
from tests.problems import spd
from unfog import testing
from unfog.maths.arrays import Array
from unfog.simulation import play
from unfog.simulation.job import truth_draws
from unfog.validation import InputError
from unfog.worlds.problem import Emission, Truth
from unfog.worlds.temporal import Course, TemporalProblem

D, N = 2, 20_000
RNG = np.random.default_rng(11)
FAST, LEVEL, WALK, CYCLE, BIAS, STRAY, ERROR, WHITE = (spd(RNG, D) for _ in range(8))
FULL: dict[str, Any] = {
    "dim": D,
    "actions": 4,
    "context_mean": [1.0, -2.0],
    "fast_cov": FAST,
    "fast_time": 6.0,
    "level_cov": LEVEL,
    "level_walk": WALK / 20,
    "cycle_cov": CYCLE,
    "periods": [7.0, 24.0],
    "bias_cov": BIAS,
    "bias_walk": STRAY / 10,
    "error_cov": ERROR,
    "error_time": 3.0,
    "noise_cov": WHITE,
    "path_rounds": 12,
    "step": 1.5,
}


def truth_of(world: TemporalProblem, trials: int) -> Truth:
    return world.truth(truth_draws(3, range(trials), world.truth_draws()))


def emitted(world: TemporalProblem, truth: Truth, number: int, seed: int = 0) -> Emission:
    width = len(truth.theta), world.round_normals()
    return world.emit(truth, np.random.default_rng(seed).standard_normal(width), np.asarray(number))


def off(one: Array, other: Array, right: Array, ends: tuple[Array, Array]) -> Array:
    """How far E[x y'] is from what it should be, in standard errors, of Gaussian x and y with mean zero."""
    found = one.T @ other / len(one)
    error = np.sqrt((np.outer(np.diag(ends[0]), np.diag(ends[1])) + right**2) / len(one))
    return np.abs(found - right) / error


def context_cov(then: float, now: float) -> Array:
    """Of contexts at two times, the first not after the second: every part in closed form."""
    lag = now - then
    cycles = sum(np.cos(2 * np.pi * lag / period) for period in (7.0, 24.0))
    return FAST * np.exp(-lag / 6.0) + LEVEL + WALK / 20 * then + CYCLE * cycles


def error_cov(then: float, now: float) -> Array:
    """Of bias and error together."""
    return BIAS + STRAY / 10 * then + ERROR * np.exp(-(now - then) / 3.0)


def test_courses_have_the_covariances_of_their_constants() -> None:
    world = TemporalProblem(**FULL)
    course: Course = truth_of(world, N).course
    assert np.allclose(course.times, 1.5 * np.arange(12))
    contexts = course.contexts[:, 0] - np.array([1.0, -2.0])
    errors = (course.biases + course.errors)[:, 0]
    # 2 x 4 pairs x 4 entries, and 12 x 2 means, at 5 standard errors: 4e-5.
    for i, j in ((0, 0), (0, 1), (3, 9), (11, 11)):
        then, now = 1.5 * i, 1.5 * j
        for values, law in ((contexts, context_cov), (errors, error_cov)):
            ends = law(then, then), law(now, now)
            assert off(values[:, i], values[:, j], law(then, now), ends).max() < 5
    spread = np.sqrt([np.diag(context_cov(t, t)) / N for t in 1.5 * np.arange(12)])
    assert (np.abs(contexts.mean(0)) < 5 * spread).all()
    cross = off(contexts[:, 5], errors[:, 5], np.zeros((D, D)), (context_cov(7.5, 7.5), error_cov(7.5, 7.5)))
    assert cross.max() < 5


def test_a_bias_may_come_back_to_zero() -> None:
    world = TemporalProblem(**FULL | {"bias_time": 4.0})
    biases = truth_of(world, N).course.biases[:, 0]
    # 3 pairs x 4 entries at 5 standard errors: 7e-6.
    for i, j in ((0, 0), (0, 3), (8, 11)):
        right = BIAS * np.exp(-1.5 * (j - i) / 4.0)
        assert off(biases[:, i], biases[:, j], right, (BIAS, BIAS)).max() < 5


def test_gaps_make_courses_forget() -> None:
    fields: dict[str, Any] = {"gaps": 0.3, "gap_time": 50.0, "level_cov": 0, "level_walk": 0}
    world = TemporalProblem(**FULL | fields | {"cycle_cov": 0, "periods": []})
    course: Course = truth_of(world, N).course
    steps = np.diff(course.times, axis=1)
    assert steps.min() == pytest.approx(1.5)
    longer = steps > 1.5 + 1e-9
    # The share of gaps, and their mean, which is exponential: 5 standard errors each, 1.2e-6.
    assert abs(longer.mean() - 0.3) < 5 * np.sqrt(0.21 / steps.size)
    assert abs((steps[longer] - 1.5).mean() - 50) < 5 * 50 / np.sqrt(longer.sum())
    contexts = course.contexts[:, 0] - np.array([1.0, -2.0])
    for where in (longer[:, 4], ~longer[:, 4]):  # given its steps a course is Gaussian
        kept = np.exp(-steps[where, 4] / 6.0).mean()
        found = contexts[where, 4].T @ contexts[where, 5] / where.sum()
        error = np.sqrt(2 * np.outer(np.diag(FAST), np.diag(FAST)) / where.sum())
        assert (np.abs(found - kept * FAST) < 5 * error).all()


def test_readings_are_the_course_and_white_noise() -> None:
    world = TemporalProblem(**FULL)
    truth = truth_of(world, N)
    course: Course = truth.course
    for number, place in ((0, 0), (7, 7), (11, 11), (400, 11)):  # after its end a course stays
        found = emitted(world, truth, number, seed=number)
        assert np.array_equal(found.context, course.contexts[:, 0, place])
        assert np.array_equal(np.asarray(found.at), course.times[:, place])
        white = found.noisy - found.context - (course.biases + course.errors)[:, 0, place]
        assert off(white, white, WHITE, (WHITE, WHITE)).max() < 5  # 16 entries: 1e-5


def test_a_block_is_its_rounds() -> None:
    for units in (1, 3):
        world = TemporalProblem(**FULL, units=units, gaps=0.2)
        truth = truth_of(world, 3)
        normals = np.random.default_rng(1).standard_normal((3, 15, world.round_normals()))
        block = world.emit(truth._replace(bias=truth.bias[:, None]), normals, np.arange(15))
        for t in range(15):
            one = world.emit(truth, normals[:, t], np.asarray(t))
            np.testing.assert_allclose(block.noisy[:, t], one.noisy, rtol=1e-12, atol=1e-13)
            assert np.array_equal(np.asarray(block.at)[:, t], np.asarray(one.at))


def test_units_have_courses_of_their_own() -> None:
    world = TemporalProblem(**FULL, units=2, unit_order="turn")
    truth = truth_of(world, N)
    course: Course = truth.course
    assert course.contexts.shape == (N, 2, 12, D)
    first, second = (course.contexts[:, u, 4] - np.array([1.0, -2.0]) for u in range(2))
    law = context_cov(6.0, 6.0)
    assert off(first, second, np.zeros((D, D)), (law, law)).max() < 5  # 4 entries: 2e-6
    for t in range(4):
        found = emitted(world, truth, t)
        assert (np.asarray(found.unit) == t % 2).all()
        assert np.array_equal(found.context, course.contexts[:, t % 2, t])
    assert emitted(TemporalProblem(**FULL, units=2, observe_units=False), truth, 1).unit is None


def test_agents_are_told_the_moments_and_the_dynamics() -> None:
    world = TemporalProblem(**FULL)
    known, half = world.knowledge(), 1.5 * 5.5
    np.testing.assert_allclose(known.context_cov, FAST + LEVEL + WALK / 20 * half + 2 * CYCLE, rtol=1e-12)
    np.testing.assert_allclose(known.noise_cov, WHITE + ERROR, rtol=1e-12)
    np.testing.assert_allclose(known.bias_cov, BIAS + STRAY / 10 * half, rtol=1e-12)
    dynamics = known.dynamics
    assert dynamics is not None
    assert (dynamics.fast.time, dynamics.bias.time, dynamics.periods) == (6.0, np.inf, (7.0, 24.0))
    np.testing.assert_allclose(np.asarray(dynamics.white), WHITE, rtol=1e-12)
    untold = TemporalProblem(**FULL, tell_dynamics=False)
    assert untold.knowledge().dynamics is None
    one, two = (emitted(each, truth_of(each, 4), 3) for each in (world, untold))
    assert np.array_equal(one.noisy, two.noisy)


PLAYED: list[dict[str, Any]] = [{}, {"gaps": 0.2, "missing": 0.2, "bias_time": 9.0, "reveal_share": 0.5}]


@pytest.mark.slow
@pytest.mark.parametrize("odd", PLAYED, ids=["plain", "all at once"])
def test_both_engines_play_the_same(odd: dict[str, Any]) -> None:
    world = TemporalProblem(**FULL, **odd)
    run: dict[str, Any] = {"rounds": 20, "trials": 3, "seed": 3, "decompose": False}
    right = play(world, ["late"], **run).values["regret"]
    found = play(world, ["late"], engine="jax", draws="numpy", precision="float64", **run)
    np.testing.assert_allclose(found.values["regret"], right, rtol=1e-8)


@pytest.mark.parametrize("odd", [{}, {"units": 3}, {"revealed": 0.3}], ids=str)
def test_it_keeps_the_contract(odd: dict[str, Any]) -> None:
    testing.check_world(TemporalProblem(**FULL, **odd))


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "time": ({"fast_time": 0.0}, "fast_time: 0.0; allowed: a positive number"),
    "bias": ({"bias_time": -1.0}, "bias_time: -1.0; allowed: zero or a positive number"),
    "no fast": ({"fast_cov": 0}, "fast_cov: 0; allowed: a covariance"),
    "no cycles": ({"cycle_cov": 0}, "periods: .*; allowed: a list of positive numbers with a cycle_cov"),
    "no periods": ({"periods": []}, "periods: .*; allowed: a list of positive numbers with a cycle_cov"),
    "period": ({"periods": [0.0]}, "periods: 0.0; allowed: a positive number"),
    "step": ({"step": 0}, "step: 0; allowed: a positive number"),
    "gaps": ({"gaps": 2.0}, "gaps: 2.0; allowed: a number from 0 to 1"),
    "white": ({"noise_cov": 0.0}, "noise_cov: 0.0 has the variance 0"),
    "rounds": ({"path_rounds": 10**6, "units": 9}, "path_rounds: 1000000; allowed: so few that"),
    "drift": ({"drift_cov": 0.1}, "drift_cov: 0.1; allowed: 0: here bias_walk"),
    "dynamics": ({"tell_dynamics": "no"}, "tell_dynamics: 'no'; allowed: True or False"),
}


@each("case", BAD)
def test_bad_fields_are_refused_by_name(case: str) -> None:
    fields, why = BAD[case]
    with pytest.raises(InputError, match=f"^{why}"):
        TemporalProblem(**FULL | fields)
