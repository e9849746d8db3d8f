"""Denoise in time without trusting the constants of time: a bank of filters, weighed by what they foretell.

    error and white have covariances  size x those told,     the bias moves  speed x as fast as told

Hypotheses are all pairs of a few sizes and a few speeds; a speed is a factor of the bias's walk, or of its
covariance where it comes back to zero, and one that stays has no speed. Each hypothesis has its own filter
(denoise/temporal.py); all run as one, with an axis H of hypotheses. Weights follow the chain rule,

    p(h | all) ~ p(h) p(readings, true contexts | h) = p(h) product of p(next | all before it, h),

in whatever order things become known. Before a decision this reading counts; a true context counts when it
comes, by its density given all else that is known by now, its own coordinates apart; one that is older than
the window does not count. What is believed of a context has the mean and the covariance of the mixture. That
the size is not as told has the probability `distrust` to begin with, and so has the speed by itself. Between
two readings a share `switch` of the weights is dealt out anew (maths/bank.py has names and references).

Small errors that persist and a bias that walks fast look alike for some while: true contexts tell them apart
sooner, since without them slow moves of the context do so, too.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from unfog import inputs
from unfog.agents.denoise import clockwork, recent, temporal
from unfog.agents.denoise.clockwork import Clockwork
from unfog.agents.denoise.recent import Marked
from unfog.agents.denoise.temporal import Temporal
from unfog.agents.parts import Appraises, Corrects, Denoiser, Expects, Moment, Privilege, Timed
from unfog.features import Context
from unfog.inputs import InputError
from unfog.maths import bank
from unfog.maths.arrays import Array
from unfog.maths.kalman import Belief
from unfog.maths.mixture import moments
from unfog.model.knowledge import Knowledge
from unfog.model.tempo import Moving, Tempo, untimed

MOST = 15  # sizes, and speeds


class Factors(NamedTuple):
    """A hypothesis: what the constants are, in those told."""

    size: float = 1.0  # of covariances of error and white
    speed: float = 1.0  # of the walk of the bias, or of its covariance


class Parameters(NamedTuple):
    """The parts under every hypothesis, and theirs."""

    clock: Clockwork  # with an axis of hypotheses in front of start, steps and white
    prior: Array  # (H,)  probabilities
    sizes: Array  # (H,)


class State(NamedTuple):
    """What is believed under every hypothesis, and how probable each one is."""

    filters: temporal.State  # (..., H, n); what all hypotheses share has an axis of 1 in that place
    weights: Array  # (..., H)  logarithms


class Ready(NamedTuple):
    """Just before a reading."""

    filters: temporal.Ready
    weights: Array


@dataclass(frozen=True, kw_only=True)
class TemporalBank(Denoiser, Expects, Corrects, Timed, Appraises):
    """Its settings: the hypotheses, `distrust` of what is told, the rate of `switch`; others as `temporal`.

    There are so many `sizes`, neighbours a factor `spacing` apart, about that told, and so many `speeds`, a
    factor `slowdown` apart.
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
    cost = 20.0
    takes_gaps = True

    def __post_init__(self) -> None:
        """Check the settings."""
        for field, number in (("sizes", self.sizes), ("speeds", self.speeds)):
            if inputs.count(field, number, 1, MOST) % 2 == 0:
                raise InputError(field, number, f"an odd number, at most {MOST}")
        for field, value in (("spacing", self.spacing), ("slowdown", self.slowdown)):
            if inputs.positive(field, value) <= 1:
                raise InputError(field, value, "a number greater than 1")
        for field, value in (("distrust", self.distrust), ("switch", self.switch)):
            if not 0 <= inputs.not_negative(field, value) < 1:
                raise InputError(field, value, "a number from 0 to below 1")
        _ = self.filter

    @property
    def sees_context(self) -> bool:
        """As it was set."""
        return self.pairs

    @cached_property
    def filter(self) -> Temporal:
        """What filters under every hypothesis."""
        return Temporal(pairs=self.pairs, window=self.window, ahead=self.ahead)

    def hypotheses(self, tempo: Tempo) -> dict[Factors, float]:
        """How probable each one is, in the order of their weights."""
        moves = tempo.bias.time < np.inf or (tempo.bias.walk is not None and np.any(tempo.bias.walk))
        sizes = _ladder(self.sizes, self.spacing, self.distrust)
        speeds = _ladder(self.speeds if moves else 1, self.slowdown, self.distrust)
        return {Factors(x, y): p * q for x, p in sizes.items() for y, q in speeds.items()}

    def probabilities(self, state: State) -> Array:
        """How probable each hypothesis is: (..., H)."""
        found: Array = state.weights.__array_namespace__().exp(state.weights)
        return found

    def setup(self, known: Knowledge, privilege: Privilege | None) -> Parameters:
        """The parts and how they move under every hypothesis."""
        tempo = known.tempo or untimed(known.context_cov, known.noise_cov, known.bias_cov)
        every = self.hypotheses(tempo)
        clocks = [clockwork.clockwork(known._replace(tempo=_scaled(tempo, one))) for one in every]
        start, steps, white = (
            np.stack(x) for x in zip(*((c.start, c.steps, c.white) for c in clocks), strict=True)
        )
        clock = clocks[0]._replace(start=start, steps=steps, white=white)
        return Parameters(clock, np.array([*every.values()]), np.array([one.size for one in every]))

    def start(self, parameters: Parameters) -> State:
        """Before the first reading, with an empty window."""
        xp, first = parameters.prior.__array_namespace__(), self.filter.start(parameters.clock)
        window = tuple(
            kept._replace(
                number=kept.number[None],
                at=kept.at[None],
                noisy=Marked(*(x[None] for x in kept.noisy)),
                known=Marked(*(x[None] for x in kept.known)),
            )
            for kept in first.window
        )
        shared = (x[None] for x in (first.at, first.number, first.stale))
        at, number, stale = shared
        least = xp.finfo(parameters.prior.dtype).tiny  # what cannot be is all but impossible
        weights = xp.log(xp.maximum(parameters.prior, least))
        return State(temporal.State(first.belief, at, number, window, stale), weights)

    def at_once(self, state: State) -> State:
        """Without a window."""
        return state._replace(filters=self.filter.at_once(state.filters))

    def stamp(self, state: State, moment: Moment) -> Moment:
        """With number and time."""
        at, number = state.filters.at[..., 0], state.filters.number[..., 0]
        return self.filter.stamp(state.filters._replace(at=at, number=number), moment)

    def before(self, parameters: Parameters, state: State, moment: Moment) -> Ready:
        """All beliefs moved to the time of a reading, and some weight dealt out anew."""
        ready = self.filter.before(parameters.clock, state.filters, _opened(parameters, moment))
        return Ready(ready, bank.switched(state.weights, parameters.prior, self.switch))

    def predict(self, parameters: Parameters, state: State | Ready, noisy: Array) -> Context:
        """Mean and covariance of this moment's context: noisy (..., d), not a number where it was lost."""
        xp, ready = noisy.__array_namespace__(), self._ready(parameters, state)
        found = self.filter.predict(parameters.clock, ready.filters, noisy[..., None, :])
        weights = bank.weighed(ready.weights, _of_reading(parameters.clock, ready.filters, noisy))
        return Context(*moments(xp.exp(weights), *found))

    def expected(self, parameters: Parameters, state: State | Ready) -> tuple[Array, Array]:
        """Of the mixture at its time, before the reading."""
        ready = self._ready(parameters, state)
        means, within = self.filter.expected(parameters.clock, ready.filters)
        weights = ready.weights.__array_namespace__().exp(ready.weights)[..., None]
        centre = (weights * means).sum(-2)
        return centre, (weights * (within + (means - centre[..., None, :]) ** 2)).sum(-2)

    def update(
        self, parameters: Parameters, state: State | Ready, noisy: Array, context: Array | None
    ) -> State:
        """All beliefs and weights after a reading and, where it is shown at once, its true context."""
        xp, ready = noisy.__array_namespace__(), self._ready(parameters, state)
        at, number = (xp.broadcast_to(x, (*noisy.shape[:-1], 1)) for x in ready.filters[2:4])
        timed = ready.filters._replace(at=at, number=number)
        filters = self.filter.update(parameters.clock, timed, noisy[..., None, :], None)
        weights = bank.weighed(ready.weights, _of_reading(parameters.clock, ready.filters, noisy))
        after = State(filters._replace(stale=xp.broadcast_to(filters.stale, at.shape)), weights)
        if context is None:
            return after
        return self.correct(parameters, after, noisy, xp.full_like(noisy, np.nan), context)[0]

    def correct(
        self, parameters: Parameters, state: State, noisy: Array, before: Array, after: Array
    ) -> tuple[State, Context]:
        """Take in the true context of the last reading; see `Corrects` in agents/parts.py."""
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
        """Take in the true context of any reading."""
        xp, clock, opened = after.__array_namespace__(), parameters.clock, _opened(parameters, moment)
        known = before[..., None, :], after[..., None, :]
        filters, each = self.filter.reopen(clock, state.filters, noisy[..., None, :], *known, opened)
        weights = bank.weighed(state.weights, _of_context(clock, state.filters, *known, opened))
        mean, cov = moments(xp.exp(weights), *each)
        left = xp.isnan(after).astype(after.dtype)  # what is known is so without rounding
        cov = left[..., :, None] * left[..., None, :] * cov
        return State(filters, weights), Context(xp.where(left > 0, mean, after), cov)

    def value_of_reveal(self, parameters: Parameters, state: State) -> Array:
        """On average over the hypotheses; what it says of these is left out."""
        each = self.filter.value_of_reveal(parameters.clock, state.filters)
        found: Array = (self.probabilities(state) * each).sum(-1)
        return found

    def _ready(self, parameters: Parameters, state: State | Ready) -> Ready:
        return state if isinstance(state, Ready) else self.before(parameters, state, Moment())


