"""How far a run is, for whoever wants to be told."""

from collections.abc import Iterable, Sequence
from typing import Protocol, runtime_checkable

from unfog.lab.prepare import Plan
from unfog.simulation.job import Piece


class Progress(Protocol):
    """Told how much work there is, then of every piece done."""

    def __call__(self, done: int, total: int) -> None:
        """Agent-rounds done so far, of so many."""
        ...


@runtime_checkable
class Watcher(Protocol):
    """A `Progress` that wants to hear of single settings, too."""

    def __call__(self, done: int, total: int) -> None:
        """Agent-rounds done so far, of so many."""
        ...

    def settings(self, done: Sequence[int]) -> None:
        """Trials of each setting that are finished: at the start, and whenever there are more."""
        ...


def quiet(done: int, total: int) -> None:
    """Say nothing."""


class Count:
    """What is done of a plan."""

    def __init__(self, plan: Plan, progress: Progress) -> None:
        """Nothing so far."""
        self._progress, self._done = progress, 0
        self._trials = [0] * len(plan.work.jobs)

    def begins(self, rounds: int) -> None:
        """So many agent-rounds were there before."""
        self._done = rounds

    def tick(self, rounds: int, total: int) -> None:
        """So many agent-rounds more, of as many as there will be, as far as is known."""
        self._done += rounds
        self._progress(min(self._done, total), total)

    def finished(self, pieces: Iterable[Piece]) -> None:
        """These pieces are there."""
        for piece in pieces:
            self._trials[piece.setting] += len(piece.trials)
        if isinstance(self._progress, Watcher):
            self._progress.settings(self._trials)
