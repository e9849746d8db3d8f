"""coba's own experiment: our agents have the regret of the lab, its learners run on our worlds."""

import pickle
from dataclasses import replace
from typing import Any

import coba
import numpy as np
import pytest

import unfog
from tests.adapters.test_gymnasium import _truths
from tests.adapters.test_simulation import fixed, readings
from tests.problems import random_problem
from unfog.adapters.coba import CobaEnvironment, CobaLearner, CobaLog, CobaRegret
from unfog.adapters.gymnasium import Env
from unfog.adapters.simulation import Decider
from unfog.evaluation.log import DecisionLog
from unfog.maths.arrays import Array
from unfog.simulation import play

ROUNDED = 1e-5  # coba keeps so many digits


def regrets(environments: list[Any], learners: list[Any]) -> Array:
    """Of every learner in every environment, (learners, environments)."""
    result = coba.Experiment(environments, learners, CobaRegret()).run(quiet=True)
    rows = result.interactions.to_pandas()
    found = rows.groupby(["learner_id", "environment_id"])["regret"].sum().unstack()
    assert len(rows) == len(learners) * sum(one.rounds for one in environments)
    return found.to_numpy()


@pytest.mark.parametrize("kind", ["drawn", "fixed", "uniform", "logistic"])
def test_a_trial_has_the_regret_that_it_has_in_the_lab(kind: str) -> None:
    """One trial each of two agents, beside learners of coba's own."""
    logistic = unfog.LogisticProblem(dim=2, actions=3, context_mean=[0.8, -0.4], noise_cov=[0.5, 2.0])
    uniform = replace(random_problem(4), action_law="uniform")
    problem = {"drawn": random_problem(4), "fixed": fixed(), "uniform": uniform, "logistic": logistic}[kind]
    curves = play(problem, ["unfog", "alg1"], rounds=130, trials=2, seed=6, points=1)
    ours = [CobaLearner(agent, problem, seed=6, trial=1) for agent in ("unfog", "alg1")]
    theirs = [coba.LinUCBLearner(), coba.BanditEpsilonLearner(), coba.RandomLearner()]
    found = regrets([CobaEnvironment(problem, rounds=130, seed=6, trial=1)], [*ours, *theirs])
    np.testing.assert_allclose(found[:2, 0], curves.values["regret"][:, 1, -1], rtol=0, atol=130 * ROUNDED)
    assert np.isfinite(found).all()
    assert found[0, 0] < found[-1, 0]  # than to choose at random


@pytest.mark.slow
def test_over_many_trials_regret_agrees_within_its_error() -> None:
    """The same worlds, other random numbers of the agents: the mean difference is within 3.5 errors of zero.

    If all is right this fails once in two thousand seeds.
    """
    problem, trials = random_problem(9), range(30)
    curves = play(problem, ["alg1"], rounds=60, trials=len(trials), seed=2, points=1)
    worlds = [CobaEnvironment(problem, rounds=60, seed=2, trial=t) for t in trials]
    found = regrets(worlds, [CobaLearner("alg1", problem, seed=77)])[0]
    difference = found - curves.values["regret"][0, :, -1]
    error = difference.std(ddof=1) / np.sqrt(len(trials))
    assert 0 < error < 0.2 * found.mean()
    assert abs(difference.mean()) < 3.5 * error


def test_an_environment_can_be_read_again_and_tells_no_truth() -> None:
    problem = replace(random_problem(6), missing=0.3)
    world = CobaEnvironment(problem, rounds=40, seed=5, mark_lost=False)
    first, second = list(world.read()), list(world.read())
    assert first == second
    assert len(first) == 40
    assert {*first[0]} == {"context", "actions", "rewards", "regrets"}
    contexts = np.array([one["context"] for one in first])
    truths = _truths(problem, 40, seed=5)
    told = [np.ravel(one[key]) for one in first for key in ("context", "rewards", "regrets")]
    assert np.abs(np.concatenate(told)[:, None] - truths.ravel()).min() > 1e-9
    marked = CobaEnvironment(problem, rounds=40, seed=5, mark_lost=True).read()
    lost = np.isnan([one["context"] for one in marked])
    assert 0.1 < lost.mean() < 0.5
    assert np.array_equal(contexts[lost], np.broadcast_to(problem.knowledge().context_mean, (40, 3))[lost])


