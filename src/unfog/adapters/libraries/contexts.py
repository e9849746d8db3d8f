"""Noisy contexts on their way into a bandit: denoised once, for the decision, and kept for its reward.

The denoiser learns about the sensor as readings come in, so the same reading is denoised to another number
later. A learner has to be given what was decided on, or it regresses rewards on numbers that nobody saw. So a
decision's context goes through `transform_one` (predict, then observe), and what came out waits for the
reward under the reading and what was said of it: first in, first out (`unfog.adapters.waiting`).

A context that comes with a reward and does not wait, such as a row of an old log, goes through `transform`,
together with all others of its kind. A verb that starts afresh from a whole history is given contexts that
were learnt from before: for them, too, is kept what was decided on.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

import numpy as np

from unfog import validation
from unfog.adapters.libraries.said import Said, of_each
from unfog.adapters.waiting import Waiting
from unfog.maths.arrays import Array
from unfog.validation import InputError

NUMBERS = "numbers, nan where a reading was lost"
REMEMBERED = 100_000


class Denoises(Protocol):
    """What a denoiser can do; that of `unfog.adapters.sklearn` does it."""

    def transform(self, X: Array, /) -> Any:  # noqa: N803
        """Rows (n, d), each by itself."""

    def transform_one(self, x: Array, /) -> Any:
        """One reading (d,), in the order of time: denoise it, then learn from it about the sensor."""


@dataclass(eq=False)
class Decision:
    """What a reading was taken for."""

    said: Said
    context: Array
    asked: bool = True  # about alone: nothing was decided yet

    def is_(self, other: "Decision") -> bool:
        """Equal numbers do not make one decision of two."""
        return self is other


class Contexts:
    """A denoiser, what waits for its reward, and what was learnt from."""

    def __init__(self, denoiser: Denoises, remember: int = REMEMBERED) -> None:
        """Remember the latest so many decisions."""
        validation.offering(
            "denoiser", denoiser, Denoises, "a denoiser, such as unfog.adapters.sklearn.Denoiser"
        )
        self.denoiser = denoiser
        self.waiting: Waiting[Decision] = Waiting(remember)
        self.learnt: Waiting[Decision] = Waiting(remember)

    @contextmanager
    def deciding(self, rows: Array, noise_cov: Any = None, groups: Any = None) -> Iterator[Array]:
        """What to decide on, for readings (n, d) in the order of time; each is a decision of its own."""
        said = of_each(rows, noise_cov, groups)
        decisions = self._opened(rows, said, self._undecided)
        yield np.stack([one.context for one in decisions])
        # Where the bandit refused, they stay as if asked about, and the next attempt finds them.
        for one in decisions:
            one.asked = False

    def asking(self, rows: Array, noise_cov: Any = None, groups: Any = None) -> Array:
        """What to say scores of: the latest decisions on these readings, which wait, or those to come."""
        said = of_each(rows, noise_cov, groups)
        return np.stack([one.context for one in self._opened(rows, said, self._latest)])

    @contextmanager
    def learning(
        self, rows: Array, noise_cov: Any = None, groups: Any = None, *, afresh: bool = False
    ) -> Iterator[Array]:
        """What to learn from, for readings (n, d): what was decided on, or else what `transform` says."""
        said = of_each(rows, noise_cov, groups)
        found = _matched(rows, said, self._history if afresh else self._first)
        yield np.stack(self._filled(rows, said, found))
        for row, one in zip(rows, found, strict=True):  # only now: the bandit may have refused them
            if one is not None and self.waiting.take(row, one.is_):
                self.learnt.add(row, one)

    def _undecided(self, row: Array, said: Said, number: int) -> Sequence[Decision | None]:
        line = (one for one in self.waiting.line(row) if one.asked and one.said.key() == said.key())
        return list(islice(line, number))

    def _latest(self, row: Array, said: Said, number: int) -> Sequence[Decision | None]:
        return [one for one in self.waiting.line(row) if one.said.key() == said.key()][-number:]

    def _first(self, row: Array, said: Said, number: int) -> Sequence[Decision | None]:
        return list(islice((one for one in self.waiting.line(row) if said.agrees(one.said)), number))

    def _history(self, row: Array, said: Said, number: int) -> Sequence[Decision | None]:
        """What waits comes last in a history, and before it what was learnt from last."""
        waiting = self._first(row, said, number)
        past = [one for one in self.learnt.line(row) if said.agrees(one.said)]
        known = [*past[len(past) - min(number - len(waiting), len(past)) :], *waiting]
        return [*[None] * (number - len(known)), *known]

    def _opened(self, rows: Array, said: list[Said], choose: "Choose") -> list[Decision]:
        """Those that are chosen, and new ones for the other rows."""
        found = _matched(rows, said, choose)
        contexts = self._filled(rows, said, found, one_by_one=True)
        decisions = []
        for row, told, one, context in zip(rows, said, found, contexts, strict=True):
            if one is None:
                one = Decision(told, context)
                self.waiting.add(row, one)
            decisions.append(one)
        return decisions

    def _filled(
        self, rows: Array, said: list[Said], found: list[Decision | None], *, one_by_one: bool = False
    ) -> list[Array]:
        """The contexts that were found; the rest is denoised, in time or all at once."""
        contexts = {place: one.context for place, one in enumerate(found) if one is not None}
        fresh = [place for place, one in enumerate(found) if one is None]
        if one_by_one:
            for place in fresh:
                denoised = self.denoiser.transform_one(rows[place], **said[place].options())
                contexts[place] = np.asarray(denoised, float).reshape(-1)
        else:
            for kind in {(said[p].noise_cov is None, said[p].group is None) for p in fresh}:
                alike = [p for p in fresh if (said[p].noise_cov is None, said[p].group is None) == kind]
                contexts |= zip(alike, self._transformed(rows[alike], [said[p] for p in alike]), strict=True)
        return [contexts[place] for place in range(len(rows))]

    def _transformed(self, rows: Array, said: list[Said]) -> Array:
        """Rows of which the same things are said, or nothing; with the names that the denoiser asks for."""
        options: dict[str, Any] = {}
        if said[0].noise_cov is not None:
            options["noise_cov"] = np.stack([one.noise_cov for one in said if one.noise_cov is not None])
        if said[0].group is not None:
            options["groups"] = np.array([one.group for one in said], object)  # 1 and "1" stay apart
        names = getattr(self.denoiser, "feature_names_in_", None)
        if names is None:
            return np.asarray(self.denoiser.transform(rows, **options), float)
        from pandas import DataFrame

        return np.asarray(self.denoiser.transform(DataFrame(rows, columns=names), **options), float)


# What to take for a reading of which this is said, and which is there so many times.
Choose = Callable[[Array, Said, int], Sequence[Decision | None]]


def _matched(rows: Array, said: list[Said], choose: Choose) -> list[Decision | None]:
    """A decision for each row, or None; equal rows get those that are chosen for them in their order."""
    alike: dict[Any, list[int]] = {}
    for place, (row, told) in enumerate(zip(rows, said, strict=True)):
        alike.setdefault((row.tobytes(), told.key()), []).append(place)
    found: dict[int, Decision] = {}
    taken: set[Decision] = set()  # by another row of the same numbers, of which less was said
    for places in alike.values():
        chosen = choose(rows[places[0]], said[places[0]], len(places))
        mine = {place: one for place, one in zip(places, chosen, strict=False) if one and one not in taken}
        taken.update(mine.values())
        found |= mine
    return [found.get(place) for place in range(len(rows))]


def readings(field: str, value: object) -> Array:
    """Rows of numbers (n, d); one context may come without its row."""
    try:
        raw = np.asarray(value)
    except ValueError:
        raise InputError(field, "rows of different lengths", f"rows of {NUMBERS}") from None
    if raw.dtype.kind not in "iuf":
        raise InputError(field, validation.shown(value), f"rows of {NUMBERS}")
    rows = np.array(raw, float, ndmin=2)
    lost = np.isnan(rows)
    validation.numbers(field, np.where(lost, 0.0, rows), f"rows of {NUMBERS}")
    if rows.ndim != 2 or 0 in rows.shape:
        raise InputError(field, f"an array of shape {raw.shape}", f"rows of {NUMBERS}")
    # Equal numbers get equal bytes: there are many kinds of nan, and two zeros.
    return np.where(lost, np.nan, rows + 0.0)
