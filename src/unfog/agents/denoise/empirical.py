"""Denoise with contexts as they are."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from unfog import validation
from unfog.agents.denoise.filtered import Channel, Filtered, State, symmetric
from unfog.agents.parts import Privilege
from unfog.channel import deconvolution
from unfog.channel.knowledge import Knowledge
from unfog.features import Context
from unfog.maths import mixture
from unfog.maths.arrays import Array, matvec
from unfog.maths.gaussian import inverted
from unfog.maths.mixture import Points

MOST_ATOMS = 100_000


class Parameters(NamedTuple):
    """The channel, and the law of contexts."""

    channel: Channel
    points: Points
    kernel: Array  # (d, d)  H


@dataclass(frozen=True, kw_only=True)
class Empirical(Filtered):
    """Denoise with contexts as they are: the posterior over a sample of past true contexts, the bias unknown.

    The told sample, with a little smoothing, is the law of contexts: c is N(u_i, H) with probability p_i
    (channel/deconvolution.py says how u, p and H are made of it; H = 0 are the very atoms). With gamma ~ N(g, S) from
    rounds before t, chat_t given i is Gaussian, and

        w_i = P(i | chat_t), in proportion to p_i N(chat_t; u_i + g, V),   V = Sigma_n + S + H
        m = sum w_i u_i,   C = sum w_i (u_i - m)(u_i - m)'
        E[c_t] = m + J (chat_t - m - g),   Cov(c_t) = (I - J) C (I - J)' + H - J H,   J = H V^-1
        E[gamma] = g + F (chat_t - m - g),   Cov(gamma) = S - F S + F C F',   F = S V^-1
        i: one of the sample;   p_i, u_i: its weight and place
        H: the covariance by which each is smoothed;   I: the identity

    These are the moments of mixtures, exact for one round; denoise/filtered.py says what is kept of the
    second. Since all atoms have the same H, both need no more of the atoms than m and C, which is two
    products with one table (maths/mixture.py), however many there are.

    A belief here is a mean and a covariance: all that matters to features linear or quadratic in the context,
    as far as their expectations go. Other maps, those by quadrature, take it for a Gaussian of these moments.

    Settings
    --------
    How many `atoms` it keeps at most, and how much of the rule's `bandwidth` they have.

    The rule is that of channel/deconvolution.py; `pairs` is as for `exact`.

    >>> import unfog
    >>> agent = unfog.Agent(
    ...     "mine", unfog.denoise.Empirical(), unfog.learn.Scaled(), unfog.choose.RandUcb()
    ... )
    >>> problem = unfog.GaussianProblem(dim=2, actions=5, told_contexts=200)
    >>> result = unfog.run(problem, agents=[agent, "naive"], rounds=50, trials=20, seed=0)
    >>> result.regret.isel(round=-1).mean("trial").round(1).values.tolist()  # mean regret, ours first
    [4.6, 8.0]
    """

    atoms: int = 1000
    bandwidth: float = 0.5

    name: ClassVar[str] = "empirical"
    note: ClassVar[str] = "knows contexts by a sample of past ones, and follows the bias"
    cost = 3.0  # with a thousand atoms
    needs_knowledge = ("sample",)

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        validation.count("atoms", self.atoms, 1, MOST_ATOMS)
        validation.not_negative("bandwidth", self.bandwidth)

    def setup(self, known: Knowledge, privilege: Privilege | None) -> Parameters:
        """The smoothed sample."""
        if known.sample is None:
            raise ValueError(f"{self.name} must be told a sample of contexts")
        law = deconvolution.smoothed(known.sample, self.atoms, self.bandwidth)
        channel = Channel(law.mean, law.cov + known.noise_cov, known.noise_cov, known.bias_cov)
        return Parameters(channel, mixture.points(law.atoms, law.weights), law.kernel)

    def seen(self, parameters: Parameters, state: State, noisy: Array) -> tuple[Context, State]:
        """The moments of context and bias, the posterior over atoms summed out."""
        return sighted(parameters, state, noisy)[:2]


def sighted(
    parameters: Parameters, state: State, noisy: Array, there: Array | None = None
) -> tuple[Context, State, Array]:
    """The moments of context and bias given a noisy context, and its log density less that of d ln(2 pi) / 2.

    `there` is 1 where a coordinate was measured and 0 elsewhere; None: all were.
    """
    (channel, points, kernel), (bias, cov) = parameters, state
    xp, whole = noisy.__array_namespace__(), channel.noise_cov + cov + kernel
    eye = xp.eye(noisy.shape[-1], dtype=noisy.dtype)
    value = noisy - bias
    if there is not None:
        both = there[..., :, None] * there[..., None, :]
        whole = both * whole + (1 - there)[..., None] * eye
        value = xp.where(there > 0, value, points.centre)
    precision, size = inverted(whole)
    precision = precision if there is None else both * precision
    weights, total = mixture.weighed(points, precision, value)
    mean, spread = mixture.points_moments(points, weights)
    away, smooth, gain = value - mean, kernel @ precision, cov @ precision
    rest = eye - smooth
    context = rest @ spread @ rest.mT + kernel - smooth @ kernel
    after = cov - gain @ cov + gain @ spread @ gain.mT
    return (
        Context(mean + matvec(smooth, away), symmetric(context)),
        State(bias + matvec(gain, away), symmetric(after)),
        total - 0.5 * size,
    )