def test_rewards_and_regrets_are_those_of_every_arm() -> None:
    """As environments of gymnasium pay them to who takes one arm all the time."""
    problem = fixed()
    made = list(CobaEnvironment(problem, rounds=130, seed=5).read())
    for arm in range(4):
        env = Env(problem, rounds=130)
        env.reset(seed=5)
        steps = [env.step(arm) for _ in range(130)]
        assert [one["rewards"][arm] for one in made] == [step[1] for step in steps]
        assert [one["regrets"][arm] for one in made] == [step[4]["regret"] for step in steps]
    assert {min(one["regrets"]) for one in made} == {0.0}


def test_a_learner_goes_on_where_it_was_in_another_process() -> None:
    problem = fixed()
    actions = [tuple(row) for row in np.eye(4).tolist()]
    learner = CobaLearner("alg1", problem, seed=3)
    contexts = [tuple(row) for row in readings(20).tolist()]
    for context in contexts[:10]:
        action, chance, more = learner.predict(context, actions)
        learner.learn(context, action, context[0], chance, **more)
    copy = pickle.loads(pickle.dumps(learner))  # noqa: S301
    for context in contexts[10:]:
        taken = [one.predict(context, actions) for one in (learner, copy)]
        assert taken[0][:2] == taken[1][:2]
        for one, (action, chance, more) in zip((learner, copy), taken, strict=True):
            one.learn(context, action, context[0], chance, **more)


def _log() -> DecisionLog:
    rng = np.random.default_rng(4)
    arm, noisy = rng.integers(0, 4, 120), rng.normal(1.0, 2.0, (120, 3))
    chances = np.full((120, 4), 0.25)
    reward = noisy[:, 0] * (arm == 1) + rng.normal(0, 0.3, 120)
    names = ("a", "b", "c", "d")
    return DecisionLog(
        ("x", "y", "z"), names, noisy, arm, reward, np.full(120, 0.25), chances, true=noisy - 7.0
    )


def test_a_log_is_evaluated_by_coba() -> None:
    log, learner = _log(), CobaLearner("unfog", fixed(), arms=["a", "b", "c", "d"])
    world = CobaLog(log)
    rows = list(world.read())
    assert rows == list(world.read())
    one = {"context": tuple(log.noisy[3]), "action": log.arms[log.arm[3]], "reward": log.reward[3]}
    assert rows[3] == {**one, "probability": 0.25, "actions": ["a", "b", "c", "d"]}
    for evaluator in (coba.SequentialCB(learn="off", eval="ips"), coba.RejectionCB(cpct=0, cinit=0.25)):
        result = coba.Experiment([world], [learner], evaluator).run(quiet=True)
        paid = result.interactions.to_pandas()["reward"]
        assert len(paid) > 10
        assert paid.mean() > log.reward.mean()  # it finds the arm that pays where x is large


def test_only_arms_that_could_be_drawn_are_actions() -> None:
    log = _log()
    assert log.probabilities is not None
    log.probabilities[5] = [0.5, 0.5, 0.0, 0.0]
    assert list(CobaLog(log).read())[5]["actions"] == ["a", "b"]


def test_a_propensity_is_that_of_the_next_choice() -> None:
    problem, actions = fixed(), ["p", "q", "r", "s"]
    learner = CobaLearner("alg1-epsilon:epsilon=0.2", problem, seed=1)
    for context in readings(5).tolist():
        chances = [learner.score(context, actions, action) for action in actions]
        assert np.isclose(sum(chances), 1)
        action, chance, more = learner.predict(context, actions)
        assert np.isclose(chance, chances[actions.index(action)])
        learner.learn(context, action, 0.3, chance, **more)


def test_actions_may_be_fewer_and_in_any_order() -> None:
    """An arm is known by its action, not by its place in the list."""
    learner, decider = (
        CobaLearner("alg1", fixed(), arms=list("pqrs"), seed=1),
        Decider("alg1", fixed(), seed=1),
    )
    for t, noisy in enumerate(readings(30)):
        offered = [["s", "q"], ["r", "s", "p"], ["q", "p", "s", "r"]][t % 3]
        choice = decider.decide(noisy, arms=["pqrs".index(action) for action in offered])
        action, chance, more = learner.predict(tuple(noisy), offered)
        assert (action, chance) == ("pqrs"[choice.arm], choice.probability)
        decider.learn(choice, float(noisy[0]))
        learner.learn(tuple(noisy), action, float(noisy[0]), chance, **more)


