"""`unfog run`: one experiment into a run folder."""

import json as jsonlib
from pathlib import Path
from typing import Annotated, Any

import typer

from unfog.cli.show import Json, Parts, Tails, say

EXAMPLE = (
    "Examples: unfog run fig1-gaussian --trials 20   |   unfog run mine.toml --agents alg1,naive --json"
    "   |   unfog run rivals --rounds 100 --trials 10"
)

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
    from unfog.lab.spec import SUITES, load

    datasets.look_in(data)
    names = None if agents is None else [name.strip() for name in agents.split(",") if name.strip()]
    changes = {"rounds": rounds, "trials": trials, "seed": seed, "agents": names}
    if experiment in SUITES:
        _suite({**changes, "engine": engine, "precision": precision}, workers, out, json, parts or tails)
        return
    spec = load(experiment, {**changes, "engine": engine, "precision": precision})
    plan = planned(spec, workers)
    with bar(spec.name) as progress:
        target = keep(plan, out, progress=progress)
    typer.echo(f"kept in {target}", err=True)
    say(open_run(target), store.seconds(target), json, parts=parts, tails=tails)


def _suite(told: dict[str, Any], workers: int | None, out: Path | None, json: bool, columns: bool) -> None:
    """All rivals on all problems, each problem a run folder of its own; the table of ratios in the end."""
    from unfog.cli.progress import bar
    from unfog.inputs import InputError
    from unfog.lab.rivals import folder, suite
    from unfog.lab.rivals.table import plain
    from unfog.simulate.execute.processes import cores

    if columns:
        allowed = "neither for a suite; `unfog show runs/rivals-001/fig1-gaussian --tails` has them"
        raise InputError("--parts, --tails", "columns of one experiment", allowed)
    asked = suite.asked(None, **told)
    target = folder.claim(asked._asdict(), out)
    processes = cores() if workers is None else workers
    found = suite.compare(asked, target, processes, bar, lambda line: typer.echo(line, err=True))
    typer.echo(f"kept in {target}", err=True)
    typer.echo(jsonlib.dumps(plain(found), allow_nan=False) if json else str(found))
