"""`unfog run`: one experiment into a run folder."""

from pathlib import Path
from typing import Annotated, Any

import typer

from unfog.cli import complete
from unfog.cli.evaluate_log import listed
from unfog.cli.plot import Plot, checked, say_drawn
from unfog.cli.show import Json, Parts, Tails, refuse_columns, say, say_suite

EXAMPLE = (
    "Examples: unfog run fig1-gaussian --trials 20   |   unfog run mine.toml --agents alg1,naive --json"
    "   |   unfog run fig1-gaussian --plot   |   unfog run fig1-gaussian --plot regret.png"
    "   |   unfog run fig1-gaussian --until 0.05 --against oracle"
    "   |   unfog run rivals --rounds 100 --trials 10   |   unfog run rivals --problems drift,missing --tuned"
)

Rounds = Annotated[int | None, typer.Option(help="Rounds, instead of the spec's.")]
Trials = Annotated[int | None, typer.Option(help="Trials, instead of the spec's.")]
Seed = Annotated[int | None, typer.Option(help="Seed, instead of the spec's.")]
Engine = Annotated[
    str | None,
    typer.Option(
        help="numpy, numba, jax, cuda or auto, instead of the spec's.", autocompletion=complete.engines
    ),
]
Precision = Annotated[
    str | None,
    typer.Option(help="float32 or float64, for a compiled engine.", autocompletion=complete.precisions),
]
Workers = Annotated[
    int | None, typer.Option(help="Processes; all cores unless told. Changes no result of a named engine.")
]
On = Annotated[
    str | None,
    typer.Option(
        help="Where to play: serial, processes, dask or ray on this machine; dask://HOST:PORT, ray://HOST:PORT.",
        autocompletion=complete.executors,
    ),
]
Data = Annotated[Path | None, typer.Option(help="The folder that holds data sets, instead of UNFOG_DATA.")]
Until = Annotated[
    float | None,
    typer.Option(
        help="As many trials as needed: until the standard error of every agent's regret as a ratio to that"
        " of --against is at most this."
    ),
]
Against = Annotated[
    str | None,
    typer.Option(
        help="With --until: the agent that ratios are to; oracle, or the first, unless told.",
        autocompletion=complete.agents,
    ),
]
Budget = Annotated[
    int | None, typer.Option(help="With --until: the most trials; 100,000 or the spec's unless told.")
]
Problems = Annotated[
    list[str] | None,
    typer.Option(
        help="For rivals alone: some of its problems, by commas or given again: fig1-gaussian,drift."
    ),
]
Tuned = Annotated[
    bool,
    typer.Option(
        "--tuned",
        help="For rivals alone: once more with one setting each, ours too, chosen on other seeds. Takes many"
        " times as long.",
    ),
]


def command(
    experiment: Annotated[
        str,
        typer.Argument(
            help="A name from `unfog list`, or a spec: FILE.toml.", autocompletion=complete.experiments
        ),
    ],
    rounds: Rounds = None,
    trials: Trials = None,
    seed: Seed = None,
    agents: Annotated[
        list[str] | None,
        typer.Option(
            help="Names of agents, or module:name, separated by commas or given again.",
            autocompletion=complete.agents,
        ),
    ] = None,
    engine: Engine = None,
    precision: Precision = None,
    workers: Workers = None,
    on: On = None,
    out: Annotated[
        Path | None, typer.Option(help="Run folder to make; runs/NAME-001 and up unless told.")
    ] = None,
    data: Data = None,
    until: Until = None,
    against: Against = None,
    budget: Budget = None,
    problems: Problems = None,
    tuned: Tuned = False,
    plot: Plot = None,
    json: Json = False,
    parts: Parts = False,
    tails: Tails = False,
) -> None:
    """Run an experiment and keep its result in a folder. An interrupted run is resumed."""
    from unfog.validation import positive

    if until is not None:
        positive("run.until", until)  # before the lab is imported, which takes longer
    from unfog.lab import datasets
    from unfog.lab.spec import SUITES, load, with_until
    from unfog.lab.target import run_folder

    out = None if out is None else run_folder(out)
    plot = None if plot is None else checked(plot)
    datasets.look_in(data)
    changes: dict[str, Any] = {"rounds": rounds, "trials": trials, "seed": seed, "agents": listed(agents)}
    changes |= {"engine": engine, "precision": precision}
    if experiment in SUITES:
        refuse_columns(parts or tails)
        _refuse_of_experiments({"--until": until, "--against": against, "--budget": budget, "--on": on})
        _suite({**changes, "problems": listed(problems), "tuned": tuned}, workers, out, json, plot)
        return
    _refuse_of_suites(problems, tuned)
    spec = load(experiment, changes)
    spec = with_until(spec, until=until, against=against, budget=budget, trials=trials)
    # A bad file is refused before these are imported, which takes longer.
    from unfog.cli.progress import above, planned, watching
    from unfog.lab import store
    from unfog.lab.run import keep, open_run

    plan = planned(spec, workers, on)
    with watching(plan) as progress:
        target = keep(plan, out, progress=progress, say=above)
    typer.echo(f"kept in {target}", err=True)
    say(open_run(target), store.seconds(target), json, parts=parts, tails=tails)
    say_drawn(target, plot)


def _refuse_of_suites(problems: list[str] | None, tuned: bool) -> None:
    """Complain of options that no experiment by itself has."""
    from unfog.validation import InputError

    allowed = "for `unfog run rivals` alone"
    if problems is not None:
        raise InputError("--problems", ", ".join(problems), allowed)
    if tuned:
        raise InputError("--tuned", "given", allowed)


def _refuse_of_experiments(told: dict[str, object]) -> None:
    """Complain of options that no suite has."""
    from unfog.validation import InputError

    for option, value in told.items():
        if value is not None:
            raise InputError(option, value, "for one experiment, not for a suite")


def _suite(told: dict[str, Any], workers: int | None, out: Path | None, json: bool, plot: str | None) -> None:
    """Rivals on problems, each problem a run folder of its own; the table of ratios in the end."""
    from unfog.cli.progress import bar
    from unfog.lab.rivals import suite
    from unfog.simulation.executors.local import cores

    asked, processes = suite.asked(**told), cores() if workers is None else workers
    target = suite.claim(asked, out, processes)
    found = suite.compare(asked, target, processes, bar, lambda line: typer.echo(line, err=True))
    typer.echo(f"kept in {target}", err=True)
    say_suite(found, json)
    say_drawn(target, plot)
