"""What a true context changes of a filter in time (denoise/temporal.py): at once, or late.

That of the last reading is one more observation of a state that has not moved since. That of a reading in the
window has it and all since filtered anew (denoise/recent.py). An older one is an observation of the past.
"""

from typing import NamedTuple

import numpy as np

from unfog.agents.denoise import clockwork, recent
from unfog.agents.denoise.clockwork import Clockwork
from unfog.agents.denoise.recent import Kept, Marked
from unfog.agents.parts import Moment
from unfog.features import Context
from unfog.maths.arrays import Array, Bools, settled
from unfog.maths.kalman import Belief
from unfog.validation import InputError

NEVER = -1.0  # the number of a reading that there was not


class State(NamedTuple):
    """What is believed after the last reading."""

    belief: Belief
    at: Array  # (...,)  its time
    number: Array  # (...,)  its number, negative before the first
    window: tuple[Kept, ...]  # the last readings, the latest last
    stale: Array  # (...,)  how many true contexts came too late for the window


def when(moment: Moment, state: State) -> tuple[Array, Array]:
    """Number and time of a reading, (...,) each: the time is the number, unless told, and that the next."""
    xp, dtype = state.at.__array_namespace__(), state.at.dtype
    number = state.number + 1 if moment.number is None else xp.asarray(moment.number, dtype=dtype)
    if moment.at is not None:
        return number, xp.asarray(moment.at, dtype=dtype)
    return number, number if moment.number is not None else xp.where(state.number < 0, 0.0, state.at + 1)


def is_last(state: State, number: Array, before: Array, after: Array) -> bool:
    """Whether it is the last reading whose context becomes known, and nothing known of it is other now."""
    return settled(state.number == number) and settled(np.isnan(before) | (before == after))


def at_once(clock: Clockwork, state: State, kept: Kept, before: Marked) -> tuple[State, Context]:
    """The context of the last reading: the state has not moved since."""
    news = kept._replace(known=kept.known._replace(there=kept.known.there * (1 - before.there)))
    belief, window = recent.known(clock, state.belief, news), state.window
    if window:
        window = (*window[:-1], window[-1]._replace(known=kept.known))
    return state._replace(belief=belief, window=window), _now(clock, belief, kept)


def late(clock: Clockwork, state: State, kept: Kept, news: Bools) -> tuple[State, Context]:
    """The context of a past reading, or one of the last that was known otherwise."""
    window, asked = state.window, [one.number == kept.number for one in state.window]
    found = np.logical_or.reduce(asked) if asked else np.zeros(state.number.shape, bool)
    stale = np.asarray(news & ~found)
    if (stale & (kept.number > state.number)).any():
        raise InputError("reveal", f"round {kept.number}", "a round that has been played")
    state = state._replace(stale=state.stale + stale)
    if not window:
        belief = recent.past(clock, state.belief, state.at - kept.at, kept, stale)
        return state._replace(belief=belief), _now(clock, belief, kept)
    first = 0 if stale.any() else next((i for i, here in enumerate(asked) if here.any()), len(window) - 1)
    if stale.any():
        gap = np.where(stale, window[0].at - kept.at, 0.0)
        told = recent.past(clock, window[0].belief, gap, kept, stale)
        window = (window[0]._replace(belief=told), *window[1:])
    anew = [
        one._replace(known=_where(here, kept.known, one.known))
        for one, here in zip(window[first:], asked[first:], strict=True)
    ]
    again = recent.replayed(clock, tuple(anew), asked[first:])
    state = state._replace(belief=again.belief, window=(*window[:first], *again.window))
    return state, exact(clock, again.context, kept.known)


def _where(here: Bools, one: Marked, other: Marked) -> Marked:
    """One of two, trial by trial."""
    return Marked(*(np.where(here[..., None], x, y) for x, y in zip(one, other, strict=True)))


def _now(clock: Clockwork, belief: Belief, kept: Kept) -> Context:
    """The context of a reading, if the belief is of its time; exact where it is known."""
    return exact(clock, clockwork.read(clock, belief, kept.at)[0], kept.known)


def exact(clock: Clockwork, belief: Belief, known: Marked) -> Context:
    """A belief about a context, exact where it is known: features factorise such a covariance."""
    xp, left = known.there.__array_namespace__(), 1 - known.there
    cov = left[..., :, None] * left[..., None, :] * belief.cov()
    return Context(xp.where(left > 0, clock.mean + belief.mean, known.values), cov)