def _ladder(number: int, apart: float, distrust: float) -> dict[float, float]:
    """So many factors about 1, each so many times the next, with their probabilities."""
    others = max(1, number - 1)
    powers = [apart ** (i - number // 2) for i in range(number)]
    return {x: (1 - distrust if number > 1 else 1.0) if x == 1 else distrust / others for x in powers}


def _scaled(tempo: Tempo, by: Factors) -> Tempo:
    """With the constants that a hypothesis has."""

    def times(part: Moving, factor: float) -> Moving:
        return part.scaled(np.full(part.cov.shape[-1], np.sqrt(factor)))

    walk, error = tempo.bias.walk, tempo.error
    walks = tempo.bias._replace(walk=None if walk is None else by.speed * walk)
    return tempo._replace(
        bias=walks if np.isinf(tempo.bias.time) else times(tempo.bias, by.speed),
        error=None if error is None else times(error, by.size),
        white=None if tempo.white is None else by.size * tempo.white,
    )


def _opened(parameters: Parameters, moment: Moment) -> Moment:
    """With an axis for hypotheses; a noise of a reading's own is as far off as that told."""
    xp = parameters.prior.__array_namespace__()
    number, at = (None if x is None else xp.asarray(x)[..., None] for x in moment[:2])
    if moment.noise is None:
        return Moment(number, at)
    return Moment(number, at, parameters.sizes[:, None, None] * moment.noise[..., None, :, :])


def _of_reading(clock: Clockwork, ready: temporal.Ready, noisy: Array) -> Array:
    """Logarithms of the density of a reading (..., d) under every hypothesis, (..., H)."""
    shown = recent.mark(noisy[..., None, :])
    _, reading = clockwork.read(clock, ready.belief, ready.at)
    return reading.density(ready.noise, shown.values - clock.mean, shown.lost())


def _of_context(
    clock: Clockwork, state: temporal.State, before: Array, after: Array, moment: Moment
) -> Array:
    """Likewise of what becomes known of a context, (..., 1, d) each, given all else: (..., H)."""
    number, at = temporal.when(moment, state)
    new, old = recent.mark(after), recent.mark(before)
    if after.__array_namespace__() is not np or temporal.is_last(state, number, before, after):
        context, _ = clockwork.read(clock, state.belief, at)
        return _known(clock, context, new._replace(there=new.there * (1 - old.there)))
    asked = [one.number == number for one in state.window]
    first = next((i for i, here in enumerate(asked) if here.any()), None)
    if first is None:
        return np.zeros(state.belief.mean.shape[:-1])
    without = [
        one._replace(known=one.known._replace(there=one.known.there * ~here[..., None]))
        for one, here in zip(state.window[first:], asked[first:], strict=True)
    ]
    context = recent.replayed(clock, tuple(without), asked[first:]).context
    found: Array = _known(clock, context, new) - _known(clock, context, old)
    return np.where(np.logical_or.reduce(asked), found, 0.0)


def _known(clock: Clockwork, context: Belief, known: Marked) -> Array:
    """Of what is known of a context, which is believed to be such, less mu_c."""
    return context.density(clockwork.least(clock), known.values - clock.mean, known.lost())
