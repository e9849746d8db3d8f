"""Monitoring of a live problem: does the channel behave as described, and do predictions of rewards hold?

Only the agent in charge is monitored. Everything is folded from events, as beliefs are, so that a replay
leads to the same.

`Tallies` count what happened, and how often predictions held. Before a reward is learnt its mean and variance
are predicted (agents/predict.py). If they are right, the interval of each level in `LEVELS` contains that
share of the rewards. Rewards of 0 or 1 are sorted by the predicted probability of a 1 into `BINS` bins; in
each bin the share of ones should be the predicted one. When a true context comes, the noisy and the denoised
context are compared with it: how much denoising helps, and whether the interval of level `CONTEXT_LEVEL`
contains the truth. Everything is a sum, so the order of events matters only for the last bits.

`Tracks` sample how beliefs changed over time. A sample is taken every so many decisions. When the array is
full, every second sample is dropped, and from then on samples are taken half as often: so they always cover
the whole past evenly. They are arrays in the agent's units, which a snapshot writes as they are.

    of the problem   the bias of its units, as each was last sampled: the mean over the first units, and the
                     root of the mean variance; recent mean squares of z, and e-values
    of a unit        its bias and how uncertain that is; for as many of the first units as memory allows

`Watch` holds both, with the alarm of `channel/innovations.py`.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from unfog.agents.agent import Agent
from unfog.agents.runner import Law
from unfog.channel import innovations
from unfog.channel.innovations import Innovations
from unfog.features import Context
from unfog.live.config import PreparedProblem
from unfog.live.pending import PendingDecision
from unfog.maths.arrays import Array
from unfog.maths.statistics import normal_reach

LEVELS = (0.5, 0.8, 0.9, 0.95)
CONTEXT_LEVEL = 0.9
BINS = 10
MOST, MOST_EACH = 512, 64  # samples of a problem, and of each unit; even, since every second one is dropped
MOST_UNITS, MOST_VALUES = 1000, 2**20  # units with samples of their own, and numbers in all of these
FIRST_EVERY = 4  # decisions from one sample to the next, to begin with: a sample takes 20 us
DAY = 86_400.0  # seconds; a day is one of the store's clock, from midnight in Greenwich
ANY = "any"  # stands for all arms where they come with each decision
Happening: TypeAlias = Literal["answered", "expired", "late", "cancelled", "late_contexts", "dropped"]

Bias: TypeAlias = Callable[[], Law | None]
"""Returns mean and variance of a unit's bias, (d,) each; None if the agent has no belief about it."""


_REACHES = np.array([normal_reach(level) ** 2 for level in LEVELS])
_CONTEXT_REACH = normal_reach(CONTEXT_LEVEL) ** 2


class Counts(NamedTuple):
    """How often something happened."""

    decisions: int = 0
    rewards: int = 0  # learnt
    revealed: int = 0  # true contexts learnt or noted, whole or in part
    expired: int = 0  # whose reward window ended without a reward from the caller, without cancelled ones
    late: int = 0  # reports of a reward after that
    cancelled: int = 0
    late_contexts: int = 0  # reports of a true context that came too late
    dropped: int = 0  # rewards whose true context never came, of agents that learn from pairs
    answered: int = 0  # decisions whose reward came in time, without cancelled ones


class Tallies(NamedTuple):
    """The sums of one problem."""

    counts: Counts
    arms: Array  # (K, 4)  times chosen; rewards learnt, their sum and sum of squares
    judged: int  # rewards that were predicted
    inside: Array  # (levels,)  how many of them were in the interval of each level
    bins: Array  # (BINS, 3)  rewards of 0 or 1; sums of predictions and of rewards
    contexts: Array  # (4, d)  revealed; squared errors, noisy and denoised, summed; how many in the interval
    lost: Array  # (d,)  readings that were lost


