"""The state that moves behind noisy contexts, as `temporal` filters it: parts side by side, d numbers each.

    x = (x_1, ..., x_k),   c(t) = mu_c + sum of w_i(t) x_i over the context's parts,
                           chat(t) = c(t) + sum of x_i over the error's parts + white

channel/dynamics.py says how parts move. Those that move at all come first, so that a step of time adds
columns to the root for them alone. Weights w_i are 1, or cos(2 pi t / period) and sin(2 pi t / period) for
the two parts of a cycle; these come last.
"""

from typing import NamedTuple

import numpy as np

from unfog.channel.dynamics import Moving, Tempo, untimed
from unfog.channel.knowledge import Knowledge
from unfog.maths.arrays import Array, diagonal_matrix, matvec
from unfog.maths.gaussian import singular_root
from unfog.maths.kalman import Belief

EXACT = (
    1e-9  # in deviations of the context: what is known is known to this much, so that S^(1/2) has an inverse
)


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


def least(clock: Clockwork) -> Array:
    """Root of the noise that stands for none, (d, d)."""
    xp = clock.scale.__array_namespace__()
    found: Array = EXACT * clock.scale * xp.eye(clock.mean.shape[0], dtype=clock.mean.dtype)
    return found


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


def moved(clock: Clockwork, belief: Belief, length: Array) -> Belief:
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


def read(clock: Clockwork, belief: Belief, at: Array) -> tuple[Belief, Belief]:
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
