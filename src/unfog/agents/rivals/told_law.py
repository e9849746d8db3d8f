"""Denoise by being told the law of every context."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from unfog import validation
from unfog.agents.denoise import known_bias
from unfog.agents.denoise.bias import certain
from unfog.agents.denoise.known_bias import KnownBias
from unfog.agents.parts import Denoiser, Expects, KnowsBias, Privilege, Privileged
from unfog.channel.knowledge import Knowledge, masked_shrinkage
from unfog.features import Context
from unfog.maths.arrays import Array, settled
from unfog.maths.gaussian import square_root
from unfog.maths.random import generator

LAW = KnownBias()
PLACES = 2**16  # where in the row of normals a round's draws may begin
DIGITS = (
    1e4  # how many times a noisy context is blown up before its place is read off what is left of a whole
)
MOST_SAMPLES = 10_000


class Parameters(NamedTuple):
    """The channel, bias included, and the normals."""

    law: known_bias.Parameters
    context_cov: Array  # (d, d)  Sigma_c
    noise_cov: Array  # (d, d)  Sigma_n
    root: Array  # (d, d)  of M^-1
    normals: Array  # (PLACES + l d,)  none where the law is known as it is


@dataclass(frozen=True, kw_only=True)
class ToldLaw(Denoiser, Expects, KnowsBias, Privileged):
    """Denoise by being told the law of every context: mu_t, the distribution that it is drawn from.

    In our worlds that is the law of the context given its measurement and the bias, N(A, M^-1) of
    denoise/known_bias.py: the bias is a privilege here, too. What was lost of a measurement is left out of it
    (`masked_shrinkage`). With heavy tails mu_t is still the Gaussian law, with the covariance of the noise
    that agents are told, and not the law that the context was drawn from.

    Two settings come from papers that are told mu_t. With `pairs` the true context is shown after its reward.
    With `samples` = l the law is known by l draws alone,

        psi(a) = (1 / l) sum_s phi(a, c_s),    c_1 .. c_l ~ mu_t.

    The belief then has the mean and the covariance of the draws. Expected features of the second degree at
    most are the average over the draws exactly, and all built-in maps are so. A map by quadrature takes both
    moments for those of a Gaussian.

    Denoisers have no stream of random numbers. The draws come from one fixed row of normals, from a place
    that hangs on the last digits of the noisy context: as good as drawn anew in every round, others in every
    trial, and the same ones when the round is asked for again. A round that lost everything has no digits,
    and is told the law as it is.

    There is nothing to learn about the channel, and nothing is remembered.

    Settings
    --------
    Whether true contexts are shown (`pairs`), and how many draws stand for the law (0: all).
    """

    pairs: bool = False
    samples: int = 0

    name = "told_law"
    note = "is told the law of every context"
    takes_gaps = True

    @property
    def squares(self) -> int:
        """The covariance of its draws, where draws stand for the law."""
        return 1 if self.samples else 0

    def __post_init__(self) -> None:
        """Check the settings."""
        validation.flag("pairs", self.pairs)
        validation.count("samples", self.samples, 0, MOST_SAMPLES)

    @property
    def sees_context(self) -> bool:
        """Pairs have a true context."""
        return self.pairs

    @property
    def cost(self) -> float:
        """The covariance of the draws takes most of it."""
        return self.samples / 50

    def setup(self, known: Knowledge, privilege: Privilege | None) -> Parameters:
        """The gain, the bias that was shown, and the normals."""
        law = LAW.setup(known, privilege)
        xp, cov = law.shrinkage.cov.__array_namespace__(), law.shrinkage.cov
        number = PLACES + self.samples * cov.shape[-1] if self.samples else 0
        normals = generator(0, 0, "told law").standard_normal(number)
        drawn = square_root(cov), xp.asarray(normals, dtype=cov.dtype)
        return Parameters(law, known.context_cov, known.noise_cov, *drawn)

    def with_bias(self, parameters: Parameters, bias: Array) -> Parameters:
        """The bias of this round, where it drifts."""
        return parameters._replace(law=LAW.with_bias(parameters.law, bias))

    def predict(self, parameters: Parameters, state: tuple[()], noisy: Array) -> Context:
        """mu_t, or what the draws say of it: noisy (..., d), not a number where it was lost."""
        xp = noisy.__array_namespace__()
        lost = xp.isnan(noisy)
        if not settled(~lost):  # else one gain serves all trials
            parameters, noisy = (
                with_gaps(parameters, lost),
                xp.where(lost, parameters.law.shrinkage.mean, noisy),
            )
        told = LAW.predict(parameters.law, state, noisy)
        if not self.samples:
            return told
        draws = self.draws(parameters, noisy) @ parameters.root.mT
        mean = draws.mean(-2)
        away = draws - mean[..., None, :]
        blank = lost.all(-1)[..., None]
        cov = xp.where(blank[..., None], told.cov, away.mT @ away / self.samples)
        return Context(told.mean + xp.where(blank, 0.0, mean), cov)

    def draws(self, parameters: Parameters, noisy: Array) -> Array:
        """A round's standard normals: (..., l, d)."""
        xp, dim = noisy.__array_namespace__(), noisy.shape[-1]
        mixed = DIGITS * (noisy / xp.sqrt(parameters.law.variance)).sum(-1)
        first = xp.floor(PLACES * (mixed - xp.floor(mixed))).astype(int)
        found: Array = parameters.normals[first[..., None] + xp.arange(self.samples * dim)]
        return found.reshape(*noisy.shape[:-1], self.samples, dim)

    def expected(self, parameters: Parameters, state: tuple[()]) -> tuple[Array, Array]:
        """mu_c + gamma, and the diagonal of Sigma_c + Sigma_n."""
        return LAW.expected(parameters.law, state)

    def bias(self, parameters: Parameters, state: tuple[()]) -> tuple[Array, Array]:
        """As told, for certain."""
        return certain(parameters.law.bias)


def with_gaps(parameters: Parameters, lost: Any) -> Parameters:
    """The law of contexts whose measurements lost these coordinates, (..., d): one gain and root a trial."""
    xp, law, prior, noise = lost.__array_namespace__(), parameters.law, *parameters[1:3]
    measured, gaps = (~lost).astype(prior.dtype), lost.any(-1)[..., None, None]
    left = masked_shrinkage(law.shrinkage.mean, prior, noise, measured)
    away = xp.eye(prior.shape[-1], dtype=prior.dtype) - left.gain
    # As a sum of squares, and not as a difference: that has a root however small the noise is.
    root = square_root(away @ prior @ away.mT + left.gain @ noise @ left.gain.mT)
    # A trial that lost nothing keeps its gain and its root, whoever plays beside it.
    gain, cov = (xp.where(gaps, one, other) for one, other in zip(left[1:], law.shrinkage[1:], strict=True))
    law = law._replace(shrinkage=left._replace(gain=gain, cov=cov))
    return parameters._replace(law=law, root=xp.where(gaps, root, parameters.root))