def none_yet(dim: int, arms: int) -> Tallies:
    """The tallies before the first event."""
    inside, bins = np.zeros(len(LEVELS)), np.zeros((BINS, 3))
    return Tallies(Counts(), np.zeros((arms, 4)), 0, inside, bins, np.zeros((4, dim)), np.zeros(dim))


def happened(tallies: Tallies, what: Happening, times: int = 1) -> Tallies:
    """Count something `times` more; -1 takes one back."""
    number: int = tallies.counts._asdict()[what]
    return tallies._replace(counts=tallies.counts._replace(**{what: max(number + times, 0)}))


def decided(tallies: Tallies, arm: int) -> Tallies:
    """Count a decision for this arm."""
    counts = tallies.counts._replace(decisions=tallies.counts.decisions + 1)
    return tallies._replace(counts=counts, arms=_add_row(tallies.arms, arm, (1, 0, 0, 0)))


def rewarded(
    tallies: Tallies, arm: int, reward: float, prediction: tuple[float, float] | None, *, binary: bool = False
) -> Tallies:
    """Count a reward that is learnt; `prediction` is the mean and variance predicted, if any."""
    counts = tallies.counts._replace(rewards=tallies.counts.rewards + 1)
    arms = _add_row(tallies.arms, arm, (0, 1, reward, reward * reward))
    if prediction is None:
        return tallies._replace(counts=counts, arms=arms)
    mean, variance = prediction
    judged, inside, bins = tallies.judged + 1, tallies.inside, tallies.bins
    if binary:
        bins = bins.copy()
        bins[min(int(mean * BINS), BINS - 1)] += (1, mean, reward)
    else:
        inside = inside + ((reward - mean) ** 2 <= variance * _REACHES)
    return tallies._replace(counts=counts, arms=arms, judged=judged, inside=inside, bins=bins)


def revealed(tallies: Tallies, noisy: Array, mean: Array, variance: Array, true: Array) -> Tallies:
    """Compare a true context with the noisy one and with mean and variance of the denoised one, (d,) each.

    `true` is NaN where it is not known or was counted before, `noisy` where the reading was lost.
    """
    noisy_square, denoised_square = (noisy - true) ** 2, (mean - true) ** 2
    known = noisy_square == noisy_square  # NaN is not equal to itself
    inside = denoised_square <= _CONTEXT_REACH * variance
    sums = np.where(known, np.array((known, noisy_square, denoised_square, inside)), 0.0)
    counts = tallies.counts._replace(revealed=tallies.counts.revealed + 1)
    return tallies._replace(counts=counts, contexts=tallies.contexts + sums)


def _add_row(arms: Array, arm: int, row: tuple[float, float, float, float]) -> Array:
    """Add a row to the sums of one arm; the array grows for arms that came later."""
    more = max(arm + 1 - len(arms), 0)
    sums = np.concatenate((arms, np.zeros((more, 4)))) if more else arms.copy()
    sums[arm] += row
    return sums


class Arms(NamedTuple):
    """Statistics of the arms, (K,) each."""

    chosen: Array
    share: Array  # of all decisions
    rewards: Array
    mean: Array  # of rewards; NaN if there is none
    error: Array  # the standard error of the mean; NaN with fewer than two rewards


def by_arm(tallies: Tallies) -> Arms:
    """Shares of decisions, and mean rewards with standard errors."""
    chosen, rewards, total, squares = tallies.arms.T
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = total / rewards
        spread = np.maximum(squares - rewards * mean**2, 0.0) / (rewards - 1)
        error = np.where(rewards > 1, np.sqrt(np.abs(spread) / rewards), np.nan)
        return Arms(chosen, chosen / chosen.sum(), rewards, mean, error)


def coverage(tallies: Tallies) -> Array:
    """The share of rewards in the interval of each level; NaN if none was predicted."""
    return tallies.inside / tallies.judged if tallies.judged else np.full(len(LEVELS), np.nan)


class Denoising(NamedTuple):
    """How much denoising helped where true contexts were revealed, (d,) each; NaN if none was."""

    revealed: Array
    rmse_noisy: Array
    rmse_denoised: Array
    coverage: Array  # of the denoised context's interval of level `CONTEXT_LEVEL`


