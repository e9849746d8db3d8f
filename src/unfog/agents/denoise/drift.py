"""Denoise while the bias walks."""

from dataclasses import dataclass
from typing import NamedTuple

from unfog import validation
from unfog.agents.base import Denoiser, KnowsBias, PredictsReading, Privilege
from unfog.agents.denoise import bias
from unfog.agents.denoise.bias import spread
from unfog.channel.knowledge import Knowledge
from unfog.features import Context
from unfog.maths.arrays import Array, matvec
from unfog.maths.linalg import product, solve


class Parameters(NamedTuple):
    """The channel, and how its bias shows."""

    mean: Array  # (d,)    mu_c
    context_cov: Array  # (d, d)  Sigma_c
    noisy_cov: Array  # (d, d)  Sigma_c + Sigma_n
    sight: bias.Sight


class State(NamedTuple):
    """The bias of the round to come, in the coordinates of its sight."""

    mean: Array  # (..., d)
    variance: Array  # (..., d), or (d,) where all trials of a batch share it


@dataclass(frozen=True, kw_only=True)
class Drift(bias.FromEither, Denoiser, PredictsReading, KnowsBias):
    """Denoise while the bias walks, gamma_t = gamma_{t-1} + N(0, Q): the Kalman filter.

    Before round t the bias is believed to be N(g, S). What the round shows of it, and the step after that,
    make

        g <- g + U E (o - g),   U = (S^-1 + E)^-1,   S <- U + Q,   Q = step Sigma_gamma
        o: what is seen of the bias, chat_t - mu_c or chat_t - c_t;   E: its precision

    and c_t given chat_t and all before it is what `exact` has it to be with this g and S. Q is a share of the
    prior's covariance, Q = step Sigma_gamma, so that the coordinates in which E and Sigma_gamma are diagonal
    (denoise/bias.py) serve Q too: d numbers stand for S, which the count alone decides and all trials share.
    With step = 0 this is `exact`. R. E. Kalman, *A New Approach to Linear Filtering and Prediction Problems*.

    Settings
    --------
    The variance of a `step` relative to the prior's; `pairs` as for `exact`.

    >>> import unfog
    >>> agent = unfog.Agent(
    ...     "mine", unfog.denoise.Drift(step=0.01), unfog.learn.Scaled(), unfog.choose.RandUcb()
    ... )
    >>> problem = unfog.GaussianProblem(dim=2, actions=5, drift_cov=0.05)
    >>> result = unfog.run(problem, agents=[agent, "naive"], rounds=50, trials=20, seed=0)
    >>> result.regret.isel(round=-1).mean("trial").round(1).values.tolist()  # mean regret, ours first
    [4.4, 8.5]
    """

    step: float = 1e-3

    name = "drift"
    note = "follows a bias that walks"

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        validation.not_negative("step", self.step)

    def setup(self, known: Knowledge, privilege: Privilege | None) -> Parameters:
        """The covariances, and the coordinates of the bias."""
        noisy_cov = known.context_cov + known.noise_cov
        return Parameters(known.context_mean, known.context_cov, noisy_cov, self.sight(known))

    def start(self, parameters: Parameters) -> State:
        """The prior, which has no step before it."""
        rates = parameters.sight.rates
        xp = rates.__array_namespace__()
        return State(xp.zeros_like(rates), xp.ones_like(rates))

    def predict(self, parameters: Parameters, state: State, noisy: Array) -> Context:
        """The posterior of this round's context."""
        bias_mean, bias_cov = _bias_moments(parameters, state)
        gain = solve(parameters.noisy_cov + bias_cov, parameters.context_cov).mT
        mean = parameters.mean + matvec(gain, noisy - parameters.mean - bias_mean)
        return Context(mean, parameters.context_cov - product(gain, parameters.context_cov))

    def predict_reading(self, parameters: Parameters, state: State) -> tuple[Array, Array]:
        """mu_c + g, and the diagonal of Sigma_c + Sigma_n + S."""
        return bias.reading_moments(parameters.mean, parameters.noisy_cov, *_bias_moments(parameters, state))

    def update(self, parameters: Parameters, state: State, noisy: Array, context: Array) -> State:
        """One more observation of the bias, and its next step."""
        sight, observation = parameters.sight, self.observation(parameters.mean, noisy, context)
        variance = state.variance / (1 + state.variance * sight.rates)
        surprise = matvec(sight.coordinates, observation) - sight.rates * state.mean
        return State(state.mean + variance * surprise, variance + self.step)

    def bias(self, parameters: Parameters, state: State) -> tuple[Array, Array]:
        """The belief after the last step of the bias."""
        return spread(*_bias_moments(parameters, state))


def _bias_moments(parameters: Parameters, state: State) -> tuple[Array, Array]:
    """Mean g and covariance S of the bias."""
    basis = parameters.sight.basis
    return matvec(basis, state.mean), basis * state.variance[..., None, :] @ basis.mT
