"""`unfog run`: an experiment, or a suite, into a run folder; `unfog reproduce`: the published figures."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unfog.cli import common
from unfog.cli.evaluate import listed
from unfog.cli.results import Json, Parts, Plot, Tails, checked, refuse_columns, say, say_drawn, say_suite
from unfog.lab.tables import files

if TYPE_CHECKING:
    from unfog.lab.prepare import ExperimentPlan

RUN_EXAMPLE = (
    "Examples: unfog run fig1-gaussian --trials 20   |   unfog run mine.toml --agents alg1,naive --json"
    "   |   unfog run fig1-gaussian --plot   |   unfog run fig1-gaussian --plot regret.png"
    "   |   unfog run fig1-gaussian --target-se 0.05 --reference oracle"
    "   |   unfog run baselines --rounds 100 --trials 10"
    "   |   unfog run baselines --problems drift,missing --tuned"
)
REPRODUCE_EXAMPLE = (
    "Examples: unfog reproduce   |   unfog reproduce fig1 --trials 400   |   unfog reproduce fig-actions"
)
PANELS = {"fig1": ("fig1-gaussian", "fig1-logistic", "fig1-movielens")}
DEFAULT = ("fig1", "fig-actions")

Rounds = Annotated[int | None, typer.Option(help="Rounds, instead of the spec's.")]
Trials = Annotated[int | None, typer.Option(help="Trials, instead of the spec's.")]
Seed = Annotated[int | None, typer.Option(help="Seed, instead of the spec's.")]
Engine = Annotated[
    str | None,
    typer.Option(
        help="numpy, numba, jax, cuda or auto, instead of the spec's.", autocompletion=common.engines
    ),
]
Precision = Annotated[
    str | None,
    typer.Option(help="float32 or float64, for a compiled engine.", autocompletion=common.precisions),
]
Workers = Annotated[
    int | None, typer.Option(help="Processes; all cores unless told. Changes no result of a named engine.")
]
ExecutorName = Annotated[
    str | None,
    typer.Option(
        help="Where to play: serial, processes, dask or ray on this machine; dask://HOST:PORT, ray://HOST:PORT.",
        autocompletion=common.executors,
    ),
]
Data = Annotated[Path | None, typer.Option(help="The folder that holds data sets, instead of UNFOG_DATA.")]
TargetSe = Annotated[
    float | None,
    typer.Option(
        help="As many trials as needed: until the standard error of every agent's regret as a ratio to that"
        " of --reference is at most this."
    ),
]
Reference = Annotated[
    str | None,
    typer.Option(
        help="With --target-se: the agent that ratios are to; oracle, or the first, unless told.",
        autocompletion=common.agents,
    ),
]
MaxTrials = Annotated[
    int | None, typer.Option(help="With --target-se: the most trials; 100,000 or the spec's unless told.")
]
Problems = Annotated[
    list[str] | None,
    typer.Option(
        help="For baselines alone: some of its problems, by commas or given again: fig1-gaussian,drift."
    ),
]
Tuned = Annotated[
    bool,
    typer.Option(
        "--tuned",
        help="For baselines alone: once more with one setting each, ours too, chosen on other seeds. Takes"
        " many times as long.",
    ),
]


def run_command(
    experiment: Annotated[
        str,
        typer.Argument(
            help="A name from `unfog list`, or a spec: FILE.toml.", autocompletion=common.experiments
        ),
    ],
    rounds: Rounds = None,
    trials: Trials = None,
    seed: Seed = None,
    agents: Annotated[
        list[str] | None,
        typer.Option(
            help="Names of agents, or module:name, separated by commas or given again.",
            autocompletion=common.agents,
        ),
    ] = None,
    engine: Engine = None,
    precision: Precision = None,
    workers: Workers = None,
    executor: ExecutorName = None,
    out: Annotated[
        Path | None, typer.Option(help="Run folder to make; runs/NAME-001 and up unless told.")
    ] = None,
    data: Data = None,
    target_se: TargetSe = None,
    reference: Reference = None,
    max_trials: MaxTrials = None,
    problems: Problems = None,
    tuned: Tuned = False,
    plot: Plot = None,
    json: Json = False,
    parts: Parts = False,
    tails: Tails = False,
) -> None:
    """Run an experiment and keep its result in a folder. An interrupted run is resumed."""
    from unfog.validation import positive

    if target_se is not None:
        positive("run.target_se", target_se)  # before the lab is imported, which takes longer
    from unfog.lab.datasets import files
    from unfog.lab.run_folder import run_folder, seconds
    from unfog.lab.spec import SUITES, load, with_target_se

    out = None if out is None else run_folder(out)
    plot = None if plot is None else checked(plot)
    files.look_in(data)
    changes: dict[str, Any] = {"rounds": rounds, "trials": trials, "seed": seed, "agents": listed(agents)}
    changes |= {"engine": engine, "precision": precision}
    if experiment in SUITES:
        refuse_columns(parts or tails)
        _check_suite_options(
            {
                "--target-se": target_se,
                "--reference": reference,
                "--max-trials": max_trials,
                "--executor": executor,
            }
        )
        _run_suite({**changes, "problems": listed(problems), "tuned": tuned}, workers, out, json, plot)
        return
    _check_experiment_options(problems, tuned)
    spec = load(experiment, changes)
    spec = with_target_se(
        spec, target_se=target_se, reference=reference, max_trials=max_trials, trials=trials
    )
    # A bad file is refused before these are imported, which takes longer.
    from unfog.lab.progress import watching
    from unfog.lab.run import keep, open_run

    plan = common.planned(spec, workers, executor)
    with watching(plan) as progress:
        target = keep(plan, out, progress=progress, on_message=common.above)
    typer.echo(f"kept in {target}", err=True)
    say(open_run(target), seconds(target), json, parts=parts, tails=tails)
    say_drawn(target, plot)


def _check_experiment_options(problems: list[str] | None, tuned: bool) -> None:
    """Raise InputError if options of suites are given for an experiment."""
    from unfog.validation import InputError

    allowed = "for `unfog run baselines` alone"
    if problems is not None:
        raise InputError("--problems", ", ".join(problems), allowed)
    if tuned:
        raise InputError("--tuned", "given", allowed)


def _check_suite_options(options: dict[str, object]) -> None:
    """Raise InputError if options of experiments are given for a suite."""
    from unfog.validation import InputError

    for option, value in options.items():
        if value is not None:
            raise InputError(option, value, "for one experiment, not for a suite")


def _run_suite(
    options: dict[str, Any], workers: int | None, out: Path | None, json: bool, plot: str | None
) -> None:
    """Run a suite, with a run folder for each problem; print its table of ratios."""
    from unfog.lab.baselines import suite
    from unfog.lab.progress import bar
    from unfog.simulation.executors.local import cores

    request, processes = suite.check_request(**options), cores() if workers is None else workers
    target = suite.claim(request, out, processes)
    comparison = suite.compare(request, target, processes, bar, lambda line: typer.echo(line, err=True))
    typer.echo(f"kept in {target}", err=True)
    say_suite(comparison, json)
    say_drawn(target, plot)


def reproduce_command(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Experiments, or fig1 for all three panels; the published figures unless told.",
            autocompletion=common.experiments,
        ),
    ] = None,
    rounds: Rounds = None,
    trials: Trials = None,
    seed: Seed = None,
    engine: Engine = None,
    precision: Precision = None,
    workers: Workers = None,
    executor: ExecutorName = None,
    data: Data = None,
    runs: Annotated[Path, typer.Option(help="Where the run folders go.")] = Path("runs"),
    out: Annotated[Path, typer.Option(help="Where the figures go.")] = Path("figures"),
) -> None:
    """Run experiments, print their tables, draw their figures."""
    from unfog.lab import figures
    from unfog.lab.datasets import files as data_files
    from unfog.lab.run import open_run
    from unfog.lab.run_folder import made_folder
    from unfog.lab.spec import load
    from unfog.plotting import save

    made_folder("out", out)
    made_folder("runs", runs)
    data_files.look_in(data)
    changes = {"rounds": rounds, "trials": trials, "seed": seed, "engine": engine, "precision": precision}
    wanted_names = list(names or DEFAULT)
    singles = dict.fromkeys(single for name in wanted_names for single in PANELS.get(name, (name,)))
    _check_names(singles)
    plans = {name: common.planned(load(name, changes), workers, executor) for name in singles}
    folders = {name: _reproduce_one(plan, runs, out) for name, plan in plans.items()}
    for name in wanted_names:
        if name in PANELS:
            chart = figures.panels([open_run(folders[single]) for single in PANELS[name]])
            typer.echo(files(name, save(chart, out, name)))


def _check_names(names: Iterable[str]) -> None:
    """Refuse names that resemble those of panels, which only this command knows; `load` refuses others."""
    from unfog.lab.spec import catalog
    from unfog.validation import InputError, nearest

    known = [*PANELS, *catalog()]
    for name in names:
        near = nearest(name, known)
        if name not in known and near and near == nearest(name, PANELS) and not Path(name).exists():
            allowed = f"{', '.join(PANELS)}, a name from `unfog list experiments`, or a .toml file"
            raise InputError("experiment", f"{name!r} is neither known nor a file", allowed, near)


def _reproduce_one(plan: "ExperimentPlan", runs: Path, out: Path) -> Path:
    """Run an experiment, print its table and draw its figure; return its folder."""
    from unfog.lab import figures, report, run_folder
    from unfog.lab.progress import watching
    from unfog.lab.run import keep, open_run
    from unfog.plotting import save

    with watching(plan) as progress:
        target = keep(plan, runs=runs, progress=progress)
    data = open_run(target)
    paths = save(figures.figure(data), out, plan.spec.name)
    typer.echo(report.table(data, run_folder.seconds(target)))
    typer.echo(f"kept in {target}")
    typer.echo(files("figure", paths) + "\n")
    return target
