"""What a long command says on stderr: which engine was chosen, and how far it is (lab/watch.py)."""

import sys

import typer

from unfog.lab.prepare import Plan, prepare
from unfog.lab.spec import Spec
from unfog.lab.watch import bar, watching
from unfog.simulation.engines import AS_TOLD
from unfog.simulation.executors import executor
from unfog.simulation.executors.local import cores

__all__ = ["above", "bar", "planned", "watching"]


def above(line: str) -> None:
    """Say a line while there is a bar: who prints by another way writes into it."""
    print(line, file=sys.stderr)


def planned(spec: Spec, workers: int | None, on: str | None = None) -> Plan:
    """The plan of a spec, on all cores unless told; an engine that we chose is said, with the reason."""
    told = cores() if workers is None else workers
    plan = prepare(spec, workers=told, executor=executor(on, workers))
    if plan.work.reason != AS_TOLD:
        typer.echo(f"engine {plan.engine}", err=True)
    return plan
