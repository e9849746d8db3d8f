"""Environments of gymnasium: its own checker, the lab's numbers, and no truth in `info`."""

import os
import pickle
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import SyncVectorEnv

import unfog
from tests.adapters.loop import played
from tests.problems import random_problem
from unfog.adapters.gymnasium import Env
from unfog.adapters.simulation import Decider
from unfog.agents.denoise import Identity
from unfog.agents.learn import Conjugate
from unfog.maths.arrays import Array
from unfog.simulation import play
from unfog.simulation.job import Nature, emitted, truth_draws
from unfog.worlds.problem import Problem

ROUNDS = 140  # more than a block of the engine


@pytest.fixture
def _data(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(os.environ.get("UNFOG_DATA") or Path(__file__).parents[3] / "shared/data")
    if not (folder / "airquality").is_dir():
        pytest.skip("no Air Quality on this machine: neither in UNFOG_DATA nor in ../shared/data")
    monkeypatch.setenv("UNFOG_DATA", str(folder))


@pytest.mark.parametrize("name", ["Gaussian", "Logistic", pytest.param("MovieLens", marks=pytest.mark.slow)])
def test_gymnasiums_checker_has_nothing_to_say(name: str) -> None:
    """Its warnings are errors here."""
    more = {"ratings": "stand-in", "clusters": 4, "factors": 2} if name == "MovieLens" else {"missing": 0.3}
    env = gymnasium.make(f"unfog.adapters.gymnasium:unfog/{name}-v0", rounds=20, **more)
    check_env(env.unwrapped)


@pytest.mark.slow
@pytest.mark.usefixtures("_data")
def test_air_quality_is_an_environment_with_a_clock() -> None:
    env = gymnasium.make("unfog.adapters.gymnasium:unfog/AirQuality-v0", rounds=20, reveal=True)
    check_env(env.unwrapped)
    _, info = env.reset(seed=4)
    later = env.step(0)[-1]
    assert later["time"] > info["time"]
    assert later["revealed"]["round"] == 0


HEARD: dict[str, list[Array]] = {"noisy": [], "reward": []}


@dataclass(frozen=True)
class Overhears(Identity):
    """Writes down what the lab shows it."""

    def predict(self, parameters: Any, state: Any, noisy: Array) -> Any:
        HEARD["noisy"].append(noisy.copy())
        return super().predict(parameters, state, noisy)


@dataclass(frozen=True)
class Counts(Conjugate):
    """Writes down what it is paid."""

    def update(self, parameters: Any, state: Any, evidence: Any, reward: Array) -> Any:
        HEARD["reward"].append(reward.copy())
        return super().update(parameters, state, evidence, reward)


def test_every_bit_of_a_trial_is_the_labs() -> None:
    """Noisy contexts and rewards of three trials, over the edge of a block."""
    problem = replace(random_problem(3), missing=0.2, tails=0)
    spy = unfog.Agent("spy", Overhears(), Counts(), unfog.choose.Thompson())
    HEARD["noisy"].clear()
    HEARD["reward"].clear()
    play(problem, [spy], rounds=ROUNDS, trials=3, seed=8)
    noisy, rewards = np.stack(HEARD["noisy"][:ROUNDS], 1), np.stack(HEARD["reward"][:ROUNDS], 1)
    env = Env(problem, rounds=ROUNDS)
    quiet = unfog.Agent("quiet", Identity(), Conjugate(), unfog.choose.Thompson())
    for trial in range(3):
        seen, _ = env.reset(seed=8) if trial == 0 else env.reset()
        decider = Decider(quiet, problem, env.features, seed=8, trial=trial)
        for t in range(ROUNDS):
            assert np.array_equal(seen, noisy[trial, t])
            choice = decider.decide(seen)
            seen, reward, *_ = env.step(choice.arm)
            assert reward == rewards[trial, t]
            decider.learn(choice, reward)


@pytest.mark.parametrize(
    ("agent", "more"),
    [
        ("unfog", {}),
        ("unfog-delayed", {}),
        ("alg1", {}),
        ("gaps", {"missing": 0.3}),
        ("unfog", {"units": 3}),
        ("late", {"revealed": 0.5, "reveal_delay": 3, "reveal_share": 0.6}),
    ],
)
def test_an_agent_has_the_regret_that_it_has_in_the_lab(agent: str, more: dict[str, Any]) -> None:
    problem = replace(random_problem(3), **more)
    _agree(problem, agent)


@pytest.mark.parametrize("agent", ["unfog", "alg1"])
def test_so_it_has_with_rewards_of_0_or_1(agent: str) -> None:
    context: dict[str, Any] = {"context_mean": [0.8, -0.4], "context_cov": [[1.5, 0.4], [0.4, 0.6]]}
    _agree(unfog.LogisticProblem(dim=2, actions=4, **context), agent)


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["temporal", "temporal:lag=4"])
def test_so_it_has_in_time(agent: str) -> None:
    _agree(unfog.TemporalProblem(dim=2, actions=4, revealed=0.2), agent)


