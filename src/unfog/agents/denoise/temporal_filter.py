"""The filter in time that `Temporal` runs: the moving state, the last readings, true contexts.

The state is that of parts side by side, d numbers each.

    x = (x_1, ..., x_k),   c(t) = mu_c + sum of w_i(t) x_i over the context's parts,
                           chat(t) = c(t) + sum of x_i over the error's parts + white

channel/dynamics.py says how parts move. Those that move at all come first, so that a step of time adds
columns to the root for them alone. Weights w_i are 1, or cos(2 pi t / period) and sin(2 pi t / period) for
the two parts of a cycle; these come last.

The last readings are kept, each with the belief just before it, so that true contexts may come late. When
more of a past context becomes known, all readings from its own on are filtered again, with everything that is
known by now. The state is extended by a copy of that past context, which does not move: in the end the copy
is what all readings up to now say of it.

The true context of the last reading is one more observation of a state that has not moved since (`at_once`).
For that of an older reading in the window, it and all later ones are filtered again; one older than the
window is an observation of the past (`late`).
"""

from typing import NamedTuple

import numpy as np

from unfog.agents.base import Moment
from unfog.channel.dynamics import Dynamics, Moving, without_time
from unfog.channel.knowledge import Knowledge
from unfog.features import Context
from unfog.maths.arrays import Array, Bools, diagonal_matrix, holds_everywhere, matvec
from unfog.maths.gaussian import singular_root
from unfog.maths.kalman import Belief
from unfog.maths.trees import map_arrays
from unfog.validation import InputError

# In deviations of the context: the noise of an exact observation, so that S^(1/2) has an inverse.
EXACT = 1e-9
NEVER = -1.0  # the number of an empty slot of the window


class StateSpace(NamedTuple):
    """The state-space model of all parts; start, steps and white may have axes in front."""

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
        """Where values are lost; None if none is known to be."""
        is_there = self.there > 0
        return None if holds_everywhere(is_there) else ~is_there


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
    """The result of filtering past readings again."""

    belief: Belief  # after the last of them
    window: tuple[Kept, ...]
    context: Belief  # the current belief about the context that was asked for, less mu_c


class _Component(NamedTuple):
    """One part, before all are put together."""

    start: Array
    step: Array | None  # root of the step of a unit of time, or of the stationary covariance
    time: float
    in_context: bool
    frequency: float = 0.0
    phase: float = 0.0
    is_bias: bool = False


def build_state_space(known: Knowledge) -> StateSpace:
    """The parts that agents are told of; without constants of time, rounds are independent but for a bias."""
    dynamics = known.dynamics or without_time(known.context_cov, known.noise_cov, known.bias_cov)
    components = _list_components(dynamics)
    components = [*(c for c in components if c.step is not None), *(c for c in components if c.step is None)]
    moving = [c.step for c in components if c.step is not None]
    xp = known.context_cov.__array_namespace__()
    scale = xp.sqrt(xp.linalg.diagonal(known.context_cov))
    return StateSpace(
        known.context_mean,
        np.array([c.time for c in components]),
        np.array([float(c.in_context) for c in components]),
        np.array([c.frequency for c in components if c.frequency]),
        np.array([c.phase for c in components if c.frequency]),
        _block_diagonal([c.start for c in components], len(components)),
        _block_diagonal(moving, len(components)),
        diagonal_matrix(EXACT * scale) if dynamics.white is None else singular_root(dynamics.white),
        scale,
        np.asarray(np.nan if dynamics.since is None else dynamics.since),
        np.array([float(c.is_bias) for c in components]),
    )


def _list_components(dynamics: Dynamics) -> list[_Component]:
    components = []
    for name, in_context in (("fast", True), ("level", True), ("error", False), ("bias", False)):
        part = dynamics._asdict()[name]
        if part is not None:
            args = singular_root(part.cov), _step_root(part), part.time, in_context
            components.append(_Component(*args, is_bias=name == "bias"))
    for period, cov in zip(dynamics.periods, () if dynamics.cycles is None else dynamics.cycles, strict=True):
        for phase in (0.0, np.pi / 2):
            components.append(_Component(singular_root(cov), None, np.inf, True, 2 * np.pi / period, phase))
    return components


def _step_root(part: Moving) -> Array | None:
    """Root of the covariance of a part's step, or of the part if it is stationary; None if it stays."""
    if part.time < np.inf:
        return singular_root(part.cov)
    return None if part.walk is None or not np.any(part.walk) else singular_root(part.walk)


