"""The belief about the channel's bias: gamma ~ N(g, S) from n observations of it.

Observations of precision E give S^-1 = Sigma_gamma^-1 + n E and g = S E total. One eigendecomposition at the
start, W'E W = diag(f) with W W' = Sigma_gamma, turns this into S = W diag(1 / (1 + n f)) W' for every n: no
factorisation in the round loop. S depends on n alone, so all trials of a batch share it.
"""

from collections.abc import Callable
from typing import NamedTuple

from unfog.maths.arrays import Array, matvec
from unfog.model.knowledge import Knowledge


class Source(NamedTuple):
    """A way to see the bias, with noise, once a round."""

    cov: Callable[[Knowledge], Array]  # of the noise
    observation: Callable[[Array, Array, Array], Array]  # from mu_c, chat_t, c_t


NOISY = Source(lambda known: known.context_cov + known.noise_cov, lambda mean, noisy, context: noisy - mean)
"""chat - mu_c = gamma + N(0, Sigma_c + Sigma_n): no true context needed (Algorithm 1)."""

PAIRS = Source(lambda known: known.noise_cov, lambda mean, noisy, context: noisy - context)
"""chat - c = gamma + N(0, Sigma_n): the true context must be revealed (Algorithm 2)."""


class Evidence(NamedTuple):
    """What one observation says of the bias, in coordinates where all is diagonal."""

    basis: Array  # (d, d)  W
    coordinates: Array  # (d, d)  W'E
    rates: Array  # (d,)    f


class Tally(NamedTuple):
    """Observations of the bias so far."""

    seen: Array  # ()        how many; all trials of a batch have seen equally many
    total: Array  # (..., d)  their sum


def evidence(known: Knowledge, source: Source) -> Evidence:
    """The diagonal coordinates of this source."""
    cov = source.cov(known)
    xp = cov.__array_namespace__()
    root = xp.linalg.cholesky(known.bias_cov)
    whitened = xp.linalg.solve(xp.linalg.cholesky(cov), root)
    rates, vectors = xp.linalg.eigh(whitened.mT @ whitened)
    basis = root @ vectors
    return Evidence(basis, xp.linalg.solve(cov, basis).mT, rates)


def nothing_seen(evidence: Evidence) -> Tally:
    """The tally before the first observation."""
    return Tally(0 * evidence.rates[0], 0 * evidence.rates)


def add(tally: Tally, observation: Array) -> Tally:
    """The tally after one more observation (..., d)."""
    return Tally(tally.seen + 1, tally.total + observation)


def belief(evidence: Evidence, tally: Tally) -> tuple[Array, Array]:
    """The mean g (..., d) and covariance S (d, d) of the bias."""
    shrunk = evidence.basis / (1 + tally.seen * evidence.rates)
    return matvec(shrunk, matvec(evidence.coordinates, tally.total)), shrunk @ evidence.basis.mT
