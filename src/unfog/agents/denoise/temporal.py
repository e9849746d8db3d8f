"""Denoise in time."""

from dataclasses import dataclass
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
    Smooths,
    UsesTime,
    ValuesReveals,
    is_news,
)
from unfog.agents.denoise import temporal_filter
from unfog.agents.denoise.bias import spread
from unfog.agents.denoise.temporal_filter import (
    NEVER,
    Kept,
    Marked,
    State,
    StateSpace,
    is_last,
    number_and_time,
)
from unfog.channel.knowledge import Knowledge
from unfog.features import Context
from unfog.maths.arrays import Array
from unfog.maths.gaussian import singular_root
from unfog.maths.kalman import Belief
from unfog.validation import InputError

MOST = 10_000


class Ready(NamedTuple):
    """Just before a reading."""

    state: State
    belief: Belief  # of its time
    at: Array
    number: Array
    noise: Array  # (..., d, d)  root of its noise


@dataclass(frozen=True, kw_only=True)
class Temporal(Denoiser, PredictsReading, Corrects, KnowsBias, UsesTime, Smooths, ValuesReveals):
    """Denoise in time: slow levels, fast moves and cycles of contexts, biases that walk, errors that persist.

    The parts of contexts and errors (channel/dynamics.py) are one Gaussian vector that moves; this is its
    exact filter (maths/kalman.py), so that

        c_t | all readings up to now, all true contexts revealed so far ~ N(mean, cov)
        mean, cov: those of Kalman's filter, for the time t

    Time is real: a step between two readings may have any length, and readings of one moment share its
    context. A coordinate that was lost, or a noise covariance that one reading has of its own, are
    observations like others.

    A true context is an exact observation of the state at its time. It may come at once; else the last
    `window` readings are kept, each with the belief before it, and those from its own on are filtered again:
    what is believed is as if it had been known at its time, and of a context known in part the rest is what
    all readings up to now say of it. One that is older than the window is counted (`State.stale`) and taken
    for what it still is, an observation of a past that the present has moved away from: of the oldest belief
    kept, with the spread of the moves since then, as if its own reading had not been seen before.

    Told no constants of time, rounds are independent but for a bias that stays (`incomplete`).
    R. E. Kalman, *A New Approach to Linear Filtering and Prediction Problems*.

    Settings
    --------
    With `pairs` it is shown true contexts as they come; how many readings a `window` has.

    What a true context is worth is what it would say of a context so much time `ahead`. With a `lag` a round
    is learnt from again so many rounds later, with what these say of its context; 0: it is not.

    >>> import unfog
    >>> agent = unfog.Agent(
    ...     "mine", unfog.denoise.Temporal(), unfog.learn.Revisable(), unfog.choose.Ucb()
    ... )
    >>> problem = unfog.TemporalProblem(dim=2, actions=5, revealed=0.1)
    >>> result = unfog.run(problem, agents=[agent, "naive"], rounds=50, trials=20, seed=0)
    >>> result.regret.isel(round=-1).mean("trial").round(1).values.tolist()  # mean regret, ours first
    [7.0, 15.1]
    """

    pairs: bool = True
    window: int = 32
    ahead: float = 8.0
    lag: int = 0

    name = "temporal"
    note = "knows how contexts, biases and errors move in time; takes true contexts whenever they come"
    cost = 3.0
    takes_gaps = True

    def __post_init__(self) -> None:
        """Check the settings."""
        validation.flag("pairs", self.pairs)
        validation.count("window", self.window, 0, MOST)
        validation.not_negative("ahead", self.ahead)
        if validation.count("lag", self.lag, 0, MOST) >= max(1, self.window if self.pairs else 0):
            raise InputError("lag", self.lag, f"0, or with pairs less than the window, {self.window}")

    @property
    def sees_context(self) -> bool:
        """Whether it was set to see true contexts (`pairs`)."""
        return self.pairs

    def setup(self, known: Knowledge, privilege: Privilege | None) -> StateSpace:
        """The parts and how they move."""
        return temporal_filter.build_state_space(known)

    def start(self, parameters: StateSpace) -> State:
        """Before the first reading, with an empty window."""
        xp, first = parameters.mean.__array_namespace__(), temporal_filter.start(parameters)
        zero = xp.zeros((), dtype=parameters.mean.dtype)
        blank = Marked(*(xp.zeros_like(parameters.mean),) * 2)
        before = temporal_filter.advance(parameters, first, zero)
        empty = Kept(zero + NEVER, zero, before, parameters.white, blank, blank)
        window = (empty,) * (self.window if self.pairs else 0)
        return State(first, zero, zero + NEVER, window, zero)

    def at_once(self, state: State) -> State:
        """The state without a window."""
        return state._replace(window=())

    def stamp(self, state: State, moment: Moment) -> Moment:
        """The moment with its number and time filled in."""
        number, at = number_and_time(moment, state)
        return Moment(number, at, moment.noise)

    def before(self, parameters: StateSpace, state: State, moment: Moment) -> Ready:
        """The belief moved to the time of a reading, by default one unit after the last."""
        xp = parameters.mean.__array_namespace__()
        number, at = number_and_time(moment, state)
        length = temporal_filter.since(parameters, state.number, state.at, at)
        if xp is np:
            _check_times(parameters, state, at, length)
        noise = parameters.white if moment.noise is None else _noise_root(moment.noise, parameters.mean)
        return Ready(state, temporal_filter.advance(parameters, state.belief, length), at, number, noise)

    def predict(self, parameters: StateSpace, state: State | Ready, noisy: Array) -> Context:
        """The posterior of this moment's context: noisy (..., d), not a number where it was lost."""
        ready, marked = self._make_ready(parameters, state), temporal_filter.mark(noisy)
        context, reading = temporal_filter.beliefs_at(parameters, ready.belief, ready.at)
        posterior = context.condition_on(reading, ready.noise, marked.values - parameters.mean, marked.lost())
        return Context(parameters.mean + posterior.mean, posterior.cov())

    def predict_reading(self, parameters: StateSpace, state: State | Ready) -> tuple[Array, Array]:
        """The moments of the reading under the belief at its time."""
        ready = self._make_ready(parameters, state)
        _, reading = temporal_filter.beliefs_at(parameters, ready.belief, ready.at)
        return parameters.mean + reading.mean, (reading.root**2).sum(-1) + (ready.noise**2).sum(-1)

    def update(
        self, parameters: StateSpace, state: State | Ready, noisy: Array, context: Array | None
    ) -> State:
        """The belief after a reading and, where it is shown at once, its true context."""
        xp, ready = noisy.__array_namespace__(), self._make_ready(parameters, state)
        marks = (
            temporal_filter.mark(noisy),
            temporal_filter.mark(xp.full_like(noisy, np.nan) if context is None else context),
        )
        batch = np.broadcast_shapes(noisy.shape[:-1], ready.belief.mean.shape[:-1])
        mean = xp.broadcast_to(ready.belief.mean, (*batch, ready.belief.mean.shape[-1]))
        record = Kept(ready.number, ready.at, ready.belief._replace(mean=mean), ready.noise, *marks)
        filter_record = temporal_filter.after_reading if context is None else temporal_filter.after
        belief, window = filter_record(parameters, record.belief, record), ready.state.window
        return State(
            belief, ready.at, ready.number, temporal_filter.append_record(window, record), ready.state.stale
        )

    def bias(self, parameters: StateSpace, state: State) -> tuple[Array, Array]:
        """The belief about the bias at the last reading."""
        belief = temporal_filter.bias(parameters, state.belief)
        return spread(belief.mean, belief.cov())

    def correct(
        self, parameters: StateSpace, state: State, noisy: Array, before: Array, after: Array
    ) -> tuple[State, Context]:
        """Learn from the true context of the last reading; see `Corrects` in agents/base.py."""
        return self.reopen(parameters, state, noisy, before, after, Moment(state.number, state.at))

    def reopen(
        self,
        parameters: StateSpace,
        state: State,
        noisy: Array,
        before: Array,
        after: Array,
        moment: Moment,
    ) -> tuple[State, Context]:
        """Learn from the true context of any reading."""
        number, at = number_and_time(moment, state)
        marks = temporal_filter.mark(noisy), temporal_filter.mark(after)
        record = Kept(number, at, state.belief, parameters.white, *marks)
        if after.__array_namespace__() is not np or is_last(state, number, before, after):
            return temporal_filter.at_once(parameters, state, record, temporal_filter.mark(before))
        return temporal_filter.late(parameters, state, record, is_news(before, after))

    def smooth(self, parameters: StateSpace, state: State, moment: Moment, known: Array) -> Context:
        """The context given all readings and true contexts since then."""
        number, _ = number_and_time(moment, state)
        matches = [record.number == number for record in state.window]
        first = next((i for i, is_match in enumerate(matches) if is_match.any()), None)
        if first is None:
            raise InputError("round", float(number.max()), "one of the last that are kept in the window")
        replay = temporal_filter.replay(parameters, state.window[first:], matches[first:])
        return temporal_filter.exact(parameters, replay.context, temporal_filter.mark(known))

    def value_of_reveal(self, parameters: StateSpace, state: State) -> Array:
        """The value of the last reading's true context, (...,): the variance that it removes."""
        xp = parameters.mean.__array_namespace__()
        everything = Marked(parameters.mean, xp.ones_like(parameters.mean))
        record = Kept(state.number, state.at, state.belief, parameters.white, everything, everything)
        without = self._remaining_variance(parameters, state.belief, state.at)
        return without - self._remaining_variance(
            parameters, temporal_filter.condition_on_truth(parameters, state.belief, record), state.at
        )

    def _remaining_variance(self, model: StateSpace, belief: Belief, at: Array) -> Array:
        """The variance left of a context `ahead` from now after its reading, in units of the prior's."""
        xp = at.__array_namespace__()
        future = temporal_filter.advance(model, belief, xp.asarray(self.ahead, dtype=at.dtype))
        context, reading = temporal_filter.beliefs_at(model, future, at + self.ahead)
        posterior = context.condition_on(reading, model.white, xp.zeros_like(context.mean))
        variance: Array = ((posterior.root / model.scale[:, None]) ** 2).sum((-2, -1))
        return variance

    def _make_ready(self, parameters: StateSpace, state: State | Ready) -> Ready:
        """The state moved to the next reading, unless it has been already."""
        return state if isinstance(state, Ready) else self.before(parameters, state, Moment())


