"""What a long command says on stderr: which engine was chosen, and a bar where there is a terminal."""

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from unfog.inputs import count
from unfog.lab.run import Progress, settled
from unfog.lab.spec import Spec


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


def choose_engine(spec: Spec, workers: int) -> Spec:
    """The spec with its engine settled; a choice of ours is said, with its reason."""
    count("workers", workers)
    chosen, reason = settled(spec, workers)
    if spec.run.engine == "auto":
        typer.echo(f"engine {reason}", err=True)
    return chosen
