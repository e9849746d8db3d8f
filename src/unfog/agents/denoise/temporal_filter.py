"""The filter in time that `Temporal` runs: the moving state, the last readings, true contexts.

The state is that of parts side by side, d numbers each.

    x = (x_1, ..., x_k),   c(t) = mu_c + sum of w_i(t) x_i over the context's parts,
                           chat(t) = c(t) + sum of x_i over the error's parts + white

channel/dynamics.py says how parts move. Those that move at all come first, so that a step of time adds
columns to the root for them alone. Weights w_i are 1, or cos(2 pi t / period) and sin(2 pi t / period) for
the two parts of a cycle; these come last.

The last readings are kept, each with the belief just before it, so that true contexts may come late. When
more of a past context becomes known, all readings from its own on are filtered again, with everything that is
known by now. Beside the state runs a copy of that past context, which does not move: in the end the copy is
what all readings up to now say of it.

The true context of the last reading is one more observation of a state that has not moved since (`at_once`).
For that of an older reading in the window, it and all since are filtered anew; one older than the window is
an observation of the past (`late`).
"""

from typing import NamedTuple

import numpy as np

from unfog.agents.base import Moment
from unfog.channel.dynamics import Moving, Tempo, untimed
from unfog.channel.knowledge import Knowledge
from unfog.features import Context
from unfog.maths.arrays import Array, Bools, diagonal_matrix, matvec, settled
from unfog.maths.gaussian import singular_root
from unfog.maths.kalman import Belief
from unfog.maths.trees import each
from unfog.validation import InputError

# In deviations of the context: what is known is known to this much, so that S^(1/2) has an inverse.
EXACT = 1e-9
NEVER = -1.0  # the number of a reading that there was not


class Clockwork(NamedTuple):
    """Everything about the parts that can be made once; start, steps and white may have axes in front."""

    mean: Array  # (d,)    mu_c
    times: Array  # (k,)    time constants
    in_context: Array  # (k,)    1 where a part is one of the context, 0 where it is one of the error
    frequencies: Array  # (p,)    of the last p parts, the weights of which are cos(frequency t - phase)
    phases: Array  # (p,)
    start: Array  # (n, n)  root of the covariance at the start, n = k d
    steps: Array  # (n, q d)  roots of what a unit of time adds, for the first q parts
    white: Array  # (d, d)  root of the white part's covariance; where there is none, all but zero
    scale: Array  # (d,)    deviations of the context, as told
    since: Array  # ()      the time of the start; not a number where that is the first reading's
    is_bias: Array  # (k,)    1 where a part is the bias, 0 elsewhere


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


class State(NamedTuple):
    """What is believed after the last reading."""

    belief: Belief
    at: Array  # (...,)  its time
    number: Array  # (...,)  its number, negative before the first
    window: tuple[Kept, ...]  # the last readings, the latest last
    stale: Array  # (...,)  how many true contexts came too late for the window


class Replay(NamedTuple):
    """Readings filtered anew."""

    belief: Belief  # after the last of them
    window: tuple[Kept, ...]
    context: Belief  # what is believed by now of the context that was asked for, less mu_c


class _Wheel(NamedTuple):
    """One part, before all are put together."""

    start: Array
    step: Array | None  # root of a unit of time's, or of the covariance where it comes back to zero
    time: float
    in_context: bool
    frequency: float = 0.0
    phase: float = 0.0
    is_bias: bool = False


def clockwork(known: Knowledge) -> Clockwork:
    """The parts that agents are told of; without constants of time, rounds are independent but for a bias."""
    tempo = known.tempo or untimed(known.context_cov, known.noise_cov, known.bias_cov)
    wheels = _wheels(tempo)
    wheels = [*(w for w in wheels if w.step is not None), *(w for w in wheels if w.step is None)]
    moving = [w.step for w in wheels if w.step is not None]
    xp = known.context_cov.__array_namespace__()
    scale = xp.sqrt(xp.linalg.diagonal(known.context_cov))
    return Clockwork(
        known.context_mean,
        np.array([w.time for w in wheels]),
        np.array([float(w.in_context) for w in wheels]),
        np.array([w.frequency for w in wheels if w.frequency]),
        np.array([w.phase for w in wheels if w.frequency]),
        _blocks([w.start for w in wheels], len(wheels)),
        _blocks(moving, len(wheels)),
        diagonal_matrix(EXACT * scale) if tempo.white is None else singular_root(tempo.white),
        scale,
        np.asarray(np.nan if tempo.since is None else tempo.since),
        np.array([float(w.is_bias) for w in wheels]),
    )


