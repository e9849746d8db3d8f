"""The runner: what it remembers and draws, by unit, in a batch as alone, kept and taken back."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import unfog
from tests.agents.world import same_bits
from unfog.agents import round as rounds
from unfog.agents.catalogue import Catalogue
from unfog.agents.round import Observation
from unfog.agents.runner import Recent, Runner
from unfog.features.quadratic import quadratic
from unfog.maths.arrays import Array, Ints
from unfog.maths.random import RoundDraws

DIM, ROUNDS = 2, 12
FEATURES = quadratic(np.random.default_rng(0).normal(size=(4, DIM)))
KNOWN = unfog.GaussianProblem(dim=DIM, actions=4).knowledge()
AGENTS = ["unfog", "late", "unfog-delayed", "coupled", "temporal"]


def readings(trials: int = 1, seed: int = 3) -> Array:
    return np.random.default_rng(seed).normal(0.5, 1.5, (ROUNDS, trials, DIM))


def lived(runner: Runner, noisy: Array, first: int = 0) -> list[int]:
    """Rounds of two units in turn, where the agent can tell them apart; rewards and truths by the arm."""
    arms = []
    for t, reading in enumerate(noisy, first):
        unit = "" if runner.agent.can.look_back is not None else f"unit {t % 2}"
        normals = runner.draw()
        considered = runner.consider(unit, Observation(reading, round=np.asarray(t)), FEATURES)
        arm, chances = runner.choose(considered, normals, t)
        assert chances.sum() == pytest.approx(1)
        paid = float(arm > 1) if runner.agent.learner.rewards == "bernoulli" else arm - reading.sum()
        decision = runner.reward(unit, runner.take(unit, considered, arm, FEATURES), paid)
        if runner.agent.sees_context:
            runner.reveal(unit, decision, 0.5 * reading)
        arms.append(arm)
    return arms


def paying(more: Array) -> Callable[[Ints], Array]:
    """The number of the arm, and so much more."""
    return lambda arm: arm + more


def of_name(name: str, kind: str = "gaussian") -> Any:
    return Catalogue(kind)[name]


def test_a_batch_is_its_trials_one_by_one() -> None:
    """`play` in three trials at once takes the arms of three runners that are led step by step."""
    for name in AGENTS:
        check_a_batch_is_its_trials_one_by_one(name)


def check_a_batch_is_its_trials_one_by_one(name: str) -> None:
    noisy, trials = readings(3), [4, 0, 9]
    many = Runner(of_name(name), KNOWN, 7, trials)
    alone = [Runner(of_name(name), KNOWN, 7, [trial]) for trial in trials]
    for t in range(ROUNDS):
        observation = Observation(noisy[t], round=np.asarray(t))
        batch = many.play(observation, FEATURES, many.draw(), paying(-noisy[t].sum(-1)))
        if many.agent.sees_context:
            many.reveal("", batch, 0.5 * noisy[t])
        for i, runner in enumerate(alone):
            considered = runner.consider("", Observation(noisy[t, [i]], round=np.asarray(t)), FEATURES)
            arm, _ = runner.choose(considered, runner.draw(), t)
            assert arm == batch.arm[i]
            decision = runner.take("", considered, arm, FEATURES)
            decision = runner.reward("", decision, arm - noisy[t, i].sum())
            if runner.agent.sees_context:
                runner.reveal("", decision, 0.5 * noisy[t, [i]])
    together = np.broadcast_to(many.theta().mean, (3, FEATURES.size))
    np.testing.assert_allclose(together, [one.theta().mean[0] for one in alone], rtol=1e-9, atol=1e-12)
    assert many.learnt == ROUNDS == alone[0].learnt


def test_it_plays_the_round_with_the_random_numbers_of_its_trial() -> None:
    agent, noisy = of_name("alg1"), readings()
    runner, (setup, memory) = Runner(agent, KNOWN, 5, [2]), rounds.start(agent, KNOWN)
    normals = RoundDraws(5, [2], "agent", agent.chooser.normals(KNOWN)).next(ROUNDS)[0]
    for t in range(ROUNDS):
        observation, paid = Observation(noisy[t]), noisy[t].sum(-1)
        memory, wanted = rounds.play(agent, setup, memory, FEATURES, observation, normals[[t]], paying(paid))
        decision = runner.play(observation, FEATURES, runner.draw(), paying(paid))
        assert decision.arm.tolist() == wanted.arm.tolist()
    assert same_bits(runner.memory().learner, memory.learner)
    assert same_bits(runner.memory().denoiser, memory.denoiser)


def test_what_changes_can_be_kept_and_taken_back() -> None:
    """In the middle of a life; from there on both take the same arms and learn the same, to the last bit."""
    for name, kind in [
        *((name, "gaussian") for name in AGENTS),
        ("alg1", "bernoulli"),
        ("unfog", "bernoulli"),
    ]:
        check_what_changes_can_be_kept_and_taken_back(name, kind)


def check_what_changes_can_be_kept_and_taken_back(name: str, kind: str) -> None:
    known = KNOWN._replace(prior_cov=40 * KNOWN.prior_cov)  # wide enough for the steps of a chain
    one, again = (Runner(of_name(name, kind), known, 1) for _ in range(2))
    noisy = readings()
    lived(one, noisy[:6])
    again.fill(one.content(), known)
    assert lived(one, noisy[6:], 6) == lived(again, noisy[6:], 6)
    assert same_bits(one.learner, again.learner)
    assert one.channels.keys() == again.channels.keys()
    assert all(same_bits(one.channels[unit], again.channels[unit]) for unit in one.channels)


def test_units_have_channels_of_their_own_and_share_the_learner() -> None:
    runner, noisy = Runner(of_name("unfog"), KNOWN, 1), readings()
    lived(runner, noisy)
    assert set(runner.channels) == {"unit 0", "unit 1"}
    first, second = runner.bias("unit 0"), runner.bias("unit 1")
    unread = runner.bias("nobody")
    assert first is not None
    assert second is not None
    assert unread is not None
    assert not np.allclose(first[0], second[0])
    assert (unread[1] > first[1]).all()
    assert runner.learnt == ROUNDS


def test_theta_is_worked_out_once_until_more_is_learnt() -> None:
    runner, reading = Runner(of_name("unfog"), KNOWN, 1), readings()[0]
    before = runner.theta()
    considered = runner.consider("ann", Observation(reading), FEATURES)
    decision = runner.take("ann", considered, 1, FEATURES)
    assert runner.theta() is before
    runner.reward("ann", decision, 3.0)
    assert runner.theta() is not before
    np.testing.assert_array_less(0, np.abs(runner.theta().mean - before.mean).max())


def test_a_late_reward_is_learnt_with_what_is_believed_by_then() -> None:
    """The first of two decisions is paid last: its evidence has the belief that the second left."""
    runner, noisy = Runner(of_name("unfog"), KNOWN, 1), readings()
    decisions = []
    for t in range(2):
        considered = runner.consider("ann", Observation(noisy[t]), FEATURES)
        decisions.append(runner.take("ann", considered, t, FEATURES))
    runner.reward("ann", decisions[1], 2.0)
    theta = runner.theta()
    paid = runner.reward("ann", decisions[0], 1.0)
    assert paid.evidence.belief is theta
    assert decisions[0].evidence.belief is not theta


def test_rounds_come_back_after_their_lag_and_by_unit() -> None:
    recent = Recent[int](2)
    for number in range(3):
        recent.add("ann", number)
        recent.add("bob", 10 + number)
    assert recent.due("ann") == 0
    assert recent.due("ann") is None
    assert recent.due("bob") == 10
    assert recent.due("eve") is None
    never = Recent[int](0)
    never.add("ann", 1)
    assert never.due("ann") is None
