"""Denoise with the covariance of the noise unknown too."""

from dataclasses import dataclass
from typing import NamedTuple

from unfog import validation
from unfog.agents.base import Corrects, Denoiser, KnowsBias, PredictsReading, Privilege
from unfog.agents.denoise import incomplete
from unfog.agents.denoise.bias import FromEither, spread
from unfog.channel.knowledge import Knowledge
from unfog.channel.noise import Fit, Sums, bias, fit
from unfog.features import Context
from unfog.maths.arrays import Array, diagonal_matrix, holds_everywhere, matvec, stretch
from unfog.maths.linalg import inverse, product


class Parameters(NamedTuple):
    """What agents are told of the channel, and how far they trust it.

    Numbers with a star are in coordinates where Sigma_c = I and the told covariance is diagonal.
    """

    mean: Array  # (d,)    mu_c
    context_cov: Array  # (d, d)  Sigma_c
    there: Array  # (d, d)  to those coordinates, and
    back: Array  # (d, d)  from them
    noise_vars: Array  # (d,)  *
    precision: Array  # (d, d)  * of the bias, to begin with
    trust: Array  # ()
    variance: Array  # (d,)  of a reading's coordinates, as told


class Tally(NamedTuple):
    """Observations of the bias so far."""

    seen: Array  # (...,)
    total: Array  # (..., d)
    square: Array  # (..., d, d)

    def plus(self, x: Array, weight: Array) -> "Tally":
        """The tally with an observation added, removed or ignored: weight (...,) is 1, -1 or 0."""
        weighted = weight[..., None] * x
        square = self.square + weighted[..., :, None] * x[..., None, :]
        return Tally(self.seen + weight, self.total + weighted, square)


class State(NamedTuple):
    """Sums over pairs, and over measurements whose context is not known."""

    pairs: Tally
    alone: Tally


class Channel(NamedTuple):
    """What is believed of the channel."""

    noise_cov: Array  # (..., d, d)  N
    bias_mean: Array  # (..., d)  g
    bias_cov: Array  # (..., d, d)  S