def _wheels(tempo: Tempo) -> list[_Wheel]:
    found = []
    for name, in_context in (("fast", True), ("level", True), ("error", False), ("bias", False)):
        part = tempo._asdict()[name]
        if part is not None:
            told = singular_root(part.cov), _step(part), part.time, in_context
            found.append(_Wheel(*told, is_bias=name == "bias"))
    for period, cov in zip(tempo.periods, () if tempo.cycles is None else tempo.cycles, strict=True):
        for phase in (0.0, np.pi / 2):
            found.append(_Wheel(singular_root(cov), None, np.inf, True, 2 * np.pi / period, phase))
    return found


def _step(part: Moving) -> Array | None:
    """Root of what moves it; None where it stays."""
    if part.time < np.inf:
        return singular_root(part.cov)
    return None if part.walk is None or not np.any(part.walk) else singular_root(part.walk)


def _blocks(roots: list[Array], parts: int) -> Array:
    """Along a diagonal, with rows for all parts; one of them at least moves, the context's fast one."""
    xp, d = roots[0].__array_namespace__(), roots[0].shape[0]
    nothing = xp.zeros((d, d), dtype=roots[0].dtype)
    columns = [
        xp.concat([block if i == j else nothing for i in range(parts)], axis=-2)
        for j, block in enumerate(roots)
    ]
    return xp.concat(columns, axis=-1)


def started(clock: Clockwork) -> Belief:
    """Before the first reading."""
    xp = clock.start.__array_namespace__()
    return Belief(xp.zeros(clock.start.shape[:-1], dtype=clock.start.dtype), clock.start)


def share_kept(clock: Clockwork, length: Array) -> Array:
    """Of each part over a step of time (...,): (..., k)."""
    xp, step = length.__array_namespace__(), length[..., None]
    lasting = clock.times > 0
    kept = xp.exp(-step / xp.where(lasting, clock.times, 1.0))
    found: Array = xp.where(lasting, kept, xp.where(step > 0, 0.0, 1.0))
    return found


def spread_added(clock: Clockwork, length: Array) -> Array:
    """The factor of a part's step over a step of time (...,): (..., k)."""
    xp, kept = length.__array_namespace__(), share_kept(clock, length)
    found: Array = xp.sqrt(xp.where(xp.isinf(clock.times), length[..., None], 1 - kept**2))
    return found


def step(clock: Clockwork, length: Array) -> tuple[Array, Array]:
    """What a step of time (...,), not below zero, keeps (..., n) and adds (..., n, q d)."""
    xp, d = length.__array_namespace__(), clock.mean.shape[0]
    moving = clock.steps.shape[-1] // d
    factors = xp.repeat(spread_added(clock, length)[..., :moving], d, axis=-1)
    return xp.repeat(share_kept(clock, length), d, axis=-1), clock.steps * factors[..., None, :]


def moved_on(clock: Clockwork, belief: Belief, length: Array) -> Belief:
    """After a step of time (...,); rows of the belief beyond the state stay as they are."""
    keeps, adds = step(clock, length)
    more = belief.mean.shape[-1] - keeps.shape[-1]
    return belief.moved(_padded(keeps, -1, more, 1.0), _padded(adds, -2, more, 0.0))


def _padded(x: Array, axis: int, more: int, value: float) -> Array:
    """With so many more entries along an axis."""
    if not more:
        return x
    xp, shape = x.__array_namespace__(), [*x.shape]
    shape[axis] = more
    return xp.concat([x, xp.full(tuple(shape), value, dtype=x.dtype)], axis=axis)


