"""`unfog list`: the experiments and the agents, a line each."""

import json as jsonlib
from typing import Annotated

import typer

EXAMPLE = "Example: unfog list"


def command(
    json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False,
) -> None:
    """List the experiments that come with unfog, and the agents."""
    from unfog.agents.catalogue import AGENTS
    from unfog.lab.spec import catalog

    experiments = {name: spec.title for name, spec in catalog().items()}
    agents = {name: row.summary for name, row in AGENTS.items()}
    if json:
        typer.echo(jsonlib.dumps({"experiments": experiments, "agents": agents}))
        return
    width = max(map(len, [*experiments, *agents])) + 2
    for heading, rows in (("experiments", experiments), ("agents", agents)):
        typer.echo(heading)
        for name, line in rows.items():
            typer.echo(f"  {name:<{width}}{line}")