def test_contexts_by_name_are_in_the_order_of_the_problem() -> None:
    """Whatever the order of a context; one of a single number may come as it is."""
    by_name = CobaLearner("gaps", fixed(), coordinates=["x", "y", "z"], seed=1)
    by_number, plain = (CobaLearner("gaps", fixed(), seed=1) for _ in range(2))
    for row in readings(10).tolist():
        x, y, _ = row
        chances = [
            [learner.score(context, list("pqrs"), arm) for arm in "pqrs"]
            for learner, context in (
                (by_name, {"y": y, "x": x}),
                (by_number, {2: None, 0: x, 1: y}),
                (plain, (x, y, None)),
            )
        ]
        assert chances[0] == chances[1] == chances[2]
    with pytest.raises(unfog.InputError, match=r"^context: x; allowed: the names 0, 1, 2"):
        plain.predict({"x": 1.0}, list("pqrs"))
    with pytest.raises(unfog.InputError, match=r"^coordinates: .*3 different names"):
        CobaLearner("gaps", fixed(), coordinates=["x"])
    one = unfog.GaussianProblem(dim=1, actions=2, features="per_arm")
    assert CobaLearner("unfog", one).predict(1.5, ["p", "q"])[0] in ("p", "q")


def test_actions_may_be_dicts() -> None:
    learner, offered = CobaLearner("alg1", fixed(), seed=1), [{"dose": d, "by": ["mouth"]} for d in range(4)]
    taken = [learner.predict(tuple(row), offered)[0] for row in readings(20).tolist()]
    assert all(action in offered for action in taken)
    assert len({action["dose"] for action in taken}) > 1


def test_lost_coordinates_reach_the_agent() -> None:
    """The regret that the lab has, in a world that loses some."""
    problem = replace(fixed(), missing=0.4)
    with pytest.raises(
        unfog.InputError, match=r"^mark_lost: missing; allowed: True: lost coordinates are nan"
    ):
        CobaEnvironment(problem)
    curves = play(problem, ["gaps"], rounds=80, trials=1, seed=6, points=1)
    world = CobaEnvironment(problem, rounds=80, seed=6, mark_lost=True)
    found = regrets([world], [CobaLearner("gaps", problem, seed=6)])
    np.testing.assert_allclose(found[0, 0], curves.values["regret"][0, 0, -1], rtol=0, atol=80 * ROUNDED)


def test_what_coba_cannot_carry_is_refused() -> None:
    with pytest.raises(unfog.InputError, match="coba knows no units"):
        CobaEnvironment(replace(fixed(), units=3))
    with pytest.raises(unfog.InputError, match="needs every true context at once"):
        CobaLearner("alg2", fixed())
    learner = CobaLearner("unfog", fixed())
    with pytest.raises(unfog.InputError, match="4 different ones"):
        learner.predict((0.0, 0.0, 0.0), ["p", "q"])
    with pytest.raises(unfog.InputError, match=r"^arms: missing"):
        learner.learn((0.0, 0.0, 0.0), "p", 1.0, 0.5)
    learner.predict((0.0, None, float("nan")), ["p", "q", "r", "s"])
    with pytest.raises(unfog.InputError, match=r"^actions: t; allowed: p, q, r, s"):
        learner.predict((0.0, 0.0, 0.0), ["p", "t"])
    with pytest.raises(unfog.InputError, match=r"^context: .*3 numbers"):
        learner.predict((0.0, 0.0), ["p", "q", "r", "s"])
    with pytest.raises(unfog.InputError, match=r"^context: .*3 numbers"):
        learner.predict(1.5, ["p", "q", "r", "s"])
    with pytest.raises(unfog.InputError, match=r"^log: \[1, 2\]; allowed: a log, as unfog.evaluation"):
        CobaLog([1, 2])  # type: ignore[arg-type]
