"""Denoise where the noise has heavy tails."""

from dataclasses import dataclass
from typing import NamedTuple

from unfog import validation
from unfog.agents.base import Denoiser, KnowsBias, PredictsReading, Privilege, TakesNoise
from unfog.agents.denoise import bias
from unfog.agents.denoise.bias import FromEither, spread
from unfog.channel.knowledge import Knowledge
from unfog.features import Context
from unfog.maths import student
from unfog.maths.arrays import Array
from unfog.validation import InputError

LEAST, MOST = 1, 1000  # below, noise has hardly a scale; above, it is Gaussian


class Parameters(NamedTuple):
    """The channel."""

    mean: Array  # (d,)    mu_c
    context_cov: Array  # (d, d)  Sigma_c
    bias_cov: Array  # (d, d)  Sigma_gamma
    noisy_cov: Array  # (..., d, d)  Sigma_c + Sigma_n
    noise: student.Noise


class State(NamedTuple):
    """The belief about the bias."""

    mean: Array  # (..., d)
    cov: Array  # (..., d, d)


@dataclass(frozen=True, kw_only=True)
class Robust(FromEither, Denoiser, PredictsReading, KnowsBias, TakesNoise):
    """Denoise where the noise has heavy tails: Student's t with nu degrees of freedom and scale Sigma_n.

    With gamma ~ N(g, S) from rounds before t, and w the precision of this round's noise (maths/student.py),

        chat_t - mu_c - g | w ~ N(0, Sigma_c + S + Sigma_n / w),   w ~ Gamma(nu / 2, nu / 2)
        w: how precise the noise of this round is;   nu: its degrees of freedom

    A grid over w gives the moments of c_t given chat_t, gamma integrated out, and those of gamma. These are
    exact for one round. What is approximate: the posterior of gamma is a mixture of as many Gaussians as
    there are ways to choose a w for every round, and after each round the one Gaussian with its moments
    stands for it (assumed-density filtering, as in learn/adf.py). In one dimension, nu = 3, its mean is off
    by 0.06 posterior deviations after five rounds and by 0.01 after 400, in the root mean square, and its
    variance by 4 % and by 0.1 %.

    A measurement that is far off moves the belief little, and says how little for itself: the covariance
    differs between trials, unlike that of `exact`, which this denoiser becomes for large nu. With true
    contexts revealed chat_t - c_t = gamma + n_t shows the bias instead. And the bias may walk, as in
    denoise/drift.py: with `step` more than zero step Sigma_gamma is added to S after every round. If a
    reading has a noise of its own, that is the scale of its t.

    Settings
    --------
    The noise's degrees of freedom `nu`, the bias's `step`; `pairs` as for `exact`.

    >>> import unfog
    >>> agent = unfog.Agent(
    ...     "mine", unfog.denoise.Robust(nu=4), unfog.learn.Scaled(), unfog.choose.RandUcb()
    ... )
    >>> problem = unfog.GaussianProblem(dim=2, actions=5, tails=3)
    >>> result = unfog.run(problem, agents=[agent, "naive"], rounds=50, trials=20, seed=0)
    >>> result.regret.isel(round=-1).mean("trial").round(1).values.tolist()  # mean regret, ours first
    [4.5, 7.6]
    """

    nu: float = 10.0
    step: float = 0.0

    name = "robust"
    note = "expects outliers: noise with heavy tails"
    cost = 3.0
    squares = 2

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        if not LEAST <= validation.positive("nu", self.nu) <= MOST:
            raise InputError("nu", self.nu, f"a number from {LEAST} to {MOST}")
        validation.not_negative("step", self.step)

    def setup(self, known: Knowledge, privilege: Privilege | None) -> Parameters:
        """The covariances, and the grid of the noise."""
        noise = student.noise(known.noise_cov, self.nu)
        noisy_cov = known.context_cov + known.noise_cov
        return Parameters(known.context_mean, known.context_cov, known.bias_cov, noisy_cov, noise)

    def with_noise(self, parameters: Parameters, noise: Array) -> Parameters:
        """The grid for a reading with this scale of noise."""
        noisy_cov = parameters.context_cov + noise
        return parameters._replace(noisy_cov=noisy_cov, noise=student.noise(noise, self.nu))

    def start(self, parameters: Parameters) -> State:
        """The prior."""
        xp = parameters.mean.__array_namespace__()
        return State(xp.zeros_like(parameters.mean), parameters.bias_cov)

    def predict(self, parameters: Parameters, state: State, noisy: Array) -> Context:
        """Mean and covariance of this round's context."""
        shift, cov = student.moments(_weigh_reading(parameters, state, noisy), parameters.context_cov)
        return Context(parameters.mean + shift, cov)

    def predict_reading(self, parameters: Parameters, state: State) -> tuple[Array, Array]:
        """mu_c + g, and the diagonal of Sigma_c + Sigma_n + S."""
        return bias.reading_moments(parameters.mean, parameters.noisy_cov, state.mean, state.cov)

    def update(self, parameters: Parameters, state: State, noisy: Array, context: Array) -> State:
        """The Gaussian with the moments of the bias after this round and its step."""
        if self.pairs:
            mixture = student.mixture(parameters.noise, state.cov, noisy - context - state.mean)
        else:
            mixture = _weigh_reading(parameters, state, noisy)
        shift, cov = student.moments(mixture, state.cov)
        return State(state.mean + shift, cov + self.step * parameters.bias_cov)

    def bias(self, parameters: Parameters, state: State) -> tuple[Array, Array]:
        """The belief after the last step of the bias."""
        return spread(state.mean, state.cov)


def _weigh_reading(parameters: Parameters, state: State, noisy: Array) -> student.Mixture:
    """What the noisy context says, of both context and bias."""
    hidden = parameters.context_cov + state.cov
    return student.mixture(parameters.noise, hidden, noisy - parameters.mean - state.mean)
