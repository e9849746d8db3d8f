"""Arms that are equal but for the last bit: the first of them is taken, whatever the last bit says."""

from typing import Any

import jax
import jax.numpy as jnp
import numba
import numpy as np
import pytest

from tests.agents.choose.cases import Case, K, T, every
from unfog.agents.base import Chooser
from unfog.agents.choose.greedy import TIE, best, certain_choice
from unfog.agents.choose.ucb import envelope, leads
from unfog.channel.knowledge import Knowledge
from unfog.maths.gaussian import Gaussian
from unfog.simulation.engines.numba.arrays import CONJUGATE, RAND_UCB, make_workspace, plan
from unfog.simulation.engines.numba.kernel import _largest_bound, first_best

SIZES = [300.0, 1.0, 1e-3, 1e-200, -1e-3, -300.0]


def last_bits(rng: np.random.Generator, *shape: int) -> Any:
    """Factors that are one but for rounding."""
    return 1 + 4e-16 * rng.integers(-3, 4, shape)


def test_the_first_of_equals_is_taken(rng: np.random.Generator) -> None:
    compiled = jax.jit(best)
    for size in SIZES:
        values = size * last_bits(rng, 50, 6)
        values[:, :2] -= abs(size)
        assert (values.argmax(-1) != 2).any(), size
        assert (best(values) == 2).all(), size
        assert (np.asarray(compiled(jnp.asarray(values))) == 2).all(), size
        assert [int(best(row)) for row in values] == [2] * 50, size
        np.testing.assert_array_equal(certain_choice(values, values[None])[:, 2], 1, err_msg=str(size))


def test_what_is_further_apart_is_no_tie() -> None:
    for size in SIZES:
        for factor, wanted in ((0.5, 0), (3.0, 2)):
            near = size + abs(size) * factor * TIE * np.arange(3) / np.array([1, 2, 2])
            assert best(near) == wanted, size
        values = np.array([size, size + 1e-7 * abs(size), size - 1.0])
        assert best(values) == best(np.append(values, -1e300)) == 1, size  # what is far below has no say


def test_nothing_leaks_from_what_is_infinite() -> None:
    inf = np.inf
    values = np.array(
        [[-inf, 2.0, 2.0 + 1e-15], [0.0, inf, inf], [-inf, -inf, -inf], [-inf, -inf, -2.0], [0.0, -0.0, -inf]]
    )
    assert best(values).tolist() == [1, 1, 0, 2, 0]
    assert jax.jit(best)(jnp.asarray(values)).tolist() == [1, 1, 0, 2, 0]


def test_in_single_precision_only_equals_are_equal() -> None:
    one = np.float32(1)
    values: Any = np.array([one, np.nextafter(one, 2 * one), one], dtype=np.float32)
    assert best(values) == jax.jit(best)(jnp.asarray(values)) == 1
    assert best(-values) == 0


def twins(case: Case, bits: Any, size: float) -> Case:
    """The last two arms are the second but for rounding, and scores are of this size."""
    case.actions[:, 3:] = case.actions[:, 1:2] * bits
    case.belief = Gaussian(size * case.belief.mean, size * case.belief.root)
    return case


@every
def test_the_last_bit_decides_nothing(chooser: Chooser, known: Knowledge, rng: np.random.Generator) -> None:
    for size, masked in ((300.0, False), (300.0, True), (1e-3, False), (1e-3, True)):
        check_the_last_bit(chooser, masked, size, known, rng)


def check_the_last_bit(
    chooser: Chooser, masked: bool, size: float, known: Knowledge, rng: np.random.Generator
) -> None:
    draws = rng.standard_normal((40, T, chooser.normals(known)))
    masks = (rng.random((T, K)) < 0.6) | (np.arange(K) == 4) if masked else None
    found = list[Any]()
    for bits in (np.ones((T, 2, 1)), last_bits(rng, T, 2, 1), last_bits(rng, T, 2, 1)):
        case = twins(Case(np.random.default_rng(9)), bits, size)
        view = case.view(arms=masks)
        arms = [chooser.choose(view, normals) for normals in draws]
        one = case.one(3, arms=None if masks is None else masks[3])
        found.append((arms, chooser.probabilities(view, draws), chooser.probabilities(one, draws[:, 3])))
    for arms, chances, of_one in found[1:]:
        np.testing.assert_array_equal(arms, found[0][0])
        np.testing.assert_allclose(chances, found[0][1], rtol=0, atol=1e-9)
        np.testing.assert_allclose(of_one, found[0][2], rtol=0, atol=1e-9)
    if chooser.propensity == "exact":
        taken = np.eye(K)[np.array(found[0][0])].any(0)
        assert (found[0][1] > 0)[taken].all()


def test_of_lines_that_are_equal_the_first_leads(rng: np.random.Generator) -> None:
    for size in [300.0, 1.0, 1e-3] * 20:
        mean = size * np.array([0.2, 1.0, 0.1, 1.0, 0.1, 1.0]) * last_bits(rng, 6)
        slope = size * np.array([2.0, 2.0, 5.0, 2.0, 5.0, 2.0]) * last_bits(rng, 6)
        assert [arm for arm, _ in envelope(mean, slope, 0.1)] == [1, 2]
        opened = np.array([True, False, False, True, True, True])
        assert [arm for arm, _ in envelope(mean, slope, 0.1, opened)] == [3, 4]
        low, high = leads(mean, slope)
        assert (low < high).tolist() == [False, True, True, False, False, False]
        low, high = leads(mean, slope, opened)
        assert (low < high).tolist() == [False, False, False, True, True, False]


def test_lines_without_a_slope_are_told_apart_by_more_than_rounding() -> None:
    mean = np.array([0.0, 2.0, 2.0 - 4e-16, 2.0 + 4e-16])
    slope = np.array([0.0, 0.0, 1e-17, 1e-18])
    for places in ([0, 1, 2, 3], [0, 2, 3, 1], [0, 3, 1, 2]):
        assert [arm for arm, _ in envelope(mean[places], slope[places], 0.5)] == [1]
        low, high = leads(mean[places], slope[places])
        assert (low < high).tolist() == [False, True, False, False]


@pytest.mark.slow
def test_the_kernel_has_the_same_rule(rng: np.random.Generator) -> None:
    arms = 21
    desks = make_workspace(plan(CONJUGATE, RAND_UCB, 2, arms, 1))

    @numba.njit
    def asked(w: Any, level: float, growth: float, neglect: float) -> Any:
        found = _largest_bound(w, arms, len(w.bound), level, growth, neglect)
        return first_best(w.score, w.lanes, arms), found

    for size in SIZES:
        for _ in range(20):
            desks.score[:arms] = size * last_bits(rng, arms) - abs(size) * (rng.random(arms) < 0.6)
            spread = size**2 * rng.choice([0.01, 1.0], arms) * last_bits(rng, arms)
            desks.variance[:arms] = spread
            bounds = desks.score[:arms] + 0.3 * np.sqrt(spread * (1 + 0.25 * np.log1p(2.0 * spread)))
            wanted = best(desks.score[:arms]), best(bounds)
            assert asked(desks, 0.3, 0.25, 2.0) == wanted
