"""`unfog list`: the experiments, the agents and the parts they can be given, a line each."""

import json as jsonlib
from typing import Annotated

import typer

EXAMPLE = "Example: unfog list"


def command(
    json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False,
) -> None:
    """List the experiments that come with unfog, the agents, and the learners and choosers for them."""
    from unfog.agents.catalogue import AGENTS
    from unfog.agents.names import CHOOSERS, LEARNERS
    from unfog.agents.rivals.rows import RIVALS
    from unfog.lab.spec import SUITES, catalog

    kinds = {
        kind: [n for n, part in LEARNERS.items() if part.rewards == kind]
        for kind in ("gaussian", "bernoulli")
    }
    groups = {
        "experiments": {name: spec.title for name, spec in catalog().items()} | SUITES,
        "agents": {name: row.summary for name, row in AGENTS.items()},
        "rivals": {name: rival.agent.summary for name, rival in RIVALS.items()},
        "learners": {name: _told(name) for names in kinds.values() for name in names},
        "choosers": {name: _told(name) for name in CHOOSERS},
    }
    if json:
        typer.echo(jsonlib.dumps(groups))
        return
    own = ", ".join(kinds["gaussian"])
    headings = {
        "rivals": "rivals, published systems as agents: docs/science/rivals.md",
        "learners": f"learners, after a dash: alg1-hetero ({own} for Gaussian rewards,"
        " the others for rewards of 0 or 1), with settings: alg1-lmc:temperature=1:steps=20",
        "choosers": "choosers, likewise: alg1-exact-ucb, alg1-hetero-ucb:quantile=0.9",
    }
    width = max(len(name) for rows in groups.values() for name in rows) + 2
    for group, rows in groups.items():
        typer.echo(headings.get(group, group))
        for name, line in rows.items():
            typer.echo(f"  {name:<{width}}{line}")


def _told(part: str) -> str:
    """A part in words, with its settings where it has any."""
    from unfog.agents.names import PARTS, settings_of

    settings = ", ".join(settings_of(part))
    return f"{PARTS[part].note} ({settings})" if settings else str(PARTS[part].note)
