"""Counts of what happened, and how often what was said came true.

Before a reward is learnt its mean and variance are said (agents/predict.py); if these are right, the interval
of every level in `LEVELS` holds that share of rewards. Rewards of 0 or 1 are sorted by the probability that
was said of a 1 into `BINS` bins, in each of which as many should come as were said. Where a true context
comes, the noisy and the denoised one are held against it: what denoising is worth, and whether the interval
of level `CONTEXT_LEVEL` holds it. Everything is a sum: in whatever order things come, it is the same but for
the last bits.
"""

from statistics import NormalDist
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from unfog.maths.arrays import Array

LEVELS = (0.5, 0.8, 0.9, 0.95)
CONTEXT_LEVEL = 0.9
BINS = 10

Happening: TypeAlias = Literal["answered", "expired", "late", "voided", "late_contexts", "dropped"]


def _reach(level: float) -> float:
    """How many deviations from its mean a Gaussian is at most, with this probability."""
    return NormalDist().inv_cdf((1 + level) / 2)


_REACHES = np.array([_reach(level) ** 2 for level in LEVELS])
_CONTEXT_REACH = _reach(CONTEXT_LEVEL) ** 2


class Counts(NamedTuple):
    """How often something happened."""

    decisions: int = 0
    rewards: int = 0  # learnt
    revealed: int = 0  # true contexts taken in, whole or in part
    expired: int = 0  # decisions whose wait was over without a reward of the caller, void ones left out
    late: int = 0  # reports of a reward after that, each of them
    voided: int = 0
    late_contexts: int = 0  # reports of a true context that came too late, each of them
    dropped: int = 0  # rewards whose true context never came, of agents that learn from pairs
    answered: int = 0  # decisions whose reward came in time, void ones left out


class Tallies(NamedTuple):
    """All of it, for one problem."""

    counts: Counts
    arms: Array  # (K, 4)  times chosen; rewards learnt, their sum and sum of squares
    judged: int  # rewards of which something was said before
    inside: Array  # (levels,)  how many of them fell into the interval
    bins: Array  # (BINS, 3)  rewards of 0 or 1; sums of what was said and of what came
    contexts: Array  # (4, d)  revealed; sums of squared errors, noisy and denoised; how many in the interval


def none_yet(dim: int, arms: int) -> Tallies:
    """Before anything happened."""
    inside, bins = np.zeros(len(LEVELS)), np.zeros((BINS, 3))
    return Tallies(Counts(), np.zeros((arms, 4)), 0, inside, bins, np.zeros((4, dim)))


def happened(past: Tallies, what: Happening, times: int = 1) -> Tallies:
    """So many times more; -1 where it is taken back."""
    number: int = past.counts._asdict()[what]
    return past._replace(counts=past.counts._replace(**{what: max(number + times, 0)}))


def _with(arms: Array, arm: int, row: tuple[float, float, float, float]) -> Array:
    """The sums of all arms, with a row added to one; arms that came later have a place from now on."""
    more = max(arm + 1 - len(arms), 0)
    found = np.concatenate((arms, np.zeros((more, 4)))) if more else arms.copy()
    found[arm] += row
    return found


def decided(past: Tallies, arm: int) -> Tallies:
    """With one more decision."""
    counts = past.counts._replace(decisions=past.counts.decisions + 1)
    return past._replace(counts=counts, arms=_with(past.arms, arm, (1, 0, 0, 0)))


def rewarded(
    past: Tallies, arm: int, reward: float, law: tuple[float, float] | None, *, binary: bool = False
) -> Tallies:
    """With a reward that is learnt, of which mean and variance were said, or nothing."""
    counts = past.counts._replace(rewards=past.counts.rewards + 1)
    arms = _with(past.arms, arm, (0, 1, reward, reward * reward))
    if law is None:
        return past._replace(counts=counts, arms=arms)
    mean, variance = law
    judged, inside, bins = past.judged + 1, past.inside, past.bins
    if binary:
        bins = bins.copy()
        bins[min(int(mean * BINS), BINS - 1)] += (1, mean, reward)
    else:
        inside = inside + ((reward - mean) ** 2 <= variance * _REACHES)
    return past._replace(counts=counts, arms=arms, judged=judged, inside=inside, bins=bins)


def revealed(past: Tallies, noisy: Array, mean: Array, variance: Array, true: Array) -> Tallies:
    """With what became known of a true context, and of what was denoised before: (d,) each.

    Not a number is what is not known yet, or was counted before, in `true`, and in `noisy` what was lost.
    """
    wrong, left = (noisy - true) ** 2, (mean - true) ** 2
    there = wrong == wrong  # not a number is not even itself
    found = np.where(there, np.array((there, wrong, left, left <= _CONTEXT_REACH * variance)), 0.0)
    counts = past.counts._replace(revealed=past.counts.revealed + 1)
    return past._replace(counts=counts, contexts=past.contexts + found)


class Arms(NamedTuple):
    """What is to be said of the arms, (K,) each."""

    chosen: Array
    share: Array  # of all decisions
    rewards: Array
    mean: Array  # of rewards; not a number where there is none
    error: Array  # the standard error of that; not a number where there are less than two


def by_arm(found: Tallies) -> Arms:
    """Shares, and means of rewards with their errors."""
    chosen, rewards, total, squares = found.arms.T
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = total / rewards
        spread = np.maximum(squares - rewards * mean**2, 0.0) / (rewards - 1)
        error = np.where(rewards > 1, np.sqrt(np.abs(spread) / rewards), np.nan)
        return Arms(chosen, chosen / chosen.sum(), rewards, mean, error)


def coverage(found: Tallies) -> Array:
    """The share of rewards in the interval of every level; not a number where none was judged."""
    return found.inside / found.judged if found.judged else np.full(len(LEVELS), np.nan)


class Denoising(NamedTuple):
    """What denoising was worth where true contexts came, (d,) each; not a number where none did."""

    revealed: Array
    rmse_noisy: Array
    rmse_denoised: Array
    coverage: Array  # of the denoised context's interval of level `CONTEXT_LEVEL`


def denoising(found: Tallies) -> Denoising:
    """Root mean squared errors, and the share in the interval."""
    number, wrong, left, inside = found.contexts
    with np.errstate(invalid="ignore"):  # nothing by nothing
        return Denoising(number, np.sqrt(wrong / number), np.sqrt(left / number), inside / number)
