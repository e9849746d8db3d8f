"""Which rounds are stored: evenly spaced, the last always among them, as many as memory allows."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from unfog.simulate.grid import MOST_CELLS, stored_rounds


@given(rounds=st.integers(1, 5000), points=st.integers(1, 6000))
def test_stored_rounds_are_even_and_end_with_the_last(rounds: int, points: int) -> None:
    grid = stored_rounds(rounds, 1, 1, points)
    assert len(grid) == min(points, rounds)
    assert grid[-1] == rounds
    assert grid[0] >= 1
    gaps = np.diff(grid, prepend=0)
    assert gaps.min() >= 1
    assert gaps.max() - gaps.min() <= 1


@given(rounds=st.integers(1, 10**6), trials=st.integers(1, 10**5), agents=st.integers(1, 20))
def test_stored_rounds_fit_in_memory(rounds: int, trials: int, agents: int) -> None:
    points = len(stored_rounds(rounds, trials, agents))
    assert points <= 1000
    assert points <= min(50, rounds) or 6 * points * trials * agents <= MOST_CELLS


def test_every_round_is_stored_where_that_is_affordable() -> None:
    assert np.array_equal(stored_rounds(1000, 400, 5), np.arange(1, 1001))
