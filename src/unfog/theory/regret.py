"""Regret of a round, its split into CB + EE1 + EE2, and its tails over trials.

With psi(a | gamma*) the expected features given chat_t and the true bias, psi_H those of the agent's own
belief, a* = argmax psi(a | gamma*)'theta* (the paper's oracle) and ahat = argmax psi_H(a)'theta*, and with
mu(a) and mu_H(a) the mean rewards under the same two beliefs about the context:

    regret = mu(a*) - mu(a_t)
    CB     = mu_H(ahat) - mu_H(a_t)       what learning theta costs
    EE1    = mu(a*) - mu_H(ahat)          what the wrong features cost: on the best arm,
    EE2    = mu_H(a_t) - mu(a_t)          on the chosen one

CB + EE1 + EE2 = regret exactly. Where mean rewards are scores, mu(a) = psi(a | gamma*)'theta* and neither
regret nor CB is ever negative. Where they are sigmoids of scores, mu(a) is the mean of the sigmoid over the
context, which the paper's oracle does not maximise exactly: a round's regret may then be negative.

mu relies on a model of contexts. Two losses do not. `regret_realised` is the mean reward of a* less that of
a_t at the context that was drawn: if the model holds it has the mean of regret and more noise, if it does not
it is the actual loss against a*. If contexts are drawn from a finite sample, `regret_bayes` is regret with
the posterior over the sample in place of psi's belief, for the best arm, too (worlds/composed.py): it is
never negative, since without the context nobody can do better on average.

Two benchmarks that other papers use put phi(a, c_t) or phi(a, chat_t) in place of psi(a | gamma*), for the
best arm too: regret against an agent that sees the true context, or that trusts the noisy one.

A mean over trials hides how many of them have stopped learning. An agent that has settled on the wrong arm
loses the same amount in every further round: its regret grows linearly. A trial counts as linear if its
regret in the last quarter of the rounds is positive and at least `LINEAR` times that in the quarter before.
Regret that grows like sqrt(t) has the ratio 0.84, and like ln t 0.71. Trials are noisy, so about half of them
count as linear once losses are small and steady: the share must be read together with the 99 % quantile,
which is far above the median if some trials have settled on a wrong arm.
"""

from typing import NamedTuple

import numpy as np

from unfog.channel.knowledge import Shrinkage, posterior_mean
from unfog.features import Context, Design, FeatureMap
from unfog.features.link import Rewards, Values
from unfog.maths.arrays import Array, Ints, pick
from unfog.worlds.problem import Emission

PLAIN = ("regret", "regret_true_context", "regret_plug_in")
SPLIT = ("cb", "ee1", "ee2")
REALISED, BAYES = "regret_realised", "regret_bayes"
QUANTILES = {"q50": 0.5, "q99": 0.99}
LINEAR = 0.9


class Yardstick(NamedTuple):
    """Mean rewards under one belief about the context, and the best arm by it."""

    values: Values
    top: Ints  # (...,)
    best: Array  # (...,)  its mean reward


class Tables(NamedTuple):
    """The score of every arm, under three views of the context; the oracle's arm and its worth."""

    oracle: Array  # (..., K)  psi(a | gamma*)'theta*
    true_context: Array  # (..., K)  phi(a, c_t)'theta*
    plug_in: Array | None  # (..., K)  phi(a, chat_t)'theta*; not needed for regret alone
    paper: Yardstick  # given chat_t and the bias, by the model of contexts
    bayes: Yardstick | None  # likewise, by the sample that contexts are drawn from


def names(decompose: bool, *, discrete: bool = False) -> tuple[str, ...]:
    """The losses of a run: regret alone, or all of them; one more where contexts are a finite sample."""
    if not decompose:
        return PLAIN[:1]
    return (*PLAIN, REALISED, *((BAYES,) if discrete else ()), *SPLIT)


def oracle_context(shrinkage: Shrinkage, noisy: Array, bias: Array) -> Context:
    """The best belief about the context: its posterior with the bias known."""
    return Context(posterior_mean(shrinkage, noisy, bias), shrinkage.cov)


def best_context(shrinkage: Shrinkage, emission: Emission, bias: Array, has_bias: bool) -> Context:
    """What regret is measured against: the oracle's belief, or if there is no bias the context itself."""
    if emission.best is not None:
        return emission.best
    if has_bias:
        return oracle_context(shrinkage, emission.noisy, bias)
    xp = shrinkage.cov.__array_namespace__()
    return Context(emission.context, xp.zeros_like(shrinkage.cov))


def tables(
    rewards: Rewards,
    features: FeatureMap,
    theta: Array,
    best: Context,
    context: Array,
    noisy: Array,
    decompose: bool = True,
    exact: Context | None = None,
) -> Tables:
    """Scores of every arm; `best` is the oracle's belief about the context, `exact` that over a sample."""
    plug_in = features.at(noisy).scores(theta) if decompose else None
    scores, paper = _yardstick(rewards, features, theta, best)
    bayes = None if exact is None else _yardstick(rewards, features, theta, exact)[1]
    return Tables(scores, features.at(context).scores(theta), plug_in, paper, bayes)


def _yardstick(
    rewards: Rewards, features: FeatureMap, theta: Array, belief: Context
) -> tuple[Array, Yardstick]:
    design = features.design(belief)
    scores = design.scores(theta)
    values, top = rewards.values(design, theta, scores), scores.argmax(-1)
    return scores, Yardstick(values, top, values(top))


def _gap(rewards: Rewards, scores: Array, arm: Ints) -> Array:
    return rewards.mean(scores.max(-1)) - rewards.mean(pick(scores, arm))


def losses(rewards: Rewards, tables: Tables, arm: Ints, own: Design | None, theta: Array) -> dict[str, Array]:
    """All losses of the chosen arm, (...,) each; regret alone without the agent's own design."""
    paper, seen = tables.paper, tables.true_context
    worth = paper.values(arm)
    result = {"regret": paper.best - worth}
    if own is None or tables.plug_in is None:
        return result
    result["regret_true_context"] = _gap(rewards, tables.true_context, arm)
    result["regret_plug_in"] = _gap(rewards, tables.plug_in, arm)
    result[REALISED] = rewards.mean(pick(seen, paper.top)) - rewards.mean(pick(seen, arm))
    if tables.bayes is not None:
        result[BAYES] = tables.bayes.best - tables.bayes.values(arm)
    scores = own.scores(theta)
    values = rewards.values(own, theta, scores)
    best, chosen = values(scores.argmax(-1)), values(arm)
    return result | {"cb": best - chosen, "ee1": paper.best - best, "ee2": chosen - worth}


def round_losses(
    rewards: Rewards,
    features: FeatureMap,
    theta: Array,
    best: Context,
    context: Array,
    noisy: Array,
    own: Context,
    arm: Ints,
    decompose: bool,
    exact: Context | None = None,
) -> dict[str, Array]:
    """All losses of a round, or regret alone; `own` is the agent's belief about the context."""
    scores = tables(rewards, features, theta, best, context, noisy, decompose, exact)
    return losses(rewards, scores, arm, features.design(own) if decompose else None, theta)


def quantiles(values: Array) -> dict[str, float]:
    """The quantiles of final regrets (trials,), interpolated between trials."""
    return {name: float(np.quantile(values, level)) for name, level in QUANTILES.items()}


def linear_share(half: Array, before: Array, end: Array) -> float:
    """The share of trials whose regret grows linearly, from totals (trials,) where each quarter ends."""
    last, previous = end - before, before - half
    return float(((last > 0) & (last >= LINEAR * previous)).mean())
