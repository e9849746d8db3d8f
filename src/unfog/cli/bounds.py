"""`unfog bounds`: what the theory allows, beside what the simulation costs."""

import json as jsonlib
import time
from pathlib import Path
from typing import Annotated

import typer

from unfog.cli import complete
from unfog.cli.run import Rounds, Seed, Trials, Workers

EXAMPLE = "Examples: unfog bounds bounds-delayed   |   unfog bounds bounds-unobserved --mismatch 20 --json"


def command(
    experiment: Annotated[
        str,
        typer.Argument(
            help="A name from `unfog list`, or a spec: FILE.toml. Rewards must be Gaussian.",
            autocompletion=complete.experiments,
        ),
    ],
    rounds: Rounds = None,
    trials: Trials = None,
    seed: Seed = None,
    workers: Workers = None,
    mismatch: Annotated[
        int, typer.Option(help="Trials in which to measure Algorithm 1's mismatch, the sum of D_t; slow.")
    ] = 0,
    out: Annotated[Path, typer.Option(help="Where the figure goes.")] = Path("figures"),
    json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False,
) -> None:
    """Print and draw the bounds on regret beside the regret itself, and how fast both grow."""
    from unfog.cli.progress import bar
    from unfog.lab import bounds_report, figures
    from unfog.lab.bounds import planned, played
    from unfog.lab.bounds_case import measured
    from unfog.lab.bounds_figure import figure
    from unfog.lab.spec import load
    from unfog.lab.target import made_folder
    from unfog.simulation.executors import MOST_WORKERS
    from unfog.simulation.executors.local import cores
    from unfog.validation import count

    count("mismatch", mismatch, 0, 10**6)
    made_folder("out", out)
    workers = cores() if workers is None else count("workers", workers, most=MOST_WORKERS)
    spec, told = load(experiment, {"rounds": rounds, "trials": trials, "seed": seed}), None
    plays = planned(spec, workers)
    started = time.perf_counter()
    if mismatch:
        with bar("mismatch") as progress:
            told = measured(spec, plays.whole.plan.problems[0], mismatch, progress)
    with bar(spec.name) as progress:
        found = played(plays, progress)
    seconds = time.perf_counter() - started
    stem = spec.name if spec.name.startswith("bounds-") else f"bounds-{spec.name}"
    facts = {**bounds_report.summary(found, told, seconds), "figures": []}
    try:
        facts["figures"] = [str(path) for path in figures.save(figure(found), out, stem)]
    finally:  # the numbers are not lost with the picture
        typer.echo(jsonlib.dumps(facts, allow_nan=False) if json else bounds_report.table(facts))
