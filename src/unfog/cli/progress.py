"""What a long command says on stderr: which engine was chosen, and a bar where there is a terminal."""

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from unfog.lab.prepare import Plan, prepare
from unfog.lab.run import Progress
from unfog.lab.spec import Spec
from unfog.simulate.engines import AS_TOLD
from unfog.simulate.execute.named import executor
from unfog.simulate.execute.processes import cores


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


def planned(spec: Spec, workers: int | None, on: str | None = None) -> Plan:
    """The plan of a spec, on all cores unless told; an engine that we chose is said, with the reason."""
    told = cores() if workers is None else workers
    plan = prepare(spec, workers=told, executor=executor(on, workers))
    if plan.work.reason != AS_TOLD:
        typer.echo(f"engine {plan.engine}", err=True)
    return plan
