"""What must not change a result, and what must."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from tests.problems import random_problem
from unfog.agents.catalogue import AGENTS, playable
from unfog.maths.arrays import Array
from unfog.simulation import Curves, play
from unfog.simulation.engines.numpy import BLOCK_ROUNDS
from unfog.theory.regret import PLAIN, REALISED, SPLIT
from unfog.validation import InputError
from unfog.worlds.problem import Emission, Truth
from unfog.worlds.synthetic import GaussianProblem

D, K = 3, 5
PROBLEM = random_problem(seed=12, dim=D, actions=K)
EVERY = playable()


def run(agents: Any = ("alg1", "alg2", "naive", "oracle", "kk"), **settings: Any) -> Curves:
    return play(PROBLEM, agents, **{"rounds": 150, "trials": 9, "seed": 3} | settings)


def same_bits(one: Curves, other: Curves) -> bool:
    return (
        one.agents == other.agents
        and np.array_equal(one.rounds, other.rounds)
        and one.values.keys() == other.values.keys()
        and all(np.array_equal(one.values[name], other.values[name]) for name in one.values)
    )


@pytest.fixture(scope="module")
def curves() -> Curves:
    return run(EVERY)


@pytest.mark.parametrize("chunk", [1, 7])
@pytest.mark.soak
def test_the_size_of_a_batch_changes_no_bit(chunk: int, curves: Curves) -> None:
    assert same_bits(run(EVERY, chunk=chunk), curves)


@pytest.mark.slow
def test_two_processes_change_no_bit_and_count_all_rounds(curves: Curves) -> None:
    done: list[int] = []
    assert same_bits(run(EVERY, chunk=4, workers=2, tick=done.append), curves)
    assert sum(done) == 150 * 9 * len(EVERY)


def test_one_process_counts_all_rounds() -> None:
    done: list[int] = []
    run(["alg1", "kk"], chunk=4, tick=done.append)
    assert sum(done) == 150 * 9 * 2


def test_equal_seeds_give_equal_runs() -> None:
    for seed in (0, 2**64 - 1):
        assert same_bits(run(["alg1"], seed=seed), run(["alg1"], seed=seed)), seed


def test_no_seed_is_a_new_one_that_the_result_names() -> None:
    one, other = run(["alg1"], seed=None), run(["alg1"], seed=None)
    assert one.seed != other.seed
    assert same_bits(one, run(["alg1"], seed=one.seed))


def test_different_seeds_give_different_runs() -> None:
    finals = [run(["alg1"], seed=seed).values["regret"][0, :, -1] for seed in (0, 1, 2, 2**32)]
    assert len(np.unique(np.concatenate(finals))) == 4 * 9


def test_trials_of_a_run_differ(curves: Curves) -> None:
    for values in curves.values["regret"][:, :, -1]:
        assert len(np.unique(values)) == 9


@pytest.mark.slow
def test_an_agents_result_does_not_depend_on_its_company(curves: Curves) -> None:
    for row, name in enumerate(EVERY):
        alone = run([name])
        for quantity, values in curves.values.items():
            assert np.array_equal(alone.values[quantity][0], values[row]), (name, quantity)


def test_a_row_of_ones_own_is_run_as_it_is(curves: Curves) -> None:
    mine = run([replace(AGENTS["alg2"], name="mine"), "alg1"])
    assert mine.agents == ["mine", "alg1"]
    assert np.array_equal(mine.values["regret"][0], curves.values["regret"][curves.agents.index("alg2")])


def test_a_row_of_ones_own_runs_in_several_processes_too(curves: Curves) -> None:
    mine = run([replace(AGENTS["alg2"], name="mine")], chunk=5, workers=2)
    assert np.array_equal(mine.values["regret"][0], curves.values["regret"][curves.agents.index("alg2")])


@pytest.mark.parametrize("extra", [*(pytest.param(n, marks=pytest.mark.soak) for n in (0, 2)), 1])
@pytest.mark.slow
def test_a_shorter_run_is_the_beginning_of_a_longer_one(extra: int) -> None:
    """Also where it ends about the end of a block."""
    rounds = BLOCK_ROUNDS + extra
    short, long = (run(EVERY, rounds=number, trials=3) for number in (rounds, 2 * BLOCK_ROUNDS + 9))
    assert np.array_equal(short.rounds, long.rounds[:rounds])
    for name in (*PLAIN, REALISED, *SPLIT):
        assert np.array_equal(short.values[name], long.values[name][:, :, :rounds]), name


@pytest.mark.slow
def test_fewer_trials_are_the_first_of_more(curves: Curves) -> None:
    few = run(EVERY, trials=4)
    assert all(np.array_equal(few.values[name], values[:, :4]) for name, values in curves.values.items())


@pytest.mark.slow
def test_a_thinned_grid_keeps_the_values_of_its_rounds(curves: Curves) -> None:
    names = ["alg2", "unfog", "late"]
    rows = [EVERY.index(name) for name in names]
    for points in (1, 7, 149):
        thin = run(names, points=points)
        assert min(points, 3) <= len(thin.rounds) <= points
        for name, values in thin.values.items():
            assert np.array_equal(values, curves.values[name][rows][:, :, thin.rounds - 1]), points


@pytest.mark.slow
def test_the_split_adds_up_and_can_be_left_out(curves: Curves) -> None:
    assert tuple(curves.values) == (*PLAIN, REALISED, *SPLIT)
    total = sum(curves.values[name] for name in SPLIT)
    np.testing.assert_allclose(total, curves.values["regret"], rtol=1e-9, atol=1e-9)
    plain = run(EVERY, decompose=False)
    assert list(plain.values) == ["regret"]
    assert all(np.array_equal(values, curves.values[name]) for name, values in plain.values.items())


def test_regret_never_falls(curves: Curves) -> None:
    for name in PLAIN:
        steps = np.diff(curves.values[name], axis=-1, prepend=0)
        assert steps.min() >= 0
        assert steps.max() > 0.1


@dataclass(frozen=True, kw_only=True, eq=False)
class Wild(GaussianProblem):
    """A world whose third round or so is absurd beyond numbers."""

    what: str = "reward"
    value: float = float("inf")

    def emit(self, truth: Truth, normals: Array, number: Any = None) -> Emission:
        """Now and then not finite."""
        emission = super().emit(truth, normals, number)
        if self.what == "reward":
            return emission
        xp = normals.__array_namespace__()
        odd = xp.where(normals[..., :1] > 1.5, self.value, 0.0)
        return emission._replace(noisy=emission.noisy + odd)

    def reward(self, score: Array, normals: Array) -> Array:
        """Now and then not finite."""
        xp = normals.__array_namespace__()
        odd = xp.where(normals[..., 0] > 1.5, self.value, 0.0)
        found: Array = super().reward(score, normals) + (odd if self.what == "reward" else 0.0)
        return found


def test_a_world_that_makes_no_numbers_is_refused() -> None:
    for what in ("reward", "noisy"):
        for value in (float("inf"), float("-inf"), float("nan")):
            check_that_it_is_refused("numpy", Wild(dim=2, actions=3, what=what, value=value))


@pytest.mark.slow
@pytest.mark.parametrize(("what", "value"), [("reward", float("inf")), ("noisy", float("nan"))])
def test_so_it_is_by_the_compiled_engine(what: str, value: float) -> None:
    check_that_it_is_refused("jax", Wild(dim=2, actions=3, what=what, value=value))


def check_that_it_is_refused(engine: str, world: Wild) -> None:
    # Compiled, all that it can say is what it finds at the end.
    told = rf"^problem\.{world.what}\[" if engine == "numpy" else "not finite"
    with pytest.raises(InputError, match=told), np.errstate(invalid="ignore"):
        play(world, ["unfog"], rounds=20, trials=4, seed=1, engine=engine, decompose=False)
