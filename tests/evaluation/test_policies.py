"""Policies by name, by function and by table; what is refused, and in which words."""

from typing import Any

import numpy as np
import pytest

import unfog
from tests.each import each
from tests.evaluation.logs import World
from unfog.evaluation.context import EvaluationContext
from unfog.evaluation.policies import policies, silent
from unfog.maths.arrays import Array
from unfog.validation import InputError

WORLD = World(d=2, arms=3)
LOG = WORLD.log(30, 1)


def table(given: Any, evaluation: EvaluationContext | None = None) -> Array:
    (one,) = policies(given, evaluation or EvaluationContext(LOG, WORLD.channel))
    return one.table(silent)


def test_plain_ones() -> None:
    np.testing.assert_array_equal(table("logger"), np.eye(3)[LOG.arm])
    np.testing.assert_allclose(table("uniform"), 1 / 3)
    np.testing.assert_array_equal(table("always:b"), np.tile([0.0, 1.0, 0.0], (30, 1)))
    assert [one.name for one in policies("logger, uniform", EvaluationContext(LOG))] == ["logger", "uniform"]


def test_arms_that_were_not_there_are_not_taken() -> None:
    liked = int(table("fitted").sum(axis=0).argmax())
    offered = np.tile(np.arange(3) != liked, (30, 1))
    evaluation = EvaluationContext(LOG._replace(offered=offered), WORLD.channel)
    np.testing.assert_array_equal(table("uniform", evaluation), offered / 2)
    for name in ("fitted", "fitted-noisy", "naive"):
        assert table(name, evaluation)[:, liked].max() == 0


def test_whole_numbers_are_names_where_arms_have_such_names() -> None:
    """Else they are places from 0."""
    evaluation = EvaluationContext(LOG._replace(arms=("1", "2", "10")), WORLD.channel)
    arms = np.array([1, 2, 10])[LOG.arm]
    np.testing.assert_array_equal(table({"mine": arms}, evaluation), np.eye(3)[LOG.arm])
    with pytest.raises(InputError, match=r"^policies.mine, row 1: 0; allowed: arms: 1, 2, 10"):
        table({"mine": np.zeros(30, int)}, evaluation)


def test_whole_numbers_are_indices_where_the_order_of_arms_is_given() -> None:
    """The order of a log's arms is nobody's choice: a rule that numbers them may mean others."""
    columns = {f"context.{i}": LOG.noisy[:, i] for i in range(2)}
    drawn = [LOG.arms[i] for i in LOG.arm]
    log = {**columns, "arm": drawn, "reward": LOG.reward, "probability": LOG.probability}
    rule = {"mine": np.full(30, 2)}
    with pytest.raises(InputError, match=r"^policies.mine, row 1: the integer 2; "):
        unfog.evaluate(log, rule)
    found = unfog.evaluate(log, {**rule, "b": "always:b"}, arms=["c", "a", "b"], estimators="ips").value
    assert found.sel(policy="mine").item() == found.sel(policy="b").item()
    with pytest.raises(InputError, match=r"^policies.mine, row 1: 3; allowed: arms from 0 to 2"):
        unfog.evaluate(log, {"mine": np.full(30, 3)}, arms=["c", "a", "b"])


def test_fitted_takes_the_arm_that_pays_best_by_what_can_be_seen() -> None:
    """Of 3,000 rounds with little noise it finds the best arm nearly always; and no true context helps it."""
    world = World(d=2, arms=3, noise=1e-4)
    told = world.channel._replace(bias_cov=1e-6 * np.eye(2))
    log = world.log(3000, 2, shown=0.5)
    found = table("fitted", EvaluationContext(log, told)).argmax(axis=1)
    best = world.scores(log.noisy - told.bias).argmax(axis=1)
    assert (found == best).mean() > 0.97
    assert log.true is not None
    other = log._replace(true=np.where(np.arange(3000)[:, None] == 2999, 40.0, log.true))
    assert table("fitted", EvaluationContext(other, told))[2999].argmax() == found[2999]


def test_a_function_and_a_table_say_the_same() -> None:
    given = WORLD.policy(LOG.noisy)
    np.testing.assert_array_equal(table({"mine": WORLD.policy}), given)
    np.testing.assert_array_equal(table({"mine": given}), given)
    arms = given.argmax(axis=1)
    named = [LOG.arms[arm] for arm in arms]
    ordered = EvaluationContext(LOG, WORLD.channel, has_arm_order=True)
    np.testing.assert_array_equal(table({"mine": arms}, ordered), np.eye(3)[arms])
    np.testing.assert_array_equal(table({"mine": named}), np.eye(3)[arms])
    np.testing.assert_array_equal(table({"mine": "always:c"}), table("always:c"))


BAD = np.full((30, 3), 1 / 3)
BAD[4] = [0.5, 0.6, -0.1]
SHORT = np.full((30, 3), 0.3)


@each(
    "given, words",
    [
        ([], r"^policies: none; allowed: logger, uniform, "),
        ("", r"^policies: none; "),
        (5, r"^policies: 5; allowed: logger"),
        (["logger", 3], r"^policies: \['logger', 3\]; "),
        ("logger,logger", r"^policies: 'logger' twice; allowed: each policy once"),
        ("always:z", r"^policies: always:z; allowed: always:ARM, with one of a, b, c"),
        ("nobody", r"^policies: no policy is called 'nobody'; "),
        ("oracle", r"^policies: 'oracle' is told the bias; "),
        ({"": "logger"}, r"^policies: ; allowed: names"),
        ({"mine": BAD}, r"^policies.mine, row 5: '?0.5, 0.6, -0.1'?; allowed: probabilities from 0 to 1"),
        ({"mine": SHORT}, r"^policies.mine, row 1: "),
        ({"mine": BAD[:, :2]}, r"^policies.mine: has shape \(30, 2\); allowed: shape \(30, 3\)"),
        ({"mine": lambda noisy: noisy[:3]}, r"^policies.mine: has shape \(3, 2\); "),
        (
            {"mine": np.full(30, 2)},
            r"^policies.mine, row 1: the integer 2; allowed: arms by name: a, b, c; integers only",
        ),
        ({"mine": ["a"] * 29 + ["z"]}, r"^policies.mine, row 30: '?z'?; allowed: arms: a, b, c"),
        ({"mine": np.full((30, 3), np.nan)}, r"^policies.mine"),
    ],
)
def test_refusals_say_what_and_where(given: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        table(given)
