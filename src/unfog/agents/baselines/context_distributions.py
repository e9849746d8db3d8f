"""Baselines that are told the distribution of every context: Kirschner and Krause, and Yang and others.

**Kirschner and Krause** have UCB with context distributions: see `ContextRidge`.

**Yang and others** have probabilistic contexts: a round shows a bundle of contexts and their probabilities,
and kernel UCB chooses.

    k(B, B') = sum_s sum_s' p_s p'_s' k((a, c_s), (a', c'_s'))         the bundle kernel
    mean(B) = k_t'(K + l I)^-1 r,    sd(B)^2 = (k(B, B) - k_t'(K + l I)^-1 k_t) / l
    argmax mean + beta_t sd,    beta_t = R sqrt(ln det(I + K / l) + 2 ln(1 / delta)) + sqrt(l) S

L. Yang, J. Yang and S. Ren, *Multi-Feedback Bandit Learning with Probabilistic Contexts*. Where the kernel is
that of a map with finitely many features, k(x, x') = phi(x)'phi(x'), the bundle kernel is psi'psi' with psi
the features expected under the bundle: kernel ridge regression is ridge regression on psi, and
ln det(I + K / l) = ln det(V / l). So it is written here, with OFUL's learner. Of several feedbacks that the
paper allows there is one: the reward.

How sure: the bundle kernel and UCB on it, medium; beta_t, low: it is the usual bound for ridge regression,
with R the deviation of rewards and S the length of theta as its prior has it; l = 1 and delta = 0.05 are
ours. In our worlds the law of a context is Gaussian, a bundle of all contexts; with `samples` = n it is n of
them, each with probability 1 / n.
"""

from dataclasses import dataclass
from functools import partial
from math import log, sqrt
from typing import Any, NamedTuple

from unfog import validation
from unfog.agents.agent import Agent
from unfog.agents.base import Denoiser, KnowsBias, PredictsReading, Privilege, SeesBias
from unfog.agents.baselines.base import Baseline, Optimism, Ridge, Sizes, State
from unfog.agents.baselines.linear_ucb import Ellipsoid
from unfog.agents.denoise import Exact, Identity, reference
from unfog.agents.denoise.bias import known_belief
from unfog.agents.denoise.reference import KnownBias
from unfog.channel.knowledge import Knowledge, masked_shrinkage
from unfog.features import Context
from unfog.maths.arrays import Array, holds_everywhere
from unfog.maths.gaussian import square_root
from unfog.maths.random import generator

DENOISER = KnownBias()
PLACES = 2**16  # positions in the row of normals at which a round's draws may begin
# A noisy context is multiplied by this before its fractional part decides where its draws begin.
DIGITS = 1e4
MOST_SAMPLES = 10_000


class Parameters(NamedTuple):
    """The channel, bias included, and the normals."""

    law: reference.Parameters
    context_cov: Array  # (d, d)  Sigma_c
    noise_cov: Array  # (d, d)  Sigma_n
    root: Array  # (d, d)  of M^-1
    normals: Array  # (PLACES + l d,)  none where the law is known as it is