def _agree(problem: Problem, agent: str) -> None:
    """The same regret after every round, of two trials, but for the order in which it is added up."""
    curves = play(problem, [agent], rounds=ROUNDS, trials=2, seed=11, points=ROUNDS)
    env = Env(problem, rounds=ROUNDS, reveal=True)
    for trial in range(2):
        noisy, info = env.reset(seed=11) if trial == 0 else env.reset()
        decider = Decider(agent, problem, env.features, seed=11, trial=trial)
        _, found = played(env, decider, noisy, info)
        np.testing.assert_allclose(found, curves.values["regret"][0, trial], rtol=0, atol=1e-11)


def _numbers(value: Any) -> Iterator[float]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from _numbers(inner)
    else:
        yield from np.ravel(np.asarray(value, float)).tolist()


def _truths(problem: Problem, rounds: int, seed: int) -> Array:
    """True contexts, drawn by the long way."""
    truth = problem.truth(truth_draws(seed, [0], problem.truth_draws()))
    normals, uniforms = Nature(problem, seed, [0]).next(rounds)
    made = [emitted(problem, truth, normals[:, t], uniforms[:, t], np.asarray(t)) for t in range(rounds)]
    return np.stack([one.context[0] for one in made])


def test_true_contexts_are_nowhere_unless_they_are_shown() -> None:
    problem = replace(random_problem(6), missing=0.3, reveal_delay=2, revealed=0.9)
    truths = _truths(problem, 40, seed=5)
    hidden, shown = Env(problem, rounds=40), Env(problem, rounds=40, reveal=True)
    told = [hidden.reset(seed=5)]
    shown.reset(seed=5)
    rounds = []
    for t in range(40):
        noisy, reward, _, _, info = hidden.step(t % 6)
        told.append((noisy, {**info, "reward": reward}))
        info = shown.step(t % 6)[-1]
        if "revealed" in info:
            rounds.append(info["revealed"]["round"])
            assert rounds[-1] == t - 2
            np.testing.assert_allclose(info["revealed"]["context"], truths[t - 2], rtol=1e-13)
    assert 25 < len(rounds) < 38
    handed = np.array([x for one, info in told for x in (*one, *_numbers(info))])
    assert np.abs(handed[:, None] - truths.ravel()).min() > 1e-9


def test_an_episode_is_a_horizon() -> None:
    env = Env(random_problem(2), rounds=3)
    with pytest.raises(ResetNeeded, match="no episode has begun"):
        env.step(0)
    first, info = env.reset(seed=1)
    assert info == {"round": 0}
    ends = [env.step(arm)[2:4] for arm in (0, 5, np.int64(2))]
    assert ends == [(False, False), (False, False), (False, True)]
    with pytest.raises(ResetNeeded, match="episode of 3 rounds is over"):
        env.step(0)
    second, _ = env.reset()
    third, _ = env.reset(options={"trial": 1})
    again, _ = env.reset(seed=1)
    assert not np.array_equal(first, second)
    assert np.array_equal(second, third)
    assert np.array_equal(first, again)