def denoising(tallies: Tallies) -> Denoising:
    """Root mean squared errors, and the share of true contexts in the interval."""
    count, noisy, denoised, inside = tallies.contexts
    with np.errstate(invalid="ignore"):  # 0 / 0
        return Denoising(count, np.sqrt(noisy / count), np.sqrt(denoised / count), inside / count)


class Series:
    """Several series of samples, each thinned by itself."""

    def __init__(self, most: int, width: int) -> None:
        """Start without series; each has at most `most` samples of `width` numbers."""
        self._most, self._rows = most, np.zeros((1, most, width))
        self._seen, self._every, self._count = list[int](), list[int](), list[int]()

    def join(self) -> None:
        """Add a series."""
        if len(self._seen) == len(self._rows):
            self._rows = np.concatenate((self._rows, np.zeros_like(self._rows)))
        for counts, first in ((self._seen, 0), (self._every, FIRST_EVERY), (self._count, 0)):
            counts.append(first)

    def is_due(self, which: int) -> bool:
        """Count an occasion, and return whether a sample is to be taken."""
        due = self._seen[which] % self._every[which] == 0
        self._seen[which] += 1
        return due

    def add(self, which: int) -> Array:
        """Add a sample, and return the row that it is to be written to."""
        rows = self._rows[which]
        if self._count[which] == self._most:
            half = self._most // 2
            rows[:half] = rows[::2].copy()
            rows[half:] = 0.0
            self._count[which], self._every[which] = half, 2 * self._every[which]
        self._count[which] += 1
        return rows[self._count[which] - 1]

    def seen(self, which: int) -> int:
        """How many occasions there were."""
        return self._seen[which]

    def rows(self, which: int) -> Array:
        """The samples, oldest first."""
        return self._rows[which, : self._count[which]].copy()

    def content(self) -> list[Any]:
        """The content as nested values, copied where it changes later."""
        used = self._rows[: len(self._seen), : max(self._count, default=0)].copy()
        return [used, *map(list, (self._seen, self._every, self._count))]

    def fill(self, content: list[Any]) -> None:
        """Restore what `content` returned."""
        used, self._seen, self._every, self._count = content
        self._rows = np.zeros((max(len(used), 1), *self._rows.shape[1:]))
        self._rows[: len(used), : used.shape[1]] = used


class Track(NamedTuple):
    """Samples over time, n of them."""

    number: Array  # (n,)  of the decision after which the sample was taken
    time: Array  # (n,)
    bias: Array  # (n, d)  NaN if the agent has none
    bias_sd: Array  # (n, d)
    z_square: Array | None = None  # (n, d)  recent
    e_value: Array | None = None  # (n, d)
    e_value_of_all: Array | None = None  # (n,)


