"""Checks of a log before it is trusted: its probabilities, its readings, and which true contexts are known.

Do the logged probabilities fit the arms that were drawn? Weighing by wrong ones misleads, and looks fine.
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

Do readings vary as the channel says (`misfits`)? Did it hang on the arm, or on what was paid, which true
contexts became known (`suspicion`)?
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from unfog.channel.channel import Channel
from unfog.evaluation.log import Log
from unfog.maths.arrays import Array, Bools, Ints

EDGES = np.array([0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99])
LEAST_VARIANCE = 5.0  # variance of a count below which a normal law is no match for it
SAFE = 0.001  # below this chance a misfit is said: a check that cries often is not heard
FLAT = 1e-9  # an eigenvalue of a correlation below this is none
ROUNDED = 3e-3  # by which share sums may be off, since loggers write few digits
UNSEEN = 5  # draws with the largest weight that each arm might have had besides
LARGE = 0.1  # a variance of readings that is off by less would change little
FAR_READINGS = 4.0  # standard errors of that variance
LEAST_ROUNDS = 30  # with a true context, and without
FAR_TRUTHS = 3.5  # standard errors: chance alone gives one in 2,000


class Fit(NamedTuple):
    """What a check found."""

    check: str  # by_arm, by_size, by_weight
    statistic: float  # chi-square
    degrees: int
    p_value: float  # the chance of as large a misfit, if the probabilities are right
    worst: str  # where the misfit is largest: an arm, or a range of probabilities
    found: float  # how often that came up: a sum of weights where only those are known
    expected: float  # and how often it should have
    sentence: str  # all of it for people

    @property
    def fits(self) -> bool:
        """Whether nothing is to be said."""
        return self.p_value >= SAFE


def fits(log: Log) -> tuple[Fit, ...]:
    """Every check that the log allows."""
    return (by_weight(log),) if log.probabilities is None else (by_arm(log), by_size(log))


def by_arm(log: Log) -> Fit:
    """Does each arm come up as often as its probabilities say?"""
    law = _law(log)
    return _held("by_arm", log.arm, law, [f"arm {name!r}" for name in log.arms])


def _law(log: Log) -> Array:
    """The probabilities of all arms, without what is left of a sum of 1 by few digits."""
    law = np.asarray(log.probabilities)
    found: Array = law / law.sum(axis=1, keepdims=True)
    return found


def by_size(log: Log) -> Fit:
    """Do arms with small probabilities come up seldom, and those with large ones often?"""
    law = _law(log)
    bins = np.searchsorted(EDGES, law, side="right")
    rows = np.arange(log.rounds)
    sums = np.zeros((log.rounds, len(EDGES) + 1))
    for k in range(law.shape[1]):
        sums[rows, bins[:, k]] += law[:, k]
    ends = [0.0, *EDGES.tolist(), 1.0]
    names = [f"arms with a probability from {a:g} to {b:g}" for a, b in pairwise(ends)]
    return _held("by_size", bins[rows, log.arm], sums, names)


def by_weight(log: Log) -> Fit:
    """Do weights have the mean they must have? For logs with the probability of the drawn arm alone."""
    n, k, weight = log.rounds, len(log.arms), 1 / log.probability
    offered = np.ones((n, k)) if log.offered is None else log.offered.astype(np.float64)
    surplus, expected = -offered, offered.sum(axis=0)
    surplus[np.arange(n), log.arm] += weight
    cov = np.cov(surplus, rowvar=False) * n if n > 1 else np.zeros((k, k))
    cov = cov + np.diag(UNSEEN * weight.max() ** 2 + (ROUNDED * expected) ** 2)
    # Of an arm that is drawn only where that is all but certain, w (w - 1) says how much is left to chance.
    there = np.bincount(log.arm, weight * (weight - 1), minlength=k) >= LEAST_VARIANCE
    names = [f"arm {name!r}" for name in log.arms]
    told = f"the mean of 1 / p is {weight.mean():.4g}, of arms offered {expected.sum() / n:.4g}"
    return _judged("by_weight", surplus.sum(axis=0), cov, expected, names, told, there)


def _held(check: str, drawn: Ints, law: Array, names: list[str]) -> Fit:
    """What was drawn, against the law it was drawn from."""
    expected = law.sum(axis=0)
    gap = np.bincount(drawn, minlength=law.shape[1]) - expected
    cov = np.diag(expected) - law.T @ law
    return _judged(check, gap, cov, expected, names, f"{len(drawn)} rounds", np.diag(cov) >= LEAST_VARIANCE)


def _judged(
    check: str, gap: Array, cov: Array, expected: Array, names: list[str], told: str, judged: Bools
) -> Fit:
    """The chi-square of a gap with this covariance, of those sums that can be judged; where it is largest."""
    from scipy.stats import chi2

    there = np.flatnonzero(judged)
    if not len(there):
        said = f"Nothing to hold the probabilities against ({told}): arms were all but certain."
        return Fit(check, 0.0, 0, 1.0, "", 0.0, 0.0, said)
    scale = np.sqrt(np.diag(cov)[there])
    scores = gap[there] / scale
    statistic, degrees = _chi_square(
        scores, cov[np.ix_(there, there)] / scale / scale[:, None], expected[there] / scale
    )
    worst = int(there[np.argmax(np.abs(scores))])
    chance = float(chi2.sf(statistic, degrees)) if degrees else 1.0
    fit = Fit(check, statistic, degrees, chance, names[worst], 0.0, float(expected[worst]), "")
    fit = fit._replace(found=float(gap[worst] + expected[worst]))
    return fit._replace(sentence=_sentence(fit, told))


def _chi_square(scores: Array, correlation: Array, expected: Array) -> tuple[float, int]:
    """The statistic and its degrees of freedom.

    Some sums cannot vary, such as that of all arms together. They have no degree, unless they are off by more
    than digits explain, which chance cannot do.
    """
    values, vectors = np.linalg.eigh(correlation)
    along = (vectors.T @ scores) ** 2
    digits = (ROUNDED * expected) ** 2 @ vectors**2
    vary = values > FLAT * len(values)
    counts = vary | (along > digits)
    used = np.where(vary, values, np.minimum(digits, FLAT))
    return float((along[counts] / used[counts]).sum()), int(counts.sum())


def _sentence(fit: Fit, told: str) -> str:
    found = (
        f"chi-square {fit.statistic:.4g} on {fit.degrees} degrees of freedom, p = {fit.p_value:.2g}; {told}"
    )
    if fit.fits:
        return f"The logged probabilities fit the arms drawn ({found})."
    counted = "were drawn" if fit.check != "by_weight" else "are the sum of weights"
    where = f"{fit.worst}: {fit.found:.4g} {counted}, {fit.expected:.4g} were to be expected"
    cause = (
        "" if fit.check != "by_weight" or fit.found > fit.expected else " Could it be drawn in all rounds?"
    )
    return (
        f"The logged probabilities do not fit the arms drawn ({found}). Most so {where}.{cause} Values that "
        "are weighed by them (IPS, SNIPS, doubly robust) are not to be trusted."
    )


def misfits(channel: Channel, log: Log) -> list[str]:
    """A sentence for each coordinate whose readings do not vary as the channel says.

    The variance of a coordinate's readings, within a unit, must be that of contexts and noise together. If it
    is not, no curve of the channel can be followed to less noise. By how much a variance varies by chance
    hangs on the tails: (m4 - s^4) / n.
    """
    told = np.diag(channel.context_cov + channel.noise_cov)
    said = []
    for place, name in enumerate(log.coordinates):
        found, error = _variance(log.noisy[:, place], log)
        if abs(found / told[place] - 1) > LARGE and abs(found - told[place]) > FAR_READINGS * error:
            said.append(
                f"Careful: readings of {name} have a variance of {found:.3g}; by the channel it should be"
                f" {told[place]:.3g}, contexts and noise together. What is said of less noise hangs on it."
            )
    return said


def _variance(values: Array, log: Log) -> tuple[float, float]:
    """Within units, and its standard error."""
    there = ~np.isnan(values)
    unit = np.zeros(log.rounds, np.intp) if log.unit is None else log.unit
    numbers = np.bincount(unit[there])
    left = int((numbers > 0).sum())
    if there.sum() <= left:
        return np.nan, np.nan
    means = np.bincount(unit[there], values[there]) / np.maximum(numbers, 1)
    squares = (values[there] - means[unit[there]]) ** 2
    found = float(squares.sum()) / (len(squares) - left)
    return found, float(np.sqrt(squares.var() / len(squares)))


def suspicion(log: Log, surprise: Array) -> str:
    """What speaks against using true contexts, empty where nothing does; `surprise` (n,) is by readings.

    The model of rewards may use a true context in the very round it belongs to: the arm was drawn from the
    noisy context, and given that has nothing to do with the true one. That is so only if *whether* the true
    context is known has nothing to do with the arm or the reward either. Where patients are looked at again
    because they did badly, a known context says how they did, and doubly robust estimates are off.

    Arms drawn in rounds whose truth is known must come up as often as their probabilities say. What was paid
    beyond what the reading explains must be alike, in mean and in size, where the truth is known and where it
    is not. A false alarm costs little: the model then goes by readings alone.
    """
    known = np.zeros(log.rounds, bool) if log.true is None else ~np.isnan(log.true).all(axis=1)
    if min(known.sum(), (~known).sum()) < LEAST_ROUNDS:
        return ""
    there = log.rows(np.flatnonzero(known))
    arms = by_weight(there) if log.probabilities is None else by_arm(there)
    if not arms.fits:
        return "Which true contexts are known hangs on the arm that was drawn."
    for values in (surprise, surprise**2):
        one, other = values[known], values[~known]
        error = np.sqrt(one.var() / len(one) + other.var() / len(other))
        if abs(one.mean() - other.mean()) > FAR_TRUTHS * error:
            return "Which true contexts are known hangs on what was paid."
    return ""
