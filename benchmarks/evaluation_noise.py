"""What noise does to each way of valuing a policy: the part `noise` of benchmarks/evaluation.py.

Rewards are theta_a'c + N(0, 1/4), with no intercept; contexts have mean zero, the noise is as large as they
vary, its bias is (.8, -.5, .3). The policy takes the arm that pays most by the denoised context. The logger
is one that does not learn.

A model of slopes alone is right for true contexts. For readings it is wrong: E[c | reading] = G (reading -
bias) asks for an intercept. (Where G bias is (1 - G) mean it does not; so the mean here is zero.) A model
that is fitted on true contexts and asked about readings is the mistake to warn of. It is written here by
hand, since unfog has no way to make it.
"""

from typing import Any

import numpy as np

from benchmarks.logs import D, K, World, best, logs, with_one
from unfog.evaluation.context import EvaluationContext
from unfog.evaluation.evaluate import evaluate_policies
from unfog.evaluation.log import DecisionLog
from unfog.maths.arrays import Array

WORLD = World(shared=True, revealed=1.0, away=0.0)
SLOPES = np.eye(K * D).reshape(K, D, K * D).mT  # G(a): slopes for each arm, no intercept
DRAWS = 4_000_000
ASKED = ("ips", "dm_slopes", "dm", "dr", "dm_denoised", "dm_mixed", "dm_true")


def table(noisy: Array) -> Array:
    """Probabilities (n, K) of the policy: 0 or 1."""
    return np.eye(K)[best(WORLD, noisy)]


def worth() -> float:
    """Of the policy, by brute force."""
    true, noisy = WORLD.contexts(np.random.default_rng(5), DRAWS)
    scores = with_one(true) @ WORLD.theta.T
    return float(scores[np.arange(DRAWS), best(WORLD, noisy)].mean())


def values(log: DecisionLog) -> list[float]:
    """Of one log whose true contexts are all known, in the order of ASKED."""
    rule, blind = {"best": table(log.noisy)}, log._replace(true=None)
    assert log.true is not None

    def by(scene: EvaluationContext, names: str) -> list[float]:
        return [
            float(one)
            for one in evaluate_policies(scene, rule, estimators=names, intervals="plain")["value"][0]
        ]

    (slopes,) = by(EvaluationContext(blind, None, "matrix", SLOPES), "dm")
    ips, dm, dr = by(EvaluationContext(blind), "ips,dm,dr")
    (denoised,) = by(EvaluationContext(blind, WORLD.channel, "matrix", SLOPES), "dm")
    (exact,) = by(EvaluationContext(blind._replace(noisy=log.true), None, "matrix", SLOPES), "dm")
    return [ips, slopes, dm, dr, denoised, mixed(log, rule["best"]), exact]


def mixed(log: DecisionLog, policy: Array) -> float:
    """The mistake: least squares on true contexts, arm by arm, asked about readings."""
    assert log.true is not None
    theta = [
        np.linalg.lstsq(log.true[log.arm == a], log.reward[log.arm == a], rcond=None)[0] for a in range(K)
    ]
    return float((policy * (log.noisy @ np.array(theta).T)).sum(axis=1).mean())


def noise(number: int, rounds: int, batch: int = 50) -> dict[str, Any]:
    """Bias with its standard error, and root mean squared error, of each."""
    rows = [
        values(log)
        for start in range(0, number, batch)
        for log in logs(WORLD, min(batch, number - start), rounds, learns=False, seed=3000 + start)
    ]
    exact = worth()
    off = np.array(rows) - exact
    said: dict[str, Any] = {"logs": number, "rounds": rounds, "truth": exact}
    for name, found in zip(ASKED, off.T, strict=True):
        said[name] = {
            "bias": float(found.mean()),
            "bias_se": float(found.std(ddof=1) / np.sqrt(number)),
            "rmse": float(np.sqrt((found**2).mean())),
        }
    return said
