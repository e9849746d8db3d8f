"""Checks of a log before it is trusted: its probabilities, its readings, and which true contexts are known.

Do the logged probabilities fit the arms that were drawn? Wrong ones give wrong values without a warning.
With the probabilities p_t of all arms, and e_t the arm drawn as a unit vector, the sum G of e_t - p_t over
rounds is a martingale, whatever the logger learnt meanwhile. Its variance is V, the sum of
diag(p_t) - p_t p_t', so that

    G' V^- G    is chi-square, with the rank of V as its degrees of freedom.

`by_arm` sums over arms, `by_size` over bins of p: do arms that are said to be drawn in 15 % of cases come up
that often? Probabilities that were shuffled or smoothed may keep the sums of arms, but not those of bins.

With the probability of the drawn arm alone, `by_weight`: the weight 1 / p of arm k, where it was drawn, has
mean 1 over the rounds in which it was offered, if it could be drawn in all of them; so 1 / p has as its mean
the number of arms. Arms that could not be drawn have less. The covariance of the sums is that of the sample,
which a few large weights make up: where by chance none of them came up, sums are small, and so is their
variance. So each arm has the variance of five more draws with the largest weight seen. That errs on the side
of silence: of 44 kinds of logs (2 to 20 arms, floors from 0 to 100 %, 30 to 8,000 rounds) the worst had
p < 0.001 in 2 of 1,000, and most in none; without it 87 % of those with 20 arms, 500 rounds and a floor of
10 % had.

The martingale is that of Peter Hall and Chris Heyde, "Martingale Limit Theory and Its Application" (1980).

Do readings vary as the channel says (`misfits`)? Did it depend on the arm or the reward which true contexts
became known (`suspicion`)?
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from unfog.channel.channel import Channel
from unfog.evaluation.log import DecisionLog
from unfog.maths.arrays import Array, Bools, Ints

EDGES = np.array([0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99])
LEAST_VARIANCE = 5.0  # counts with a smaller variance are not close enough to normal
SAFE = 0.001  # misfits are reported below this p-value: a check with many false alarms is ignored
FLAT = 1e-9  # smaller eigenvalues of a correlation count as zero
ROUNDED = 3e-3  # relative rounding error of sums, since loggers write few digits
UNSEEN = 5  # additional draws with the largest weight that each arm is credited with
LARGE = 0.1  # a relative error of a variance of readings below this changes little
FAR_READINGS = 4.0  # standard errors of that variance
LEAST_ROUNDS = 30  # with a true context, and without
FAR_TRUTHS = 3.5  # standard errors: chance alone gives one in 2,000


class Fit(NamedTuple):
    """The result of a check."""

    check: str  # by_arm, by_size, by_weight
    statistic: float  # chi-square
    degrees: int
    p_value: float  # the chance of as large a misfit, if the probabilities are right
    worst: str  # where the misfit is largest: an arm, or a range of probabilities
    actual: float  # how often that came up: a sum of weights where only those are known
    expected: float  # and how often it should have
    sentence: str  # all of it for people

    @property
    def fits(self) -> bool:
        """Whether the probabilities fit."""
        return self.p_value >= SAFE


def fits(log: DecisionLog) -> tuple[Fit, ...]:
    """Every check that the log allows."""
    return (by_weight(log),) if log.probabilities is None else (by_arm(log), by_size(log))


def by_arm(log: DecisionLog) -> Fit:
    """Does each arm come up as often as its probabilities say?"""
    law = _normalise(log)
    return _compare_counts("by_arm", log.arm, law, [f"arm {name!r}" for name in log.arms])


def _normalise(log: DecisionLog) -> Array:
    """The probabilities of all arms, rescaled to sum to 1 exactly."""
    law = np.asarray(log.probabilities)
    shares: Array = law / law.sum(axis=1, keepdims=True)
    return shares


def by_size(log: DecisionLog) -> Fit:
    """Do arms with small probabilities come up seldom, and those with large ones often?"""
    law = _normalise(log)
    bins = np.searchsorted(EDGES, law, side="right")
    rows = np.arange(log.rounds)
    sums = np.zeros((log.rounds, len(EDGES) + 1))
    for k in range(law.shape[1]):
        sums[rows, bins[:, k]] += law[:, k]
    ends = [0.0, *EDGES.tolist(), 1.0]
    names = [f"arms with a probability from {a:g} to {b:g}" for a, b in pairwise(ends)]
    return _compare_counts("by_size", bins[rows, log.arm], sums, names)


def by_weight(log: DecisionLog) -> Fit:
    """Do weights have the mean they must have? For logs with the probability of the drawn arm alone."""
    n, k, weight = log.rounds, len(log.arms), 1 / log.probability
    offered = np.ones((n, k)) if log.offered is None else log.offered.astype(np.float64)
    surplus, expected = -offered, offered.sum(axis=0)
    surplus[np.arange(n), log.arm] += weight
    cov = np.cov(surplus, rowvar=False) * n if n > 1 else np.zeros((k, k))
    cov = cov + np.diag(UNSEEN * weight.max() ** 2 + (ROUNDED * expected) ** 2)
    # w (w - 1) is what is left to chance: next to nothing for an arm drawn only where it is all but certain.
    can_judge = np.bincount(log.arm, weight * (weight - 1), minlength=k) >= LEAST_VARIANCE
    names = [f"arm {name!r}" for name in log.arms]
    summary = f"the mean of 1 / p is {weight.mean():.4g}, of arms offered {expected.sum() / n:.4g}"
    return _judge_sums("by_weight", surplus.sum(axis=0), cov, expected, names, summary, can_judge)


def _compare_counts(check: str, draws: Ints, law: Array, names: list[str]) -> Fit:
    """Compare how often each thing was drawn with the probabilities (n, k) it was drawn with."""
    expected = law.sum(axis=0)
    gap = np.bincount(draws, minlength=law.shape[1]) - expected
    cov = np.diag(expected) - law.T @ law
    return _judge_sums(
        check, gap, cov, expected, names, f"{len(draws)} rounds", np.diag(cov) >= LEAST_VARIANCE
    )


def _judge_sums(
    check: str, gap: Array, cov: Array, expected: Array, names: list[str], summary: str, can_judge: Bools
) -> Fit:
    """The chi-square test of a gap with this covariance, over the sums that can be judged."""
    from scipy.stats import chi2

    index = np.flatnonzero(can_judge)
    if not len(index):
        sentence = f"Nothing to hold the probabilities against ({summary}): arms were all but certain."
        return Fit(check, 0.0, 0, 1.0, "", 0.0, 0.0, sentence)
    scale = np.sqrt(np.diag(cov)[index])
    scores = gap[index] / scale
    statistic, degrees = _chi_square(
        scores, cov[np.ix_(index, index)] / scale / scale[:, None], expected[index] / scale
    )
    worst = int(index[np.argmax(np.abs(scores))])
    chance = float(chi2.sf(statistic, degrees)) if degrees else 1.0
    fit = Fit(check, statistic, degrees, chance, names[worst], 0.0, float(expected[worst]), "")
    fit = fit._replace(actual=float(gap[worst] + expected[worst]))
    return fit._replace(sentence=_write_sentence(fit, summary))


def _chi_square(scores: Array, correlation: Array, expected: Array) -> tuple[float, int]:
    """The statistic and its degrees of freedom.

    Some sums cannot vary, such as that of all arms together. They add no degree of freedom, unless they are
    off by more than rounding explains, which cannot be chance.
    """
    values, vectors = np.linalg.eigh(correlation)
    along = (vectors.T @ scores) ** 2
    digits = (ROUNDED * expected) ** 2 @ vectors**2
    vary = values > FLAT * len(values)
    counts = vary | (along > digits)
    used = np.where(vary, values, np.minimum(digits, FLAT))
    return float((along[counts] / used[counts]).sum()), int(counts.sum())


def _write_sentence(fit: Fit, summary: str) -> str:
    degrees = f"{fit.degrees} degrees of freedom"
    statistics = f"chi-square {fit.statistic:.4g} on {degrees}, p = {fit.p_value:.2g}; {summary}"
    if fit.fits:
        return f"The logged probabilities fit the arms drawn ({statistics})."
    verb = "were drawn" if fit.check != "by_weight" else "are the sum of weights"
    where = f"{fit.worst}: {fit.actual:.4g} {verb}, {fit.expected:.4g} were to be expected"
    cause = (
        "" if fit.check != "by_weight" or fit.actual > fit.expected else " Could it be drawn in all rounds?"
    )
    return (
        f"The logged probabilities do not fit the arms drawn ({statistics}). Most so {where}.{cause} "
        "Values that are weighed by them (IPS, SNIPS, doubly robust) are not to be trusted."
    )


def misfits(channel: Channel, log: DecisionLog) -> list[str]:
    """A sentence for each coordinate whose readings do not vary as the channel says.

    The variance of a coordinate's readings, within a unit, must be that of contexts and noise together. If it
    is not, values cannot be extrapolated to less noise. The sampling variance of a variance depends on the
    tails: (m4 - s^4) / n.
    """
    variances = np.diag(channel.context_cov + channel.noise_cov)
    warnings = []
    for j, name in enumerate(log.coordinates):
        variance, error = _estimate_variance(log.noisy[:, j], log)
        if abs(variance / variances[j] - 1) > LARGE and abs(variance - variances[j]) > FAR_READINGS * error:
            warnings.append(
                f"Careful: readings of {name} have a variance of {variance:.3g}; by the channel it should be"
                f" {variances[j]:.3g}, contexts and noise together. What is said of less noise hangs on it."
            )
    return warnings


def _estimate_variance(values: Array, log: DecisionLog) -> tuple[float, float]:
    """The variance within units, and its standard error."""
    present = ~np.isnan(values)
    unit = np.zeros(log.rounds, np.intp) if log.unit is None else log.unit
    counts = np.bincount(unit[present])
    units = int((counts > 0).sum())
    if present.sum() <= units:
        return np.nan, np.nan
    means = np.bincount(unit[present], values[present]) / np.maximum(counts, 1)
    squares = (values[present] - means[unit[present]]) ** 2
    variance = float(squares.sum()) / (len(squares) - units)
    return variance, float(np.sqrt(squares.var() / len(squares)))


def suspicion(log: DecisionLog, surprise: Array) -> str:
    """Why true contexts should not be used, or empty; `surprise` (n,) are residuals of a model of readings.

    The model of rewards may use a true context in its own round: given the noisy context, from which the arm
    was drawn, the arm is independent of the true one. That holds only if *whether* the true context is known
    is independent of the arm and the reward, too. If patients are examined again because they did badly, a
    known context says how they did, and doubly robust estimates are biased.

    So in rounds whose true context is known, arms must come up as often as their probabilities say, and the
    residuals must have the same mean and size as in the other rounds. A false alarm costs little: the model
    then uses readings alone.
    """
    known = np.zeros(log.rounds, bool) if log.true is None else ~np.isnan(log.true).all(axis=1)
    if min(known.sum(), (~known).sum()) < LEAST_ROUNDS:
        return ""
    revealed = log.rows(np.flatnonzero(known))
    arms = by_weight(revealed) if log.probabilities is None else by_arm(revealed)
    if not arms.fits:
        return "Which true contexts are known hangs on the arm that was drawn."
    for values in (surprise, surprise**2):
        one, other = values[known], values[~known]
        error = np.sqrt(one.var() / len(one) + other.var() / len(other))
        if abs(one.mean() - other.mean()) > FAR_TRUTHS * error:
            return "Which true contexts are known hangs on what was paid."
    return ""
