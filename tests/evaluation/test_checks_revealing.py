"""True contexts that became known by the arm, or by what was paid, are not used; others are."""

import numpy as np
import pytest

from tests.each import each
from tests.evaluation.logs import World
from unfog.evaluation.context import EvaluationContext
from unfog.evaluation.evaluate import evaluate_policies
from unfog.evaluation.log import DecisionLog

WORLD = World(d=2, arms=3)


def shown(log: DecisionLog, known: np.ndarray) -> DecisionLog:
    assert log.true is not None
    return log._replace(true=np.where(known[:, None], log.true, np.nan))


@each("alone", [False, True])
@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("chance", ""),
        ("reading", ""),
        ("arm", "Which true contexts are known hangs on the arm that was drawn."),
        ("surprise", "Which true contexts are known hangs on what was paid."),
        ("size", "Which true contexts are known hangs on the arm that was drawn."),
    ],
)
def test_what_became_known_is_looked_at(how: str, said: str, alone: bool) -> None:
    """Of 2,000 rounds, about half of them known; with all probabilities, or that of the drawn arm alone."""
    log = WORLD.log(2000, 3, shown=1.0)
    chance = np.random.default_rng(5).random(2000)
    beyond = log.reward - WORLD.scores(log.noisy - WORLD.channel.bias)[np.arange(2000), log.arm]
    known = {
        "chance": chance < 0.5,
        "reading": log.noisy[:, 0] > np.median(log.noisy[:, 0]),
        "arm": (log.arm == 1) | (chance < 0.2),
        "surprise": beyond > 0.2,  # not the reward itself, which hangs on the arm
        "size": np.abs(beyond) > 0.7,
    }[how]
    part = shown(log._replace(probabilities=None) if alone else log, known)
    evaluation = EvaluationContext(part, WORLD.channel)
    assert evaluation.suspicion == said
    assert (evaluation.contexts is evaluation.seen) == bool(said)
    if said:
        notes = evaluate_policies(evaluation, "uniform").attrs["notes"]
        assert notes[0].startswith(f"Careful: {said}")


def looked_at_again(seed: int, n: int = 2000) -> DecisionLog:
    """Contexts become known where the reward was good; one arm pays c + d/2, the other nothing."""
    rng = np.random.default_rng(seed)
    true = rng.standard_normal((n, 2))
    noisy = true + rng.standard_normal((n, 2))
    chance = np.full((n, 2), 0.2)
    chance[np.arange(n), (noisy[:, 0] > 0).astype(int)] += 0.6
    arm = (rng.random(n) < chance[:, 1]).astype(int)
    reward = arm * (true @ [1.0, 0.5]) + 0.3 * rng.standard_normal(n)
    own = chance[np.arange(n), arm]
    return shown(DecisionLog(("a", "b"), ("no", "yes"), noisy, arm, reward, own, chance, true), reward > 0.3)


def test_doubly_robust_is_right_where_rewards_decide_what_becomes_known() -> None:
    """The mean of 40 logs within three standard errors, wrong once in 370; with true contexts in the rounds
    they belong to it is off by more than six.
    """
    one = np.eye(2)
    channel = {"context_mean": [0, 0], "context_cov": one, "noise_cov": one, "bias_cov": 1e-6 * one}
    values = [
        evaluate_policies(
            EvaluationContext(looked_at_again(seed), channel),
            {"mine": lambda seen: np.where(seen.sum(axis=1) > 0, "yes", "no")},
            estimators="dr",
            intervals="plain",
        )["value"].item()
        for seed in range(40)
    ]
    worth = 1.5 / np.sqrt(4 * 2 * np.pi)  # E[(c + d/2) 1(x + y > 0)], of a joint Gaussian
    assert abs(np.mean(values) - worth) < 3 * np.std(values) / np.sqrt(40)