@dataclass(frozen=True, kw_only=True)
class UnknownNoise(FromEither, Denoiser, PredictsReading, Corrects, KnowsBias):
    """Denoise with the covariance of the noise unknown too, learnt from pairs, and from noisy contexts alone.

        gamma ~ N(0, Sigma_gamma),   Sigma_n ~ inverse Wishart of the mean that is told, worth trust residuals
        chat_t - c_t ~ N(gamma, Sigma_n),   chat_t - mu_c ~ N(gamma, Sigma_c + Sigma_n)

    A pair shows z = chat - c ~ N(gamma, Sigma_n), a measurement alone y = chat - mu_c ~ N(gamma, Sigma_c +
    Sigma_n); counts, sums and sums of outer products of both are all there is to remember, so a pair that
    comes late replaces its measurement (`correct`), in any order. A normal-inverse-Wishart would tie the
    spread of gamma to Sigma_n; here they are independent to begin with, and each is found given the other.
    With N for Sigma_n,

        S^-1 = Sigma_gamma^-1 + n N^-1 + u (Sigma_c + N)^-1,   g = S (N^-1 sum z + (Sigma_c + N)^-1 sum y);

    with gamma ~ N(g, S), Rz and Ry the expected scatters of z and y about gamma, and B = N (Sigma_c + N)^-1,

        trust (N - told) + (n N - Rz) + B (u (Sigma_c + N) - Ry) B' = 0.

    From pairs alone, gamma known, this N is the posterior mean (trust told + Rz) / (trust + n); the last part
    is the pairs' own equation with a context in expectation in place of one that is known (EM's fixed point).
    How it is solved: channel/noise.py. Contexts are denoised exactly for this N; what is not known of
    Sigma_n beyond it is left out.

    Against Gibbs sampling (d = 2, trust 2, told variances off by a factor of two): variances are off by 4 %
    after two pairs, 2 % after 10 and 20 alone, 5 to 10 % after 40 to 200 alone, but 25 % after ten alone,
    whose posterior is skew; means of contexts by 0.15 of their standard deviations, 0.02, 0.03 to 0.1, and
    0.2.

    Settings
    --------
    How many residuals the told covariance is worth (degrees of freedom d + 1 + trust).

    With `pairs` it is shown true contexts, as far as they are ever known.

    >>> import unfog
    >>> agent = unfog.Agent(
    ...     "mine", unfog.denoise.UnknownNoise(), unfog.learn.Revisable(), unfog.choose.Ucb()
    ... )
    >>> problem = unfog.GaussianProblem(dim=2, actions=5, revealed=0.2)
    >>> result = unfog.run(problem, agents=[agent, "naive"], rounds=50, trials=20, seed=0)
    >>> result.regret.isel(round=-1).mean("trial").round(1).values.tolist()  # mean regret, ours first
    [4.6, 8.0]
    """

    trust: float = 2.0
    pairs: bool = True

    name = "unknown_noise"
    note = "learns the covariance of the noise, too"
    cost = 4.0
    squares = 3

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        validation.positive("trust", self.trust)

    def setup(self, known: Knowledge, privilege: Privilege | None) -> Parameters:
        """The covariances, and the prior of the bias as a precision."""
        xp = known.bias_cov.__array_namespace__()
        root = xp.linalg.cholesky(known.context_cov)
        white = xp.linalg.inv(root)
        noise_vars, vectors = xp.linalg.eigh(white @ known.noise_cov @ white.mT)
        to_basis, back = vectors.mT @ white, root @ vectors
        precision = back.mT @ xp.linalg.inv(known.bias_cov) @ back
        trust = xp.asarray(float(self.trust))
        variance = xp.linalg.diagonal(known.context_cov + known.noise_cov + known.bias_cov)
        return Parameters(
            known.context_mean, known.context_cov, to_basis, back, noise_vars, precision, trust, variance
        )

    def start(self, parameters: Parameters) -> State:
        """Nothing seen yet."""
        xp = parameters.mean.__array_namespace__()
        empty = Tally(*map(xp.zeros_like, (parameters.trust, parameters.mean, parameters.context_cov)))
        return State(empty, empty)

    def predict(self, parameters: Parameters, state: State, noisy: Array) -> Context:
        """The posterior of this round's context."""
        return _denoise(parameters, fit(parameters.noise_vars, _collect_sums(parameters, state)), noisy)

    def predict_reading(self, parameters: Parameters, state: State) -> tuple[Array, Array]:
        """mu_c, and the mean square about it of what was seen so far, what is told being worth one reading.

        A fit of the noise would say more, and take as long as all else in a round.
        """
        pairs, alone = state
        xp = parameters.mean.__array_namespace__()
        squares = xp.linalg.diagonal(pairs.square) + xp.linalg.diagonal(alone.square)
        hidden = pairs.seen[..., None] * xp.linalg.diagonal(parameters.context_cov)
        total = (1 + pairs.seen + alone.seen)[..., None]
        return parameters.mean, (parameters.variance + squares + hidden) / total

    def update(self, parameters: Parameters, state: State, noisy: Array, context: Array | None) -> State:
        """One more pair where the true context is shown at once, else one more measurement alone."""
        if context is not None:
            return _add_round(parameters, state, noisy, context, 1)
        xp = noisy.__array_namespace__()
        alone = state.alone.plus(noisy - parameters.mean, xp.ones_like(noisy[..., 0]))
        return State(Tally(*map(stretch, state.pairs, alone)), alone)

    def correct(
        self, parameters: Parameters, state: State, noisy: Array, before: Array, after: Array
    ) -> tuple[State, Context]:
        """Replace what a round showed. A context known in part makes no pair, but enters its posterior."""
        context = incomplete.conditional(parameters.mean, parameters.context_cov, after)

        def posterior() -> Context:
            others = _add_round(parameters, state, noisy, before, -1)
            return _posterior(context, channel(parameters, others), noisy)

        updated = incomplete.posterior_if_news(before, after, context, posterior)
        return _replace_round(parameters, state, noisy, before, after), updated

    def bias(self, parameters: Parameters, state: State) -> tuple[Array, Array]:
        """The belief given the noise that fits best."""
        return spread(*channel(parameters, state)[1:])


