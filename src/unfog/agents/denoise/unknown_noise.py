"""Denoise with the covariance of the noise unknown too, learnt from pairs, and from noisy contexts alone.

    gamma ~ N(0, Sigma_gamma),   Sigma_n ~ inverse Wishart, of mean `told`, worth `trust` residuals.

A pair shows z = chat - c ~ N(gamma, Sigma_n), a measurement alone y = chat - mu_c ~ N(gamma, Sigma_c +
Sigma_n); counts, sums and sums of outer products of both are all there is to remember, so a pair that comes
late replaces its measurement (`correct`), in any order. A normal-inverse-Wishart would tie the spread of
gamma to Sigma_n; here they are independent to begin with, and each is found given the other. With N for
Sigma_n,

    S^-1 = Sigma_gamma^-1 + n N^-1 + u (Sigma_c + N)^-1,   g = S (N^-1 sum z + (Sigma_c + N)^-1 sum y);

with gamma ~ N(g, S), Rz and Ry the expected scatters of z and y about gamma, and B = N (Sigma_c + N)^-1,

    trust (N - told) + (n N - Rz) + B (u (Sigma_c + N) - Ry) B' = 0.

From pairs alone, gamma known, this N is the posterior mean (trust told + Rz) / (trust + n); the last part is
the pairs' own equation with a context in expectation in place of one that is known (EM's fixed point). It is
solved by a few damped Newton steps in the logarithm of N, so that N stays a covariance.
Contexts are denoised exactly for this N; what is not known of Sigma_n beyond it is left out.

Against Gibbs sampling (d = 2, trust 2, told variances off by a factor of two): variances are off by 4 % after
two pairs, 2 % after 10 and 20 alone, 5 to 10 % after 40 to 200 alone, but 25 % after ten alone, whose
posterior is skew; means of contexts by 0.15 of their standard deviations, 0.02, 0.03 to 0.1, and 0.2.
"""

from dataclasses import dataclass
from typing import NamedTuple

from unfog import inputs
from unfog.agents.denoise import bias, incomplete
from unfog.agents.denoise.bias import FromEither
from unfog.agents.parts import Corrects, Denoiser, Expects, Privilege
from unfog.features import Context
from unfog.maths.arrays import Array, matvec
from unfog.model.knowledge import Knowledge

STEPS = 5
MOST = 2.0  # of the change of a logarithm of N in one step


class Parameters(NamedTuple):
    """What agents are told of the channel, and how far they trust it."""

    mean: Array  # (d,)    mu_c
    context_cov: Array  # (d, d)  Sigma_c
    told: Array  # (d, d)
    precision: Array  # (d, d)  of the bias, to begin with
    trust: Array  # ()


class Tally(NamedTuple):
    """Observations of the bias so far."""

    seen: Array  # (...,)
    total: Array  # (..., d)
    square: Array  # (..., d, d)

    def plus(self, x: Array, weight: Array) -> "Tally":
        """With one more, less, or the same: weight (...,) is 1, -1 or 0."""
        weighted = weight[..., None] * x
        square = self.square + weighted[..., :, None] * x[..., None, :]
        return Tally(self.seen + weight, self.total + weighted, square)

    def scatter(self, mean: Array, cov: Array) -> Array:
        """The expected sum of squares about a bias that is N(mean, cov)."""
        cross = self.total[..., :, None] * mean[..., None, :]
        about = mean[..., :, None] * mean[..., None, :] + cov
        return self.square - cross - cross.mT + self.seen[..., None, None] * about


class State(NamedTuple):
    """What has been seen: pairs, and measurements whose context is not known."""

    pairs: Tally
    alone: Tally


class Channel(NamedTuple):
    """What is believed of the channel."""

    noise_cov: Array  # (..., d, d)  N
    bias_mean: Array  # (..., d)  g
    bias_cov: Array  # (..., d, d)  S