def test_all_that_its_space_holds_is_an_action() -> None:
    one, other = (Env(random_problem(2), rounds=3) for _ in range(2))
    one.reset(seed=1)
    other.reset(seed=1)
    for action in (np.array(5), np.int32(2), np.array(0, np.int8)):
        assert one.action_space.contains(action)
        assert one.step(action)[1] == other.step(int(action))[1]


def test_options_that_it_does_not_know_change_nothing() -> None:
    env = Env(random_problem(2), rounds=3)
    env.reset(seed=1)
    with pytest.raises(unfog.InputError, match=r"^options: trail; allowed: trial alone"):
        env.reset(seed=2, options={"trail": 3})
    assert (
        env.reset(options={})[0].tolist()
        == Env(random_problem(2)).reset(seed=1, options={"trial": 1})[0].tolist()
    )


@pytest.mark.parametrize("kind", ["gaussian", "bernoulli"])
def test_an_episode_goes_on_in_another_process(kind: str) -> None:
    make = unfog.GaussianProblem if kind == "gaussian" else unfog.LogisticProblem
    env = Env(
        make(dim=2, actions=3, features="per_arm", missing=0.3, reveal_delay=2), rounds=150, reveal=True
    )
    env.reset(seed=4)
    for t in range(70):
        env.step(t % 3)
    other = pickle.loads(pickle.dumps(env))  # noqa: S301
    for t in range(80):
        (noisy, *paid, info), (same, *also, told) = env.step(t % 3), other.step(t % 3)
        assert np.array_equal(noisy, same)
        assert paid == also
        assert list(_numbers(info)) == list(_numbers(told))


def test_without_a_seed_worlds_differ() -> None:
    problem = random_problem(2)
    assert not np.array_equal(Env(problem).reset()[0], Env(problem).reset()[0])


def test_environments_side_by_side() -> None:
    """A vector takes seeds s, s + 1; after an end the next step ignores the action and begins anew."""
    problem, rounds = random_problem(4), 3
    vector = SyncVectorEnv([lambda: Env(problem, rounds=rounds, reveal=True) for _ in range(2)])
    seen, _ = vector.reset(seed=20)
    single = [Env(problem, rounds=rounds, reveal=True) for _ in range(2)]
    assert np.array_equal(seen, [env.reset(seed=20 + i)[0] for i, env in enumerate(single)])
    for t in range(rounds):
        seen, rewards, _, cut, info = vector.step(np.array([1, 2]))
        alone = [env.step(1 + i) for i, env in enumerate(single)]
        assert np.array_equal(rewards, [one[1] for one in alone])
        assert np.array_equal(info["regret"], [one[4]["regret"] for one in alone])
        assert np.array_equal(info["revealed"]["context"], [one[4]["revealed"]["context"] for one in alone])
        assert cut.tolist() == [t == rounds - 1] * 2
    seen, rewards, _, cut, info = vector.step(np.array([3, 4]))
    assert np.array_equal(seen, [env.reset()[0] for env in single])
    assert rewards.tolist() == [0, 0]
    assert "regret" not in info


def test_what_cannot_be_played_is_refused() -> None:
    env = Env(random_problem(2))
    env.reset(seed=0)
    for action in (6, -1, 1.5, True, np.array(6), np.array([1]), np.array(1.0)):
        with pytest.raises(unfog.InputError, match=r"^action: .*at least 0 and at most 5"):
            env.step(action)
    with pytest.raises(unfog.InputError, match=r"^rounds: 0"):
        Env(random_problem(2), rounds=0)
    with pytest.raises(unfog.InputError, match="nobody can ask"):
        Env(replace(random_problem(2), reveal="on_request", revealed=0.1))
    with pytest.raises(unfog.InputError, match=r"^problem\.noise: unknown field"):
        gymnasium.make("unfog.adapters.gymnasium:unfog/Gaussian-v0", noise=2.0)