def rows(clock: Clockwork, at: Array) -> tuple[Array, Array]:
    """How a context and a noisy context read the state at a time (...,): (..., d, n) each."""
    xp, turning = at.__array_namespace__(), clock.frequencies.shape[0]
    weights = xp.ones((clock.times.shape[0] - turning,), dtype=clock.mean.dtype)
    if turning:
        cycles = xp.cos(clock.frequencies * at[..., None] - clock.phases)
        weights = xp.concat([xp.broadcast_to(weights, (*at.shape, *weights.shape)), cycles], axis=-1)
    eye = xp.eye(clock.mean.shape[0], dtype=clock.mean.dtype)

    def wide(weights: Array) -> Array:
        blocks = weights[..., None, :, None] * eye[:, None, :]
        found: Array = blocks.reshape(*blocks.shape[:-2], -1)
        return found

    return wide(weights * clock.in_context), wide(weights)


def seen_at(clock: Clockwork, belief: Belief, at: Array) -> tuple[Belief, Belief]:
    """What is believed of the context at a time (...,), less mu_c, and of its reading without white noise."""
    n = clock.start.shape[-1]
    state = Belief(belief.mean[..., :n], belief.root[..., :n, :])
    context, reading = (Belief(matvec(x, state.mean), x @ state.root) for x in rows(clock, at))
    return context, reading


def bias(clock: Clockwork, belief: Belief) -> Belief:
    """What is believed of the bias."""
    xp, d = belief.mean.__array_namespace__(), clock.mean.shape[0]
    blocks = clock.is_bias[:, None] * xp.eye(d, dtype=clock.mean.dtype)[:, None, :]
    chosen = blocks.reshape(d, -1)
    return Belief(matvec(chosen, belief.mean), chosen @ belief.root)


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
    return known(clock, after_reading(clock, belief, kept), kept)


def after_reading(clock: Clockwork, belief: Belief, kept: Kept) -> Belief:
    """After a reading alone."""
    _, reading = seen_at(clock, belief, kept.at)
    return belief.condition_on(reading, kept.noise, kept.noisy.values - clock.mean, kept.noisy.lost())


def least(clock: Clockwork) -> Array:
    """Root of the noise that stands for none, (d, d)."""
    xp = clock.scale.__array_namespace__()
    found: Array = EXACT * clock.scale * xp.eye(clock.mean.shape[0], dtype=clock.mean.dtype)
    return found


def known(clock: Clockwork, belief: Belief, kept: Kept) -> Belief:
    """After a true context, as far as that is known."""
    hidden = kept.known.lost()
    if hidden is not None and settled(hidden):
        return belief
    context, _ = seen_at(clock, belief, kept.at)
    return belief.condition_on(context, least(clock), kept.known.values - clock.mean, hidden)


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
    belief, window = known(clock, state.belief, news), state.window
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
        belief = past(clock, state.belief, state.at - kept.at, kept, stale)
        return state._replace(belief=belief), _now(clock, belief, kept)
    first = 0 if stale.any() else next((i for i, here in enumerate(asked) if here.any()), len(window) - 1)
    if stale.any():
        gap = np.where(stale, window[0].at - kept.at, 0.0)
        told = past(clock, window[0].belief, gap, kept, stale)
        window = (window[0]._replace(belief=told), *window[1:])
    anew = [
        one._replace(known=_where(here, kept.known, one.known))
        for one, here in zip(window[first:], asked[first:], strict=True)
    ]
    again = replayed(clock, tuple(anew), asked[first:])
    state = state._replace(belief=again.belief, window=(*window[:first], *again.window))
    return state, exact(clock, again.context, kept.known)


def since(clock: Clockwork, number: Array, last: Array, at: Array) -> Array:
    """The time from a last reading to this one; where there was none, from the start."""
    xp = at.__array_namespace__()
    first = xp.where(xp.isnan(clock.since), 0.0, at - clock.since)
    found: Array = xp.where(number < 0, first, at - last)
    return found


