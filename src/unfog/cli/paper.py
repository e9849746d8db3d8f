"""Studies around the paper: `unfog bounds` and `unfog check posterior`.

`unfog bounds` compares regret with its theoretical bounds. `unfog check posterior` compares the learners'
posteriors with NUTS.
"""

import json as jsonlib
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unfog.cli import common
from unfog.cli.run import Rounds, Seed, Trials, Workers
from unfog.lab.tables import align, files

if TYPE_CHECKING:
    from unfog.paper.posterior import Check

BOUNDS_EXAMPLE = (
    "Examples: unfog bounds bounds-delayed   |   unfog bounds bounds-unobserved --mismatch 20 --json"
)
CHECK_EXAMPLE = (
    "Examples: unfog check posterior   |   unfog check posterior --learners lmc,pg --rounds 50 --json"
)
HEAD = ["learner", "mean off", "worst", "spread", "narrowest", "widest", "volume", "z", "z long"]
WORST_RHAT = 1.01
LEGEND = """\
mean off, worst: rms and largest difference of a coordinate's mean, in posterior standard deviations
spread: standard deviation over NUTS's, median of coordinates; the extremes are along principal axes
z: largest difference in Monte Carlo errors, as used and in a long run: up to 4 may be chance"""
app = typer.Typer(
    help="Check what is believed against something independent.",
    epilog=CHECK_EXAMPLE,
    no_args_is_help=True,
    rich_markup_mode=None,
)


def command(
    experiment: Annotated[
        str,
        typer.Argument(
            help="A name from `unfog list`, or a spec: FILE.toml. Rewards must be Gaussian.",
            autocompletion=common.experiments,
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
    from unfog.lab.progress import bar
    from unfog.lab.run_folder import made_folder
    from unfog.lab.spec import load
    from unfog.paper import bounds_report
    from unfog.paper.bounds import measure_mismatch, plan_runs, play_study
    from unfog.paper.bounds_report import figure
    from unfog.plotting import check_installed, save
    from unfog.simulation.executors import MOST_WORKERS
    from unfog.simulation.executors.local import cores
    from unfog.validation import count

    count("mismatch", mismatch, 0, 10**6)
    made_folder("out", out)
    check_installed()
    workers = cores() if workers is None else count("workers", workers, most=MOST_WORKERS)
    spec, mismatch_sums = load(experiment, {"rounds": rounds, "trials": trials, "seed": seed}), None
    plays = plan_runs(spec, workers)
    started = time.perf_counter()
    if mismatch:
        with bar("mismatch") as progress:
            mismatch_sums = measure_mismatch(spec, plays.whole.plan.problems[0], mismatch, progress)
    with bar(spec.name) as progress:
        study = play_study(plays, progress)
    seconds = time.perf_counter() - started
    stem = spec.name if spec.name.startswith("bounds-") else f"bounds-{spec.name}"
    facts = {**bounds_report.summary(study, mismatch_sums, seconds), "figures": []}
    try:
        facts["figures"] = [str(path) for path in save(figure(study), out, stem)]
    finally:  # print the numbers even if the figure cannot be saved
        typer.echo(jsonlib.dumps(facts, allow_nan=False) if json else bounds_report.table(facts))


@app.callback()
def _checks() -> None:
    """Make `posterior` a subcommand: a lone command would be the group itself."""


@app.command("posterior", epilog=CHECK_EXAMPLE)
def posterior(
    experiment: Annotated[
        str,
        typer.Argument(
            help="A name from `unfog list`, or a spec: FILE.toml. Rewards must be 0 or 1.",
            autocompletion=common.experiments,
        ),
    ] = "fig1-logistic",
    rounds: Annotated[int, typer.Option(help="Rounds to play for the data.")] = 200,
    seed: Annotated[int, typer.Option(help="Seed of the data and of all draws.")] = 0,
    agent: Annotated[
        str,
        typer.Option(help="Whose denoiser and chooser play the rounds.", autocompletion=common.agents),
    ] = "alg1",
    learners: Annotated[
        str | None, typer.Option(help="Learners with their settings, separated by commas; five unless told.")
    ] = None,
    chains: Annotated[int, typer.Option(help="Independent replicas of each learner.")] = 500,
    draws: Annotated[int, typer.Option(help="Draws of each of NUTS's 16 chains.")] = 1000,
    out: Annotated[Path, typer.Option(help="Where the figure goes.")] = Path("figures"),
    json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False,
) -> None:
    """Compare each learner's posterior with NUTS on the same rounds: means, spreads, a figure."""
    from unfog.lab.progress import bar
    from unfog.lab.run_folder import made_folder
    from unfog.paper.posterior import DEFAULT, check, figure, problem_of
    from unfog.plotting import check_installed, save

    made_folder("out", out)
    check_installed()
    names = DEFAULT if learners is None else [name.strip() for name in learners.split(",") if name.strip()]
    name, problem = problem_of(experiment)
    with bar("check") as progress:
        results = check(
            problem,
            agent=agent,
            learners=names,
            rounds=rounds,
            seed=seed,
            chains=chains,
            draws=draws,
            progress=progress,
        )
    paths = save(figure(results, f"Posteriors of θ against NUTS: {name}"), out, "posterior")
    facts = summary(name, results)
    if json:
        typer.echo(jsonlib.dumps({**facts, "figures": [str(path) for path in paths]}, allow_nan=False))
        return
    typer.echo(table(facts))
    typer.echo(files("figure", paths))


def summary(name: str, results: "Check") -> dict[str, Any]:
    """The numbers, for programs."""
    references = results.references
    chains, draws, _ = references[0].draws.shape
    return {
        "experiment": name,
        "agent": results.agent,
        "rounds": results.rounds,
        "seed": results.seed,
        "chains": results.chains,
        "nuts": {
            "chains": chains,
            "draws": draws,
            "rhat": max(reference.rhat for reference in references),
            "ess": min(reference.ess for reference in references),
            "divergences": sum(reference.divergences for reference in references),
        },
        "learners": {comparison.learner: comparison.numbers() for comparison in results.comparisons},
    }


def table(facts: dict[str, Any]) -> str:
    """The numbers, for people; the last line says what to read from them."""
    from unfog.paper.posterior import percent

    nuts, learners = facts["nuts"], facts["learners"]
    rows = [[name, *map(_format_number, numbers.values())] for name, numbers in learners.items()]
    played = f"{facts['rounds']} rounds played by {facts['agent']}, seed {facts['seed']}"
    trust = f"R-hat {nuts['rhat']:.3f}, {nuts['ess']:.0f} effective, {nuts['divergences']} divergences"
    if nuts["rhat"] > WORST_RHAT or nuts["divergences"]:
        trust += ": not to be trusted, take more --draws"
    shares = ", ".join(f"{name} {percent(numbers['spread'])}" for name, numbers in learners.items())
    return "\n".join(
        [
            f"{facts['experiment']}: {played}; {facts['chains']} draws of each learner, as used",
            f"NUTS: {nuts['chains']} x {nuts['draws']} draws, {trust}",
            *align([HEAD, *rows]),
            LEGEND,
            f"spread, where 100 % is the posterior's and near 0 is greedy: {shares}",
        ]
    )


def _format_number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}" if value < 10 else f"{value:.1f}"