@dataclass(frozen=True, kw_only=True)
class UnknownNoise(FromEither, Denoiser, Expects, Corrects):
    """Its settings: how many residuals the told covariance is worth (degrees of freedom d + 1 + trust).

    With `pairs` it is shown true contexts, as far as they are ever known.
    """

    trust: float = 2.0
    pairs: bool = True

    name = "unknown_noise"
    note = "learns the covariance of the noise, too"
    cost = 18.0

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        inputs.positive("trust", self.trust)

    def setup(self, known: Knowledge, privilege: Privilege | None) -> Parameters:
        """The covariances, and the prior of the bias as a precision."""
        xp = known.bias_cov.__array_namespace__()
        trust, precision = xp.asarray(float(self.trust)), xp.linalg.inv(known.bias_cov)
        return Parameters(known.context_mean, known.context_cov, known.noise_cov, precision, trust)

    def start(self, parameters: Parameters) -> State:
        """Nothing seen yet."""
        xp = parameters.mean.__array_namespace__()
        nothing = Tally(*map(xp.zeros_like, (parameters.trust, parameters.mean, parameters.told)))
        return State(nothing, nothing)

    def predict(self, parameters: Parameters, state: State, noisy: Array) -> Context:
        """The posterior of this round's context."""
        context = Context(parameters.mean, parameters.context_cov)
        return incomplete.posterior(context, *channel(parameters, state), noisy)

    def expected(self, parameters: Parameters, state: State) -> tuple[Array, Array]:
        """mu_c + g, and the diagonal of Sigma_c + N + S."""
        noise_cov, *believed = channel(parameters, state)
        return bias.expected(parameters.mean, parameters.context_cov + noise_cov, *believed)

    def update(self, parameters: Parameters, state: State, noisy: Array, context: Array | None) -> State:
        """One more pair where the true context is shown at once, else one more measurement alone."""
        xp = noisy.__array_namespace__()
        hidden = xp.full_like(noisy, xp.nan)
        return _with(parameters, state, noisy, hidden if context is None else context, 1)

    def correct(
        self, parameters: Parameters, state: State, noisy: Array, before: Array, after: Array
    ) -> tuple[State, Context]:
        """Replace what a round showed. A context known in part makes no pair, but is taken for what it is."""
        others = _with(parameters, state, noisy, before, -1)
        context = incomplete.conditional(parameters.mean, parameters.context_cov, after)
        found = incomplete.posterior(context, *channel(parameters, others), noisy)
        return _with(parameters, others, noisy, after, 1), found


def channel(parameters: Parameters, state: State) -> Channel:
    """What is believed of the channel: the same from the same rounds, whatever their order."""
    noise = _from_pairs(parameters, state, _from_pairs(parameters, state, parameters.told))
    for _ in range(STEPS):
        noise = _step(parameters, state, noise)
    return Channel(noise, *_bias(parameters, state, noise))


def _with(parameters: Parameters, state: State, noisy: Array, known: Array, sign: int) -> State:
    """With one round more, or less."""
    xp = noisy.__array_namespace__()
    paired = ~xp.isnan(known).any(-1)
    pair = sign * paired.astype(noisy.dtype)
    pairs = state.pairs.plus(xp.where(paired[..., None], noisy - known, 0.0), pair)
    return State(pairs, state.alone.plus(noisy - parameters.mean, sign - pair))


def _bias(parameters: Parameters, state: State, noise: Array) -> tuple[Array, Array]:
    """The mean g and covariance S of the bias, were this the covariance of the noise."""
    xp = noise.__array_namespace__()
    inner, outer = xp.linalg.inv(noise), xp.linalg.inv(parameters.context_cov + noise)
    (n, z, _), (u, y, _) = state
    cov = xp.linalg.inv(parameters.precision + n[..., None, None] * inner + u[..., None, None] * outer)
    return matvec(cov, matvec(inner, z) + matvec(outer, y)), cov


def _from_pairs(parameters: Parameters, state: State, noise: Array) -> Array:
    """What pairs alone say of Sigma_n, with the bias that goes with this covariance."""
    scatter = state.pairs.scatter(*_bias(parameters, state, noise))
    worth = (parameters.trust + state.pairs.seen)[..., None, None]
    return (parameters.trust * parameters.told + scatter) / worth


def _step(parameters: Parameters, state: State, noise: Array) -> Array:
    """The next N, in coordinates where N = I and Sigma_c is diagonal: N <- N exp(-slope / curvature)."""
    xp = noise.__array_namespace__()
    about = _bias(parameters, state, noise)
    root = xp.linalg.cholesky(noise)
    white = xp.linalg.inv(root)
    ratios, turn = xp.linalg.eigh(white @ parameters.context_cov @ white.mT)
    there, back, shrunk = turn.mT @ white, root @ turn, 1 / (1 + ratios)
    sure = there @ (parameters.trust * parameters.told + state.pairs.scatter(*about)) @ there.mT
    seen = shrunk[..., None] * (there @ state.alone.scatter(*about) @ there.mT) * shrunk[..., None, :]
    worth, alone = (parameters.trust + state.pairs.seen)[..., None], state.alone.seen[..., None]
    expected = (worth + alone * shrunk)[..., None] * xp.eye(noise.shape[-1], dtype=noise.dtype)
    # Near the curvature that is there, and above it where that of the model would let steps run to and fro.
    deficit = alone * shrunk - xp.linalg.diagonal(seen)
    curve = xp.maximum(worth, xp.linalg.diagonal(sure)) + xp.maximum(alone * shrunk**2, deficit)
    scale = 1 / xp.sqrt(curve)
    moves, axes = xp.linalg.eigh(scale[..., None] * (sure + seen - expected) * scale[..., None, :])
    half = back @ axes * xp.exp(0.5 * xp.clip(moves, -MOST, MOST))[..., None, :]
    return half @ half.mT
