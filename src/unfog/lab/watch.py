"""How far a run is, for people, on stderr: what `unfog run` and `progress=True` show.

Where there is a terminal that is a bar, or for a sweep a table of settings; elsewhere a line now and then.
"""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from unfog.lab.count import Progress, quiet
from unfog.lab.prepare import Plan
from unfog.lab.tally import Tally, spell
from unfog.validation import InputError, shown

if TYPE_CHECKING:
    from rich.console import Group

EVERY = 30.0  # seconds between lines where there is no terminal
MOST_ROWS = 20


@contextmanager
def asked(progress: Progress | bool, plan: Plan) -> Iterator[Progress]:
    """What is to be told of a plan while it is played: nothing, a function of one's own, or this display."""
    if progress is True:
        with watching(plan) as display:
            yield display
    else:
        yield quiet if progress is False else progress


def checked(progress: object) -> None:
    """Refuse what can neither be told of progress nor ask for it."""
    if not isinstance(progress, bool) and not callable(progress):
        allowed = "True, False, or a function of the work done and all there is"
        raise InputError("progress", shown(progress), allowed)


@contextmanager
def watching(plan: Plan) -> Iterator[Progress]:
    """What is said of a plan while it is played."""
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


class Lines:
    """A tally that is written down now and then, so that a log shows life."""

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
    """The settings of a sweep, those under way first, and all of it in a line below."""
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