def _block_diagonal(roots: list[Array], parts: int) -> Array:
    """The roots along a diagonal, with rows for all parts; at least one part moves, the fast one."""
    xp, d = roots[0].__array_namespace__(), roots[0].shape[0]
    zeros = xp.zeros((d, d), dtype=roots[0].dtype)
    columns = [
        xp.concat([block if i == j else zeros for i in range(parts)], axis=-2)
        for j, block in enumerate(roots)
    ]
    return xp.concat(columns, axis=-1)


def start(model: StateSpace) -> Belief:
    """The belief before the first reading."""
    xp = model.start.__array_namespace__()
    return Belief(xp.zeros(model.start.shape[:-1], dtype=model.start.dtype), model.start)


def decay_factors(model: StateSpace, length: Array) -> Array:
    """The share of each part that remains after a step of time (...,): (..., k)."""
    xp, step = length.__array_namespace__(), length[..., None]
    lasting = model.times > 0
    decay = xp.exp(-step / xp.where(lasting, model.times, 1.0))
    factors: Array = xp.where(lasting, decay, xp.where(step > 0, 0.0, 1.0))
    return factors


def spread_added(model: StateSpace, length: Array) -> Array:
    """The factor of a part's step over a step of time (...,): (..., k)."""
    xp, decay = length.__array_namespace__(), decay_factors(model, length)
    factors: Array = xp.sqrt(xp.where(xp.isinf(model.times), length[..., None], 1 - decay**2))
    return factors


def step(model: StateSpace, length: Array) -> tuple[Array, Array]:
    """The share that a step of time (...,) keeps, (..., n), and the root that it adds, (..., n, q d)."""
    xp, d = length.__array_namespace__(), model.mean.shape[0]
    moving = model.steps.shape[-1] // d
    factors = xp.repeat(spread_added(model, length)[..., :moving], d, axis=-1)
    return xp.repeat(decay_factors(model, length), d, axis=-1), model.steps * factors[..., None, :]


def advance(model: StateSpace, belief: Belief, length: Array) -> Belief:
    """The belief after a step of time (...,); its rows beyond the state stay as they are."""
    keeps, adds = step(model, length)
    extra = belief.mean.shape[-1] - keeps.shape[-1]
    return belief.moved(_pad(keeps, -1, extra, 1.0), _pad(adds, -2, extra, 0.0))


def _pad(x: Array, axis: int, count: int, value: float) -> Array:
    """The array with `count` more entries along an axis."""
    if not count:
        return x
    xp, shape = x.__array_namespace__(), [*x.shape]
    shape[axis] = count
    return xp.concat([x, xp.full(tuple(shape), value, dtype=x.dtype)], axis=axis)


def rows(model: StateSpace, at: Array) -> tuple[Array, Array]:
    """How a context and a noisy context read the state at a time (...,): (..., d, n) each."""
    xp, turning = at.__array_namespace__(), model.frequencies.shape[0]
    weights = xp.ones((model.times.shape[0] - turning,), dtype=model.mean.dtype)
    if turning:
        cycles = xp.cos(model.frequencies * at[..., None] - model.phases)
        weights = xp.concat([xp.broadcast_to(weights, (*at.shape, *weights.shape)), cycles], axis=-1)
    eye = xp.eye(model.mean.shape[0], dtype=model.mean.dtype)

    def wide(weights: Array) -> Array:
        blocks = weights[..., None, :, None] * eye[:, None, :]
        matrix: Array = blocks.reshape(*blocks.shape[:-2], -1)
        return matrix

    return wide(weights * model.in_context), wide(weights)


def beliefs_at(model: StateSpace, belief: Belief, at: Array) -> tuple[Belief, Belief]:
    """The beliefs about the context at a time (...,) and its reading without white noise, both less mu_c."""
    n = model.start.shape[-1]
    state = Belief(belief.mean[..., :n], belief.root[..., :n, :])
    context, reading = (Belief(matvec(x, state.mean), x @ state.root) for x in rows(model, at))
    return context, reading


def bias(model: StateSpace, belief: Belief) -> Belief:
    """The belief about the bias."""
    xp, d = belief.mean.__array_namespace__(), model.mean.shape[0]
    blocks = model.is_bias[:, None] * xp.eye(d, dtype=model.mean.dtype)[:, None, :]
    chosen = blocks.reshape(d, -1)
    return Belief(matvec(chosen, belief.mean), chosen @ belief.root)


def mark(values: Array) -> Marked:
    """Mark NaN values as lost."""
    xp, is_lost = values.__array_namespace__(), values.__array_namespace__().isnan(values)
    return Marked(xp.where(is_lost, 0.0, values), (~is_lost).astype(values.dtype))


