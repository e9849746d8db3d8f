"""How far a run is, for programs and for people.

A program passes a `Progress`, or a `Watcher`, which also gets the progress of single settings. `unfog run`
and `progress=True` show it to people on stderr: on a terminal a bar, or for a sweep a table of settings;
elsewhere a line now and then.

Settings differ in how long they take, so time is counted in the engine's estimates: with c the estimated
seconds of what was played so far in e seconds, whatever is estimated at x takes e x / c.
"""

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

import numpy as np

from unfog.lab.prepare import ExperimentPlan
from unfog.maths.arrays import Array
from unfog.simulation.job import Piece
from unfog.validation import InputError, display

if TYPE_CHECKING:
    from rich.console import Group

EVERY = 30.0  # seconds between lines where there is no terminal
MOST_ROWS = 20


class Progress(Protocol):
    """A function that is called with the work done and the total, at first and after every piece."""

    def __call__(self, done: int, total: int) -> None:
        """Agent-rounds done so far, of so many."""
        ...


@runtime_checkable
class Watcher(Protocol):
    """A `Progress` that is also called with the progress of single settings."""

    def __call__(self, done: int, total: int) -> None:
        """Agent-rounds done so far, of so many."""
        ...

    def settings(self, done: Sequence[int]) -> None:
        """Trials of each setting that are finished: at the start, and whenever there are more."""
        ...


def quiet(done: int, total: int) -> None:
    """Ignore the progress."""


class Count:
    """Counts the work done on a plan and reports it to a `Progress`."""

    def __init__(self, plan: ExperimentPlan, progress: Progress) -> None:
        """Start with nothing done."""
        self._progress, self._done = progress, 0
        self._trials = [0] * len(plan.work.jobs)

    def begins(self, rounds: int) -> None:
        """Start with the agent-rounds that an interrupted run left."""
        self._done = rounds

    def tick(self, rounds: int, total: int) -> None:
        """Add agent-rounds; `total` is how many there will be, as far as is known."""
        self._done += rounds
        self._progress(min(self._done, total), total)

    def finished(self, pieces: Iterable[Piece]) -> None:
        """Count these pieces as finished."""
        for piece in pieces:
            self._trials[piece.setting] += len(piece.trials)
        if isinstance(self._progress, Watcher):
            self._progress.settings(self._trials)


class Row(NamedTuple):
    """A setting."""

    label: str
    done: int  # trials
    left: float | None  # seconds until it is finished; None where that is not known yet


class Tally:
    """A `Watcher` that keeps count and estimates the time left; it prints nothing itself."""

    def __init__(self, plan: ExperimentPlan, clock: Callable[[], float] = time.monotonic) -> None:
        """Start with nothing done."""
        work = plan.work
        self.name, self.trials = plan.spec.name, work.trials
        self.labels = [label.strip() for label in plan.labels]
        self._costs = np.zeros(len(self.labels))
        for piece in work.pieces:
            self._costs[piece.setting] += work.seconds(piece)
        self._clock, self._began = clock, clock()
        self._done, self._resumed = np.zeros(len(self.labels)), np.zeros(len(self.labels))
        self._rounds, self._total = 0, work.total
        self._has_started = False  # whether `settings` was called with what was there already

    def __call__(self, done: int, total: int) -> None:
        """Agent-rounds done so far, of so many."""
        self._rounds, self._total = done, total

    def settings(self, done: Sequence[int]) -> None:
        """Trials of each setting that are finished; the first time, those that were there already."""
        self._done = np.array(done, float)
        if not self._has_started:
            self._has_started, self._resumed, self._began = True, self._done, self._clock()

    @property
    def finished(self) -> int:
        """Settings of which all trials are there."""
        return int((self._done == self.trials).sum())

    @property
    def share(self) -> float:
        """The share of agent-rounds that are done."""
        return self._rounds / self._total

    def left(self) -> float | None:
        """Seconds until all is finished."""
        ends = self._estimate_ends()
        return None if ends is None else float(ends[-1])

    def _estimate_ends(self) -> Array | None:
        """Seconds until each setting is finished, one after the other as they are played.

        Unfinished work counts by its share done, at the average cost of what remains.
        """
        remaining = np.cumsum(self._costs * (1 - self._done / self.trials))
        finished = self._done.sum() / (self.trials * len(self.labels)) * self._total
        remaining_rounds = max(self._total - finished, 1)
        under_way = remaining[-1] * max(self._rounds - finished, 0) / remaining_rounds
        spent = self._costs @ (self._done - self._resumed) / self.trials + under_way
        if not spent > 0:
            return None
        seconds_per_cost = (self._clock() - self._began) / spent
        return np.maximum(remaining - under_way, 0) * seconds_per_cost

    def rows(self, most: int) -> list[Row]:
        """Settings, at most so many: those that are under way, then those to come, then finished ones."""
        ends, is_open = self._estimate_ends(), self._done < self.trials
        order = [*np.flatnonzero(is_open & (self._done > 0)), *np.flatnonzero(is_open & (self._done == 0))]
        order += [*np.flatnonzero(~is_open)[::-1]]
        return [
            Row(
                self.labels[i],
                int(self._done[i]),
                None if ends is None else float(ends[i]) * bool(is_open[i]),
            )
            for i in order[:most]
        ]

    def line(self) -> str:
        """The progress of the whole plan in one line."""
        several = f", {self.finished} of {len(self.labels)} settings" if len(self.labels) > 1 else ""
        left = self.left()
        return f"{self.name}: {self.share:.0%} done{several}" + (f", {spell(left)} left" if left else "")


