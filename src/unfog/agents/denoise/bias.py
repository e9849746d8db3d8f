"""The belief about the channel's bias: gamma ~ N(g, S) from n observations of it.

Observations of precision E give S^-1 = Sigma_gamma^-1 + n E and g = S E total. One eigendecomposition at the
start, W'E W = diag(f) with W W' = Sigma_gamma, turns this into S = W diag(1 / (1 + n f)) W' for every n: no
factorisation in the round loop. S depends on n alone, so all trials of a batch share it where they have
seen equally many.
"""

from dataclasses import dataclass
from typing import NamedTuple

from unfog import validation
from unfog.channel.knowledge import Knowledge
from unfog.maths.arrays import Array, matvec


@dataclass(frozen=True, kw_only=True)
class FromEither:
    """A denoiser that sees the bias, with noise, once a round, in one of two ways.

    From noisy contexts, chat - mu_c = gamma + N(0, Sigma_c + Sigma_n), no true context needed (Algorithm 1);
    or from `pairs`, chat - c = gamma + N(0, Sigma_n), where the true context is revealed (Algorithm 2).
    """

    pairs: bool = False

    def __post_init__(self) -> None:
        """Check the setting."""
        validation.flag("pairs", self.pairs)

    @property
    def sees_context(self) -> bool:
        """Pairs have a true context."""
        return self.pairs

    def sight(self, known: Knowledge) -> "Sight":
        """What one observation says of the bias."""
        return sight(known, known.noise_cov if self.pairs else known.context_cov + known.noise_cov)

    def observation(self, mean: Array, noisy: Array, context: Array) -> Array:
        """An observation of the bias, from mu_c, chat_t and, where it is shown, c_t."""
        return noisy - context if self.pairs else noisy - mean


class Sight(NamedTuple):
    """What one observation says of the bias, in coordinates where all is diagonal."""

    basis: Array  # (d, d)  W
    coordinates: Array  # (d, d)  W'E
    rates: Array  # (d,)    f


class Tally(NamedTuple):
    """Observations of the bias so far."""

    seen: Array  # (...,)    how many; one number where all trials of a batch have seen equally many
    total: Array  # (..., d)  their sum


class Weighed(NamedTuple):
    """A tally with what it says of the bias worked out."""

    seen: Array  # (...,)
    total: Array  # (..., d)
    mean: Array  # (..., d)     g
    cov: Array  # (..., d, d)  S


def sight(known: Knowledge, cov: Array) -> Sight:
    """The diagonal coordinates of observations with noise of this covariance."""
    xp = cov.__array_namespace__()
    root = xp.linalg.cholesky(known.bias_cov)
    whitened = xp.linalg.solve(xp.linalg.cholesky(cov), root)
    rates, vectors = xp.linalg.eigh(whitened.mT @ whitened)
    basis = root @ vectors
    return Sight(basis, xp.linalg.solve(cov, basis).mT, rates)


def nothing_seen(sight: Sight) -> Tally:
    """The tally before the first observation."""
    xp = sight.rates.__array_namespace__()
    return Tally(xp.zeros_like(sight.rates[0]), xp.zeros_like(sight.rates))


def add(tally: Tally | Weighed, observation: Array) -> Tally:
    """The tally after one more observation (..., d)."""
    return Tally(tally.seen + 1, tally.total + observation)


def with_belief(sight: Sight, tally: Tally) -> Weighed:
    """The tally with the belief about the bias, computed once for all uses before the next observation."""
    return Weighed(*tally, *belief(sight, tally))


def belief(sight: Sight, tally: Tally | Weighed) -> tuple[Array, Array]:
    """The mean g (..., d) and covariance S (..., d, d) of the bias."""
    if isinstance(tally, Weighed):
        return tally.mean, tally.cov
    shrunk = sight.basis / (1 + tally.seen[..., None] * sight.rates)[..., None, :]
    return matvec(shrunk, matvec(sight.coordinates, tally.total)), shrunk @ sight.basis.mT


def spread(mean: Array, cov: Array) -> tuple[Array, Array]:
    """A belief (..., d) and (..., d, d), with the covariance broadcast where trials share one."""
    xp = mean.__array_namespace__()
    return mean, xp.broadcast_to(cov, (*mean.shape, mean.shape[-1]))


def known_belief(mean: Array) -> tuple[Array, Array]:
    """The belief (..., d) and (..., d, d) of a denoiser that is told the bias."""
    xp = mean.__array_namespace__()
    return mean, xp.zeros((*mean.shape, mean.shape[-1]), dtype=mean.dtype)


def reading_moments(mean: Array, noisy_cov: Array, bias_mean: Array, bias_cov: Array) -> tuple[Array, Array]:
    """The mean mu_c + g of the next noisy context and its variances, of Sigma_c + Sigma_n + S: (..., d)."""
    xp = noisy_cov.__array_namespace__()
    return mean + bias_mean, xp.linalg.diagonal(noisy_cov) + xp.linalg.diagonal(bias_cov)
