"""River's verbs: the arms of the lab, contexts by name, rewards late or of another arm."""

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from river import bandit

import unfog
from tests.adapters.loop import played
from tests.adapters.test_simulation import fixed, readings
from unfog.adapters.gymnasium import Env
from unfog.adapters.river import RiverPolicy, evaluate
from unfog.adapters.simulation import Decider
from unfog.simulation import play

NAMES = ["x", "y", "z"]


def test_a_policy_has_the_regret_that_it_has_in_the_lab() -> None:
    problem = fixed()
    curves = play(problem, ["unfog", "alg1"], rounds=130, trials=1, seed=4, points=1)
    for index, agent in enumerate(("unfog", "alg1")):
        policy, env = RiverPolicy(agent, problem, seed=4), Env(problem, rounds=130)
        (noisy, _), total, over = env.reset(seed=4), 0.0, False
        while not over:
            context = dict(enumerate(noisy))
            arm = policy.pull(list(range(4)), context)
            noisy, reward, _, over, info = env.step(arm)
            policy.update(arm, context, reward)
            total += info["regret"]
        assert np.isclose(total, curves.values["regret"][index, 0, -1], rtol=0, atol=1e-11)


def test_contexts_and_arms_go_by_name() -> None:
    """In any order, and without what was lost."""
    policy = RiverPolicy("gaps", fixed(), arms=list("abcd"), coordinates=NAMES, seed=2)
    decider = Decider("gaps", fixed(), seed=2)
    for t, noisy in enumerate(readings(30)):
        given = dict(zip(NAMES, noisy.tolist(), strict=True))
        if t % 3 == 0:
            del given["y"]
        if t % 5 == 0:
            given["x"] = None
        lost = np.array([given.get(name) is None for name in NAMES])
        offered: list[int | str] = ["d", "b"] if t % 2 else list("dcba")
        places = ["abcd".index(str(arm)) for arm in offered]
        choice = decider.decide(np.where(lost, np.nan, noisy), arms=places)
        arm = policy.pull(offered, dict(reversed(given.items())))
        assert arm == "abcd"[choice.arm]
        assert arm in offered
        decider.learn(choice, float(noisy[0]))
        policy.update(arm, given, float(noisy[0]))
    assert policy.ranking


def test_rewards_find_their_decision_late() -> None:
    policy, decider = RiverPolicy("alg1", fixed(), seed=2), Decider("alg1", fixed(), seed=2)
    contexts = readings(40)
    for one, two in zip(contexts[::2], contexts[1::2], strict=True):
        choices = [decider.decide(one), decider.decide(two)]
        arms = [policy.pull([*range(4)], dict(enumerate(noisy))) for noisy in (one, two)]
        assert arms == [choice.arm for choice in choices]
        for place, noisy in ((1, two), (0, one)):
            decider.learn(choices[place], float(noisy[1]))
            policy.update(arms[place], dict(enumerate(noisy)), float(noisy[1]))
    assert len(policy._waiting) == 0


def test_equal_readings_are_rewarded_in_the_order_of_their_decisions() -> None:
    policy, decider = RiverPolicy("unfog", fixed(), seed=2), Decider("unfog", fixed(), seed=2)
    noisy = readings(1)[0]
    choices = [decider.decide(noisy) for _ in range(6)]
    arms = [policy.pull([*range(4)], dict(enumerate(noisy))) for _ in range(6)]
    for t, (arm, choice) in enumerate(zip(arms, choices, strict=True)):
        assert arm == choice.arm
        policy.update(arm, dict(enumerate(noisy)), float(t))
        decider.learn(choice, float(t))
    found, wanted = policy._decider._runner.theta(), decider._runner.theta()
    np.testing.assert_allclose(found.mean, wanted.mean, rtol=1e-12)


def test_a_reward_that_is_refused_may_come_again() -> None:
    policy, context = RiverPolicy("unfog", fixed()), {0: 1.0, 1: 2.0, 2: 3.0}
    policy.pull([0, 1], context)
    with pytest.raises(unfog.InputError, match=r"^reward: nan"):
        policy.update(0, context, float("nan"))
    with pytest.raises(unfog.InputError, match=r"^reward: missing; allowed: a number"):
        policy.update(0, context)
    assert len(policy._waiting) == 1


def test_the_oldest_decision_is_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unfog.adapters.river.WAITING", 3)
    policy = RiverPolicy("unfog", fixed())
    for value in (1.0, 2.0, 1.0, 2.0):
        policy.pull([0, 1], {0: value, 1: 0.0, 2: 0.0})
    waiting = [len(list(policy._waiting.line(np.array([value, 0.0, 0.0])))) for value in (1.0, 2.0)]
    assert waiting == [1, 2]


def test_lost_coordinates_reach_the_agent() -> None:
    """The regret that the lab has, in a world that loses some."""
    problem = replace(fixed(), missing=0.4)
    rows = list(
        evaluate([RiverPolicy("gaps", problem, seed=4)], Env(problem, rounds=80), n_episodes=1, seed=5)
    )
    env, decider = Env(problem, rounds=80), Decider("gaps", problem, seed=4)
    noisy, info = env.reset(seed=random.Random(5).randint(0, 2**32))
    arms, regret = played(env, decider, noisy, info)
    assert [row["arm"] for row in rows] == arms
    assert sum(row["regret"] for row in rows) == pytest.approx(regret[-1])


