"""Monitoring of a live problem: does the channel behave as told, do rewards fall where they were expected?

Only the agent in charge is watched. Everything is folded from events, as beliefs are, so that a replay finds
the same.

`Tallies` count what happened, and how often predictions held. Before a reward is learnt its mean and variance
are predicted (agents/predict.py). If they are right, the interval of each level in `LEVELS` contains that
share of the rewards. Rewards of 0 or 1 are sorted by the predicted probability of a 1 into `BINS` bins; in
each bin the share of ones should be the predicted one. When a true context comes, the noisy and the denoised
context are compared with it: how much denoising helps, and whether the interval of level `CONTEXT_LEVEL`
contains the truth. Everything is a sum, so the order of events matters only for the last bits.

`Tracks` sample how beliefs changed over time. A sample is taken every so many decisions. When the room is
full, every second sample is dropped, and from then on samples are taken half as often: so they always cover
the whole past evenly. They are arrays, which a snapshot writes as they are, in the agent's units.

    of the problem   the bias of its units, as each was last sampled: the mean over the first units, and the
                     root of the mean variance; recent mean squares of z, and e-values
    of a unit        its bias and how uncertain that is; for as many of the first units as there is room for

`Watch` holds both, with the alarm of `channel/innovations.py`.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from unfog.agents.runner import Law
from unfog.channel import innovations
from unfog.channel.innovations import Innovations
from unfog.live.config import Made
from unfog.live.pending import CompactDecision, Open
from unfog.maths.arrays import Array
from unfog.maths.statistics import normal_reach

LEVELS = (0.5, 0.8, 0.9, 0.95)
CONTEXT_LEVEL = 0.9
BINS = 10
MOST, MOST_EACH = 512, 64  # samples of a problem, and of each unit; even, since every second one is dropped
MOST_UNITS, MOST_VALUES = 1000, 2**20  # units that have samples of their own, and numbers in all of these
FIRST_EVERY = 4  # decisions from one sample to the next, to begin with: a sample takes 20 us
DAY = 86_400.0  # seconds; a day is one of the store's clock, from midnight in Greenwich
ANY = "any"  # stands for all arms where they come with each decision
Happening: TypeAlias = Literal["answered", "expired", "late", "voided", "late_contexts", "dropped"]

Bias: TypeAlias = Callable[[], Law | None]
"""Says what is believed of a unit's bias: mean and variance, (d,) each; None: the agent says nothing."""


_REACHES = np.array([normal_reach(level) ** 2 for level in LEVELS])
_CONTEXT_REACH = normal_reach(CONTEXT_LEVEL) ** 2


class Counts(NamedTuple):
    """How often something happened."""

    decisions: int = 0
    rewards: int = 0  # learnt
    revealed: int = 0  # true contexts taken in, whole or in part
    expired: int = 0  # decisions whose wait was over without a reward of the caller, void ones left out
    late: int = 0  # reports of a reward after that, each of them
    voided: int = 0
    late_contexts: int = 0  # reports of a true context that came too late, each of them
    dropped: int = 0  # rewards whose true context never came, of agents that learn from pairs
    answered: int = 0  # decisions whose reward came in time, void ones left out


class Tallies(NamedTuple):
    """The sums of one problem."""

    counts: Counts
    arms: Array  # (K, 4)  times chosen; rewards learnt, their sum and sum of squares
    judged: int  # rewards of which something was said before
    inside: Array  # (levels,)  how many of them fell into the interval
    bins: Array  # (BINS, 3)  rewards of 0 or 1; sums of what was said and of what came
    contexts: Array  # (4, d)  revealed; sums of squared errors, noisy and denoised; how many in the interval


def none_yet(dim: int, arms: int) -> Tallies:
    """Before anything happened."""
    inside, bins = np.zeros(len(LEVELS)), np.zeros((BINS, 3))
    return Tallies(Counts(), np.zeros((arms, 4)), 0, inside, bins, np.zeros((4, dim)))


def happened(past: Tallies, what: Happening, times: int = 1) -> Tallies:
    """Count something so many times more; -1 takes one back."""
    number: int = past.counts._asdict()[what]
    return past._replace(counts=past.counts._replace(**{what: max(number + times, 0)}))


def decided(past: Tallies, arm: int) -> Tallies:
    """With one more decision."""
    counts = past.counts._replace(decisions=past.counts.decisions + 1)
    return past._replace(counts=counts, arms=_with_row(past.arms, arm, (1, 0, 0, 0)))