@dataclass(frozen=True, kw_only=True)
class KnownLaw(Denoiser, PredictsReading, KnowsBias, SeesBias):
    """Denoise by being told the law of every context: mu_t, the distribution that it is drawn from.

    In our worlds that is the law of the context given its measurement and the bias, N(A, M^-1) of
    `KnownBias`: the bias is a privilege here, too. What was lost of a measurement is left out of it
    (`masked_shrinkage`). With heavy tails mu_t is still the Gaussian law, with the covariance of the noise
    that agents are told, and not the law that the context was drawn from.

    Two settings come from papers that are told mu_t. With `pairs` the true context is shown after its reward.
    With `samples` = l the law is known by l draws alone,

        psi(a) = (1 / l) sum_s phi(a, c_s),    c_1 .. c_l ~ mu_t.

    The belief then has the mean and the covariance of the draws. Expected features of the second degree at
    most are the average over the draws exactly, and all built-in maps are so. A map by quadrature takes both
    moments for those of a Gaussian.

    Denoisers have no stream of random numbers. The draws come from one fixed row of normals, from a place
    that depends on the last digits of the noisy context: as good as fresh draws in every round, others in
    every trial, and the same ones when the round is asked for again. A round that lost everything has no
    digits, and is told the law as it is.

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
        law = DENOISER.setup(known, privilege)
        xp, cov = law.shrinkage.cov.__array_namespace__(), law.shrinkage.cov
        number = PLACES + self.samples * cov.shape[-1] if self.samples else 0
        normals = generator(0, 0, "told law").standard_normal(number)
        sampling = square_root(cov), xp.asarray(normals, dtype=cov.dtype)
        return Parameters(law, known.context_cov, known.noise_cov, *sampling)

    def with_bias(self, parameters: Parameters, bias: Array) -> Parameters:
        """The bias of this round, where it drifts."""
        return parameters._replace(law=DENOISER.with_bias(parameters.law, bias))

    def predict(self, parameters: Parameters, state: tuple[()], noisy: Array) -> Context:
        """mu_t, or what the draws say of it: noisy (..., d), not a number where it was lost."""
        xp = noisy.__array_namespace__()
        lost = xp.isnan(noisy)
        if not holds_everywhere(~lost):  # else one gain serves all trials
            parameters, noisy = (
                with_gaps(parameters, lost),
                xp.where(lost, parameters.law.shrinkage.mean, noisy),
            )
        law = DENOISER.predict(parameters.law, state, noisy)
        if not self.samples:
            return law
        draws = self.draws(parameters, noisy) @ parameters.root.mT
        mean = draws.mean(-2)
        deviations = draws - mean[..., None, :]
        lost_all = lost.all(-1)[..., None]
        cov = xp.where(lost_all[..., None], law.cov, deviations.mT @ deviations / self.samples)
        return Context(law.mean + xp.where(lost_all, 0.0, mean), cov)

    def draws(self, parameters: Parameters, noisy: Array) -> Array:
        """A round's standard normals: (..., l, d)."""
        xp, dim = noisy.__array_namespace__(), noisy.shape[-1]
        digits = DIGITS * (noisy / xp.sqrt(parameters.law.variance)).sum(-1)
        first = xp.floor(PLACES * (digits - xp.floor(digits))).astype(int)
        normals: Array = parameters.normals[first[..., None] + xp.arange(self.samples * dim)]
        return normals.reshape(*noisy.shape[:-1], self.samples, dim)

    def predict_reading(self, parameters: Parameters, state: tuple[()]) -> tuple[Array, Array]:
        """mu_c + gamma, and the diagonal of Sigma_c + Sigma_n."""
        return DENOISER.predict_reading(parameters.law, state)

    def bias(self, parameters: Parameters, state: tuple[()]) -> tuple[Array, Array]:
        """The told bias, with certainty."""
        return known_belief(parameters.law.bias)


def with_gaps(parameters: Parameters, lost: Any) -> Parameters:
    """The law of contexts whose measurements lost these coordinates, (..., d): one gain and root a trial."""
    xp, law, prior, noise = lost.__array_namespace__(), parameters.law, *parameters[1:3]
    measured, gaps = (~lost).astype(prior.dtype), lost.any(-1)[..., None, None]
    shrinkage = masked_shrinkage(law.shrinkage.mean, prior, noise, measured)
    remainder = xp.eye(prior.shape[-1], dtype=prior.dtype) - shrinkage.gain
    # As a sum of squares rather than a difference, so that it has a root however small the noise is.
    root = square_root(remainder @ prior @ remainder.mT + shrinkage.gain @ noise @ shrinkage.gain.mT)
    # A trial that lost nothing keeps its gain and root, whatever the other trials of the batch lost.
    gain, cov = (
        xp.where(gaps, own, shared) for own, shared in zip(shrinkage[1:], law.shrinkage[1:], strict=True)
    )
    law = law._replace(shrinkage=shrinkage._replace(gain=gain, cov=cov))
    return parameters._replace(law=law, root=xp.where(gaps, root, parameters.root))


KIRSCHNER_KRAUSE_PAPER = "Kirschner and Krause, Stochastic Bandits with Context Distributions"


