"""A progress bar on stderr, shown only to a terminal."""

from collections.abc import Iterator
from contextlib import contextmanager

from unfog.lab.run import Progress


@contextmanager
def bar(name: str) -> Iterator[Progress]:
    """A bar that fills with the agent-rounds done."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = TextColumn(name), BarColumn(), TaskProgressColumn(), TimeRemainingColumn()
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as display:
        task = display.add_task(name, total=None)

        def advance(done: int, total: int) -> None:
            display.update(task, completed=done, total=total)

        yield advance