def test_a_reading_is_observed_once_whoever_chose() -> None:
    """Another arm than was chosen, and no choice before: both are as if the round was followed."""
    policy, decider = RiverPolicy("unfog", fixed(), seed=2), Decider("unfog", fixed(), seed=2)
    for t, noisy in enumerate(readings(20)):
        context = dict(enumerate(noisy))
        if t % 2:
            policy.pull([*range(4)], context)
        policy.update(3, context, float(noisy[0]))
        decider.learn(decider.follow(noisy, 3), float(noisy[0]))
    found, wanted = policy._decider._runner, decider._runner
    np.testing.assert_allclose(found.theta().mean, wanted.theta().mean, rtol=1e-12)
    bias, other = found.bias(""), wanted.bias("")
    assert bias is not None
    assert other is not None
    np.testing.assert_allclose(bias[1], other[1], rtol=1e-12)


def test_replay_of_a_log() -> None:
    """River's own: arms that agree are learnt from, and the rest of the readings teaches the channel."""
    rng, noisy = np.random.default_rng(3), readings(200)
    taken = rng.integers(0, 4, 200).tolist()
    history: list[Any] = [
        (list(range(4)), dict(enumerate(row)), arm, float(row[0] * (arm == 1)))
        for row, arm in zip(noisy, taken, strict=True)
    ]
    policy = RiverPolicy("unfog", fixed(), seed=2)
    total, used = bandit.evaluate_offline(policy, iter(history))
    assert 25 < used < 75
    assert (total.get() or 0.0) / used > np.mean([one[3] for one in history])
    observed = Decider("unfog", fixed(), seed=2)
    for row in noisy:
        observed.follow(row, 0)
    found, wanted = policy._decider._runner.bias(""), observed._runner.bias("")
    assert found is not None
    assert wanted is not None
    np.testing.assert_allclose(found[1], wanted[1], rtol=1e-12)


def test_policies_are_evaluated_with_contexts() -> None:
    env, policy = Env(fixed(), rounds=15), RiverPolicy("unfog", fixed())
    policies = [policy, bandit.LinUCBDisjoint(seed=1)]
    rows = list(evaluate(policies, env, n_episodes=3, seed=5))
    assert [(row["episode"], row["policy_idx"], row["step"]) for row in rows] == [
        (episode, index, step) for episode in range(3) for index in range(2) for step in range(15)
    ]
    assert rows == list(evaluate(policies, env, n_episodes=3, seed=5))
    assert rows[14]["reward_stat"] == pytest.approx(sum(row["reward"] for row in rows[:15]))
    assert all(row["regret"] >= 0 for row in rows)
    first: Any = {rows[0]["reward"], rows[30]["reward"], rows[60]["reward"]}
    assert len(first) == 3  # each episode is a world of its own


def test_river_itself_hands_out_no_context() -> None:
    """Why there is an `evaluate` of ours. Should this fail one day, it has become needless."""
    for policy in (RiverPolicy("unfog", fixed()), bandit.LinUCBDisjoint()):
        with pytest.raises((unfog.InputError, AttributeError, TypeError)):
            list(bandit.evaluate([policy], Env(fixed(), rounds=3), n_episodes=1, seed=1))


def test_a_clone_starts_anew() -> None:
    policy = RiverPolicy("alg1", fixed(), arms=list("abcd"), coordinates=NAMES, seed=9)
    contexts = [dict(zip(NAMES, row, strict=True)) for row in readings(10).tolist()]

    def arms(player: RiverPolicy) -> list[Any]:
        taken = []
        for context in contexts:
            taken.append(player.pull(list("abcd"), context))
            player.update(taken[-1], context, context["x"])
        return taken

    first = arms(policy)
    assert arms(policy.clone()) == first
    assert arms(policy.clone({"seed": 10})) != first


def test_what_no_policy_can_do_is_refused() -> None:
    with pytest.raises(unfog.InputError, match=r"^arms: .*4 different names"):
        RiverPolicy("unfog", fixed(), arms=["a", "a", "b", "c"])
    with pytest.raises(unfog.InputError, match=r"^coordinates: .*3 different names"):
        RiverPolicy("unfog", fixed(), coordinates=["x"])
    policy = RiverPolicy("unfog", fixed(), arms=list("abcd"), coordinates=NAMES)
    with pytest.raises(unfog.InputError, match=r"^arm: e; allowed: a, b, c, d"):
        policy.pull(["e"], {"x": 1.0})
    with pytest.raises(unfog.InputError, match=r"^context: w; allowed: the names x, y, z"):
        policy.pull(["a"], {"w": 1.0})
    with pytest.raises(unfog.InputError, match=r"^context: None; allowed: a dict"):
        policy.pull(["a"])
