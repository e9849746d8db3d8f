"""How likely a reading, or a true context, is under every one of several filters in time.

Logarithms of densities, each given everything that is known before it: by the chain rule their sum is the
likelihood of all that was seen, in whatever order it became known.
"""

import numpy as np

from unfog.agents.denoise import clockwork, recent, temporal, truths
from unfog.agents.denoise.clockwork import Clockwork
from unfog.agents.denoise.recent import Marked
from unfog.agents.parts import Moment
from unfog.maths.arrays import Array
from unfog.maths.kalman import Belief


def of_reading(clock: Clockwork, ready: temporal.Ready, noisy: Array) -> Array:
    """Logarithms of the density of a reading (..., d) under every hypothesis, (..., H)."""
    shown = recent.mark(noisy[..., None, :])
    _, reading = clockwork.read(clock, ready.belief, ready.at)
    return reading.density(ready.noise, shown.values - clock.mean, shown.lost())


def of_context(clock: Clockwork, state: truths.State, before: Array, after: Array, moment: Moment) -> Array:
    """Likewise of what becomes known of a context, (..., 1, d) each, given all else: (..., H)."""
    number, at = truths.when(moment, state)
    new, old = recent.mark(after), recent.mark(before)
    if after.__array_namespace__() is not np or truths.is_last(state, number, before, after):
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