def rewarded(
    past: Tallies, arm: int, reward: float, law: tuple[float, float] | None, *, binary: bool = False
) -> Tallies:
    """With a reward that is learnt, of which mean and variance were said, or nothing."""
    counts = past.counts._replace(rewards=past.counts.rewards + 1)
    arms = _with_row(past.arms, arm, (0, 1, reward, reward * reward))
    if law is None:
        return past._replace(counts=counts, arms=arms)
    mean, variance = law
    judged, inside, bins = past.judged + 1, past.inside, past.bins
    if binary:
        bins = bins.copy()
        bins[min(int(mean * BINS), BINS - 1)] += (1, mean, reward)
    else:
        inside = inside + ((reward - mean) ** 2 <= variance * _REACHES)
    return past._replace(counts=counts, arms=arms, judged=judged, inside=inside, bins=bins)


def revealed(past: Tallies, noisy: Array, mean: Array, variance: Array, true: Array) -> Tallies:
    """With what became known of a true context, and of what was denoised before: (d,) each.

    Not a number is what is not known yet, or was counted before, in `true`, and in `noisy` what was lost.
    """
    wrong, left = (noisy - true) ** 2, (mean - true) ** 2
    there = wrong == wrong  # not a number is not even itself
    found = np.where(there, np.array((there, wrong, left, left <= _CONTEXT_REACH * variance)), 0.0)
    counts = past.counts._replace(revealed=past.counts.revealed + 1)
    return past._replace(counts=counts, contexts=past.contexts + found)


def _with_row(arms: Array, arm: int, row: tuple[float, float, float, float]) -> Array:
    """The sums of all arms, with a row added to one; arms that came later have a place from now on."""
    more = max(arm + 1 - len(arms), 0)
    found = np.concatenate((arms, np.zeros((more, 4)))) if more else arms.copy()
    found[arm] += row
    return found


class Arms(NamedTuple):
    """What is to be said of the arms, (K,) each."""

    chosen: Array
    share: Array  # of all decisions
    rewards: Array
    mean: Array  # of rewards; not a number where there is none
    error: Array  # the standard error of that; not a number where there are less than two


def by_arm(found: Tallies) -> Arms:
    """Shares, and means of rewards with their errors."""
    chosen, rewards, total, squares = found.arms.T
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = total / rewards
        spread = np.maximum(squares - rewards * mean**2, 0.0) / (rewards - 1)
        error = np.where(rewards > 1, np.sqrt(np.abs(spread) / rewards), np.nan)
        return Arms(chosen, chosen / chosen.sum(), rewards, mean, error)


def coverage(found: Tallies) -> Array:
    """The share of rewards in the interval of every level; not a number where none was judged."""
    return found.inside / found.judged if found.judged else np.full(len(LEVELS), np.nan)


class Denoising(NamedTuple):
    """What denoising was worth where true contexts came, (d,) each; not a number where none did."""

    revealed: Array
    rmse_noisy: Array
    rmse_denoised: Array
    coverage: Array  # of the denoised context's interval of level `CONTEXT_LEVEL`


def denoising(found: Tallies) -> Denoising:
    """Root mean squared errors, and the share in the interval."""
    number, wrong, left, inside = found.contexts
    with np.errstate(invalid="ignore"):  # nothing by nothing
        return Denoising(number, np.sqrt(wrong / number), np.sqrt(left / number), inside / number)


class Series:
    """Samples of several things, each thinned by itself."""

    def __init__(self, most: int, width: int) -> None:
        """None yet, each of so many numbers."""
        self._most, self._rows = most, np.zeros((1, most, width))
        self._seen, self._every, self._count = list[int](), list[int](), list[int]()

    def join(self) -> None:
        """One more thing to take samples of."""
        if len(self._seen) == len(self._rows):
            self._rows = np.concatenate((self._rows, np.zeros_like(self._rows)))
        for counts, first in ((self._seen, 0), (self._every, FIRST_EVERY), (self._count, 0)):
            counts.append(first)

    def is_due(self, which: int) -> bool:
        """Once more it happened: whether a sample is to be taken."""
        found = self._seen[which] % self._every[which] == 0
        self._seen[which] += 1
        return found

    def add(self, which: int) -> Array:
        """One more sample: where it is to be written."""
        rows = self._rows[which]
        if self._count[which] == self._most:
            half = self._most // 2
            rows[:half] = rows[::2].copy()
            rows[half:] = 0.0
            self._count[which], self._every[which] = half, 2 * self._every[which]
        self._count[which] += 1
        return rows[self._count[which] - 1]

    def seen(self, which: int) -> int:
        """How often it happened."""
        return self._seen[which]

    def rows(self, which: int) -> Array:
        """The samples, oldest first."""
        return self._rows[which, : self._count[which]].copy()

    def content(self) -> list[Any]:
        """The content as nested values, copied where they change later."""
        used = self._rows[: len(self._seen), : max(self._count, default=0)].copy()
        return [used, *map(list, (self._seen, self._every, self._count))]

    def fill(self, content: list[Any]) -> None:
        """Take back what `content` gave."""
        used, self._seen, self._every, self._count = content
        self._rows = np.zeros((max(len(used), 1), *self._rows.shape[1:]))
        self._rows[: len(used), : used.shape[1]] = used


