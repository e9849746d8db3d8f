"""Denoise from incomplete records: coordinates lost, true contexts known late, in any order, or in part.

Of a round the coordinates o of chat were measured, and by now the coordinates k of the true context may be
known: not a number marks the others. Given c_k the context is N(m, C), the conditional of N(mu_c, Sigma_c),
so chat_o - m_o = gamma_o + N(0, (C + Sigma_n)_oo). The belief about the bias is the prior and one term for
every round, in information form, with E zero outside o:

    precision = Sigma_gamma^-1 + sum E,   natural mean = sum E (chat - m),   E = ((C + Sigma_n)_oo)^-1.

A sum has no order, and a term can be replaced by another: that is what `correct` does. With gamma ~ N(g, S)
from all *other* rounds, the context of a round is, exactly,

    N(m + G (chat - m - g),  C - G C),   G = C ((C + Sigma_n + S)_oo)^-1.

Nothing lost and nothing known, this is `exact`; everything known, `exact` with pairs. To know more
of a context never makes its term smaller, so sums lose no digits to a term that is taken back; what limits
them is the ratio of the largest to the smallest variance among Sigma_gamma and Sigma_n: 1e15 at most.
"""

from dataclasses import dataclass
from typing import NamedTuple

from unfog.agents.denoise import bias
from unfog.agents.denoise.bias import FromEither
from unfog.agents.parts import Corrects, Denoiser, Expects, Privilege
from unfog.features import Context
from unfog.maths.arrays import Array, matvec
from unfog.model.knowledge import Knowledge
from unfog.model.shrinkage import masked_inverse


class Parameters(NamedTuple):
    """The channel."""

    mean: Array  # (d,)    mu_c
    context_cov: Array  # (d, d)  Sigma_c
    noise_cov: Array  # (d, d)  Sigma_n
    precision: Array  # (d, d)  of the bias, to begin with


class State(NamedTuple):
    """The belief about the bias in information form; also what one round says of it."""

    precision: Array  # (..., d, d)
    natural_mean: Array  # (..., d)  precision times mean

    def plus(self, term: "State") -> "State":
        """With one more term."""
        return State(self.precision + term.precision, self.natural_mean + term.natural_mean)

    def less(self, term: "State") -> "State":
        """With one term less."""
        return State(self.precision - term.precision, self.natural_mean - term.natural_mean)


@dataclass(frozen=True, kw_only=True)
class Incomplete(FromEither, Denoiser, Expects, Corrects):
    """Its setting: with `pairs` it is shown true contexts, as far as they are ever known."""

    name = "incomplete"
    note = "knows which coordinates were lost; takes true contexts late, in any order, whole or in part"
    cost = 0.7
    takes_gaps = True

    def setup(self, known: Knowledge, privilege: Privilege | None) -> Parameters:
        """The covariances, and the prior of the bias as a precision."""
        xp = known.bias_cov.__array_namespace__()
        precision = xp.linalg.inv(known.bias_cov)
        return Parameters(known.context_mean, known.context_cov, known.noise_cov, precision)

    def start(self, parameters: Parameters) -> State:
        """The prior."""
        xp = parameters.mean.__array_namespace__()
        return State(parameters.precision, xp.zeros_like(parameters.mean))

    def predict(self, parameters: Parameters, state: State, noisy: Array) -> Context:
        """The posterior of this round's context: noisy (..., d), not a number where it was lost."""
        return _context(parameters, state, noisy, Context(parameters.mean, parameters.context_cov))

    def expected(self, parameters: Parameters, state: State) -> tuple[Array, Array]:
        """mu_c + g, and the diagonal of Sigma_c + Sigma_n + S."""
        noisy_cov = parameters.context_cov + parameters.noise_cov
        return bias.expected(parameters.mean, noisy_cov, *_bias(state))

    def update(self, parameters: Parameters, state: State, noisy: Array, context: Array | None) -> State:
        """The belief with this round's term; where the true context is shown at once, with what that says."""
        return state.plus(_term(parameters, noisy, _so_far(parameters, context)))

    def correct(
        self, parameters: Parameters, state: State, noisy: Array, before: Array, after: Array
    ) -> tuple[State, Context]:
        """Replace a round's term, and say what its context is now; see `Corrects` in agents/parts.py."""
        known = _so_far(parameters, after)
        old = _term(parameters, noisy, _so_far(parameters, before))
        new = _term(parameters, noisy, known)
        # What the round itself says of the bias is not held against its own context a second time. The change
        # is added in one go, so that where there is none the state keeps its bits.
        return state.plus(new.less(old)), _context(parameters, state.less(old), noisy, known)


def conditional(mean: Array, cov: Array, known: Array) -> Context:
    """A context c ~ N(mean, cov) given the coordinates of it that are numbers: known (..., d)."""
    xp = known.__array_namespace__()
    hidden = xp.isnan(known)
    seen, left = (~hidden).astype(cov.dtype), hidden.astype(cov.dtype)
    gain = cov @ masked_inverse(cov, seen)
    moved = mean + matvec(gain, xp.where(hidden, 0.0, known - mean))
    # Exactly known where it is known: features factorise such a covariance.
    return Context(
        xp.where(hidden, moved, known), left[..., :, None] * left[..., None, :] * (cov - gain @ cov)
    )


def posterior(context: Context, noise_cov: Array, bias_mean: Array, bias_cov: Array, noisy: Array) -> Context:
    """A context given its measurement and N(bias_mean, bias_cov) from other rounds: noisy (..., d)."""
    xp = noisy.__array_namespace__()
    lost = xp.isnan(noisy)
    mean, cov = context
    gain = cov @ masked_inverse(cov + noise_cov + bias_cov, (~lost).astype(cov.dtype))
    surprise = xp.where(lost, 0.0, noisy - mean - bias_mean)
    return Context(mean + matvec(gain, surprise), cov - gain @ cov)


def _so_far(parameters: Parameters, known: Array | None) -> Context:
    """What is known of a context, its measurement apart."""
    if known is None:
        return Context(parameters.mean, parameters.context_cov)
    return conditional(parameters.mean, parameters.context_cov, known)


def _term(parameters: Parameters, noisy: Array, context: Context) -> State:
    """What a round says of the bias, its context being this."""
    xp = noisy.__array_namespace__()
    lost = xp.isnan(noisy)
    precision = masked_inverse(context.cov + parameters.noise_cov, (~lost).astype(context.cov.dtype))
    return State(precision, matvec(precision, xp.where(lost, 0.0, noisy - context.mean)))


def _context(parameters: Parameters, state: State, noisy: Array, context: Context) -> Context:
    """The posterior of a round's context, with the belief about the bias from other rounds."""
    return posterior(context, parameters.noise_cov, *_bias(state), noisy)


def _bias(state: State) -> tuple[Array, Array]:
    """Mean and covariance of the bias."""
    xp = state.precision.__array_namespace__()
    cov = xp.linalg.inv(state.precision)
    return matvec(cov, state.natural_mean), cov
