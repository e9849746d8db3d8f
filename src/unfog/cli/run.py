"""`unfog run`: one experiment into a run folder."""

from pathlib import Path
from typing import Annotated

import typer

from unfog.cli.show import Json, Parts, Tails, say

EXAMPLE = "Examples: unfog run fig1-gaussian --trials 20   |   unfog run mine.toml --agents alg1,naive --json"

Rounds = Annotated[int | None, typer.Option(help="Rounds, instead of the spec's.")]
Trials = Annotated[int | None, typer.Option(help="Trials, instead of the spec's.")]
Seed = Annotated[int | None, typer.Option(help="Seed, instead of the spec's.")]
Engine = Annotated[str | None, typer.Option(help="numpy, jax, pallas or auto, instead of the spec's.")]
Precision = Annotated[str | None, typer.Option(help="float32 or float64, for a compiled engine.")]
Workers = Annotated[
    int | None, typer.Option(help="Processes; all cores unless told. Changes no result of a named engine.")
]


Data = Annotated[Path | None, typer.Option(help="The folder that holds data sets, instead of UNFOG_DATA.")]


def command(
    experiment: Annotated[str, typer.Argument(help="A name from `unfog list`, or a spec: FILE.toml.")],
    rounds: Rounds = None,
    trials: Trials = None,
    seed: Seed = None,
    agents: Annotated[
        str | None, typer.Option(help="Names of agents, or module:name, separated by commas.")
    ] = None,
    engine: Engine = None,
    precision: Precision = None,
    workers: Workers = None,
    out: Annotated[
        Path | None, typer.Option(help="Run folder to make; runs/NAME-001 and up unless told.")
    ] = None,
    data: Data = None,
    json: Json = False,
    parts: Parts = False,
    tails: Tails = False,
) -> None:
    """Run an experiment and keep its result in a folder. An interrupted run is resumed."""
    from unfog.cli.progress import bar, planned
    from unfog.lab import datasets, store
    from unfog.lab.run import keep, open_run
    from unfog.lab.spec import load

    datasets.look_in(data)
    names = None if agents is None else [name.strip() for name in agents.split(",") if name.strip()]
    changes = {"rounds": rounds, "trials": trials, "seed": seed, "agents": names}
    spec = load(experiment, {**changes, "engine": engine, "precision": precision})
    plan = planned(spec, workers)
    with bar(spec.name) as progress:
        target = keep(plan, out, progress=progress)
    typer.echo(f"kept in {target}", err=True)
    say(open_run(target), store.seconds(target), json, parts=parts, tails=tails)
