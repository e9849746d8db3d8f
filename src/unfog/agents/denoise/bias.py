"""The belief about the channel's bias: gamma ~ N(g, S) from n observations of it.

Observations of precision E give S^-1 = Sigma_gamma^-1 + n E and g = S E total. One eigendecomposition at the
start, W'E W = diag(f) with W W' = Sigma_gamma, turns this into S = W diag(1 / (1 + n f)) W' for every n: no
factorisation in the round loop. S depends on n alone, so all trials of a batch share it where they have
seen equally many.

A reading with a noise of its own is an observation of another precision E_i. What such observations say is
added up apart, as F = sum W'E_i W and sum W'E_i o_i: then S = W (diag(1 + n f) + F)^-1 W'.
"""

from dataclasses import dataclass
from typing import NamedTuple

from unfog import validation
from unfog.channel.knowledge import Knowledge
from unfog.maths.arrays import Array, diagonal_matrix, matvec
from unfog.maths.linalg import inverse, product


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

    def own_sight(self, sight: "Sight", context_cov: Array, noise: Array) -> "Sight":
        """What an observation with this noise covariance (..., d, d) says of the bias."""
        precision = inverse(noise if self.pairs else context_cov + noise)
        coordinates = product(sight.basis.mT, precision)
        return sight._replace(own=Own(coordinates, product(coordinates, sight.basis)))

    def observation(self, mean: Array, noisy: Array, context: Array) -> Array:
        """An observation of the bias, from mu_c, chat_t and, where it is shown, c_t."""
        return noisy - context if self.pairs else noisy - mean


class Own(NamedTuple):
    """What an observation of another precision E says of the bias, in the same coordinates."""

    coordinates: Array  # (..., d, d)  W'E
    information: Array  # (..., d, d)  W'E W


class Sight(NamedTuple):
    """What one observation says of the bias, in coordinates where all is diagonal."""

    basis: Array  # (d, d)  W
    coordinates: Array  # (d, d)  W'E
    rates: Array  # (d,)    f
    own: Own | tuple[()] = ()  # of the observation at hand, if its precision is another


class Information(NamedTuple):
    """What all observations of other precisions say of the bias."""

    precision: Array  # (..., d, d)  F
    natural_mean: Array  # (..., d)  sum W'E o

    def plus(self, other: "Information") -> "Information":
        """The sum of both."""
        return Information(self.precision + other.precision, self.natural_mean + other.natural_mean)


class Tally(NamedTuple):
    """Observations of the bias so far."""

    seen: Array  # (...,)    how many; one number where all trials of a batch have seen equally many
    total: Array  # (..., d)  their sum
    others: Information | tuple[()] = ()  # those of other precisions


class Weighed(NamedTuple):
    """A tally with what it says of the bias worked out."""

    seen: Array  # (...,)
    total: Array  # (..., d)
    others: Information | tuple[()]
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


def add(sight: Sight, tally: Tally | Weighed, observation: Array) -> Tally:
    """The tally after one more observation (..., d)."""
    if not isinstance(sight.own, Own):
        return Tally(tally.seen + 1, tally.total + observation, tally.others)
    one = Information(sight.own.information, matvec(sight.own.coordinates, observation))
    others = tally.others.plus(one) if isinstance(tally.others, Information) else one
    return Tally(tally.seen, tally.total, others)


def with_belief(sight: Sight, tally: Tally) -> Weighed:
    """The tally with the belief about the bias, computed once for all uses before the next observation."""
    return Weighed(*tally, *belief(sight, tally))


def belief(sight: Sight, tally: Tally | Weighed) -> tuple[Array, Array]:
    """The mean g (..., d) and covariance S (..., d, d) of the bias."""
    if isinstance(tally, Weighed):
        return tally.mean, tally.cov
    if isinstance(tally.others, Information):
        precision = diagonal_matrix(1 + tally.seen[..., None] * sight.rates) + tally.others.precision
        spread = product(sight.basis, inverse(precision))
        natural_mean = matvec(sight.coordinates, tally.total) + tally.others.natural_mean
        return matvec(spread, natural_mean), product(spread, sight.basis.mT)
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
