"""Tasks hold every piece once, in its order, and are as long as they should be."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from unfog.simulation.job import (
    AIM,
    FEWEST,
    LONGEST,
    ROUNDS_OF_WORK,
    Piece,
    bearable,
    cut,
    grouped,
    in_a_task,
)


@given(trials=st.integers(1, 500), size=st.integers(1, 600))
def test_all_trials_are_cut_into_whole_sizes_and_a_rest(trials: int, size: int) -> None:
    found = cut(trials, size)
    assert [trial for one in found for trial in one] == list(range(trials))
    assert {len(one) for one in found[:-1]} <= {size}
    assert 1 <= len(found[-1]) <= size


def test_a_piece_that_takes_too_long_is_made_smaller() -> None:
    for size, seconds, expected in [
        (1000, LONGEST, 1000),  # just bearable
        (1000, 2 * LONGEST, 500),
        (1000, 1e6, FEWEST),  # however long
        (10, 1e6, 10),  # never more than there were
    ]:
        check_a_piece_that_takes_too_long_is_made_smaller(size, seconds, expected)


def check_a_piece_that_takes_too_long_is_made_smaller(size: int, seconds: float, expected: int) -> None:
    assert bearable(size, seconds) == expected


@given(
    lengths=st.lists(st.floats(0.001, 5.0), min_size=1, max_size=60),
    workers=st.integers(1, 5),
)
def test_pieces_are_put_together_up_to_the_aim(lengths: list[float], workers: int) -> None:
    pieces = [Piece(0, one) for one in cut(len(lengths), 1)]
    tasks = list(grouped(pieces, lambda piece: lengths[piece.trials.start], workers))
    assert [piece for task in tasks for piece in task] == pieces
    aim = min(AIM, sum(lengths) / (ROUNDS_OF_WORK * workers)) * (1 + 1e-9)
    times = [[lengths[piece.trials.start] for piece in task] for task in tasks]
    assert all(len(one) == 1 or sum(one) <= aim for one in times)
    assert all(sum(a) + b[0] > aim / (1 + 2e-9) for a, b in pairwise(times))


def test_as_many_pieces_are_in_a_task_as_is_said() -> None:
    """What memory.py counts with."""
    for workers in [1, 3]:
        for seconds in [0.001, 0.3, 1.1, 50.0]:
            check_as_many_pieces_are_in_a_task_as_is_said(seconds, workers)


def check_as_many_pieces_are_in_a_task_as_is_said(seconds: float, workers: int) -> None:
    pieces = [Piece(0, one) for one in cut(5000, 1)]
    found = max(map(len, grouped(pieces, lambda _: seconds, workers)))
    assert abs(in_a_task(seconds, 5000 * seconds, workers) - found) <= 1  # a sum of floats may fall short
