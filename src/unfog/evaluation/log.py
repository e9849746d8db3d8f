"""The log of decisions that the evaluation of policies works on, whatever it was read from, and its checks.

Row t is a round: the noisy context that the logger saw, the arm it drew and with which probability, and the
reward. Rows are in the order of time. Everything is checked once, when a log is read (evaluation/readers).
An error names the first offending row, counted as in the file or table it came from (`Where`).

A drawn arm has a probability above 0 and at most 1. If the probabilities of all arms are logged they sum to
1, and agree with the probability of the drawn arm. No reward is missing, times never go back, and there are
at least two arms. Coordinates may be lost and true contexts unknown: both are NaN.
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
"""The names that fields of a log have in its source, by field."""


class DecisionLog(NamedTuple):
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
    noise: Array | None = None  # (n, d, d)  of readings with a noise of their own; not a number elsewhere

    @property
    def rounds(self) -> int:
        """The number of rounds, n."""
        return len(self.arm)

    @property
    def support(self) -> Bools | None:
        """Which arms could be drawn, (n, K); None where the log does not say."""
        return None if self.probabilities is None else self.probabilities > 0

    def rows(self, index: Ints | slice) -> "DecisionLog":
        """Some of the rounds."""
        cut: dict[str, Any] = {
            name: value[index] for name, value in self._asdict().items() if isinstance(value, np.ndarray)
        }
        return self._replace(**cut)

    def own_noise(self, noise_cov: Array) -> Array | None:
        """The noise covariance of every reading, (n, d, d), where some have their own; `noise_cov` elsewhere.

        >>> import numpy as np
        >>> from unfog.evaluation.log import DecisionLog, noise_of
        >>> numbers = np.zeros((2, 1)), np.zeros(2, int), np.ones(2), np.ones(2)
        >>> noise = noise_of(np.array([[np.nan], [3.0]]))
        >>> log = DecisionLog(("steps",), ("send", "wait"), *numbers, noise=noise)
        >>> log.own_noise(np.eye(1)).ravel().tolist()
        [1.0, 9.0]
        """
        return None if self.noise is None else np.where(np.isnan(self.noise), noise_cov, self.noise)

    def known(self) -> Bools:
        """Where the whole true context is known, (n,)."""
        if self.true is None:
            return np.zeros(self.rounds, bool)
        return np.asarray(~np.isnan(self.true).any(axis=1))


def noise_of(sds: Array) -> Array | None:
    """Noise covariances (n, d, d) from standard deviations (n, d), NaN where they are usual; None: all."""
    if np.isnan(sds).all():
        return None
    known, d = ~np.isnan(sds), sds.shape[1]
    usual = ~known[:, :, None] & ~known[:, None, :]
    covs = np.where(usual, np.nan, 0.0)
    covs[:, range(d), range(d)] = sds**2
    return covs


def number(value: float) -> str:
    """A number as an error message shows it; "nothing" for NaN."""
    return "nothing" if np.isnan(value) else f"{value:g}"


def gaps(values: Array) -> int:
    """How many values are NaN."""
    return int(np.isnan(values).sum())


def check_log(log: DecisionLog, where: Where, called: Called | None = None) -> DecisionLog:
    """Check a log and return it."""
    _check_sizes(log)
    names = dict(called or {})
    _check_arms(log, where)
    _check_contexts(log, where, names)
    if log.noise is not None:
        _check_noise(log.noise, where, log.coordinates, names)
    _check_finite(log.reward, where, names.get("reward", "reward"), "a finite number: what was earned")
    _check_probability(log, where, names.get("probability", "probability"))
    if log.probabilities is not None:
        _check_probabilities(log, where)
    if log.time is not None:
        check_times(log.time, where, names.get("time", "time"))
    return log


def _check_sizes(log: DecisionLog) -> None:
    """Raise InputError if there are no rows, or if an array does not have the shape that the others imply."""
    n, d, k = len(log.arm), len(log.coordinates), len(log.arms)
    if not n:
        raise InputError("log", "no rows", "one decision at least, with its reward")
    shapes = {"noisy": (n, d), "arm": (n,), "reward": (n,), "probability": (n,), "probabilities": (n, k)}
    shapes |= {"true": (n, d), "time": (n,), "unit": (n,), "offered": (n, k), "noise": (n, d, d)}
    for name, shape in shapes.items():
        values = getattr(log, name)
        if values is not None and np.shape(values) != shape:
            allowed = f"{shape}, since there are {n} arms drawn, {d} coordinates and {k} arms"
            raise InputError(name, f"the shape {np.shape(values)}", allowed)


def _check_arms(log: DecisionLog, where: Where) -> None:
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


def _check_contexts(log: DecisionLog, where: Where, names: Called) -> None:
    for part, values in (("context", log.noisy), ("true", log.true)):
        bad = np.abs(values) > LARGEST if values is not None else np.zeros((0, 0), bool)
        if values is None or (at := first(np.any(bad, axis=1, keepdims=True)[:, 0])) is None:
            continue
        j = int(np.argmax(bad[at]))
        name = f"{part}.{log.coordinates[j]}"
        allowed = f"a number, at most {LARGEST:g} in size, or nothing where it is not known"
        raise InputError(where.of(at, names.get(name, name)), number(values[at, j]), allowed)


def _check_noise(noise: Array, where: Where, coordinates: tuple[str, ...], names: Called) -> None:
    variances = noise.diagonal(axis1=1, axis2=2)
    bad = ~np.isnan(variances) & ~((variances >= 0) & (variances <= LARGEST))
    if (at := first(np.any(bad, axis=1, keepdims=True)[:, 0])) is not None:
        j = int(np.argmax(bad[at]))
        name = f"noise_sd.{coordinates[j]}"
        allowed = "a positive number, a standard deviation, or nothing where the noise is as usual"
        raise InputError(where.of(at, names.get(name, name)), number(variances[at, j] ** 0.5), allowed)


def _check_finite(values: Array, where: Where, name: str, allowed: str) -> None:
    at = first(~(np.abs(values) <= LARGEST))
    if at is not None:
        raise InputError(where.of(at, name), number(values[at]), allowed)


def _check_probability(log: DecisionLog, where: Where, name: str) -> None:
    at = first(~((log.probability >= SMALLEST) & (log.probability <= 1)))
    if at is None:
        return
    allowed = f"a number above 0 and at most 1: the arm was drawn, so that it could be; at least {SMALLEST:g}"
    raise InputError(where.of(at, name), number(log.probability[at]), allowed)


def _check_probabilities(log: DecisionLog, where: Where) -> None:
    probabilities = np.asarray(log.probabilities)
    bad = ~((probabilities >= 0) & (probabilities <= 1))
    at = first(np.any(bad, axis=1, keepdims=True)[:, 0])
    if at is not None:
        k = int(np.argmax(bad[at]))
        allowed = "a number from 0 to 1, 0 where the arm could not be drawn"
        raise InputError(where.of(at, f"probability of {log.arms[k]}"), number(probabilities[at, k]), allowed)
    total = probabilities.sum(axis=1)
    at = first(np.abs(total - 1) > CLOSE)
    if at is not None:
        raise InputError(where.of(at, "probabilities"), f"a sum of {total[at]:.6g}", "1, over all arms")
    own = probabilities[np.arange(log.rounds), log.arm]
    at = first(_differ(own, log.probability))
    if at is not None:
        arm = log.arms[int(log.arm[at])]
        actual = f"{log.probability[at]:g} for {arm!r}, which was drawn"
        raise InputError(
            where.of(at, "probability"), actual, f"what all probabilities say of it: {own[at]:g}"
        )


def _differ(one: Array, other: Array) -> Bools:
    differ: Bools = np.abs(one - other) > CLOSE * np.maximum(one, other)
    return differ