@contextmanager
def choose_progress(progress: Progress | bool, plan: ExperimentPlan) -> Iterator[Progress]:
    """The `Progress` to use while a plan is played: none, the caller's function, or the display."""
    if progress is True:
        with watching(plan) as display:
            yield display
    else:
        yield quiet if progress is False else progress


def checked(progress: object) -> None:
    """Raise InputError unless `progress` is a bool or callable."""
    if not isinstance(progress, bool) and not callable(progress):
        allowed = "True, False, or a function of the work done and all there is"
        raise InputError("progress", display(progress), allowed)


@contextmanager
def watching(plan: ExperimentPlan) -> Iterator[Progress]:
    """Show the progress of a plan on stderr while it is played."""
    from rich.console import Console
    from rich.live import Live

    console, tally = Console(stderr=True), Tally(plan)
    if not console.is_terminal:
        yield Lines(tally)
    elif len(tally.labels) == 1:
        with bar(tally.name) as progress:
            yield progress
    else:
        rows = max(1, min(MOST_ROWS, console.height - 5))
        with Live(get_renderable=lambda: board(tally, rows), console=console, transient=True):
            yield tally


@contextmanager
def bar(name: str) -> Iterator[Progress]:
    """A bar that fills with the agent-rounds done."""
    # rich comes with typer
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = TextColumn(name), BarColumn(), TaskProgressColumn(), TimeRemainingColumn()
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as display:
        task = display.add_task(name, total=None)

        def advance(done: int, total: int) -> None:
            display.update(task, completed=done, total=total)

        yield advance


class Lines:
    """A tally that prints a line now and then, so that a log shows the run is alive."""

    def __init__(self, tally: Tally) -> None:
        """The first line comes after a while."""
        self._tally, self._last = tally, time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        """Agent-rounds done so far, of so many."""
        self._tally(done, total)
        if time.monotonic() - self._last >= EVERY:
            self._last = time.monotonic()
            print(self._tally.line(), file=sys.stderr)

    def settings(self, done: Sequence[int]) -> None:
        """Trials of each setting that are finished."""
        self._tally.settings(done)


def board(tally: Tally, most: int) -> "Group":
    """The settings of a sweep, those under way first, with the progress of the whole in a line below."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    rows = tally.rows(most)
    more = len(tally.labels) - len(rows)
    table = Table(box=None, pad_edge=False)
    table.add_column("setting", no_wrap=True)
    table.add_column("trials", justify="right", no_wrap=True)
    table.add_column("left", justify="right", no_wrap=True)
    for row in rows:
        left = "done" if row.done == tally.trials else "" if row.left is None else spell(row.left)
        table.add_row(Text(row.label), f"{row.done}/{tally.trials}", left)
    return Group(table, *([Text(f"and {more} more")] if more else []), Text(tally.line()))


def spell(seconds: float) -> str:
    """A length of time, roughly."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
