"""Values of policies with intervals: plain ones, and ones that hold for logs of learning agents.

    V = sum h num / sum h den,    se^2 = sum h^2 (num - V den)^2 / (sum h den)^2

Plain: h = 1, as for rounds that have nothing to do with each other. A logger that learns draws what it likes
more and more surely, so that scores vary more in some stretches of time than in others, by how the rewards
came out. Then the sum of equally weighed scores need not be normal, and plain intervals hold less often than
they say. What mends it are weights that make all stretches vary alike, h = 1 / sqrt(v), v the variance of a
score as it was foreseeable before the round (R. Zhan, V. Hadad, D. A. Hirshberg and S. Athey, *Off-Policy
Evaluation via Adaptive Weighting with Data from Contextual Bandits*). Theirs ask what the logger of later
rounds would have done in earlier ones, which a log cannot answer; here v is the mean of

    E[w^2 | what the logger saw] = sum over arms of pi^2 / p

over the stretch before, which is as foreseeable, and close as long as a logger changes slowly. The value is
then a mean over time with these weights: the same thing, if contexts come from the same law all the time.
Where only the probability of the drawn arm is known, all that is left is w^2 of the few rounds that match,
which says too little of v: then h = 1.
"""

from typing import NamedTuple

import numpy as np

from unfog.evaluation.estimators import Scores
from unfog.maths.arrays import Array

STRETCHES = 100  # of time, within which a logger is taken not to change
SHORTEST = 25  # rounds that a stretch has at least


def student_reach(degrees: float, level: float = 0.95) -> float:
    """The half-width of an interval of this level in standard errors, by Student's t.

    maths/statistics.py has that of the normal distribution, which needs no SciPy.
    """
    from scipy.special import stdtrit

    return float(stdtrit(degrees, (1 + level) / 2))


class Value(NamedTuple):
    """An estimate, and how much each round contributes to its error."""

    mean: float
    se: float
    influence: Array  # (n,)  by how much each round moved it: se^2 is the sum of squares

    def interval(self, level: float) -> tuple[float, float]:
        """The confidence interval of this level."""
        reach = student_reach(self.degrees, level) * self.se
        return self.mean - reach, self.mean + reach

    @property
    def degrees(self) -> float:
        """The number of normal scores that would determine se as well: fewer, the heavier the tails here."""
        squares = self.influence**2
        total = float(squares.sum())
        spread = float((squares**2).sum()) - total**2 / len(squares)
        return 2 * total**2 / spread if spread > 0 else float(len(squares))

    def less(self, other: "Value") -> "Value":
        """The difference, paired round by round."""
        influence = self.influence - other.influence
        return Value(self.mean - other.mean, float(np.sqrt((influence**2).sum())), influence)


def value(scores: Scores, time: Array | None = None) -> Value:
    """The value of a policy, with weights of time (n,); None: all alike."""
    n = len(scores.numerator)
    h = np.ones(n) if time is None else time
    weight = h if scores.denominator is None else h * scores.denominator
    total = float(weight.sum())
    if total == 0:
        return Value(np.nan, np.nan, np.full(n, np.nan))
    mean = float((h * scores.numerator).sum()) / total
    if np.count_nonzero(weight) < 2:  # one round says nothing of how much rounds vary
        return Value(mean, np.nan, np.full(n, np.nan))
    influence = (h * scores.numerator - weight * mean) / total
    if scores.wobble is not None:
        influence = influence + scores.wobble / n
    return Value(mean, float(np.sqrt((influence**2).sum())), influence)


def adaptive(policy: Array, probabilities: Array) -> Array:
    """Weights of time (n,) for a policy (n, K), from the logger's probabilities (n, K)."""
    n, zeros = len(policy), np.zeros_like(policy)
    square = np.divide(policy**2, probabilities, out=zeros, where=probabilities > 0).sum(axis=1)
    size = max(SHORTEST, -(-n // STRETCHES))
    starts = np.arange(0, n, size)
    means = np.add.reduceat(square, starts) / np.diff([*starts, n])
    before = np.concat([means[:1], means[:-1]])  # the first stretch has none before it
    smooth = (before + np.concat([means[:1], before[:-1]])) / 2
    least = 1e-3 * np.maximum.accumulate(smooth)  # of what was seen so far: the future is not foreseen
    floored = np.maximum(smooth, np.where(least > 0, least, 1.0))
    return np.repeat(1 / np.sqrt(floored), np.diff([*starts, n]))
