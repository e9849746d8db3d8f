"""Denoise from incomplete records."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from unfog.agents.base import (
    Corrects,
    Denoiser,
    ForecastsReading,
    KnowsBias,
    PredictsReading,
    Privilege,
    TakesNoise,
    is_news,
)
from unfog.agents.denoise import bias
from unfog.agents.denoise.bias import FromEither, spread
from unfog.channel.knowledge import Knowledge, masked_inverse
from unfog.features import Context
from unfog.maths.arrays import Array, Bools, holds_everywhere, matvec
from unfog.maths.linalg import inverse, product
from unfog.maths.trees import if_any, where


class Parameters(NamedTuple):
    """The channel."""

    mean: Array  # (d,)    mu_c
    context_cov: Array  # (d, d)  Sigma_c
    noise_cov: Array  # (..., d, d)  Sigma_n
    precision: Array  # (d, d)  of the bias, to begin with
    alone: Array  # (..., d, d)  (Sigma_c + Sigma_n)^-1
    paired: Array  # (..., d, d)  Sigma_n^-1
    variance: Array  # (..., d)  of a reading's coordinates, before any


class State(NamedTuple):
    """The belief about the bias in information form; also what one round says of it."""

    precision: Array  # (..., d, d)
    natural_mean: Array  # (..., d)  precision times mean

    def plus(self, term: "State") -> "State":
        """The sum with one more term."""
        return State(self.precision + term.precision, self.natural_mean + term.natural_mean)

    def less(self, term: "State") -> "State":
        """The sum with one term less."""
        return State(self.precision - term.precision, self.natural_mean - term.natural_mean)


@dataclass(frozen=True, kw_only=True)
class Incomplete(FromEither, Denoiser, PredictsReading, ForecastsReading, Corrects, KnowsBias, TakesNoise):
    """Denoise from incomplete records: coordinates lost, true contexts known late, in any order, or in part.

    Of a round the coordinates o of chat were measured, and by now the coordinates k of the true context may
    be known: not a number marks the others. Given c_k the context is N(m, C), the conditional of N(mu_c,
    Sigma_c), so chat_o - m_o = gamma_o + N(0, (C + Sigma_n)_oo). The belief about the bias is the prior and
    one term for every round, in information form, with E zero outside o:

        S^-1 = Sigma_gamma^-1 + sum E,   g = S sum E (chat_t - m),   E = ((C + Sigma_n)_oo)^-1
        m, C: mean and covariance of c_t given what is known of it;   o: the coordinates that were measured

    A sum has no order, and a term can be replaced by another: that is what `correct` does. With gamma ~ N(g,
    Q) from all rounds, this one included, the context of a round is, exactly,

        N(m + C E (chat - m - g),  C - C E C + C E Q E C).

    The Sigma_n of a round is that of its reading, if that one has a noise of its own.

    Mostly nothing was lost, and of a context all is known or nothing: then E is one of two matrices made
    once. Nothing lost and nothing known, this is `exact`; everything known, `exact` with pairs. To know more
    of a context never makes its term smaller, so sums lose no digits to a term that is taken back; what
    limits them is the ratio of the largest to the smallest variance among Sigma_gamma and Sigma_n: 1e15 at
    most.

    Settings
    --------
    With `pairs` it is shown true contexts, as far as they are ever known.

    >>> import unfog
    >>> agent = unfog.Agent(
    ...     "mine", unfog.denoise.Incomplete(), unfog.learn.Scaled(), unfog.choose.RandUcb()
    ... )
    >>> problem = unfog.GaussianProblem(dim=2, actions=5, missing=0.3)
    >>> result = unfog.run(problem, agents=[agent, "naive"], rounds=50, trials=20, seed=0)
    >>> result.regret.isel(round=-1).mean("trial").round(1).values.tolist()  # mean regret, ours first
    [4.0, 6.5]
    """

    name = "incomplete"
    note = "knows which coordinates were lost; takes true contexts late, in any order, whole or in part"
    cost = 0.7
    squares = 2
    takes_gaps = True

    def setup(self, known: Knowledge, privilege: Privilege | None) -> Parameters:
        """The covariances, and the prior of the bias as a precision."""
        xp = known.bias_cov.__array_namespace__()
        covs = known.bias_cov, known.context_cov + known.noise_cov, known.noise_cov
        precision, alone, paired = (xp.linalg.inv(cov) for cov in covs)
        variance = xp.linalg.diagonal(known.context_cov + known.noise_cov + known.bias_cov)
        channel = known.context_mean, known.context_cov, known.noise_cov
        return Parameters(*channel, precision, alone, paired, variance)

    def with_noise(self, parameters: Parameters, noise: Array) -> Parameters:
        """The covariances of a reading with this noise."""
        xp = noise.__array_namespace__()
        more = xp.linalg.diagonal(noise) - xp.linalg.diagonal(parameters.noise_cov)
        return parameters._replace(
            noise_cov=noise,
            alone=inverse(parameters.context_cov + noise),
            paired=inverse(noise),
            variance=parameters.variance + more,
        )

    def start(self, parameters: Parameters) -> State:
        """The prior."""
        xp = parameters.mean.__array_namespace__()
        return State(parameters.precision, xp.zeros_like(parameters.mean))

    def predict(self, parameters: Parameters, state: State, noisy: Array) -> Context:
        """The posterior of this round's context: noisy (..., d), not a number where it was lost."""
        term, known = term_of(parameters, noisy, None)
        return context_of(state.plus(term), term, known)

    def predict_reading(self, parameters: Parameters, state: State) -> tuple[Array, Array]:
        """Prior moments: mu_c, and the diagonal of Sigma_c + Sigma_n + Sigma_gamma.

        To use what is known of the bias would cost an inverse for every trial.
        """
        return parameters.mean, parameters.variance

    def forecast_reading(self, parameters: Parameters, state: State) -> tuple[Array, Array]:
        """mu_c + g, and the diagonal of Sigma_c + Sigma_n + S."""
        cov = inverse(state.precision)
        noisy_cov = parameters.context_cov + parameters.noise_cov
        return bias.reading_moments(parameters.mean, noisy_cov, matvec(cov, state.natural_mean), cov)

    def update(self, parameters: Parameters, state: State, noisy: Array, context: Array | None) -> State:
        """The belief with this round's term, and with its true context where that is shown at once."""
        return state.plus(term_of(parameters, noisy, context)[0])

    def correct(
        self, parameters: Parameters, state: State, noisy: Array, before: Array, after: Array
    ) -> tuple[State, Context]:
        """Replace a round's term, and say what its context is now; see `Corrects` in agents/base.py."""
        (old, _), (new, known) = term_of(parameters, noisy, before), term_of(parameters, noisy, after)
        # The change is added in one go, so that where there is none the state keeps its bits.
        state = state.plus(new.less(old))
        context = posterior_if_news(before, after, known, lambda: context_of(state, new, known))
        return state, context

    def bias(self, parameters: Parameters, state: State) -> tuple[Array, Array]:
        """The belief from the terms of all rounds."""
        return _bias_moments(state)


