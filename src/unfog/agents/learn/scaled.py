"""The learner that is not sure of two scales."""

from dataclasses import dataclass
from math import log, log1p
from typing import Any, NamedTuple

from unfog import validation
from unfog.agents.base import Evidence, Grows, Learner
from unfog.agents.learn.conjugate import reward_variance
from unfog.channel.knowledge import Knowledge
from unfog.maths import gaussian
from unfog.maths.arrays import Array, pick, take
from unfog.maths.gaussian import Belief, Gaussian
from unfog.validation import InputError

MOST_SCALES, MOST_RATIO = 15, 100.0


class State(NamedTuple):
    """The belief at every scale, in units of the noise."""

    beliefs: Belief  # with an axis for the scales in front of theta's; theta's covariance is v times theirs
    shape: Array  # (...,)  a
    rates: Array  # (..., scales)  b
    weights: Array  # (..., scales)  logarithms of their probabilities, up to a constant


@dataclass(frozen=True, kw_only=True)
class Scaled(Grows, Learner):
    """The heteroscedastic learner that is not sure of two scales: the noise of rewards, and theta's spread.

    What agents are told of theta, N(prior_mean, prior_cov), and of the noise of rewards, sigma^2, may be
    right in shape and wrong in size. Here both sizes are learnt. For each of a few `scales` s, neighbours
    `ratio` apart and the told one, s = 1, in their middle, theta and the variance v of the noise are
    normal-inverse-gamma,

        theta | v ~ N(prior_mean, v V),   V = s^2 prior_cov / sigma^2
        1 / v ~ Gamma(shape, rate),   shape = trust / 2,   rate = shape sigma^2
        v: the variance of the noise of rewards;   s: one of the scales

    so that what is told of the noise is worth `trust` rewards. With a and b for shape and rate, a reward r =
    x'theta + N(0, v k) makes

        e = r - x'mean,   t = k + x'V x,   a <- a + 1/2,   b <- b + e^2 / (2 t),
        mean, V by a rank-one update.

    Here k = 1 + w / sigma^2 is for what the context hides (learn/conjugate.py), w as the belief has it: what
    hides and what is noise are taken to be wrong by the same factor v / sigma^2. Where contexts are not as
    told that holds up better than to charge all of it to the noise, and the order of rewards does not matter.
    The density of r, Student's t with 2 a degrees of freedom about x'mean and of the scale sqrt(t b / a),
    weighs the scales against each other (A. Gelman and others, *Bayesian Data Analysis*, on the normal linear
    model); all but the told one share the probability `doubt` to begin with, of which those above it have the
    part `larger`.

    The belief is that of the most probable scale or, if `mixed`, has the moments of them all: with weights
    w_s,

        mean = sum w_s m_s,   covariance = sum w_s (C_s + (m_s - mean)(m_s - mean)') = root root',

    the root being the columns sqrt(w_s) [C_s^(1/2), m_s - mean] of all scales side by side. Where theta is
    larger than told, bounds on scores that nothing was learnt of are wide from the first round on then, and
    not only once the larger scale is the most probable: an arm that was never tried says nothing of scales,
    and one that is never tried because its bound is too low never will.

    Settings
    --------
    The number of `scales` and their `ratio`, the `trust` and the `doubt` in what is told.

    `larger` is the part of the doubt that is for larger scales; `mixed` makes the belief that of all scales.

    >>> import unfog
    >>> agent = unfog.Agent(
    ...     "mine", unfog.denoise.Exact(), unfog.learn.Scaled(), unfog.choose.RandUcb()
    ... )
    >>> problem = unfog.GaussianProblem(dim=2, actions=5)
    >>> result = unfog.run(problem, agents=[agent, "naive"], rounds=50, trials=20, seed=0)
    >>> result.regret.isel(round=-1).mean("trial").round(1).values.tolist()  # mean regret, ours first
    [4.4, 8.0]
    """

    scales: int = 3
    ratio: float = 3.0
    trust: float = 10.0
    doubt: float = 0.001
    larger: float = 0.5
    mixed: bool = False

    name = "scaled"
    note = "learns how large theta and the noise of rewards are; weighs rewards as hetero does"
    rewards = "gaussian"

    def __post_init__(self) -> None:
        """Check the settings."""
        validation.count("scales", self.scales, 1, MOST_SCALES)
        if self.scales % 2 == 0:
            raise InputError("scales", self.scales, f"an odd number, at most {MOST_SCALES}")
        if not 1 < validation.positive("ratio", self.ratio) <= MOST_RATIO:
            raise InputError("ratio", self.ratio, f"a number greater than 1 and at most {MOST_RATIO:g}")
        validation.positive("trust", self.trust)
        validation.share("doubt", self.doubt)
        validation.share("larger", self.larger)
        validation.flag("mixed", self.mixed)

    @property
    def squares(self) -> int:
        """One a scale."""
        return self.scales

    @property
    def cost(self) -> float:
        """An update for every scale, and a wider root where they are mixed."""
        return (0.3 if self.mixed else 0.2) * self.scales

    def setup(self, known: Knowledge) -> Array:
        """The told variance of a reward given its features."""
        return reward_variance(known)

    def start(self, known: Knowledge, rounds: int | None) -> State:
        """The prior at every scale."""
        xp, reward_var = known.prior_cov.__array_namespace__(), reward_variance(known)
        sizes = xp.asarray([self.ratio ** (2 * (i - self.scales // 2)) for i in range(self.scales)])
        sizes = sizes.astype(known.prior_cov.dtype)
        covs = sizes.reshape(-1, *[1] * known.prior_cov.ndim) * known.prior_cov / reward_var
        beliefs = gaussian.belief_from_moments(xp.stack([known.prior_mean] * self.scales), covs)
        shape = xp.ones_like(reward_var) * (self.trust / 2)
        weights = xp.asarray(self._weights(), dtype=known.prior_cov.dtype)
        return State(beliefs, shape, shape * reward_var + xp.zeros_like(weights), weights)

    def grow(self, old: Knowledge, new: Knowledge, state: State) -> State:
        """The state with the prior of the new arms, at every scale."""
        return state._replace(beliefs=gaussian.extend_belief(state.beliefs, self.start(new, None).beliefs))

    def _weights(self) -> list[float]:
        """The logarithms of the scales' probabilities to begin with."""
        if self.scales == 1:
            return [0.0]
        number = self.scales // 2
        below, above = (log(part * self.doubt / number) for part in (1 - self.larger, self.larger))
        return [*[below] * number, log1p(-self.doubt), *[above] * number]

    def belief(self, parameters: Array, state: State) -> Belief:
        """The belief of the most probable scale, or of all; theta's covariance in its own units."""
        if self.mixed:
            return _mix_scales(state)
        best = _find_best(state)
        noise = _noise_at(state, best)
        xp, theta = noise.__array_namespace__(), state.beliefs
        core = 1 if isinstance(theta, Gaussian) else 2
        mean, root = take(theta.mean, best, core), take(theta.root, best, core + 1)
        spread = xp.sqrt(noise)
        return type(theta)(mean, root * spread.reshape(*spread.shape, *[1] * (root.ndim - spread.ndim)))

    def noise(self, parameters: Array, state: State, hidden: Array | float) -> Array:
        """V k at the most probable scale, or its mean over all."""
        estimate = (
            (_scale_probabilities(state) * _noise_at_all(state)).sum(-1)
            if self.mixed
            else _noise_at(state, _find_best(state))
        )
        return estimate * (1 + hidden / parameters)

    def update(self, parameters: Array, state: State, evidence: Evidence, reward: Array) -> State:
        """The belief at every scale after one more reward, and the weights of the scales."""
        row, hidden = evidence.row()[..., None, :], evidence.context_variance()[..., None]
        xp, shape, reward = row.__array_namespace__(), state.shape[..., None], reward[..., None]
        relative = 1 + hidden / parameters
        half = state.beliefs.half(row)
        total = relative + state.beliefs.variance(row, half)
        square = (reward - xp.vecdot(row, state.beliefs.centre)) ** 2 / (2 * total)
        # The log density of Student's t at the reward, up to what all scales share.
        density = -0.5 * xp.log(total * state.rates) - (shape + 0.5) * xp.log1p(square / state.rates)
        beliefs = state.beliefs.condition(row, reward, relative, half)
        return State(beliefs, state.shape + 0.5, state.rates + square, state.weights + density)


def _find_best(state: State) -> Any:
    """The most probable scale, (...,)."""
    return state.weights.argmax(-1)


def _noise_at(state: State, scale: Any) -> Array:
    """The estimate b / a of v at one scale for each trial, (...,)."""
    return pick(state.rates, scale) / state.shape


def _noise_at_all(state: State) -> Array:
    """The estimate at every scale, (..., scales)."""
    return state.rates / state.shape[..., None]


def _scale_probabilities(state: State) -> Array:
    """The probabilities of the scales, (..., scales)."""
    xp = state.weights.__array_namespace__()
    shares = xp.exp(state.weights - state.weights.max(-1)[..., None])
    probabilities: Array = shares / shares.sum(-1)[..., None]
    return probabilities


def _mix_scales(state: State) -> Belief:
    """Mean and root of the mixture of all scales."""
    theta, shares = state.beliefs, _scale_probabilities(state)
    xp, core = shares.__array_namespace__(), 1 if isinstance(theta, Gaussian) else 2
    mean = (_add_axes(shares, core) * theta.mean).sum(-core - 1)
    deviations = theta.mean - xp.expand_dims(mean, -core - 1)
    spread = xp.sqrt(_noise_at_all(state))
    columns = xp.concat([_add_axes(spread, core + 1) * theta.root, deviations[..., None]], axis=-1)
    columns = xp.moveaxis(_add_axes(xp.sqrt(shares), core + 1) * columns, -core - 2, -2)
    return type(theta)(mean, columns.reshape(*columns.shape[:-2], -1))


def _add_axes(values: Array, core: int) -> Array:
    """A number for every scale, (..., scales), with as many trailing axes of one as `core`."""
    return values.reshape(*values.shape, *[1] * core)