class Tracks:
    """The samples of one problem and of its units."""

    def __init__(self, dim: int) -> None:
        """Start before the first decision."""
        self._dim, self._index = dim, dict[str, int]()
        self._most_units = min(MOST_UNITS, max(1, MOST_VALUES // (MOST_EACH * (2 + 2 * dim))))
        self._all, self._each = Series(MOST, 4 + 5 * dim), Series(MOST_EACH, 2 + 2 * dim)
        self._last = np.zeros((1, 2, dim))  # the last mean and variance of the bias of each unit
        self._now = [0.0, 0.0]  # number and time of the last decision
        self._all.join()

    def decided(self, number: int, time: float, unit: str, bias: Bias, readings: Innovations | None) -> None:
        """Count a decision on a reading of a unit; `bias` returns the belief about its bias at that time."""
        self._now = [float(number), time]
        index, is_due = self._index_of(unit), self._all.is_due(0)
        is_unit_due = index >= 0 and self._each.is_due(index)
        if index >= 0 and (is_unit_due or is_due):
            self._last[index] = np.nan if (moments := bias()) is None else moments
            if is_unit_due:
                row = self._each.add(index)
                row[0], row[1], row[2:] = number, time, self._last[index].reshape(-1)
        if is_due:
            self._write_sample(self._all.add(0), readings)

    def _index_of(self, unit: str) -> int:
        """The index of a unit, which is added if it is new; -1 if there are too many units."""
        index = self._index.get(unit, -1)
        if index < 0 and len(self._index) < self._most_units:
            index = self._index[unit] = len(self._index)
            self._each.join()
            if index == len(self._last):
                self._last = np.concatenate((self._last, np.zeros_like(self._last)))
        return index

    def _write_sample(self, row: Array, readings: Innovations | None) -> Array:
        """Write a sample of the problem: sums, from which `whole` computes means."""
        units, parts = len(self._index), row[4:].reshape(5, self._dim)
        row[:2], row[2] = self._now, units
        np.add.reduce(self._last[:units], axis=0, out=parts[:2])
        if readings is None:
            row[3] = parts[2:] = np.nan
        else:
            row[3], parts[2:4] = readings.readings, readings.lately[::2]
            np.add.reduce(readings.evidence, axis=-1, out=parts[4])
        return row

    def whole(self, readings: Innovations | None) -> Track:
        """The track of the problem; its last sample is of now, after the last decision."""
        rows = self._all.rows(0)
        if len(rows):
            rows = _append_sample(rows, self._write_sample(np.empty(4 + 5 * self._dim), readings))
        mean, variance, counts, squares, evidence = rows[:, 4:].reshape(-1, 5, self._dim).swapaxes(0, 1)
        units, e_values = rows[:, 2:3], innovations.e_values_of(evidence, rows[:, 3])
        with np.errstate(invalid="ignore"):  # 0 / 0
            z_square, bias, bias_sd = squares / counts, mean / units, np.sqrt(variance / units)
        return Track(rows[:, 0], rows[:, 1], bias, bias_sd, z_square, e_values, e_values.mean(-1))

    def of(self, unit: str, belief: Law | None) -> Track:
        """The track of a unit; its last sample is the belief now, after the last of all decisions."""
        index, moments = self._index.get(unit), np.full((2, self._dim), np.nan) if belief is None else belief
        samples = np.empty((0, 2 + 2 * self._dim)) if index is None else self._each.rows(index)
        rows = _append_sample(samples, np.concatenate((self._now, *moments)))
        mean, variance = np.split(rows[:, 2:], 2, axis=1)
        return Track(rows[:, 0], rows[:, 1], mean, np.sqrt(variance))

    def decisions(self, unit: str) -> int | None:
        """How many decisions a unit had; None if it has no samples."""
        index = self._index.get(unit)
        return None if index is None else self._each.seen(index)

    def content(self) -> dict[str, Any]:
        """The content as nested values, copied where it changes later."""
        last = self._last[: max(len(self._index), 1)].copy()
        return {
            "places": list(self._index),
            "all": self._all.content(),
            "each": self._each.content(),
            "last": last,
            "now": self._now,
        }

    def fill(self, content: dict[str, Any]) -> None:
        """Restore what `content` returned."""
        self._index = {unit: index for index, unit in enumerate(content["places"])}
        self._all.fill(content["all"])
        self._each.fill(content["each"])
        self._last, self._now = content["last"], content["now"]


def _append_sample(rows: Array, now: Array) -> Array:
    """Append the current sample; it replaces a sample of the same decision."""
    before = rows[rows[:, 0] < now[0]]
    return np.concatenate((before, now[None]))


class Watch:
    """Counts, coverage, the alarm, and samples of beliefs."""

    def __init__(self, config: PreparedProblem, agent: Agent) -> None:
        """Start before the first event; readings are compared with what the agent predicts, if it does.

        They are tested only if it is told the law of contexts.
        """
        dim, arms = len(config.terms.context), len(config.terms.arms)
        self.tallies: Tallies = none_yet(dim, max(arms, 1))
        self.readings: Innovations | None = None
        if agent.can.predict_reading is not None:
            self.readings = innovations.start(dim, tested=agent.denoiser.needs_moments)
        self.tracks = Tracks(dim)
        self._day = (0, 0)  # the day of the newest decision, and how many decisions it had
        self._config, self._binary = config, config.terms.is_binary

    def content(self) -> tuple[Any, ...]:
        """The content as nested values."""
        return self.tallies, self.readings, self.tracks.content(), self._day

    def fill(self, content: tuple[Any, ...]) -> None:
        """Restore what `content` returned."""
        self.tallies, self.readings, tracks, self._day = content
        self.tracks.fill(tracks)

    def decided(self, arm_index: int, noisy: Array, prediction: tuple[Array, Array] | None) -> None:
        """Count a decision on a reading (1, d), of which mean and variance were predicted, (1, d) each."""
        self.tallies, is_lost = decided(self.tallies, arm_index), noisy[0] != noisy[0]  # NaN is not itself
        if is_lost.any():
            self.tallies = self.tallies._replace(lost=self.tallies.lost + is_lost)
        if self.readings is not None and prediction is not None:
            self.readings = innovations.after(
                self.readings, noisy[0], prediction[0].reshape(-1), prediction[1].reshape(-1)
            )

    def dated(self, time: float) -> None:
        """Count the decision for its day."""
        self._day = int(time // DAY), 1 + self.decisions_on(time)

    def decisions_on(self, time: float) -> int:
        """How many decisions were made on the day of this time."""
        return self._day[1] if self._day[0] == int(time // DAY) else 0

    def believed(self, number: int, time: float, unit: str, bias: Bias) -> None:
        """Sample the belief about a unit's bias at a decision, every so often."""
        self.tracks.decided(number, time, unit, bias, self.readings)

    def rewarded(self, arm_index: int, value: float, prediction: tuple[Array, Array] | None) -> None:
        """Count a reward that is learnt, of which mean and variance were predicted, (1,) each."""
        moments = None if prediction is None else (prediction[0].item(), prediction[1].item())
        self.tallies = rewarded(self.tallies, arm_index, value, moments, binary=self._binary)

    def held_against(
        self, pending: PendingDecision, noisy: Array, belief: Context, context: Mapping[str, float]
    ) -> None:
        """Compare the reading, its bias included, and the belief with the coordinates that are now known."""
        units, (mean, cov) = self._config.units, belief
        noisy = noisy[0] + units.bias / units.scale
        noisy[list(pending.lost)] = np.nan
        variance = (cov if cov.ndim == 2 else cov[0]).diagonal()
        self.tallies = revealed(self.tallies, noisy, mean[0], variance, self._config.whole(context)[0])

    def looked_back(self, body: Mapping[str, Any]) -> None:
        """Compare a true context of a closed decision with what was believed then; nothing is learnt."""
        config, belief = self._config, body["believed"]
        noisy_context = {name: x for name, x in belief["noisy"].items() if x is not None}
        sd = np.array([belief["sd"][name] for name in config.terms.context]) / config.units.scale
        noisy, mean, true = (config.whole(x)[0] for x in (noisy_context, belief["denoised"], body["context"]))
        self.tallies = revealed(self.tallies, noisy, mean, sd**2, true)

    def happened(self, what: Happening, times: int = 1) -> None:
        """Count something `times` more; -1 takes one back."""
        self.tallies = happened(self.tallies, what, times)

    def counted(self, kind: str, body: Mapping[str, Any]) -> None:
        """Count an event that changes nothing but the counts."""
        outcome = body.get("outcome")
        if kind == "reward" and outcome == "late":
            self.happened("late")
        elif kind == "reveal" and outcome == "late":
            self.happened("late_contexts")
        elif kind == "cancel" and outcome == "cancelled":
            self.happened("cancelled")
        elif kind == "expire" and body["expired"] == "context":
            self.happened("dropped")