def _bias_moments(state: State) -> tuple[Array, Array]:
    """Mean and covariance of the bias."""
    cov = inverse(state.precision)
    return spread(matvec(cov, state.natural_mean), cov)


def posterior_if_news(
    before: Array, after: Array, known: Context, posterior: Callable[[], Context]
) -> Context:
    """The posterior where a context has news but is not fully known; elsewhere `known`, which suffices."""
    xp = after.__array_namespace__()
    needs_posterior = is_news(before, after) & xp.isnan(after).any(-1)
    if holds_everywhere(~needs_posterior):
        return known
    return if_any(needs_posterior, lambda: where(needs_posterior, posterior(), known), known)


def conditional(mean: Array, cov: Array, known: Array) -> Context:
    """A context c ~ N(mean, cov) given the coordinates of it that are numbers: known (..., d)."""
    xp = known.__array_namespace__()
    hidden = xp.isnan(known)
    if holds_everywhere(_has_equal_flags(hidden)):
        return Context(xp.where(hidden, mean, known), xp.where(hidden[..., None], cov, 0.0))
    known_mask, hidden_mask = (~hidden).astype(cov.dtype), hidden.astype(cov.dtype)
    gain = product(cov, masked_inverse(cov, known_mask))
    posterior_mean = mean + matvec(gain, xp.where(hidden, 0.0, known - mean))
    # Exactly known where it is known: features factorise such a covariance.
    return Context(
        xp.where(hidden, posterior_mean, known),
        hidden_mask[..., :, None] * hidden_mask[..., None, :] * (cov - product(gain, cov)),
    )


def _has_equal_flags(hidden: Bools) -> Bools:
    """Where a coordinate is hidden just as the first one is: (..., d)."""
    return hidden == hidden[..., :1]


def term_of(parameters: Parameters, noisy: Array, known: Array | None) -> tuple[State, Context]:
    """What a round says of the bias, and its context as far as it is known, without its measurement."""
    is_general = noisy.__array_namespace__().isnan(noisy).any(-1)
    if known is not None:
        is_general = is_general | ~_has_equal_flags(known.__array_namespace__().isnan(known)).all(-1)
    common = _common_term(parameters, noisy, known)
    return (
        common
        if holds_everywhere(~is_general)
        else if_any(is_general, lambda: _general_term(parameters, noisy, known), common)
    )


def _common_term(parameters: Parameters, noisy: Array, known: Array | None) -> tuple[State, Context]:
    """The term of a round that lost nothing and whose context is known in full or not at all."""
    xp, context = noisy.__array_namespace__(), Context(parameters.mean, parameters.context_cov)
    precision = xp.broadcast_to(parameters.alone, (*noisy.shape, noisy.shape[-1]))
    if known is not None:
        hidden = xp.isnan(known)
        context = Context(
            xp.where(hidden, context.mean, known), xp.where(hidden[..., None], context.cov, 0.0)
        )
        precision = xp.where(hidden[..., None], precision, parameters.paired)
    return State(precision, matvec(precision, noisy - context.mean)), context


def _general_term(parameters: Parameters, noisy: Array, known: Array | None) -> tuple[State, Context]:
    """The term of any round."""
    xp = noisy.__array_namespace__()
    lost, context = xp.isnan(noisy), Context(parameters.mean, parameters.context_cov)
    if known is not None:
        context = conditional(*context, known)
    precision = masked_inverse(context.cov + parameters.noise_cov, (~lost).astype(context.cov.dtype))
    return State(precision, matvec(precision, xp.where(lost, 0.0, noisy - context.mean))), context


def context_of(state: State, term: State, known: Context) -> Context:
    """The posterior of a round's context, with what all rounds say of the bias, its own term included."""
    bias_cov = inverse(state.precision)
    shift = term.natural_mean - matvec(term.precision, matvec(bias_cov, state.natural_mean))
    gain = product(known.cov, term.precision)
    cov = known.cov - product(gain, known.cov) + product(product(gain, bias_cov), gain.mT)
    return Context(known.mean + matvec(known.cov, shift), cov)
