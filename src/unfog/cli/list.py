"""`unfog list`: the experiments, the agents and the learners, a line each."""

import json as jsonlib
from typing import Annotated

import typer

EXAMPLE = "Example: unfog list"
LEARNERS = "learners of rewards of 0 or 1: alg1-pg, or with settings alg1-lmc:temperature=1:steps=20"


def command(
    json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False,
) -> None:
    """List the experiments that come with unfog, the agents, and the learners they can be given."""
    from unfog.agents.catalogue import AGENTS
    from unfog.agents.recipes import NOTES, settings_of
    from unfog.lab.spec import catalog

    experiments = {name: spec.title for name, spec in catalog().items()}
    agents = {name: row.summary for name, row in AGENTS.items()}
    learners = {name: f"{note} ({', '.join(settings_of(name))})" for name, note in NOTES.items()}
    if json:
        typer.echo(jsonlib.dumps({"experiments": experiments, "agents": agents, "learners": learners}))
        return
    width = max(map(len, [*experiments, *agents])) + 2
    for heading, rows in (("experiments", experiments), ("agents", agents), (LEARNERS, learners)):
        typer.echo(heading)
        for name, line in rows.items():
            typer.echo(f"  {name:<{width}}{line}")
