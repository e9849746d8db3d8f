"""Past rounds, for learners whose belief about theta cannot be updated in place; and their logits.

The likelihood of a reward is Bernoulli(sigmoid(logit)), with logit = x'theta for the expected features x, as
in the paper's Algorithm 1, or with the context averaged out, E[sigmoid(phi'theta)], by D. J. C. MacKay's
approximation (*The evidence framework applied to classification networks*): x'theta / sqrt(1 + pi/8 v), where
v = theta'Cov(phi)theta is the variance of the score.

A round that has not been yet is a column of zeros: its logit is 0 whatever theta is, so it says nothing.
"""

from typing import NamedTuple, Protocol

import numpy as np

from unfog.agents.evidence import Evidence
from unfog.channel.knowledge import Knowledge
from unfog.maths import gaussian
from unfog.maths.arrays import Array, matvec

PROBIT = np.pi / 8


class History(NamedTuple):
    """What was chosen and what it paid, in the order of the rounds."""

    rows: Array  # (..., m, n)  expected features, a column a round
    rewards: Array  # (..., n)
    spreads: Array | None  # (..., n, m, m)  Cov(phi), where it is asked for
    seen: Array  # ()  rounds so far
    slots: Array | None  # (n,)  0, 1, ..., n - 1 in a history of fixed size; None in one that grows


def blank(known: Knowledge, rounds: int | None, marginal: bool) -> History:
    """Nothing yet, with room for so many rounds, or growing; Cov(phi) is kept to average the context out."""
    m, n = known.prior_mean.shape[-1], rounds or 0
    spreads = np.zeros((n, m, m)) if marginal else None
    slots = None if rounds is None else np.arange(n, dtype=np.float64)
    return History(np.zeros((m, n)), np.zeros(n), spreads, np.zeros(()), slots)


def add(past: History, evidence: Evidence, reward: Array) -> History:
    """One more round and its reward (...,)."""
    spreads = past.spreads
    rows = put(past, past.rows, evidence.row()[..., None], -1)
    rewards = put(past, past.rewards, reward[..., None], -1)
    if spreads is not None:
        spreads = put(past, spreads, evidence.covariance()[..., None, :, :], -3)
    return past._replace(rows=rows, rewards=rewards, spreads=spreads, seen=past.seen + 1)


class Slots(Protocol):
    """How far a memory of rounds is filled: the two fields of `History` that say so."""

    @property
    def seen(self) -> Array:
        """Rounds so far, ()."""

    @property
    def slots(self) -> Array | None:
        """0, 1, ..., n - 1, (n,), where it has fixed size; None where it grows."""


def put(past: Slots, old: Array, new: Array, axis: int) -> Array:
    """The array with one more entry along an axis: in its slot, or at the end."""
    xp = new.__array_namespace__()
    if past.slots is not None:
        here = (past.slots == past.seen).reshape(-1, *[1] * (-1 - axis))
        return xp.where(here, new, old)
    batch = new.shape[: new.ndim - old.ndim] if new.ndim > old.ndim else ()
    longer: Array = xp.concat([xp.broadcast_to(old, (*batch, *old.shape)), new], axis=axis)
    return longer


def longer(past: History, size: int) -> History:
    """With so many features, of which the last are zero in all rounds."""
    rows = gaussian.longer(past.rows, np.zeros((size, past.rows.shape[-1])), -2)
    if past.spreads is None:
        return past._replace(rows=rows)
    return past._replace(rows=rows, spreads=gaussian.larger(past.spreads, np.zeros((size, size))))


class Logits(NamedTuple):
    """The logits of all rounds at one theta, and how they change with it."""

    value: Array  # (..., n)
    rows: Array  # (..., m, n)  their gradients, a column each


def logits(past: History, theta: Array) -> Logits:
    """At this theta, (..., m)."""
    score = (theta[..., None, :] @ past.rows)[..., 0, :]
    if past.spreads is None:
        return Logits(score, past.rows)
    xp = score.__array_namespace__()
    lean = matvec(past.spreads, theta[..., None, :])
    shrink = 1 / xp.sqrt(1 + PROBIT * xp.vecdot(lean, theta[..., None, :]))
    gradient = past.rows * shrink[..., None, :] - (PROBIT * shrink**3 * score)[..., None, :] * lean.mT
    return Logits(score * shrink, gradient)
