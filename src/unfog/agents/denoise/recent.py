"""The last readings of a stream, kept so that true contexts may come late: they are filtered anew from there.

A reading is kept with the belief just before it. When more of a past context becomes known, all readings from
its own on are filtered again, with everything that is known by now, and beside the state runs a copy of that
past context, which does not move: in the end the copy is what all readings up to now say of it.
"""

from typing import NamedTuple

import numpy as np

from unfog.agents.denoise import clockwork
from unfog.agents.denoise.clockwork import Clockwork
from unfog.maths.arrays import Array, Bools, settled
from unfog.maths.kalman import Belief
from unfog.maths.trees import each


class Marked(NamedTuple):
    """Numbers, some of which may be lost or hidden: a state holds nothing that is not a number."""

    values: Array  # (..., d)
    there: Array  # (..., d)  1, or 0 where it is not

    def lost(self) -> Bools | None:
        """Where it is not there; None where it is settled that all of it is."""
        there = self.there > 0
        return None if settled(there) else ~there


class Kept(NamedTuple):
    """A reading, and what was believed before it."""

    number: Array  # (...,)  negative: there was none
    at: Array  # (...,)
    belief: Belief  # of its time
    noise: Array  # (..., d, d)  root of its noise
    noisy: Marked
    known: Marked  # its true context


def mark(values: Array) -> Marked:
    """What is not a number was lost."""
    xp, nothing = values.__array_namespace__(), values.__array_namespace__().isnan(values)
    return Marked(xp.where(nothing, 0.0, values), (~nothing).astype(values.dtype))


def with_one(window: tuple[Kept, ...], kept: Kept) -> tuple[Kept, ...]:
    """With one more reading, and without the oldest; a window for none stays empty."""
    if not window:
        return window
    if window[-1].noisy.values.shape != kept.noisy.values.shape:  # the first reading tells trials apart
        window = each(lambda x, like: np.broadcast_to(x, like.shape), window, (kept,) * len(window))
    return (*window[1:], kept)


def after(clock: Clockwork, belief: Belief, kept: Kept) -> Belief:
    """After a reading, and what is known of its context."""
    return known(clock, read(clock, belief, kept), kept)


def read(clock: Clockwork, belief: Belief, kept: Kept) -> Belief:
    """After a reading alone."""
    _, reading = clockwork.read(clock, belief, kept.at)
    return belief.told(reading, kept.noise, kept.noisy.values - clock.mean, kept.noisy.lost())


def known(clock: Clockwork, belief: Belief, kept: Kept) -> Belief:
    """After a true context, as far as that is known."""
    hidden = kept.known.lost()
    if hidden is not None and settled(hidden):
        return belief
    context, _ = clockwork.read(clock, belief, kept.at)
    return belief.told(context, clockwork.least(clock), kept.known.values - clock.mean, hidden)


class Replay(NamedTuple):
    """Readings filtered anew."""

    belief: Belief  # after the last of them
    window: tuple[Kept, ...]
    context: Belief  # what is believed by now of the context that was asked for, less mu_c


def replayed(clock: Clockwork, window: tuple[Kept, ...], asked: list[Bools]) -> Replay:
    """Filter readings anew from the first on; `asked` is true where a reading is that of the context."""
    n, d = clock.start.shape[-1], clock.mean.shape[0]
    moved, found = _with_copy(window[0].belief, d), [window[0]]
    belief = _copied(clock, after(clock, moved, window[0]), window[0].at, asked[0])
    for kept, here in zip(window[1:], asked[1:], strict=True):
        last = found[-1]
        moved = clockwork.moved(clock, belief, since(clock, last.number, last.at, kept.at))
        found.append(kept._replace(belief=_without_copy(moved, n, d)))
        belief = _copied(clock, after(clock, moved, kept), kept.at, here)
    copy = Belief(belief.mean[..., n:], belief.root[..., n:, :])
    return Replay(_without_copy(belief, n, d), tuple(found), copy)


def since(clock: Clockwork, number: Array, last: Array, at: Array) -> Array:
    """The time from a last reading to this one; where there was none, from the start."""
    xp = at.__array_namespace__()
    first = xp.where(xp.isnan(clock.since), 0.0, at - clock.since)
    found: Array = xp.where(number < 0, first, at - last)
    return found


def _without_copy(belief: Belief, n: int, d: int) -> Belief:
    """The state alone: a triangular root, whatever a step has added, has zeros in the copy's columns."""
    root = belief.root[..., :n, :]
    return Belief(belief.mean[..., :n], np.delete(root, np.s_[n : n + d], axis=-1))


def _with_copy(belief: Belief, d: int) -> Belief:
    """With room for a copy of a context."""
    xp = belief.mean.__array_namespace__()
    mean = xp.concat([belief.mean, xp.zeros((*belief.mean.shape[:-1], d))], axis=-1)
    root = xp.concat([belief.root, xp.zeros((*belief.root.shape[:-2], d, belief.root.shape[-1]))], axis=-2)
    return Belief(mean, root)


def _copied(clock: Clockwork, belief: Belief, at: Array, here: Bools) -> Belief:
    """With the context of this moment as the copy, where it is the one asked for."""
    xp, n = belief.mean.__array_namespace__(), clock.start.shape[-1]
    context, _ = clockwork.read(clock, belief, at)
    if settled(~here):
        return belief
    mean = xp.where(here[..., None], context.mean, belief.mean[..., n:])
    root = xp.where(here[..., None, None], context.root, belief.root[..., n:, :])
    batch = np.broadcast_shapes(mean.shape[:-1], belief.mean.shape[:-1])
    rest = np.broadcast_to(belief.mean[..., :n], (*batch, n))
    wide = np.broadcast_shapes(root.shape[:-2], belief.root.shape[:-2])
    body = np.broadcast_to(belief.root[..., :n, :], (*wide, n, belief.root.shape[-1]))
    return Belief(xp.concat([rest, mean], axis=-1), xp.concat([body, root], axis=-2))


def past(clock: Clockwork, belief: Belief, gap: Array, kept: Kept, mine: Bools) -> Belief:
    """After a pair from so long ago (...,) that its reading is no longer kept, where it is `mine` to use.

    What moves keeps the same share backwards, and gains as much spread: x_then = keeps x_now + adds z.
    """
    xp, d = gap.__array_namespace__(), clock.mean.shape[0]
    keeps, adds = clockwork.step(clock, gap)
    of_context, of_reading = clockwork.rows(clock, kept.at)
    both = xp.concat([of_context, of_reading - of_context], axis=-2)
    white = xp.concat([xp.zeros_like(clock.white), clock.white], axis=-2)
    moves = both @ adds
    noise = xp.concat([moves, xp.broadcast_to(white, (*moves.shape[:-1], d))], axis=-1)
    context, error = kept.known.values - clock.mean, kept.noisy.values - kept.known.values
    there = xp.concat([kept.known.there, kept.known.there * kept.noisy.there], axis=-1)
    lost = (there == 0) | ~mine[..., None]
    return belief.seen(both * keeps[..., None, :], noise, xp.concat([context, error], axis=-1), lost)