def channel(parameters: Parameters, state: State) -> Channel:
    """What is believed of the channel: the same from the same rounds, whatever their order."""
    variances, vectors, sums = fit(parameters.noise_vars, _collect_sums(parameters, state))
    mean, cov = bias(sums, variances)
    back = product(parameters.back, vectors)
    noise_cov, bias_cov = (
        product(back * variances[..., None, :], back.mT),
        product(product(back, cov), back.mT),
    )
    return Channel(noise_cov, matvec(back, mean), bias_cov)


def _denoise(parameters: Parameters, noise_fit: Fit, noisy: Array) -> Context:
    """A context given its measurement y: N(A (y - g), B + A S A) where Sigma_c = I, with A = (I + N)^-1.

    The belief N(g, S) about the bias has this measurement in it.
    """
    xp, (variances, vectors, sums) = noisy.__array_namespace__(), noise_fit
    back, shrunk = product(parameters.back, vectors), 1 / (1 + variances)
    y = matvec(vectors.mT, matvec(parameters.there, noisy - parameters.mean))
    mean, cov = bias(sums, variances, y)
    inner_cov = diagonal_matrix(variances * shrunk) + shrunk[..., :, None] * cov * shrunk[..., None, :]
    context_cov = xp.broadcast_to(product(product(back, inner_cov), back.mT), (*noisy.shape, noisy.shape[-1]))
    return Context(parameters.mean + matvec(back, shrunk * (y - mean)), context_cov)


def _posterior(context: Context, channel: Channel, noisy: Array) -> Context:
    """The posterior of a context given its measurement, and what other rounds say of the channel."""
    xp, (mean, cov) = noisy.__array_namespace__(), context
    gain = product(cov, inverse(cov + channel.noise_cov + channel.bias_cov))
    posterior_cov = xp.broadcast_to(cov - product(gain, cov), (*noisy.shape, noisy.shape[-1]))
    return Context(mean + matvec(gain, noisy - mean - channel.bias_mean), posterior_cov)


def _add_round(parameters: Parameters, state: State, noisy: Array, known: Array, sign: int) -> State:
    """The state with one round more, or less."""
    difference, is_pair = _pair(noisy, known)
    alone = state.alone.plus(noisy - parameters.mean, sign * (1 - is_pair))
    return State(state.pairs.plus(difference, sign * is_pair), alone)


def _replace_round(parameters: Parameters, state: State, noisy: Array, before: Array, after: Array) -> State:
    """The state after a round's context became known: a measurement becomes a pair, or a pair changes."""
    (old, was_pair), (new, is_pair) = _pair(noisy, before), _pair(noisy, after)
    pairs = state.pairs if holds_everywhere(was_pair == 0) else state.pairs.plus(old, -was_pair)
    return State(pairs.plus(new, is_pair), state.alone.plus(noisy - parameters.mean, was_pair - is_pair))


def _pair(noisy: Array, known: Array) -> tuple[Array, Array]:
    """The difference z = chat - c, and one, where the true context is known; zeros elsewhere."""
    xp = noisy.__array_namespace__()
    is_pair = ~xp.isnan(known).any(-1)
    return xp.where(is_pair[..., None], noisy - known, 0.0), is_pair.astype(noisy.dtype)


def _collect_sums(parameters: Parameters, state: State) -> Sums:
    """All observations and the prior, in coordinates where Sigma_c = I."""
    xp, basis, (pairs, alone) = parameters.mean.__array_namespace__(), parameters.there, state
    totals = product(basis, xp.stack([pairs.total, alone.total], -1))
    squares = product(product(basis, xp.stack([pairs.square, alone.square], -3)), basis.mT)
    prior_scatter = parameters.trust * diagonal_matrix(parameters.noise_vars)
    priors = xp.stack([prior_scatter, xp.zeros_like(prior_scatter)])
    prior = xp.broadcast_to(parameters.precision, (*alone.square.shape[:-2], 1, *prior_scatter.shape))
    worth, squares = parameters.trust + pairs.seen, xp.concat([priors + squares, prior], axis=-3)
    return Sums(pairs.seen, worth, alone.seen, totals, squares)
