"""`unfog check posterior`: the learners' posteriors against NUTS."""

import json as jsonlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unfog.cli import complete

if TYPE_CHECKING:
    from unfog.lab.posterior import Check

EXAMPLE = "Examples: unfog check posterior   |   unfog check posterior --learners lmc,pg --rounds 50 --json"
HEAD = ["learner", "mean off", "worst", "spread", "narrowest", "widest", "volume", "z", "z long"]
WORST_RHAT = 1.01
LEGEND = """\
mean off, worst: rms and largest difference of a coordinate's mean, in posterior standard deviations
spread: standard deviation over NUTS's, median of coordinates; the extremes are along principal axes
z: largest difference in Monte Carlo errors, as used and in a long run: up to 4 may be chance"""

app = typer.Typer(
    help="Check what is believed against something independent.",
    epilog=EXAMPLE,
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.callback()
def _checks() -> None:
    """Make `posterior` a subcommand: a lone command would be the group itself."""


@app.command("posterior", epilog=EXAMPLE)
def posterior(
    experiment: Annotated[
        str,
        typer.Argument(
            help="A name from `unfog list`, or a spec: FILE.toml. Rewards must be 0 or 1.",
            autocompletion=complete.experiments,
        ),
    ] = "fig1-logistic",
    rounds: Annotated[int, typer.Option(help="Rounds to play for the data.")] = 200,
    seed: Annotated[int, typer.Option(help="Seed of the data and of all draws.")] = 0,
    agent: Annotated[
        str,
        typer.Option(help="Whose denoiser and chooser play the rounds.", autocompletion=complete.agents),
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
    from unfog.cli.progress import bar
    from unfog.lab import figures
    from unfog.lab.posterior import DEFAULT, check, problem_of
    from unfog.lab.posterior_figure import figure
    from unfog.lab.target import made_folder
    from unfog.lab.terminal import files

    made_folder("out", out)
    names = DEFAULT if learners is None else [name.strip() for name in learners.split(",") if name.strip()]
    name, problem = problem_of(experiment)
    with bar("check") as progress:
        found = check(
            problem,
            agent=agent,
            learners=names,
            rounds=rounds,
            seed=seed,
            chains=chains,
            draws=draws,
            progress=progress,
        )
    paths = figures.save(figure(found, f"Posteriors of θ against NUTS: {name}"), out, "posterior")
    facts = summary(name, found)
    if json:
        typer.echo(jsonlib.dumps({**facts, "figures": [str(path) for path in paths]}, allow_nan=False))
        return
    typer.echo(table(facts))
    typer.echo(files("figure", paths))


def summary(name: str, found: "Check") -> dict[str, Any]:
    """The numbers, for programs."""
    worst = found.references
    chains, draws, _ = worst[0].draws.shape
    return {
        "experiment": name,
        "agent": found.agent,
        "rounds": found.rounds,
        "seed": found.seed,
        "chains": found.chains,
        "nuts": {
            "chains": chains,
            "draws": draws,
            "rhat": max(one.rhat for one in worst),
            "ess": min(one.ess for one in worst),
            "divergences": sum(one.divergences for one in worst),
        },
        "learners": {one.learner: one.numbers() for one in found.comparisons},
    }


def table(facts: dict[str, Any]) -> str:
    """The numbers, for people; the last line says what to read from them."""
    from unfog.lab.posterior_figure import percent
    from unfog.lab.terminal import align

    nuts, learners = facts["nuts"], facts["learners"]
    rows = [[name, *map(_figures, numbers.values())] for name, numbers in learners.items()]
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


def _figures(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}" if value < 10 else f"{value:.1f}"
