"""An agent alone: arms that may be chosen, arms that others chose, and what is refused."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import unfog
from tests.problems import random_problem
from unfog.adapters.simulation import Decider, features_of
from unfog.maths.arrays import Array
from unfog.validation import InputError
from unfog.worlds.synthetic import GaussianProblem


def fixed(seed: int = 3, arms: int = 4) -> GaussianProblem:
    """Arms with names alone; contexts correlated and not centred."""
    given = random_problem(seed)
    return GaussianProblem(
        dim=3,
        actions=arms,
        features="per_arm",
        context_mean=given.context_mean,
        context_cov=given.context_cov,
        noise_cov=given.noise_cov,
        bias_cov=given.bias_cov,
        prior_cov=0.5,
    )


def readings(number: int) -> Array:
    return np.random.default_rng(7).normal(1.0, 2.0, (number, 3))


@pytest.mark.parametrize("agent", ["unfog", "alg1", "unfog-epsilon", "unfog-ids"])
def test_only_arms_that_are_offered_are_chosen(agent: str) -> None:
    decider = Decider(agent, fixed(), seed=1)
    for t, noisy in enumerate(readings(30)):
        offered = [[0, 2], [3], [1, 2, 3]][t % 3]
        before = decider.probabilities(noisy, arms=offered)
        choice = decider.decide(noisy, arms=offered)
        assert choice.arm in offered
        for chances in (before, choice.probabilities):
            assert chances[[a for a in range(4) if a not in offered]].tolist() == [0.0] * (4 - len(offered))
            assert np.isclose(chances.sum(), 1.0)
        assert choice.probability == choice.probabilities[choice.arm] > 0
        decider.learn(choice, float(noisy[0]))


def test_to_ask_for_probabilities_changes_nothing() -> None:
    asked, other = (Decider("alg1", fixed(), seed=1) for _ in range(2))
    for noisy in readings(20):
        asked.probabilities(noisy)
        one, two = asked.decide(noisy), other.decide(noisy)
        assert one.arm == two.arm
        asked.learn(one, 0.5)
        other.learn(two, 0.5)


def test_what_an_agent_cannot_learn_from_is_refused() -> None:
    whole = Decider("alg2", fixed(), seed=1)
    choice = whole.decide(np.array([0.5, -1.0, 0.2]))
    whole.learn(choice, 1.0)
    with pytest.raises(
        InputError,
        match=r"^context: .*; allowed: the complete context: 'alg2' cannot learn from a part of it",
    ):
        whole.reveal(choice, np.array([np.nan, 1.0, 0.0]))
    whole.reveal(choice, np.array([0.3, -0.9, 0.0]))
    assert np.isfinite(whole._runner.theta().mean).all()
    alone = Decider("coupled", fixed(), seed=1)
    alone.decide(np.array([0.5, -1.0, 0.2]), unit="ann")
    calls: list[Callable[[], object]] = [
        lambda: alone.decide(np.zeros(3), unit="bob"),
        lambda: alone.follow(np.zeros(3), 0, unit="bob"),
    ]
    for call in calls:
        with pytest.raises(InputError, match=r"^unit: 'bob'; allowed: one unit: the learner of 'coupled'"):
            call()


def test_an_arm_that_somebody_else_chose_is_learnt_from_alike() -> None:
    """Followed, the agent believes what it believes after the same rounds of its own."""
    own, following = (Decider("unfog", fixed(), seed=2) for _ in range(2))
    for noisy in readings(25):
        choice = own.decide(noisy)
        followed = following.follow(noisy, choice.arm)
        for decider, made in ((own, choice), (following, followed)):
            decider.learn(made, float(noisy @ [1.0, -0.5, 0.2]))
    last = np.array([0.3, 1.0, -2.0])
    assert np.allclose(own.probabilities(last), following.probabilities(last), rtol=0, atol=1e-12)
    assert own.decide(last).arm == following.decide(last).arm
    np.testing.assert_allclose(own._runner.theta().mean, following._runner.theta().mean, rtol=1e-12)
    assert np.abs(own._runner.theta().mean).max() > 0.1


@pytest.mark.parametrize("law", ["normal", "uniform"])
def test_features_are_those_of_the_actions(law: str) -> None:
    problem = replace(random_problem(5), action_law=law)
    actions = np.random.default_rng(1).uniform(-1, 1, (6, 3))
    context, theta = np.array([0.4, -1.0, 2.0]), np.arange(9.0)
    found = features_of(problem, actions).at(context[None]).scores(theta[None])[0]
    rows = [[*a**2, *context**2, *(a * context)] for a in actions]
    np.testing.assert_allclose(found, np.array(rows) @ theta, rtol=1e-12)


def test_what_an_agent_cannot_play_is_refused() -> None:
    for told, said in (
        (("oracle", fixed()), "'oracle' is told the bias"),
        (("nobody", fixed()), "no agent is called 'nobody'"),
        (("unfog", random_problem(3)), "actions: missing"),
    ):
        with pytest.raises(unfog.InputError, match=said):
            Decider(*told)
    with pytest.raises(unfog.InputError, match="needs every true context at once"):
        Decider("alg2", fixed(), reveal=False)
    decider = Decider("unfog", fixed())
    for noisy in (np.zeros(2), np.array([0.0, np.inf, 1.0])):
        with pytest.raises(unfog.InputError, match=r"^context"):
            decider.decide(noisy)
    for arms in ([], [4], [-1]):
        with pytest.raises(unfog.InputError, match=r"^arms?: "):
            decider.decide(np.zeros(3), arms=arms)
    with pytest.raises(unfog.InputError, match=r"^reward"):
        decider.learn(decider.decide(np.zeros(3)), float("nan"))


def test_a_package_that_is_missing_is_named_with_its_extra() -> None:
    code = """
import sys
for name in ("gymnasium", "coba", "river"):
    sys.modules[name] = None
    try:
        __import__(f"unfog.adapters.{name}")
    except ModuleNotFoundError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for line, name in zip(done.stdout.splitlines(), ("gymnasium", "coba", "river"), strict=True):
        ways = "pip install 'unfog[adapters]', or in a clone pip install '.[adapters]'"
        brought = f"{name} is not installed; it comes with the extra 'adapters': {ways}"
        assert line == f"unfog.adapters.{name}: {brought}"
