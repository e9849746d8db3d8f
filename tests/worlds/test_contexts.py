"""Units with biases of their own: whose round it is, what agents are told, and what knowing it is worth."""

from typing import Any

import numpy as np
import pytest

from tests.each import each
from tests.problems import within
from unfog.maths.arrays import Array
from unfog.simulation import play
from unfog.simulation.job import truth_draws
from unfog.validation import InputError
from unfog.worlds.problem import Emission, Truth
from unfog.worlds.synthetic import GaussianProblem

D, N = 2, 20_000
BIAS = [[2.0, 0.5], [0.5, 1.0]]


def problem(**fields: Any) -> GaussianProblem:
    given: dict[str, Any] = {"dim": D, "actions": 5, "bias_cov": BIAS, **fields}
    return GaussianProblem(**given)


def truth_of(world: GaussianProblem, trials: int) -> Truth:
    return world.truth(truth_draws(2, range(trials), world.truth_draws()))


def emitted(world: GaussianProblem, truth: Truth, number: int, seed: int = 0) -> Emission:
    width = len(truth.theta), world.round_normals()
    return world.emit(truth, np.random.default_rng(seed).standard_normal(width), np.asarray(number))


def test_every_unit_has_a_bias_of_the_prior() -> None:
    world = problem(units=3)
    found = truth_of(world, N).biases
    assert found is not None
    assert found.shape == (N, 3, D)
    flat = found.reshape(N, 3 * D)
    right: Array = np.kron(np.eye(3), np.array(BIAS))
    spread = np.sqrt((np.outer(np.diag(right), np.diag(right)) + right**2) / N)
    assert within(np.cov(flat.T), right, spread)  # 36 entries at 5 standard errors: 2e-5


def test_the_first_unit_has_the_bias_that_a_world_of_one_has() -> None:
    one, many = truth_of(problem(), 5), truth_of(problem(units=4), 5)
    assert many.biases is not None
    assert np.array_equal(one.bias, many.biases[:, 0])
    assert np.array_equal(one.theta, many.theta)
    assert one.biases is None


def test_rounds_are_measured_with_the_bias_of_their_unit() -> None:
    world, plain = problem(units=3), problem()
    truth = truth_of(world, 200)
    seen = set()
    for t in range(5):
        found = emitted(world, truth, t, seed=t)
        assert found.unit is not None
        seen |= set(found.unit.tolist())
        right = np.asarray(truth.biases)[np.arange(200), found.unit]
        assert np.array_equal(np.asarray(found.bias), right)
        assert found.best is not None
        width = 200, world.round_normals()
        normals = np.random.default_rng(t).standard_normal(width)
        cut = np.delete(normals, [2 * D, 2 * D + 1], axis=1)
        alone = plain.emit(truth._replace(bias=right), cut, np.asarray(t))
        np.testing.assert_allclose(found.noisy, alone.noisy, rtol=1e-12)
        assert np.array_equal(world.reward(np.ones(200), normals), plain.reward(np.ones(200), cut))
    assert seen == {0, 1, 2}


def test_a_block_is_its_rounds() -> None:
    for order in ("random", "turn"):
        world = problem(units=3, unit_order=order)
        truth = truth_of(world, 4)
        normals = np.random.default_rng(1).standard_normal((4, 7, world.round_normals()))
        block = world.emit(truth._replace(bias=truth.bias[:, None]), normals, np.arange(7))
        for t in range(7):
            one = world.emit(truth, normals[:, t], np.asarray(t))
            assert np.array_equal(np.asarray(block.unit)[:, t], np.asarray(one.unit))
            assert np.array_equal(block.noisy[:, t], one.noisy)


def test_units_are_drawn_alike_or_take_turns() -> None:
    drawn = emitted(problem(units=4), truth_of(problem(units=4), N), 0).unit
    assert drawn is not None
    counts = np.bincount(drawn, minlength=4) / N
    assert np.abs(counts - 0.25).max() < 5 * np.sqrt(0.25 * 0.75 / N)  # 4 tests: 3e-6
    world = problem(units=4, unit_order="turn")
    assert world.round_normals() == problem().round_normals()
    turns = [np.asarray(emitted(world, truth_of(world, 3), t).unit) for t in range(9)]
    assert np.array_equal(np.stack(turns), np.tile(np.arange(9)[:, None] % 4, (1, 3)))


def regret(world: GaussianProblem, agents: list[str], trials: int = 60) -> Array:
    found = play(world, agents, rounds=300, trials=trials, seed=1, points=1, decompose=False)
    return found.values["regret"][:, :, -1]


def test_being_told_of_units_pays_and_changes_nothing_else() -> None:
    fields: dict[str, Any] = {"units": 3, "bias_cov": 10.0, "features": "product", "context_mean": 1.0}
    fields |= {"prior_cov": 1.0, "reward_var": 0.5}
    told, not_told = (problem(**fields, observe_units=flag) for flag in (True, False))
    assert (told.several, not_told.several, problem().several) == (3, 1, 1)
    truth = truth_of(told, 5)
    one, two = (emitted(world, truth, 2) for world in (told, not_told))
    assert two.unit is None
    assert np.array_equal(one.noisy, two.noisy)
    agents = ["alg1-exact", "oracle"]
    with_units, without = regret(told, agents), regret(not_told, agents)
    np.testing.assert_allclose(with_units[1], without[1], rtol=1e-9)  # who knows the bias needs no unit
    gap = without[0] - with_units[0]
    # Agents alike would pass with probability 1.5e-3, by the normal law.
    assert gap.mean() > 3 * gap.std(ddof=1) / np.sqrt(len(gap))


def test_each_unit_is_learnt_as_if_it_were_alone() -> None:
    """In a world without rewards to learn from, what is believed of a unit is what its own readings say."""
    from unfog.agents.catalogue import Catalogue
    from unfog.simulation.player import Player

    world = problem(units=2, unit_order="turn")
    truth, agent = truth_of(world, 3), Catalogue()["alg1-exact"]
    many = Player(agent, world, truth, 0, range(3))
    alone = [Player(agent, problem(), truth, 0, range(3)) for _ in range(2)]
    for t in range(8):
        emission, draws = emitted(world, truth, t, seed=t), many.runner.normals.next(1)[:, 0]
        decision = many.round(emission, draws, lambda _: np.zeros(3))
        other = alone[t % 2].round(emission._replace(unit=None), draws, lambda _: np.zeros(3))
        np.testing.assert_allclose(decision.context.mean, other.context.mean, rtol=1e-12)


@each(
    "fields, why",
    [
        ({"units": 0}, "units: 0; allowed: a whole number, at least 1 and at most 1000"),
        ({"units": 2, "unit_order": "last"}, "unit_order: 'last'; allowed: random, turn"),
        ({"observe_units": 1}, "observe_units: 1; allowed: True or False"),
        ({"units": 2, "drift_cov": 0.1}, "drift_cov: 0.1; allowed: 0 where there are several units"),
    ],
)
def test_bad_fields_are_refused_by_name(fields: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError, match=f"^{why}"):
        problem(**fields)


def test_who_cannot_tell_units_apart_says_so() -> None:
    world = problem(units=2)
    with pytest.raises(
        InputError, match=r"^agents: the learner of 'alg1-exact-joint' looks back on past rounds"
    ):
        play(world, ["alg1-exact-joint"], rounds=3, trials=2)
    with pytest.raises(InputError, match=r"^engine: jax knows one unit, not 2; allowed: numpy"):
        play(world, ["alg1"], rounds=3, trials=2, engine="jax")
    assert not world.plain
