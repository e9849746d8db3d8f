"""A log of decisions as the evaluation of policies wants it, whatever it was read from, and what it must be.

Row t is a round: the noisy context that the logger saw, the arm it drew and with which probability, and the
reward. Rows are in the order of time. Everything is checked when a log is read (evaluation/readers), so that
nothing further inside asks again: every refusal names the first row that offends, as the person who opens the
log would count it (`Where`).

A drawn arm has a probability above 0 and at most 1. Where the probabilities of all arms are there they sum to
1, and that of the drawn arm is the one that stands beside it. Rewards are there, times never go back, and
there are two arms at least. Coordinates may be lost and true contexts unknown: not a number, here.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from unfog._table import Where, check_times, first
from unfog.maths.arrays import Array, Bools, Ints
from unfog.validation import LARGEST, SMALLEST, InputError

CLOSE = 1e-3  # by how much probabilities may be rounded: loggers write few digits
WITHOUT = (
    "the probability of each arm that was drawn. Other policies are judged by weighing rewards with one over "
    "it (inverse propensity scores), and a logger that always draws the same arm in the same context says "
    "nothing about the other arms. What can be done: log probabilities from now on, with a floor under each "
    "arm, as `unfog live` does; or, if all arms were drawn evenly, say so: probability 0.25, for four arms. "
    "Probabilities that are fitted to the log afterwards are not offered: unless they are fitted to the very "
    "noisy contexts that the logger saw, they are confounded"
)

Called = Mapping[str, str]
"""What fields of a log are called where it was read."""


class Log(NamedTuple):
    """n rounds of K arms and d coordinates."""

    coordinates: tuple[str, ...]  # d names
    arms: tuple[str, ...]  # K names
    noisy: Array  # (n, d)  as the logger saw it; not a number where a coordinate was lost
    arm: Ints  # (n,)  that was drawn
    reward: Array  # (n,)
    probability: Array  # (n,)  of that arm, given what the logger saw
    probabilities: Array | None = None  # (n, K)  of every arm, zero where it could not be drawn
    true: Array | None = None  # (n, d)  the true context, not a number where it is not known
    time: Array | None = None  # (n,)  in any unit, never decreasing
    unit: Ints | None = None  # (n,)  whose context it is, numbered from 0: each unit has a bias of its own
    units: tuple[str, ...] = ()  # their names
    source: str = ""  # what it was read from, for people
    notes: tuple[str, ...] = ()  # what was passed over in reading it, for people
    offered: Bools | None = None  # (n, K)  which arms there were to choose from; None: all of them
    channel: Any = None  # what the log itself tells of noise, as `unfog.channel.channel.channel` takes it

    @property
    def rounds(self) -> int:
        """How many: n."""
        return len(self.arm)

    @property
    def support(self) -> Bools | None:
        """Which arms could be drawn, (n, K); None where the log does not say."""
        return None if self.probabilities is None else self.probabilities > 0

    def rows(self, places: Ints | slice) -> "Log":
        """Some of the rounds."""
        cut: dict[str, Any] = {
            name: value[places] for name, value in self._asdict().items() if isinstance(value, np.ndarray)
        }
        return self._replace(**cut)

    def known(self) -> Bools:
        """Where the whole true context is known, (n,)."""
        if self.true is None:
            return np.zeros(self.rounds, bool)
        return np.asarray(~np.isnan(self.true).any(axis=1))


def number(value: float) -> str:
    """A number that is complained of, in words where it is none."""
    return "nothing" if np.isnan(value) else f"{value:g}"


def gaps(values: Array) -> int:
    """How many are not a number."""
    return int(np.isnan(values).sum())


def check_log(log: Log, where: Where, called: Called | None = None) -> Log:
    """The log itself, if nothing is wrong with it."""
    _refuse_sizes(log)
    names = dict(called or {})
    _refuse_arms(log, where)
    _refuse_contexts(log, where, names)
    _refuse_missing(log.reward, where, names.get("reward", "reward"), "a finite number: what was earned")
    _refuse_probability(log, where, names.get("probability", "probability"))
    if log.probabilities is not None:
        _refuse_probabilities(log, where)
    if log.time is not None:
        check_times(log.time, where, names.get("time", "time"))
    return log


def _refuse_sizes(log: Log) -> None:
    """Complain of a log without rows, and of parts that are not as long as the others."""
    n, d, k = len(log.arm), len(log.coordinates), len(log.arms)
    if not n:
        raise InputError("log", "no rows", "one decision at least, with its reward")
    wanted = {"noisy": (n, d), "arm": (n,), "reward": (n,), "probability": (n,), "probabilities": (n, k)}
    wanted |= {"true": (n, d), "time": (n,), "unit": (n,), "offered": (n, k)}
    for name, shape in wanted.items():
        found = getattr(log, name)
        if found is not None and np.shape(found) != shape:
            allowed = f"{shape}, since there are {n} arms drawn, {d} coordinates and {k} arms"
            raise InputError(name, f"the shape {np.shape(found)}", allowed)


def _refuse_arms(log: Log, where: Where) -> None:
    arms = ", ".join(log.arms)
    if len(log.arms) < 2:
        allowed = "two arms at least: with one there is nothing to choose; list those never drawn, too"
        raise InputError("arms", f"{arms or 'none'} alone", allowed)
    if len(set(log.arms)) < len(log.arms):
        raise InputError("arms", arms, "each arm once")
    at = first((log.arm < 0) | (log.arm >= len(log.arms)))
    if at is not None:
        raise InputError(where.of(at, "arm"), int(log.arm[at]), f"a place in the list of arms: {arms}")
    offered = np.ones((log.rounds, 1), bool) if log.offered is None else log.offered
    at = first(~offered[np.arange(log.rounds), 0 if log.offered is None else log.arm])
    if at is not None:
        raise InputError(where.of(at, "arm"), log.arms[int(log.arm[at])], "an arm that was offered")
    if log.unit is not None and (at := first((log.unit < 0) | (log.unit >= len(log.units)))) is not None:
        raise InputError(where.of(at, "unit"), int(log.unit[at]), "a place in the list of units")


def _refuse_contexts(log: Log, where: Where, called: Called) -> None:
    for part, values in (("context", log.noisy), ("true", log.true)):
        bad = np.abs(values) > LARGEST if values is not None else np.zeros((0, 0), bool)
        if values is None or (at := first(np.any(bad, axis=1, keepdims=True)[:, 0])) is None:
            continue
        j = int(np.argmax(bad[at]))
        name = f"{part}.{log.coordinates[j]}"
        allowed = f"a number, at most {LARGEST:g} in size, or nothing where it is not known"
        raise InputError(where.of(at, called.get(name, name)), number(values[at, j]), allowed)


def _refuse_missing(values: Array, where: Where, name: str, allowed: str) -> None:
    at = first(~(np.abs(values) <= LARGEST))
    if at is not None:
        raise InputError(where.of(at, name), number(values[at]), allowed)


def _refuse_probability(log: Log, where: Where, name: str) -> None:
    at = first(~((log.probability >= SMALLEST) & (log.probability <= 1)))
    if at is None:
        return
    allowed = f"a number above 0 and at most 1: the arm was drawn, so that it could be; at least {SMALLEST:g}"
    raise InputError(where.of(at, name), number(log.probability[at]), allowed)


def _refuse_probabilities(log: Log, where: Where) -> None:
    every = np.asarray(log.probabilities)
    bad = ~((every >= 0) & (every <= 1))
    at = first(np.any(bad, axis=1, keepdims=True)[:, 0])
    if at is not None:
        k = int(np.argmax(bad[at]))
        allowed = "a number from 0 to 1, 0 where the arm could not be drawn"
        raise InputError(where.of(at, f"probability of {log.arms[k]}"), number(every[at, k]), allowed)
    total = every.sum(axis=1)
    at = first(np.abs(total - 1) > CLOSE)
    if at is not None:
        raise InputError(where.of(at, "probabilities"), f"a sum of {total[at]:.6g}", "1, over all arms")
    own = every[np.arange(log.rounds), log.arm]
    at = first(_apart(own, log.probability))
    if at is not None:
        arm = log.arms[int(log.arm[at])]
        said = f"{log.probability[at]:g} for {arm!r}, which was drawn"
        raise InputError(where.of(at, "probability"), said, f"what all probabilities say of it: {own[at]:g}")


def _apart(one: Array, other: Array) -> Bools:
    apart: Bools = np.abs(one - other) > CLOSE * np.maximum(one, other)
    return apart
