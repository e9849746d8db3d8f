"""A bank of filters in time, one for each hypothesis about the size of errors and the speed of the bias.

Sizes and speeds are factors of those that were told:

    error and white have covariances  size x those told,     the bias moves  speed x as fast as told

A speed is a factor of the bias's walk, or of its covariance where it comes back to zero; a bias that stays
has no speed. Hypotheses are weighed by the densities that they give to readings and to true contexts.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from unfog import validation
from unfog.agents.base import (
    Corrects,
    Denoiser,
    KnowsBias,
    Moment,
    PredictsReading,
    Privilege,
    UsesTime,
    ValuesReveals,
    WeighsHypotheses,
    is_news,
)
from unfog.agents.denoise import temporal, temporal_filter
from unfog.agents.denoise.temporal import Temporal
from unfog.agents.denoise.temporal_filter import Marked, StateSpace
from unfog.channel.dynamics import Dynamics, Moving, without_time
from unfog.channel.knowledge import Knowledge
from unfog.features import Context
from unfog.maths import kalman
from unfog.maths.arrays import Array
from unfog.maths.kalman import Belief
from unfog.maths.mixture import moments
from unfog.maths.trees import map_arrays
from unfog.validation import InputError

MOST = 15  # sizes, and speeds
SHARED = "number", "at", "noisy", "known"  # fields of a reading in the window that all hypotheses share


class Factors(NamedTuple):
    """A hypothesis: what the constants are, in those told."""

    size: float = 1.0  # of covariances of error and white
    speed: float = 1.0  # of the walk of the bias, or of its covariance


class Parameters(NamedTuple):
    """The parts under every hypothesis, and theirs."""

    model: StateSpace  # with an axis of hypotheses in front of start, steps and white
    prior: Array  # (H,)  probabilities
    sizes: Array  # (H,)
    speeds: Array  # (H,)


class State(NamedTuple):
    """What is believed under every hypothesis, and how probable each one is."""

    filters: temporal_filter.State  # (..., H, n); what all hypotheses share has an axis of 1 in that place
    weights: Array  # (..., H)  logarithms


class Ready(NamedTuple):
    """Just before a reading."""

    filters: temporal.Ready
    weights: Array


@dataclass(frozen=True, kw_only=True)
class TemporalBank(Denoiser, PredictsReading, Corrects, KnowsBias, UsesTime, ValuesReveals, WeighsHypotheses):
    """Denoise in time without trusting the constants of time: a bank of filters, weighed by what they
    foretell.

        Cov(error) = size Cov(error as told),   Cov(step of the bias) = speed Cov(step as told)
        P(h | all) = P(h) P(all | h) / P(all)
        h: one hypothesis, a size and a speed;   all: readings and true contexts so far

    Hypotheses are all pairs of a few sizes and a few speeds (`Factors`). Each has its own filter
    (denoise/temporal.py); all run as one, with an axis H of hypotheses. Weights follow the chain rule,

        p(h | all) ~ p(h) p(readings, true contexts | h) = p(h) product of p(next | all before it, h),

    in whatever order things become known. Before a decision its reading counts; a true context counts when it
    comes, unless it is older than the window. What is believed of a context has the mean and the covariance
    of the mixture. That the size is not as told has the probability `distrust` to
    begin with, and so has the speed by itself. Between two readings a share `switch` of the weights is dealt
    out anew (maths/kalman.py has names and references).

    An error that persists and a bias that walks fast look alike for a while, and so do slow moves of the
    context: a few true contexts tell them apart.

    Settings
    --------
    The hypotheses, `distrust` of what is told, the rate of `switch`; others as `temporal`.

    There are so many `sizes`, neighbours a factor `spacing` apart, about that told, and so many `speeds`, a
    factor `slowdown` apart.

    >>> import unfog
    >>> agent = unfog.Agent(
    ...     "mine", unfog.denoise.TemporalBank(), unfog.learn.Revisable(), unfog.choose.Ucb()
    ... )
    >>> problem = unfog.TemporalProblem(dim=2, actions=5, revealed=0.1)
    >>> result = unfog.run(problem, agents=[agent, "naive"], rounds=50, trials=20, seed=0)
    >>> result.regret.isel(round=-1).mean("trial").round(1).values.tolist()  # mean regret, ours first
    [7.3, 15.1]
    """

    sizes: int = 3
    spacing: float = 4.0
    speeds: int = 3
    slowdown: float = 16.0
    distrust: float = 0.5
    switch: float = 1e-3
    pairs: bool = True
    window: int = 32
    ahead: float = 8.0

    name = "adaptive-temporal"
    note = "knows parts that move in time, and finds out the size of errors and the speed of the bias"
    cost = 30.0
    squares = 8
    takes_gaps = True

    def __post_init__(self) -> None:
        """Check the settings."""
        for field, number in (("sizes", self.sizes), ("speeds", self.speeds)):
            if validation.count(field, number, 1, MOST) % 2 == 0:
                raise InputError(field, number, f"an odd number, at most {MOST}")
        for field, value in (("spacing", self.spacing), ("slowdown", self.slowdown)):
            if validation.positive(field, value) <= 1:
                raise InputError(field, value, "a number greater than 1")
        for field, value in (("distrust", self.distrust), ("switch", self.switch)):
            if not 0 <= validation.not_negative(field, value) < 1:
                raise InputError(field, value, "a number from 0 to below 1")
        _ = self.filter

    @property
    def sees_context(self) -> bool:
        """Whether it was set to see true contexts (`pairs`)."""
        return self.pairs

    @cached_property
    def filter(self) -> Temporal:
        """The filter that runs under every hypothesis."""
        return Temporal(pairs=self.pairs, window=self.window, ahead=self.ahead)

    def hypotheses(self, dynamics: Dynamics) -> dict[Factors, float]:
        """How probable each one is, in the order of their weights."""
        sizes = ladder(self.sizes, self.spacing, self.distrust)
        speeds = ladder(self.speeds if bias_moves(dynamics) else 1, self.slowdown, self.distrust)
        return {Factors(x, y): p * q for x, p in sizes.items() for y, q in speeds.items()}

    def probabilities(self, state: State) -> Array:
        """How probable each hypothesis is: (..., H)."""
        probabilities: Array = state.weights.__array_namespace__().exp(state.weights)
        return probabilities

    def labels(self, parameters: Parameters) -> tuple[dict[str, float], ...]:
        """The size of errors and the speed of the bias, in those told."""
        both = zip(parameters.sizes.tolist(), parameters.speeds.tolist(), strict=True)
        return tuple({"size": size, "speed": speed} for size, speed in both)

    def weights(self, parameters: Parameters, state: State) -> Array:
        """How probable each hypothesis is: (..., H)."""
        return self.probabilities(state)

    def bias(self, parameters: Parameters, state: State) -> tuple[Array, Array]:
        """The moments of the mixture, at the last reading."""
        weights = self.probabilities(state)
        return moments(weights, *self.filter.bias(parameters.model, state.filters))

    def setup(self, known: Knowledge, privilege: Privilege | None) -> Parameters:
        """The parts and how they move under every hypothesis."""
        dynamics = known.dynamics or without_time(known.context_cov, known.noise_cov, known.bias_cov)
        priors = self.hypotheses(dynamics)
        model = stack_state_spaces(known, dynamics, list(priors))
        xp = known.context_cov.__array_namespace__()
        sizes, speeds = (xp.asarray(x) for x in zip(*priors, strict=True))
        return Parameters(model, xp.asarray([*priors.values()]), sizes, speeds)

    def start(self, parameters: Parameters) -> State:
        """Before the first reading, with an empty window."""
        xp, first = parameters.prior.__array_namespace__(), self.filter.start(parameters.model)
        window = tuple(
            record._replace(
                **{name: map_arrays(lambda x: x[None], record._asdict()[name]) for name in SHARED}
            )
            for record in first.window
        )
        at, number, stale = (x[None] for x in (first.at, first.number, first.stale))
        tiny = xp.finfo(parameters.prior.dtype).tiny  # a probability of zero has no logarithm
        weights = xp.log(xp.maximum(parameters.prior, tiny))
        return State(temporal_filter.State(first.belief, at, number, window, stale), weights)

    def at_once(self, state: State) -> State:
        """The state without windows."""
        return state._replace(filters=self.filter.at_once(state.filters))

    def stamp(self, state: State, moment: Moment) -> Moment:
        """The moment with its number and time filled in."""
        at, number = state.filters.at[..., 0], state.filters.number[..., 0]
        return self.filter.stamp(state.filters._replace(at=at, number=number), moment)

    def before(self, parameters: Parameters, state: State, moment: Moment) -> Ready:
        """All beliefs moved to the time of a reading, and the weights mixed with their prior."""
        ready = self.filter.before(parameters.model, state.filters, _add_hypothesis_axis(parameters, moment))
        return Ready(ready, kalman.mix_with_prior(state.weights, parameters.prior, self.switch))

    def predict(self, parameters: Parameters, state: State | Ready, noisy: Array) -> Context:
        """Mean and covariance of this moment's context: noisy (..., d), not a number where it was lost."""
        xp, ready = noisy.__array_namespace__(), self._make_ready(parameters, state)
        beliefs = self.filter.predict(parameters.model, ready.filters, noisy[..., None, :])
        weights = kalman.apply_bayes(
            ready.weights, reading_log_density(parameters.model, ready.filters, noisy)
        )
        return Context(*moments(xp.exp(weights), *beliefs))

    def predict_reading(self, parameters: Parameters, state: State | Ready) -> tuple[Array, Array]:
        """The moments of the mixture at the reading's time, before it."""
        ready = self._make_ready(parameters, state)
        means, within = self.filter.predict_reading(parameters.model, ready.filters)
        weights = ready.weights.__array_namespace__().exp(ready.weights)[..., None]
        centre = (weights * means).sum(-2)
        return centre, (weights * (within + (means - centre[..., None, :]) ** 2)).sum(-2)

    def update(
        self, parameters: Parameters, state: State | Ready, noisy: Array, context: Array | None
    ) -> State:
        """All beliefs and weights after a reading and, where it is shown at once, its true context."""
        xp, ready = noisy.__array_namespace__(), self._make_ready(parameters, state)
        filters = self.filter.update(parameters.model, ready.filters, noisy[..., None, :], None)
        weights = kalman.apply_bayes(
            ready.weights, reading_log_density(parameters.model, ready.filters, noisy)
        )
        after = State(filters, weights)
        if context is None:
            return after
        return self.correct(parameters, after, noisy, xp.full_like(noisy, np.nan), context)[0]

    def correct(
        self, parameters: Parameters, state: State, noisy: Array, before: Array, after: Array
    ) -> tuple[State, Context]:
        """Learn from the true context of the last reading; see `Corrects` in agents/base.py."""
        moment = Moment(state.filters.number[..., 0], state.filters.at[..., 0])
        return self.reopen(parameters, state, noisy, before, after, moment)

    def reopen(
        self,
        parameters: Parameters,
        state: State,
        noisy: Array,
        before: Array,
        after: Array,
        moment: Moment,
    ) -> tuple[State, Context]:
        """Learn from the true context of any reading."""
        xp, model, wide_moment = (
            after.__array_namespace__(),
            parameters.model,
            _add_hypothesis_axis(parameters, moment),
        )
        known = before[..., None, :], after[..., None, :]
        filters, beliefs = self.filter.reopen(model, state.filters, noisy[..., None, :], *known, wide_moment)
        updated = kalman.apply_bayes(
            state.weights, context_log_density(model, state.filters, *known, wide_moment)
        )
        weights = xp.where(is_news(before, after)[..., None], updated, state.weights)
        mean, cov = moments(xp.exp(weights), *beliefs)
        hidden = xp.isnan(after).astype(after.dtype)  # what is known is exact
        cov = hidden[..., :, None] * hidden[..., None, :] * cov
        return State(filters, weights), Context(xp.where(hidden > 0, mean, after), cov)

    def value_of_reveal(self, parameters: Parameters, state: State) -> Array:
        """The value averaged over the hypotheses; what the context says of these is left out."""
        worth = self.filter.value_of_reveal(parameters.model, state.filters)
        mean: Array = (self.probabilities(state) * worth).sum(-1)
        return mean

    def _make_ready(self, parameters: Parameters, state: State | Ready) -> Ready:
        """The state moved to the next reading, unless it has been already."""
        return state if isinstance(state, Ready) else self.before(parameters, state, Moment())