def _check_times(model: StateSpace, state: State, at: Array, length: Array) -> None:
    """Raise InputError for times that are not numbers or that go back."""
    if not np.isfinite(at).all():
        raise InputError(
            "measured_at", f"{_display_times(at)}", "times: numbers, in the unit of the constants of time"
        )
    if (length < 0).any():
        first, last = bool((state.number < 0).all()), _display_times(state.at)
        before = f"{model.since}, where the calibration ended" if first else f"{last}, the last reading"
        allowed = "times that never go back, on the calibration's clock"
        raise InputError("measured_at", f"{_display_times(at)} after {before}", allowed)


def _display_times(times: Array) -> Array | float:
    """The time as a number if there is just one, else all of them."""
    return float(times.item()) if times.size == 1 else times


def _noise_root(noise: Array, like: Array) -> Array:
    """Root of the noise covariance of one reading (..., d, d), which may be zero."""
    if noise.__array_namespace__() is np:
        d = like.shape[0]
        cov = np.asarray(noise, dtype=like.dtype)
        is_cov = cov.shape[-2:] == (d, d) and np.isfinite(cov).all() and np.allclose(cov, cov.mT)
        if not is_cov or (np.linalg.eigvalsh(cov) < -1e-12 * np.abs(cov).max()).any():
            raise InputError("noise", cov.tolist(), f"a covariance ({d}, {d}) of this reading's noise")
        noise = cov
    return singular_root(noise)