def append_record(window: tuple[Kept, ...], record: Kept) -> tuple[Kept, ...]:
    """The window with one more reading and without the oldest; an empty window stays empty."""
    if not window:
        return window
    if window[-1].noisy.values.shape != record.noisy.values.shape:  # trials differ from the first reading on
        window = map_arrays(lambda x, like: np.broadcast_to(x, like.shape), window, (record,) * len(window))
    return (*window[1:], record)


def after(model: StateSpace, belief: Belief, record: Kept) -> Belief:
    """The belief after a reading and what is known of its context."""
    return condition_on_truth(model, after_reading(model, belief, record), record)


def after_reading(model: StateSpace, belief: Belief, record: Kept) -> Belief:
    """The belief after a reading alone."""
    _, reading = beliefs_at(model, belief, record.at)
    return belief.condition_on(reading, record.noise, record.noisy.values - model.mean, record.noisy.lost())


def least(model: StateSpace) -> Array:
    """Root of the tiny noise of an exact observation, (d, d)."""
    xp = model.scale.__array_namespace__()
    root: Array = EXACT * model.scale * xp.eye(model.mean.shape[0], dtype=model.mean.dtype)
    return root


def condition_on_truth(model: StateSpace, belief: Belief, record: Kept) -> Belief:
    """The belief after a true context, as far as that is known."""
    hidden = record.known.lost()
    if hidden is not None and holds_everywhere(hidden):
        return belief
    context, _ = beliefs_at(model, belief, record.at)
    return belief.condition_on(context, least(model), record.known.values - model.mean, hidden)


def number_and_time(moment: Moment, state: State) -> tuple[Array, Array]:
    """Number and time of a reading, (...,) each: by default the next number, and the number as the time."""
    xp, dtype = state.at.__array_namespace__(), state.at.dtype
    number = state.number + 1 if moment.number is None else xp.asarray(moment.number, dtype=dtype)
    if moment.measured_at is not None:
        return number, xp.asarray(moment.measured_at, dtype=dtype)
    return number, number if moment.number is not None else xp.where(state.number < 0, 0.0, state.at + 1)


def is_last(state: State, number: Array, before: Array, after: Array) -> bool:
    """Whether this is the last reading, and nothing that was known of its context has changed."""
    return holds_everywhere(state.number == number) and holds_everywhere(np.isnan(before) | (before == after))


def at_once(model: StateSpace, state: State, record: Kept, before: Marked) -> tuple[State, Context]:
    """Learn from the context of the last reading: the state has not moved since."""
    update = record._replace(known=record.known._replace(there=record.known.there * (1 - before.there)))
    belief, window = condition_on_truth(model, state.belief, update), state.window
    if window:
        window = (*window[:-1], window[-1]._replace(known=record.known))
    return state._replace(belief=belief, window=window), _current_context(model, belief, record)


def late(model: StateSpace, state: State, record: Kept, news: Bools) -> tuple[State, Context]:
    """Learn from the context of an earlier reading, or from a corrected context of the last one."""
    window, matches = state.window, [entry.number == record.number for entry in state.window]
    in_window = np.logical_or.reduce(matches) if matches else np.zeros(state.number.shape, bool)
    stale = np.asarray(news & ~in_window)
    if (stale & (record.number > state.number)).any():
        raise InputError("reveal", f"round {record.number}", "a round that has been played")
    state = state._replace(stale=state.stale + stale)
    if not window:
        belief = past(model, state.belief, state.at - record.at, record, stale)
        return state._replace(belief=belief), _current_context(model, belief, record)
    start = (
        0
        if stale.any()
        else next((i for i, is_match in enumerate(matches) if is_match.any()), len(window) - 1)
    )
    if stale.any():
        gap = np.where(stale, window[0].at - record.at, 0.0)
        oldest = past(model, window[0].belief, gap, record, stale)
        window = (window[0]._replace(belief=oldest), *window[1:])
    updated = [
        entry._replace(known=_merge(is_match, record.known, entry.known))
        for entry, is_match in zip(window[start:], matches[start:], strict=True)
    ]
    result = replay(model, tuple(updated), matches[start:])
    state = state._replace(belief=result.belief, window=(*window[:start], *result.window))
    return state, exact(model, result.context, record.known)


def since(model: StateSpace, number: Array, last: Array, at: Array) -> Array:
    """The time from a last reading to this one; where there was none, from the start."""
    xp = at.__array_namespace__()
    first = xp.where(xp.isnan(model.since), 0.0, at - model.since)
    length: Array = xp.where(number < 0, first, at - last)
    return length


