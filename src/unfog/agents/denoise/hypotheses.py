"""What may be the matter with a channel, and the filters that suppose it (maths/kalman.py)."""

from math import log
from typing import NamedTuple

import numpy as np

from unfog.channel.knowledge import Knowledge
from unfog.maths.kalman import Family, kept

NODES = 6  # Gaussians that stand for heavy tails
REACH = log(0.35), log(60.0)  # the logarithms of their sizes


class Hypothesis(NamedTuple):
    """What may be the matter with a channel, or with contexts."""

    size: float = 1.0  # of the noise, by which its covariance is multiplied
    step: float = 0.0  # of the bias, in shares of its prior covariance a round
    tails: float | None = None  # degrees of freedom, where they are heavy
    sample: bool = False  # contexts are those of the told sample, not Gaussian


def family(group: list[Hypothesis], known: Knowledge, pairs: bool) -> Family:
    """Hypotheses with equally many factors; with `pairs` no context hides the bias."""
    xp, dim = known.noise_cov.__array_namespace__(), known.context_mean.shape[0]
    told = (np.asarray(x) for x in zip(*map(_noise, group), strict=True))
    factors, chances = (xp.asarray(x, dtype=known.noise_cov.dtype) for x in told)
    hidden = xp.trace(xp.linalg.solve(known.noise_cov, known.context_cov)) / dim * (not pairs)
    keep = xp.ones_like(factors[:, 0])
    if factors.shape[1] > 1:
        keep = xp.stack([kept(f, p, hidden, dim) for f, p in zip(factors, chances, strict=True)])
    walk = xp.asarray([h.step for h in group], dtype=known.noise_cov.dtype)
    return Family(factors, xp.log(chances), keep, walk[:, None, None] * known.bias_cov)


def _noise(hypothesis: Hypothesis) -> tuple[list[float], list[float]]:
    """The factors of the noise's covariance, and their probabilities."""
    if hypothesis.tails is None:
        return [hypothesis.size], [1.0]
    nu, logs = hypothesis.tails, np.linspace(*REACH, NODES)
    # A precision w ~ Gamma(nu/2, nu/2) has this density of ln w, up to a constant; the factor is 1 / w.
    heights = np.exp(-0.5 * nu * (logs + np.exp(-logs)))
    return (hypothesis.size * np.exp(logs)).tolist(), (heights / heights.sum()).tolist()
