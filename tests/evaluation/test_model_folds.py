"""No model speaks of a round that it has seen, and forward ones have seen nothing later."""

from collections.abc import Callable, Iterator

import numpy as np

from tests.each import each
from unfog.evaluation import model as models


@each("rounds", [1, 2, 3, 4, 7, 40, 997])
@each("kind", [models.across, models.forward])
def test_every_round_is_spoken_of_once_in_order_and_never_by_who_saw_it(
    kind: Callable[[int], Iterator[models.Fold]], rounds: int
) -> None:
    cut = list(kind(rounds))
    np.testing.assert_array_equal(np.concat([fold.test for fold in cut]), np.arange(rounds))
    for fold in cut:
        assert not np.isin(fold.test, fold.train).any()
        for other in cut:
            within = np.isin(other.test, fold.train)
            assert within.all() or not within.any()
            assert fold.learns(other.test) == within.any()


@each("rounds", [1, 2, 3, 40, 997])
def test_across_learns_from_all_others_and_forward_from_all_before(rounds: int) -> None:
    assert all(len(fold.train) + len(fold.test) == rounds for fold in models.across(rounds))
    for fold in models.forward(rounds):
        np.testing.assert_array_equal(fold.train, np.arange(fold.test[0]))


@each("rounds", [1, 40, 200, 4000])
def test_the_first_model_has_seen_a_hundred_rounds_or_a_quarter(rounds: int) -> None:
    first, *rest = models.forward(rounds)
    assert len(first.train) == 0
    assert min(100, rounds // 4) <= len(first.test) <= max(100, 0.3 * rounds, 1)
    assert len(rest) > 5 or rounds == 1