@dataclass(frozen=True, kw_only=True)
class ContextRidge(Ridge):
    """UCB with context distributions: a round tells the law mu_t of its context, and the context stays
    hidden.

        psi_t(a) = E[phi(a, c)],  c ~ mu_t        V = I + sum x x',    theta = V^-1 sum x r
        argmax psi_t(a)'theta + beta_t |psi_t(a)|_{V^-1},    beta_t = rho sqrt(ln det V - 2 ln delta) + 1

        kk-hidden     x = psi_t(a_t),
        rho = sqrt(4 + sigma^2): not knowing the context adds to the noise
        kk-observed   x = phi(a_t, c_t),
        rho = sigma: c_t is shown after its reward; psi_t scores all the same
        kk-sampled    psi_t is an average over l draws from mu_t, in scores and in x; l = 10, or 100
        kk-exact      the context is seen before the arm is chosen: UCB as it is without context distributions
        kk-learnt     kk-hidden that is told no law: mu_t is what `unfog` believes of the context

    J. Kirschner and A. Krause, *Stochastic Bandits with Context Distributions*. Formulas, V = I and delta =
    0.05 are those of the authors' code. sigma is the deviation of rewards, which it must be told; that theta
    is no longer than one, and that rewards differ from psi'theta by two at most on account of the context, is
    assumed. The shipped runs put constants in place of beta_t, which is what `beta` is for: 10 where the
    context is hidden and 2 elsewhere on their synthetic problem, 1 on their data. Rewards of 0 or 1 are not
    in the paper: there rho = 1/2 whatever is hidden, since such a reward has no heavier tails.

    The kernel version of the paper is this one for a map of finitely many features. kk-exact takes the noisy
    context for the true one, and is what its name says where there is no noise.

    Settings
    --------
    `hidden` where rows are expected features; `beta` in place of beta_t, unless it is 0.
    """

    delta: float = 0.05
    beta: float = 0.0
    hidden: bool = True

    name = "context_ridge"
    note = "ridge regression on the expected features"

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        validation.not_negative("beta", self.beta)
        validation.flag("hidden", self.hidden)
        validation.share("delta", self.delta)

    def width(self, parameters: Sizes, state: State) -> Array:
        """beta_t."""
        xp = state.volume.__array_namespace__()
        if self.beta:
            constant: Array = xp.full_like(state.volume, self.beta)
            return constant
        doubled = self.hidden and not self.zero_one
        rho = xp.sqrt(4 + parameters.noise**2) if doubled else parameters.noise
        width: Array = rho * xp.sqrt(state.volume - 2 * log(self.delta)) + sqrt(self.ridge)
        return width


def _agent(name: str, denoiser: Denoiser, summary: str, *, hidden: bool = True) -> Agent:
    learner = ContextRidge(hidden=hidden)
    binary_learner = ContextRidge(hidden=hidden, zero_one=True)
    return Agent(
        name,
        denoiser,
        learner,
        Optimism(),
        binary_learner=binary_learner,
        summary=summary,
        reference=KIRSCHNER_KRAUSE_PAPER,
    )


_baseline = partial(Baseline, regret="regret", home="baseline-kk", tuned="beta")
NEEDED_KNOWLEDGE = "the law of every context, sigma"
HIDDEN, SEEN = (0.1, 0.3, 1.0, 2.0, 5.0, 10.0), (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)

KIRSCHNER_KRAUSE = [
    _baseline(
        _agent("kk-hidden", KnownLaw(), "ridge on features expected under the law of each context, UCB"),
        needs=NEEDED_KNOWLEDGE,
        sees="the law of each context",
        grid=HIDDEN,
    ),
    _baseline(
        _agent(
            "kk-observed",
            KnownLaw(pairs=True),
            "kk-hidden that is shown the context after its reward, and learns from it",
            hidden=False,
        ),
        needs=NEEDED_KNOWLEDGE,
        sees="the law of each context, and afterwards the context",
        grid=SEEN,
    ),
    _baseline(
        _agent("kk-sampled", KnownLaw(samples=10), "kk-hidden that knows the law of a context by ten draws"),
        needs=NEEDED_KNOWLEDGE,
        sees="draws from the law of each context",
        grid=HIDDEN,
    ),
    _baseline(
        _agent("kk-exact", Identity(), "UCB that takes what it sees for the context", hidden=False),
        needs="sigma",
        regret="regret_true_context",
        grid=SEEN,
    ),
    _baseline(
        _agent("kk-learnt", Exact(), "kk-hidden that learns the channel instead of being told its bias"),
        needs="the laws of contexts and channel, sigma",
        sees="noisy contexts",
        grid=HIDDEN,
    ),
]


YANG_PAPER = "Yang, Yang and Ren, Multi-Feedback Bandit Learning with Probabilistic Contexts"

YANG = [
    Baseline(
        Agent(
            "yang-bundle",
            KnownLaw(),
            Ellipsoid(),
            Optimism(),
            binary_learner=Ellipsoid(zero_one=True),
            summary="kernel UCB on bundles of contexts and their probabilities",
            reference=YANG_PAPER,
        ),
        needs="the law of every context, the deviation of rewards, how long theta is",
        sees="the law of each context",
        regret="regret",
        tuned="alpha",
        grid=(0.03, 0.06, 0.125, 0.25, 0.5, 1.0),
        sure="low",
    )
]
