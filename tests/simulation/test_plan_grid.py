"""Which rounds are stored: evenly spaced, with the ends of the last quarters, as many as memory allows."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from unfog.simulation.plan import CURVES, MOST_CELLS, MOST_MOMENTS, curve_rounds, quarters, stored_rounds


@given(rounds=st.integers(1, 5000), points=st.integers(1, 6000))
def test_stored_rounds_are_even_but_for_the_ends_of_quarters(rounds: int, points: int) -> None:
    grid = stored_rounds(rounds, 1, 1, points)
    ends = quarters(rounds) or (rounds,)
    assert min(points, rounds) - 2 <= len(grid) <= points
    assert set(ends) <= set(grid.tolist()) or points < len(ends)
    assert grid[-1] == rounds
    assert grid[0] >= 1
    assert (np.diff(grid) >= 1).all()
    # Without those of the two that are there for the quarters' sake alone, gaps differ by a round at most.
    alone = ((), ends[:1], ends[1:2], ends[:2])
    gaps = [np.diff(np.setdiff1d(grid, out[: len(ends) - 1]), prepend=0) for out in alone]
    assert any(gap.max() - gap.min() <= 1 for gap in gaps)


@given(rounds=st.integers(1, 10**7))
def test_the_last_two_quarters_are_of_one_length(rounds: int) -> None:
    ends = quarters(rounds)
    if ends is None:
        assert rounds < 4
        return
    half, before, end = ends
    assert end == rounds
    assert before - half == end - before == rounds // 4


@given(rounds=st.integers(1, 10**6), trials=st.integers(1, 10**5), agents=st.integers(1, 20))
def test_stored_rounds_fit_in_memory(rounds: int, trials: int, agents: int) -> None:
    points = len(stored_rounds(rounds, trials, agents))
    assert points <= 1000
    assert points <= 3 or CURVES * points * trials * agents <= MOST_CELLS


def test_every_round_is_stored_where_that_is_affordable() -> None:
    assert np.array_equal(stored_rounds(1000, 400, 5), np.arange(1, 1001))


@given(rounds=st.integers(1, 10**5), trials=st.integers(1, 10**5), agents=st.integers(1, 50_000))
def test_moments_of_very_many_settings_fit_in_memory_too(rounds: int, trials: int, agents: int) -> None:
    grid = stored_rounds(rounds, trials, agents)
    curve = curve_rounds(rounds, grid, agents)
    assert 2 * CURVES * len(curve) * agents <= MOST_MOMENTS
    assert not len(curve) or len(curve) >= len(grid)


def test_few_agents_have_fine_moments() -> None:
    grid = stored_rounds(5000, 10**6, 5)
    assert len(curve_rounds(5000, grid, 5)) == 1000
    assert 3 < len(curve_rounds(5000, grid, 5000)) <= 100
    assert not len(curve_rounds(50, stored_rounds(50, 100, 5), 5))
