"""Regret of a round, its split into CB + EE1 + EE2, and two benchmarks other papers use.

With psi(a | gamma*) the expected features given chat_t and the true bias, psi_H those of the agent's own
belief, a* = argmax psi(a | gamma*)'theta* and ahat = argmax psi_H(a)'theta*:

    regret = psi(a* | gamma*)'theta* - psi(a_t | gamma*)'theta*          never negative
    CB     = psi_H(ahat)'theta* - psi_H(a_t)'theta*                      what learning theta costs
    EE1    = psi(a* | gamma*)'theta* - psi_H(ahat)'theta*                what the wrong features cost:
    EE2    = psi_H(a_t)'theta* - psi(a_t | gamma*)'theta*                on the best arm, on the chosen one

CB + EE1 + EE2 = regret exactly. The other benchmarks put phi(a, c_t) or phi(a, chat_t) in place of
psi(a | gamma*): regret against an agent that sees the true context, or that trusts the noisy one.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from unfog.agents.denoise import known_bias
from unfog.arrays import Array, Ints, pick
from unfog.features import Context, Design, FeatureMap

PLAIN = ("regret", "regret_true_context", "regret_plug_in")
SPLIT = ("cb", "ee1", "ee2")


def names(decompose: bool) -> tuple[str, ...]:
    """The losses of a run: all of them, or regret alone."""
    return (*PLAIN, *SPLIT) if decompose else PLAIN[:1]


class Tables(NamedTuple):
    """The mean reward of every arm, under three views of the context."""

    oracle: Array  # (..., K)  psi(a | gamma*)'theta*
    true_context: Array  # (..., K)  phi(a, c_t)'theta*
    plug_in: Array | None  # (..., K)  phi(a, chat_t)'theta*; not needed for regret alone


def oracle_context(shrinkage: known_bias.Shrinkage, noisy: Array, bias: Array) -> Context:
    """The best belief about the context: its posterior with the bias known."""
    return Context(known_bias.posterior_mean(shrinkage, noisy, bias), shrinkage.cov)


def tables(
    features: FeatureMap, theta: Array, best: Context, context: Array, noisy: Array, decompose: bool = True
) -> Tables:
    """Mean rewards of every arm; `best` is the oracle's belief about the context."""
    plug_in = features.at(noisy).scores(theta) if decompose else None
    return Tables(features.design(best).scores(theta), features.at(context).scores(theta), plug_in)


def _gap(scores: Array, arm: Ints) -> Array:
    return scores.max(-1) - pick(scores, arm)


def losses(tables: Tables, arm: Ints) -> dict[str, Array]:
    """The regret of the chosen arm against the three benchmarks, (...,) each."""
    return {name: _gap(table, arm) for name, table in zip(PLAIN, tables, strict=True) if table is not None}


def split(tables: Tables, arm: Ints, own: Design, theta: Array) -> dict[str, Array]:
    """CB, EE1 and EE2, given the agent's own expected features."""
    scores = own.scores(theta)
    best, chosen = scores.max(-1), pick(scores, arm)
    return {
        "cb": best - chosen,
        "ee1": tables.oracle.max(-1) - best,
        "ee2": chosen - pick(tables.oracle, arm),
    }


def of_round(
    features: FeatureMap,
    theta: Array,
    best: Context,
    context: Array,
    noisy: Array,
    own: Context,
    arm: Ints,
    decompose: bool,
) -> dict[str, Array]:
    """All losses of a round, or regret alone; `own` is the agent's belief about the context."""
    if not decompose:
        return {PLAIN[0]: _gap(features.design(best).scores(theta), arm)}
    found = tables(features, theta, best, context, noisy)
    return losses(found, arm) | split(found, arm, features.design(own), theta)


class Estimate(NamedTuple):
    """A mean over trials and its standard error."""

    mean: float
    se: float

    def interval(self, z: float = 1.959963984540054) -> tuple[float, float]:
        """The normal interval, 95 % unless told otherwise."""
        return self.mean - z * self.se, self.mean + z * self.se


def estimate(values: Array) -> Estimate:
    """Mean and standard error over trials, (trials,); one trial alone has no standard error (NaN)."""
    [n] = values.shape
    se = float(np.std(values, ddof=1) / np.sqrt(n)) if n > 1 else float("nan")
    return Estimate(float(np.mean(values)), se)


def pooled(counts: Sequence[int], moments: Sequence[Array]) -> tuple[Array, Array]:
    """Mean and standard error over all trials, from (mean, squared deviations) (..., 2) of groups of them.

    The pairwise formula of T. F. Chan, G. H. Golub and R. J. LeVeque, *Updating formulae and a pairwise
    algorithm for computing sample variances*.
    """
    n, mean, spread = 0, 0 * moments[0][..., 0], 0 * moments[0][..., 0]
    for count, group in zip(counts, moments, strict=True):
        shift = group[..., 0] - mean
        spread = spread + group[..., 1] + shift**2 * (n * count / (n + count))
        mean = mean + shift * (count / (n + count))
        n += count
    return mean, np.sqrt(spread / max(n - 1, 1) / n)
