"""Denoise while the bias walks."""

from dataclasses import dataclass
from typing import NamedTuple

from unfog import validation
from unfog.agents.base import Denoiser, KnowsBias, PredictsReading, Privilege, TakesNoise
from unfog.agents.denoise import bias
from unfog.agents.denoise.bias import spread
from unfog.channel.knowledge import Knowledge
from unfog.features import Context
from unfog.maths.arrays import Array, diagonal_matrix, matvec
from unfog.maths.linalg import inverse, product, solve


class Parameters(NamedTuple):
    """The channel, and how its bias shows."""

    mean: Array  # (d,)    mu_c
    context_cov: Array  # (d, d)  Sigma_c
    noisy_cov: Array  # (..., d, d)  Sigma_c + Sigma_n
    sight: bias.Sight


class State(NamedTuple):
    """The bias of the round to come, in the coordinates of its sight."""

    mean: Array  # (..., d)
    variance: Array  # (..., d), or (d,) where all trials of a batch share it
    cov: Array | tuple[()] = ()  # (..., d, d)  in place of the variance, after a reading's own noise


@dataclass(frozen=True, kw_only=True)
class Drift(bias.FromEither, Denoiser, PredictsReading, KnowsBias, TakesNoise):
    """Denoise while the bias walks, gamma_t = gamma_{t-1} + N(0, Q): the Kalman filter.

    Before round t the bias is believed to be N(g, S). What the round shows of it, and the step after that,
    make

        g <- g + U E (o - g),   U = (S^-1 + E)^-1,   S <- U + Q,   Q = step Sigma_gamma
        o: what is seen of the bias, chat_t - mu_c or chat_t - c_t;   E: its precision

    and c_t given chat_t and all before it is what `exact` has it to be with this g and S. Q is a share of the
    prior's covariance, Q = step Sigma_gamma, so that the coordinates in which E and Sigma_gamma are diagonal
    (denoise/bias.py) serve Q too: d numbers stand for S, which the count alone decides and all trials share.
    From the first reading with a noise of its own on, whose E is another, S is a matrix of each trial.
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

    def with_noise(self, parameters: Parameters, noise: Array) -> Parameters:
        """The covariances of a reading with this noise."""
        cov = parameters.context_cov
        own = self.own_sight(parameters.sight, cov, noise)
        return Parameters(parameters.mean, cov, cov + noise, own)

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
        if isinstance(sight.own, bias.Own) or not isinstance(state.cov, tuple):
            return self._update_cov(sight, state, observation)
        variance = state.variance / (1 + state.variance * sight.rates)
        surprise = matvec(sight.coordinates, observation) - sight.rates * state.mean
        return State(state.mean + variance * surprise, variance + self.step)

    def _update_cov(self, sight: bias.Sight, state: State, observation: Array) -> State:
        """The same, with the whole covariance of the bias."""
        xp = observation.__array_namespace__()
        coordinates, information = sight.coordinates, diagonal_matrix(sight.rates)
        if isinstance(sight.own, bias.Own):
            coordinates, information = sight.own
        before = diagonal_matrix(state.variance) if isinstance(state.cov, tuple) else state.cov
        cov = inverse(inverse(before) + information)
        surprise = matvec(coordinates, observation) - matvec(information, state.mean)
        after = cov + self.step * xp.eye(cov.shape[-1], dtype=cov.dtype)
        return State(state.mean + matvec(cov, surprise), xp.linalg.diagonal(after), after)

    def bias(self, parameters: Parameters, state: State) -> tuple[Array, Array]:
        """The belief after the last step of the bias."""
        return spread(*_bias_moments(parameters, state))


def _bias_moments(parameters: Parameters, state: State) -> tuple[Array, Array]:
    """Mean g and covariance S of the bias."""
    basis = parameters.sight.basis
    if not isinstance(state.cov, tuple):
        return matvec(basis, state.mean), product(product(basis, state.cov), basis.mT)
    return matvec(basis, state.mean), basis * state.variance[..., None, :] @ basis.mT