def _add_hypothesis_axis(parameters: Parameters, moment: Moment) -> Moment:
    """The moment with an axis for hypotheses; a reading's own noise is scaled by their sizes, too."""
    xp = parameters.prior.__array_namespace__()
    number, at = (None if value is None else xp.asarray(value)[..., None] for value in moment[:2])
    if moment.noise is None:
        return Moment(number, at)
    return Moment(number, at, parameters.sizes[:, None, None] * moment.noise[..., None, :, :])


def ladder(number: int, apart: float, distrust: float) -> dict[float, float]:
    """`number` factors centred on 1, neighbours `apart` times each other, with their probabilities."""
    others = max(1, number - 1)
    powers = [apart ** (i - number // 2) for i in range(number)]
    return {x: (1 - distrust if number > 1 else 1.0) if x == 1 else distrust / others for x in powers}


def bias_moves(dynamics: Dynamics) -> bool:
    """Whether the bias has a speed."""
    return dynamics.bias.time < np.inf or (
        dynamics.bias.walk is not None and bool(np.any(dynamics.bias.walk))
    )


def scale_dynamics(dynamics: Dynamics, factors: Factors) -> Dynamics:
    """The constants of time under one hypothesis."""

    def times(part: Moving, factor: float) -> Moving:
        return part.scaled(np.full(part.cov.shape[-1], np.sqrt(factor)))

    walk, error = dynamics.bias.walk, dynamics.error
    walks = dynamics.bias._replace(walk=None if walk is None else factors.speed * walk)
    return dynamics._replace(
        bias=walks if np.isinf(dynamics.bias.time) else times(dynamics.bias, factors.speed),
        error=None if error is None else times(error, factors.size),
        white=None if dynamics.white is None else factors.size * dynamics.white,
    )


def stack_state_spaces(known: Knowledge, dynamics: Dynamics, hypotheses: list[Factors]) -> StateSpace:
    """The parts under every hypothesis: start, steps and white have an axis of these in front."""
    clocks = [
        temporal_filter.build_state_space(known._replace(dynamics=scale_dynamics(dynamics, hypothesis)))
        for hypothesis in hypotheses
    ]
    xp = known.context_cov.__array_namespace__()
    start, steps, white = (
        xp.stack(x) for x in zip(*((c.start, c.steps, c.white) for c in clocks), strict=True)
    )
    return clocks[0]._replace(start=start, steps=steps, white=white)


def reading_log_density(model: StateSpace, ready: temporal.Ready, noisy: Array) -> Array:
    """The log density of a reading (..., d), given all before it, under every hypothesis: (..., H)."""
    marked = temporal_filter.mark(noisy[..., None, :])
    _, reading = temporal_filter.beliefs_at(model, ready.belief, ready.at)
    return reading.density(ready.noise, marked.values - model.mean, marked.lost())


def context_log_density(
    model: StateSpace, state: temporal_filter.State, before: Array, after: Array, moment: Moment
) -> Array:
    """The log density of newly known coordinates of a context, (..., 1, d), given all else: (..., H)."""
    number, at = temporal_filter.number_and_time(moment, state)
    new, old = temporal_filter.mark(after), temporal_filter.mark(before)
    if after.__array_namespace__() is not np or temporal_filter.is_last(state, number, before, after):
        context, _ = temporal_filter.beliefs_at(model, state.belief, at)
        return _log_density(model, context, new._replace(there=new.there * (1 - old.there)))
    matches = [record.number == number for record in state.window]
    first = next((i for i, is_match in enumerate(matches) if is_match.any()), None)
    if first is None:
        return np.zeros(state.belief.mean.shape[:-1])
    without = [
        record._replace(known=record.known._replace(there=record.known.there * ~is_match[..., None]))
        for record, is_match in zip(state.window[first:], matches[first:], strict=True)
    ]
    context = temporal_filter.replay(model, tuple(without), matches[first:]).context
    difference: Array = _log_density(model, context, new) - _log_density(model, context, old)
    return np.where(np.logical_or.reduce(matches), difference, 0.0)


def _log_density(model: StateSpace, context: Belief, known: Marked) -> Array:
    """The log density of what is known of a context, given the belief about it, less mu_c."""
    return context.density(temporal_filter.least(model), known.values - model.mean, known.lost())
