"""A wrapped policy of river in the loops of river and of ours: the denoiser stays in front of it."""

import pickle
import random
from dataclasses import replace
from typing import Any

import numpy as np
from river import bandit

from tests.adapters.test_simulation import fixed, readings
from unfog.adapters import wrap
from unfog.adapters.gymnasium import Env
from unfog.adapters.river import evaluate
from unfog.adapters.sklearn import Denoiser

ARMS = [0, 1, 2, 3]


def denoiser() -> Denoiser:
    known = fixed().knowledge()
    return Denoiser(known.noise_cov, known.bias_cov, known.context_mean, known.context_cov)


def wrapped() -> Any:
    return wrap(bandit.LinUCBDisjoint(seed=1), denoiser())


def played(policy: Any, contexts: list[dict[Any, Any]]) -> list[int]:
    arms = []
    for context in contexts:
        arms.append(policy.pull(ARMS, context))
        policy.update(arms[-1], context, context[0] * (arms[-1] - 1))
    return arms


def test_a_clone_starts_anew_behind_the_denoiser() -> None:
    contexts = [dict(enumerate(row)) for row in readings(40).tolist()]
    policy, by_hand = wrapped(), denoiser()
    fresh = policy.clone()
    denoised = [dict(enumerate(by_hand.transform_one([*c.values()]).tolist())) for c in contexts]
    alone: Any = bandit.LinUCBDisjoint(seed=1)
    seen = []
    for noisy, clean in zip(contexts, denoised, strict=True):
        seen.append(alone.pull(ARMS, clean))
        alone.update(seen[-1], clean, noisy[0] * (seen[-1] - 1))
    assert played(policy, contexts) == seen
    for again in (fresh, policy.clone(), pickle.loads(pickle.dumps(policy.clone()))):  # noqa: S301
        assert type(again) is type(policy)
        assert played(again, contexts) == seen
    assert played(bandit.LinUCBDisjoint(seed=1), contexts) != seen


def test_a_denoiser_fitted_late_is_fitted_in_a_clone() -> None:
    late = Denoiser(0.5)
    policy = wrap(bandit.LinUCBDisjoint(seed=1), late)
    late.fit(readings(30))
    assert policy.clone().pull(ARMS, {0: 1.0, 1: None, 2: 2.0}) in ARMS


def test_it_plays_in_our_evaluate_with_its_denoiser() -> None:
    """As who denoises by hand and plays the same episodes."""
    env, policy = Env(fixed(), rounds=60), wrapped()
    rows = list(evaluate([policy, bandit.LinUCBDisjoint(seed=1)], env, n_episodes=2, seed=5))
    by_hand = [ByHand(), bandit.LinUCBDisjoint(seed=1)]
    assert rows == list(evaluate(by_hand, env, n_episodes=2, seed=5))
    mine, alone = ([row["arm"] for row in rows if row["policy_idx"] == index] for index in (0, 1))
    assert mine != alone


class ByHand:
    """A policy that sees denoised contexts alone."""

    def __init__(self) -> None:
        self.policy: Any = bandit.LinUCBDisjoint(seed=1)
        self.denoiser = denoiser()

    def clone(self) -> "ByHand":
        return ByHand()

    def pull(self, arms: list[Any], context: dict[Any, Any]) -> Any:
        self.seen = dict(enumerate(self.denoiser.transform_one([*context.values()]).tolist()))
        return self.policy.pull(arms, self.seen)

    def update(self, arm: Any, context: dict[Any, Any], reward: float) -> None:
        self.policy.update(arm, self.seen, reward)


def test_it_plays_in_rivers_own_replay() -> None:
    rng, noisy = np.random.default_rng(3), readings(200)
    taken = rng.integers(0, 4, 200).tolist()
    rows = [(dict(enumerate(row)), arm) for row, arm in zip(noisy.tolist(), taken, strict=True)]
    history: list[Any] = [(ARMS, context, arm, context[0] * (arm == 1)) for context, arm in rows]
    assert isinstance(wrapped(), bandit.base.ContextualPolicy)
    total, used = bandit.evaluate_offline(wrapped(), iter(history))
    by_hand = denoiser()
    clean = [dict(enumerate(by_hand.transform_one([*context.values()]).tolist())) for context, _ in rows]
    shown: list[Any] = [(*one[:1], context, *one[2:]) for one, context in zip(history, clean, strict=True)]
    right, number = bandit.evaluate_offline(bandit.LinUCBDisjoint(seed=1), iter(shown))
    assert (total.get(), used) == (right.get(), number)
    assert used > 20


def test_lost_coordinates_reach_it() -> None:
    """Those that the environment says were not measured, and no others; river's own reads the mean there."""
    problem = replace(fixed(), missing=0.4)
    env = Env(problem, rounds=50)
    heard: list[list[Any]] = []

    class Hears(Denoiser):
        def transform_one(self, x: Any, **options: Any) -> Any:
            heard.append(list(x))
            return super().transform_one(x, **options)

    known = problem.knowledge()
    front = Hears(known.noise_cov, known.bias_cov, known.context_mean, known.context_cov)
    policies = [wrap(bandit.LinUCBDisjoint(seed=1), front), bandit.LinUCBDisjoint(seed=1)]
    rows = list(evaluate(policies, env, n_episodes=1, seed=5))
    assert len(rows) == 100
    noisy, info = env.reset(seed=random.Random(5).randint(0, 2**32))
    for found in heard:
        np.testing.assert_array_equal(found, np.where(info["measured"], noisy, np.nan))
        noisy, *_, info = env.step(0)
    assert len(heard) == 50
