"""Values as a dataset: what they are, what they rest on, what is said and what is refused."""

from typing import Any

import numpy as np
import pytest

from tests.each import each
from tests.evaluation.logs import World
from unfog.evaluation.context import EvaluationContext
from unfog.evaluation.estimators import ESTIMATORS, Case
from unfog.evaluation.evaluate import evaluate_policies
from unfog.evaluation.intervals import adaptive, value
from unfog.evaluation.log import DecisionLog
from unfog.validation import InputError

WORLD = World(d=2, arms=3)
ALL = ",".join(ESTIMATORS)


@pytest.mark.parametrize("all_known", [True, False])
def test_the_logger_earned_what_was_earned(all_known: bool) -> None:
    log = WORLD.log(500, 1)
    log = log if all_known else log._replace(probabilities=None)
    found = evaluate_policies(EvaluationContext(log, WORLD.channel), ["logger"], estimators=ALL)
    assert found.attrs["earned"] == log.reward.mean()
    for name in ("ips", "snips"):
        one = found.sel(policy="logger", estimator=name)
        np.testing.assert_allclose(
            [one["value"], one["gain"], one["gain_low"]], [log.reward.mean(), 0, 0], atol=1e-9
        )
    np.testing.assert_allclose(found["effective"], 500)
    np.testing.assert_allclose(found["largest_weight"], 1.0)
    np.testing.assert_allclose(found["unsupported"], 0.0 if all_known else np.nan)


def test_adaptive_values_are_weighed_over_time_with_models_of_the_past() -> None:
    log = WORLD.log(600, 2)
    evaluation, policy = EvaluationContext(log, WORLD.channel), WORLD.policy(log.noisy)
    found = evaluate_policies(evaluation, {"mine": policy}, estimators="dr,snips,dm")
    ahead = Case(policy, log.arm, log.reward, log.probability, lambda: evaluation.forward)
    across = Case(policy, log.arm, log.reward, log.probability, lambda: evaluation.across)
    assert log.probabilities is not None
    time = adaptive(policy, log.probabilities)
    expected = {
        "dr": value(ESTIMATORS["dr"].scores(ahead), time),
        "snips": value(ESTIMATORS["snips"].scores(ahead), time),
        "dm": value(ESTIMATORS["dm"].scores(across)),
    }
    for name, one in expected.items():
        row = found.sel(policy="mine", estimator=name)
        np.testing.assert_allclose([row["value"], row["se"]], [one.mean, one.se])
        np.testing.assert_allclose([row["low"], row["high"]], one.interval(0.95))
    plain = evaluate_policies(evaluation, {"mine": policy}, estimators="dr", intervals="plain")
    both = value(ESTIMATORS["dr"].scores(across)).mean
    np.testing.assert_allclose([plain["value"].item(), found["plain_value"][0, 0]], both)


def test_gains_are_over_what_was_earned_in_the_same_rounds() -> None:
    """Rounds that weigh more in a value weigh more in what was earned, too."""
    log = WORLD.log(600, 2)
    policy = WORLD.policy(log.noisy)
    found = evaluate_policies(EvaluationContext(log, WORLD.channel), {"mine": policy}, estimators="snips")
    assert log.probabilities is not None
    time = adaptive(policy, log.probabilities)
    earned = (time * log.reward).sum() / time.sum()
    assert abs(earned - log.reward.mean()) > 1e-4
    np.testing.assert_allclose(found["gain"].item(), found["value"].item() - earned)


def test_with_one_probability_known_all_rounds_weigh_alike() -> None:
    """Else a stretch in which no round matched would weigh many times as much as others."""
    log = WORLD.log(600, 2)._replace(probabilities=None)
    evaluation, policy = EvaluationContext(log, WORLD.channel), WORLD.policy(log.noisy)
    found = evaluate_policies(evaluation, {"mine": policy}, estimators="snips,ips")
    np.testing.assert_allclose(found["value"], found["plain_value"])
    assert any("drawn arm alone" in note for note in found.attrs["notes"])


def extremes() -> list[tuple[str, DecisionLog]]:
    log = WORLD.log(40, 3)
    law = np.tile([1.0, 0.0, 0.0], (40, 1))
    certain = log._replace(arm=np.zeros(40, np.intp), probability=np.ones(40), probabilities=law)
    lost = log._replace(noisy=np.where([True, False], log.noisy, np.nan))
    return [
        *((f"{n} rounds", WORLD.log(n, 4)) for n in (1, 2, 3, 4)),
        ("one round, one probability", WORLD.log(1, 4)._replace(probabilities=None)),
        ("one arm always", certain),
        ("constant rewards", log._replace(reward=np.full(40, 3.0))),
        ("a coordinate always lost", lost),
        ("all always lost", log._replace(noisy=np.full((40, 2), np.nan))),
        ("two arms", World(d=2, arms=2).log(30, 5)),
        ("one arm", World(d=2, arms=1).log(30, 5)),
    ]


@each("told", [True, False])
@each("name, log", extremes())
def test_odd_logs_have_values(name: str, log: DecisionLog, told: bool) -> None:
    """Finite ones, or none where nothing can be said; where rewards are constant, that constant."""
    policies = ["logger", "uniform", "always:a", "fitted", "fitted-noisy", "naive"]
    found = evaluate_policies(
        EvaluationContext(log, WORLD.channel if told else None), policies, estimators=ALL
    )
    assert np.isfinite(found["value"].sel(estimator=["dr", "ips", "dm", "switch", "clipped"])).all()
    if name == "constant rewards":
        np.testing.assert_allclose(found["value"].sel(estimator=["dr", "snips", "dm"]), 3.0)
    if log.rounds == 1:
        assert np.isnan(found["se"]).all()


def test_a_policy_without_support_is_said_to_have_none() -> None:
    log = dict(extremes())["one arm always"]
    found = evaluate_policies(EvaluationContext(log), ["always:b"])
    np.testing.assert_allclose([found["unsupported"][0], found["effective"][0]], [1.0, 0.0])
    assert any("could not be drawn, in 100.0% of rounds" in note for note in found.attrs["notes"])


@each(
    "told, words",
    [
        (
            {"estimators": "best"},
            r"^estimators: '?best'?; allowed: dr, snips, ips, clipped, switch, dm, replay",
        ),
        ({"estimators": []}, r"^estimators: none; "),
        ({"estimators": 5}, r"^estimators: 5; "),
        ({"intervals": "wide"}, r"^intervals: '?wide'?; allowed: adaptive, plain"),
        ({"level": 1.0}, r"^level: 1.0; allowed: a number between 0 and 1"),
        ({"level": -1}, r"^level: -1"),
    ],
)
def test_refusals(told: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        evaluate_policies(EvaluationContext(WORLD.log(10, 1)), **told)