class Track(NamedTuple):
    """Samples over time, n of them."""

    number: Array  # (n,)  of the decision after which it was taken
    time: Array  # (n,)
    bias: Array  # (n, d)  not a number where there is none
    bias_sd: Array  # (n, d)
    z_square: Array | None = None  # (n, d)  of late
    e_value: Array | None = None  # (n, d)
    e_value_of_all: Array | None = None  # (n,)


class Tracks:
    """The samples of one problem and of its units."""

    def __init__(self, dim: int) -> None:
        """Before the first decision."""
        self._dim, self._places = dim, dict[str, int]()
        self._room = min(MOST_UNITS, max(1, MOST_VALUES // (MOST_EACH * (2 + 2 * dim))))
        self._all, self._each = Series(MOST, 4 + 5 * dim), Series(MOST_EACH, 2 + 2 * dim)
        self._last = np.zeros((1, 2, dim))  # of each unit: mean and variance of its bias
        self._now = [0.0, 0.0]  # number and time of the last decision
        self._all.join()

    def decided(self, number: int, time: float, unit: str, bias: Bias, readings: Innovations | None) -> None:
        """A decision was made on a reading of a unit, of whose bias this was believed then."""
        self._now = [float(number), time]
        place, whole = self._place(unit), self._all.is_due(0)
        own = place >= 0 and self._each.is_due(place)
        if place >= 0 and (own or whole):
            self._last[place] = np.nan if (law := bias()) is None else law
            if own:
                row = self._each.add(place)
                row[0], row[1], row[2:] = number, time, self._last[place].reshape(-1)
        if whole:
            self._write(self._all.add(0), readings)

    def _place(self, unit: str) -> int:
        """The place of a unit; -1 if it has none."""
        place = self._places.get(unit, -1)
        if place < 0 and len(self._places) < self._room:
            place = self._places[unit] = len(self._places)
            self._each.join()
            if place == len(self._last):
                self._last = np.concatenate((self._last, np.zeros_like(self._last)))
        return place

    def _write(self, row: Array, readings: Innovations | None) -> Array:
        """A sample of the problem: sums, of which means are made when somebody looks."""
        units, parts = len(self._places), row[4:].reshape(5, self._dim)
        row[:2], row[2] = self._now, units
        np.add.reduce(self._last[:units], axis=0, out=parts[:2])
        if readings is None:
            row[3] = parts[2:] = np.nan
        else:
            row[3], parts[2:4] = readings.readings, readings.lately[::2]
            np.add.reduce(readings.evidence, axis=-1, out=parts[4])
        return row

    def whole(self, readings: Innovations | None) -> Track:
        """The track of the problem; its last sample is what holds now, after the last decision."""
        rows = self._all.rows(0)
        rows = _with_sample(rows, self._write(np.empty(4 + 5 * self._dim), readings)) if len(rows) else rows
        mean, variance, seen, squares, evidence = rows[:, 4:].reshape(-1, 5, self._dim).swapaxes(0, 1)
        units, each = rows[:, 2:3], innovations.e_values_of(evidence, rows[:, 3])
        with np.errstate(invalid="ignore"):  # nothing by nothing
            z_square, bias, bias_sd = squares / seen, mean / units, np.sqrt(variance / units)
        return Track(rows[:, 0], rows[:, 1], bias, bias_sd, z_square, each, each.mean(-1))

    def of(self, unit: str, law: Law | None) -> Track:
        """The track of a unit; its last sample is what is believed now, after the last of all decisions."""
        place, known = self._places.get(unit), np.full((2, self._dim), np.nan) if law is None else law
        before = np.empty((0, 2 + 2 * self._dim)) if place is None else self._each.rows(place)
        rows = _with_sample(before, np.concatenate((self._now, *known)))
        mean, variance = np.split(rows[:, 2:], 2, axis=1)
        return Track(rows[:, 0], rows[:, 1], mean, np.sqrt(variance))

    def decisions(self, unit: str) -> int | None:
        """How many a unit had, where that is known."""
        place = self._places.get(unit)
        return None if place is None else self._each.seen(place)

    def content(self) -> dict[str, Any]:
        """The content as nested values, copied where they change later."""
        last = self._last[: max(len(self._places), 1)].copy()
        return {
            "places": list(self._places),
            "all": self._all.content(),
            "each": self._each.content(),
            "last": last,
            "now": self._now,
        }

    def fill(self, content: dict[str, Any]) -> None:
        """Take back what `content` gave."""
        self._places = {unit: place for place, unit in enumerate(content["places"])}
        self._all.fill(content["all"])
        self._each.fill(content["each"])
        self._last, self._now = content["last"], content["now"]


def _with_sample(rows: Array, now: Array) -> Array:
    """Samples, the last of which is that of now; it takes the place of one of the same decision."""
    before = rows[rows[:, 0] < now[0]]
    return np.concatenate((before, now[None]))


class Watch:
    """Counts, coverage, the alarm, and how beliefs went."""

    def __init__(self, made: Made, expects: bool) -> None:
        """Before anything happened; whether the agent expects something of readings."""
        dim, arms = len(made.terms.context), len(made.terms.arms)
        self.tallies: Tallies = none_yet(dim, max(arms, 1))
        self.readings: Innovations | None = innovations.none_yet(dim) if expects else None
        self.tracks = Tracks(dim)
        self._day = (0, 0)  # that of the newest decision, and how many decisions it had
        self._made, self._binary = made, made.terms.rewards == "bernoulli"

    def content(self) -> tuple[Any, ...]:
        """The content as nested values."""
        return self.tallies, self.readings, self.tracks.content(), self._day

    def fill(self, content: tuple[Any, ...]) -> None:
        """Take back what `content` gave."""
        self.tallies, self.readings, tracks, self._day = content
        self.tracks.fill(tracks)

    def decided(self, place: int, noisy: Array, law: tuple[Array, Array] | None) -> None:
        """A decision, on a reading (1, d) of which this mean and variance were expected, (1, d) each."""
        self.tallies = decided(self.tallies, place)
        if self.readings is not None and law is not None:
            self.readings = innovations.after(self.readings, noisy[0], law[0].reshape(-1), law[1].reshape(-1))

    def dated(self, time: float) -> None:
        """When that decision was made."""
        self._day = int(time // DAY), 1 + self.decisions_on(time)

    def decisions_on(self, time: float) -> int:
        """How many were made on the day of this time, up to now."""
        return self._day[1] if self._day[0] == int(time // DAY) else 0

    def believed(self, number: int, time: float, unit: str, bias: Bias) -> None:
        """What was believed of a unit's bias when a decision was made: a sample is kept now and then."""
        self.tracks.decided(number, time, unit, bias, self.readings)

    def rewarded(self, place: int, value: float, law: tuple[Array, Array] | None) -> None:
        """A reward that is learnt, of which this mean and variance, (1,) each, were expected."""
        said = None if law is None else (law[0].item(), law[1].item())
        self.tallies = rewarded(self.tallies, place, value, said, binary=self._binary)

    def held_against(self, found: Open, seen: CompactDecision, news: Mapping[str, float]) -> None:
        """What was read, its bias included, and what was believed, against what is true by now."""
        units, (mean, cov) = self._made.units, seen.context
        noisy = seen.noisy[0] + units.bias / units.scale
        noisy[list(found.lost)] = np.nan
        variance = (cov if cov.ndim == 2 else cov[0]).diagonal()
        self.tallies = revealed(self.tallies, noisy, mean[0], variance, self._made.whole(news)[0])

    def looked_back(self, body: Mapping[str, Any]) -> None:
        """A true context of a decision that is closed: nothing is learnt, but what was believed is judged."""
        made, then = self._made, body["then"]
        known = {name: x for name, x in then["noisy"].items() if x is not None}
        sd = np.array([then["sd"][name] for name in made.terms.context]) / made.units.scale
        noisy, mean, true = (made.whole(x)[0] for x in (known, then["denoised"], body["context"]))
        self.tallies = revealed(self.tallies, noisy, mean, sd**2, true)

    def happened(self, what: Happening, times: int = 1) -> None:
        """Once more; or once less, -1."""
        self.tallies = happened(self.tallies, what, times)

    def counted(self, kind: str, body: Mapping[str, Any]) -> None:
        """Count what an event only adds to the counts."""
        outcome = body.get("outcome")
        if kind == "reward" and outcome == "late":
            self.happened("late")
        elif kind == "reveal" and outcome == "late":
            self.happened("late_contexts")
        elif kind == "void" and outcome == "void":
            self.happened("voided")
        elif kind == "expire" and body["what"] == "context":
            self.happened("dropped")