def replayed(clock: Clockwork, window: tuple[Kept, ...], asked: list[Bools]) -> Replay:
    """Filter readings anew from the first on; `asked` is true where a reading is that of the context."""
    n, d = clock.start.shape[-1], clock.mean.shape[0]
    moved, found = _with_copy(window[0].belief, d), [window[0]]
    belief = _copied(clock, after(clock, moved, window[0]), window[0].at, asked[0])
    for kept, here in zip(window[1:], asked[1:], strict=True):
        last = found[-1]
        moved = moved_on(clock, belief, since(clock, last.number, last.at, kept.at))
        found.append(kept._replace(belief=_without_copy(moved, n, d)))
        belief = _copied(clock, after(clock, moved, kept), kept.at, here)
    copy = Belief(belief.mean[..., n:], belief.root[..., n:, :])
    return Replay(_without_copy(belief, n, d), tuple(found), copy)


def _with_copy(belief: Belief, d: int) -> Belief:
    """With room for a copy of a context."""
    xp = belief.mean.__array_namespace__()
    mean = xp.concat([belief.mean, xp.zeros((*belief.mean.shape[:-1], d))], axis=-1)
    root = xp.concat([belief.root, xp.zeros((*belief.root.shape[:-2], d, belief.root.shape[-1]))], axis=-2)
    return Belief(mean, root)


def _copied(clock: Clockwork, belief: Belief, at: Array, here: Bools) -> Belief:
    """With the context of this moment as the copy, where it is the one asked for."""
    xp, n = belief.mean.__array_namespace__(), clock.start.shape[-1]
    context, _ = seen_at(clock, belief, at)
    if settled(~here):
        return belief
    mean = xp.where(here[..., None], context.mean, belief.mean[..., n:])
    root = xp.where(here[..., None, None], context.root, belief.root[..., n:, :])
    batch = np.broadcast_shapes(mean.shape[:-1], belief.mean.shape[:-1])
    rest = np.broadcast_to(belief.mean[..., :n], (*batch, n))
    wide = np.broadcast_shapes(root.shape[:-2], belief.root.shape[:-2])
    body = np.broadcast_to(belief.root[..., :n, :], (*wide, n, belief.root.shape[-1]))
    return Belief(xp.concat([rest, mean], axis=-1), xp.concat([body, root], axis=-2))


def _without_copy(belief: Belief, n: int, d: int) -> Belief:
    """The state alone: a triangular root, whatever a step has added, has zeros in the copy's columns."""
    root = belief.root[..., :n, :]
    return Belief(belief.mean[..., :n], np.delete(root, np.s_[n : n + d], axis=-1))


def past(clock: Clockwork, belief: Belief, gap: Array, kept: Kept, mine: Bools) -> Belief:
    """After a pair from so long ago (...,) that its reading is no longer kept, where it is `mine` to use.

    What moves keeps the same share backwards, and gains as much spread: x_then = keeps x_now + adds z.
    """
    xp, d = gap.__array_namespace__(), clock.mean.shape[0]
    keeps, adds = step(clock, gap)
    of_context, of_reading = rows(clock, kept.at)
    both = xp.concat([of_context, of_reading - of_context], axis=-2)
    white = xp.concat([xp.zeros_like(clock.white), clock.white], axis=-2)
    moves = both @ adds
    noise = xp.concat([moves, xp.broadcast_to(white, (*moves.shape[:-1], d))], axis=-1)
    context, error = kept.known.values - clock.mean, kept.noisy.values - kept.known.values
    there = xp.concat([kept.known.there, kept.known.there * kept.noisy.there], axis=-1)
    lost = (there == 0) | ~mine[..., None]
    return belief.seen(both * keeps[..., None, :], noise, xp.concat([context, error], axis=-1), lost)


def _where(here: Bools, one: Marked, other: Marked) -> Marked:
    """One of two, trial by trial."""
    return Marked(*(np.where(here[..., None], x, y) for x, y in zip(one, other, strict=True)))


def _now(clock: Clockwork, belief: Belief, kept: Kept) -> Context:
    """The context of a reading, if the belief is of its time; exact where it is known."""
    return exact(clock, seen_at(clock, belief, kept.at)[0], kept.known)


def exact(clock: Clockwork, belief: Belief, known: Marked) -> Context:
    """A belief about a context, exact where it is known: features factorise such a covariance."""
    xp, left = known.there.__array_namespace__(), 1 - known.there
    cov = left[..., :, None] * left[..., None, :] * belief.cov()
    return Context(xp.where(left > 0, clock.mean + belief.mean, known.values), cov)