def replay(model: StateSpace, window: tuple[Kept, ...], matches: list[Bools]) -> Replay:
    """Filter readings again from the first on; `matches` marks the reading whose context is asked for."""
    n, d = model.start.shape[-1], model.mean.shape[0]
    moved, records = _append_copy(window[0].belief, d), [window[0]]
    belief = _store_copy(model, after(model, moved, window[0]), window[0].at, matches[0])
    for record, is_match in zip(window[1:], matches[1:], strict=True):
        last = records[-1]
        moved = advance(model, belief, since(model, last.number, last.at, record.at))
        records.append(record._replace(belief=_drop_copy(moved, n, d)))
        belief = _store_copy(model, after(model, moved, record), record.at, is_match)
    copy = Belief(belief.mean[..., n:], belief.root[..., n:, :])
    return Replay(_drop_copy(belief, n, d), tuple(records), copy)


def _append_copy(belief: Belief, d: int) -> Belief:
    """The belief with d more rows, of zeros, for a copy of a context."""
    xp = belief.mean.__array_namespace__()
    mean = xp.concat([belief.mean, xp.zeros((*belief.mean.shape[:-1], d))], axis=-1)
    root = xp.concat([belief.root, xp.zeros((*belief.root.shape[:-2], d, belief.root.shape[-1]))], axis=-2)
    return Belief(mean, root)


def _store_copy(model: StateSpace, belief: Belief, at: Array, is_match: Bools) -> Belief:
    """The belief with the context of this moment stored as the copy, where it is the one asked for."""
    xp, n = belief.mean.__array_namespace__(), model.start.shape[-1]
    context, _ = beliefs_at(model, belief, at)
    if holds_everywhere(~is_match):
        return belief
    mean = xp.where(is_match[..., None], context.mean, belief.mean[..., n:])
    root = xp.where(is_match[..., None, None], context.root, belief.root[..., n:, :])
    batch = np.broadcast_shapes(mean.shape[:-1], belief.mean.shape[:-1])
    state_mean = np.broadcast_to(belief.mean[..., :n], (*batch, n))
    root_batch = np.broadcast_shapes(root.shape[:-2], belief.root.shape[:-2])
    state_root = np.broadcast_to(belief.root[..., :n, :], (*root_batch, n, belief.root.shape[-1]))
    return Belief(xp.concat([state_mean, mean], axis=-1), xp.concat([state_root, root], axis=-2))


def _drop_copy(belief: Belief, n: int, d: int) -> Belief:
    """The state alone: a triangular root, whatever a step has added, has zeros in the copy's columns."""
    root = belief.root[..., :n, :]
    return Belief(belief.mean[..., :n], np.delete(root, np.s_[n : n + d], axis=-1))


def past(model: StateSpace, belief: Belief, gap: Array, record: Kept, is_stale: Bools) -> Belief:
    """The belief after a pair from so long ago (...,) that its reading has left the window, where `is_stale`.

    What moves keeps the same share backwards, and gains as much spread: x_then = keeps x_now + adds z.
    """
    xp, d = gap.__array_namespace__(), model.mean.shape[0]
    keeps, adds = step(model, gap)
    of_context, of_reading = rows(model, record.at)
    measured_rows = xp.concat([of_context, of_reading - of_context], axis=-2)
    white = xp.concat([xp.zeros_like(model.white), model.white], axis=-2)
    moves = measured_rows @ adds
    noise = xp.concat([moves, xp.broadcast_to(white, (*moves.shape[:-1], d))], axis=-1)
    context, error = record.known.values - model.mean, record.noisy.values - record.known.values
    present = xp.concat([record.known.there, record.known.there * record.noisy.there], axis=-1)
    lost = (present == 0) | ~is_stale[..., None]
    return belief.seen(measured_rows * keeps[..., None, :], noise, xp.concat([context, error], axis=-1), lost)


def _merge(condition: Bools, first: Marked, second: Marked) -> Marked:
    """The first where the condition holds, else the second, trial by trial."""
    return Marked(*(np.where(condition[..., None], x, y) for x, y in zip(first, second, strict=True)))


def _current_context(model: StateSpace, belief: Belief, record: Kept) -> Context:
    """The context of a reading under a belief at its time; exact where it is known."""
    return exact(model, beliefs_at(model, belief, record.at)[0], record.known)


def exact(model: StateSpace, belief: Belief, known: Marked) -> Context:
    """A belief about a context, exact where it is known: features factorise such a covariance."""
    xp, hidden = known.there.__array_namespace__(), 1 - known.there
    cov = hidden[..., :, None] * hidden[..., None, :] * belief.cov()
    return Context(xp.where(hidden > 0, model.mean + belief.mean, known.values), cov)
