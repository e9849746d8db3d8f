"""How rounds move what models say: against taking each out, and fitting again."""

import numpy as np
import pytest

from tests.evaluation.logs import World
from unfog.evaluation import model as models
from unfog.evaluation.context import EvaluationContext
from unfog.evaluation.model import Data, cross_fit, fit
from unfog.maths.arrays import Array, Ints, pick


def total(data: Data, policy: Array, corrected: Array, train: list[Ints]) -> float:
    """The sum of scores, by models of other rounds than those of the folds."""
    found = 0.0
    for fold, places in zip(models.across(data.rounds), train, strict=True):
        q = fit(data, places).predict(data, fold.test)
        paid = pick(q, data.arm[fold.test])
        found += float(np.vecdot(policy[fold.test], q).sum() - corrected[fold.test] @ paid)
    return found


@pytest.mark.parametrize("shown", [0.0, 0.4])
def test_wobble_is_what_a_round_taken_out_takes_away(shown: float) -> None:
    """The jackknife: of a few hundred rounds each moves models by about its influence."""
    world = World()
    log = world.log(400, 1, shown=shown)
    data = EvaluationContext(log, world.channel).data
    policy, weight = world.policy(log.noisy), world.policy(log.noisy)[np.arange(400), log.arm]
    found = cross_fit(data, list(models.across(400))).wobble(policy, weight)
    whole = [fold.train for fold in models.across(400)]
    start, taken = total(data, policy, weight, whole), np.arange(3, 400, 40)
    away = [start - total(data, policy, weight, [x[x != t] for x in whole]) for t in taken]
    assert np.abs(found[taken]).max() > 1
    np.testing.assert_allclose(found[taken], away, atol=(0.15 if shown else 0.06) * np.abs(found).max())
    assert np.corrcoef(found[taken], away)[0, 1] > 0.99


def test_what_it_says_of_its_own_contexts_is_what_it_said() -> None:
    world = World()
    evaluation = EvaluationContext(world.log(103, 2), world.channel)
    np.testing.assert_array_equal(evaluation.across.asked(evaluation.contexts), evaluation.across.rewards)
    assert evaluation.across.counts.all()


def test_before_there_is_a_model_the_past_mean_stands_in() -> None:
    """In the first block of `forward`; its first five rounds do not count."""
    world = World()
    log = world.log(103, 2)
    forward = EvaluationContext(log, world.channel).forward
    first = next(iter(models.forward(103))).test
    expected = np.array([[log.reward[:t].mean()] * len(log.arms) for t in first[1:]])
    np.testing.assert_allclose(forward.rewards[first[1:]], expected)
    np.testing.assert_array_equal(np.flatnonzero(forward.counts == 0), np.arange(5))
