"""Replay: how many rounds count, and that they are as if the agent had played them itself."""

import numpy as np
import pytest

from tests.evaluation.logs import World
from unfog.agents.round import Observation
from unfog.agents.runner import Runner
from unfog.evaluation.context import EvaluationContext
from unfog.evaluation.policies import LogAgent, Replayed, log_agent, replay
from unfog.maths.arrays import Array
from unfog.validation import InputError

WORLD = World(d=2, arms=3)


def test_a_share_of_rounds_counts_that_is_the_smallest_probability() -> None:
    """Of 1,500 rounds a binomial number: within four standard deviations, wrong once in 15,000."""
    log = WORLD.log(1500, 5)
    assert log.probabilities is not None
    found = replay(log_agent("naive", EvaluationContext(log)))
    least = log.probabilities.min()
    assert abs(len(found.accepted) - 1500 * least) < 4 * np.sqrt(1500 * least * (1 - least))
    assert least < 0.15


def test_rounds_that_count_have_the_law_of_contexts() -> None:
    """Rounds with rarely drawn arms do not count more: contexts that count have the mean of all, within four
    standard errors in each of two coordinates.
    """
    log = WORLD.log(3000, 6)
    accepted = replay(log_agent("naive", EvaluationContext(log))).accepted
    gap = log.noisy[accepted].mean(axis=0) - log.noisy.mean(axis=0)
    assert (np.abs(gap) < 4 * log.noisy.std(axis=0) / np.sqrt(len(accepted))).all()
    assert len(accepted) > 150


def test_a_learner_that_looks_back_needs_a_log_of_one_unit() -> None:
    log = WORLD.log(30, 5)
    several = log._replace(unit=np.arange(30) % 2, units=("ann", "bob"))
    assert len(replay(log_agent("coupled", EvaluationContext(log, WORLD.channel))).accepted) > 0
    with pytest.raises(
        InputError, match=r"^unit: '[01]'; allowed: one unit: the learner of 'coupled' looks back"
    ):
        replay(log_agent("coupled", EvaluationContext(several, WORLD.channel)))


def played(one: LogAgent, paid: Array, number: int) -> float:
    """The mean of what the agent earns in the first rounds, when it is paid for what it chooses."""
    runner, features, earned = Runner(one.agent, one.known, one.evaluation.seed), one.evaluation.features, 0.0
    for t in range(number):
        considered = runner.consider("", Observation(one.noisy[[t]], round=np.asarray(t)), features)
        arm, _ = runner.choose(considered, runner.draw(), t)
        runner.reward("", runner.take("", considered, arm, features), paid[t, arm])
        earned += float(paid[t, arm])
    return earned / number


@pytest.mark.slow
def test_a_replayed_agent_earns_what_it_earns_when_it_plays() -> None:
    """Fifteen logs drawn evenly, each against the agent on contexts of its own; both in the agent's units of
    rewards. Four standard errors of the difference: wrong about once in 1,000, since these are few.
    """
    gaps = []
    for seed in range(15):
        log, rng = WORLD.log(150, 100 + seed, uniform=True), np.random.default_rng([1, seed])
        one = log_agent("naive", EvaluationContext(log, WORLD.channel))
        accepted = replay(one).accepted
        true, noisy = WORLD.contexts(150, rng)
        paid = WORLD.scores(true) + 0.3 * rng.standard_normal((150, 3))
        own = one._replace(noisy=one.evaluation.units(WORLD.channel).read(noisy))
        simulated = played(own, (paid - log.reward.mean()) / log.reward.std(), len(accepted))
        gaps.append(float(one.reward[accepted].mean()) - simulated)
    assert abs(np.mean(gaps)) < 4 * np.std(gaps) / np.sqrt(15)
    assert np.std(gaps) < 0.4


def test_its_value_is_the_mean_of_what_counts_with_its_error() -> None:
    reward = np.array([1.0, 5.0, 2.0, 9.0, 3.0])
    found = Replayed(np.array([0, 2, 4])).value(reward)
    np.testing.assert_allclose(found.mean, 2.0)
    np.testing.assert_allclose(found.se, np.std([1.0, 2.0, 3.0]) / np.sqrt(3))
    assert np.isnan(Replayed(np.array([1])).value(reward).mean)
