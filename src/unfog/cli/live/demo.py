"""`unfog live demo`: a simulated clinic."""

from pathlib import Path
from typing import Annotated

import typer

from unfog.lab.tables import files

EXAMPLE = "Examples: unfog live demo   |   unfog live demo --decisions 600 --seed 3 --store clinic.unfog"


def command(
    store: Annotated[
        Path | None, typer.Option(help="Keep the store in this new file, to look at with the other commands.")
    ] = None,
    decisions: Annotated[int, typer.Option(help="How many; 60 are a day.")] = 2400,
    seed: Annotated[int, typer.Option(help="Seed of patients, sensors and rewards.")] = 0,
    out: Annotated[Path, typer.Option(help="Where the figure goes.")] = Path("figures"),
) -> None:
    """Play a clinic of 20 patients with biased step counters, tell what happened, and draw it."""
    from unfog.lab import demo
    from unfog.lab.demo import figure, story
    from unfog.lab.progress import bar
    from unfog.plotting import check_installed, save

    check_installed()
    with bar("clinic") as progress:
        history = demo.played(store, decisions=decisions, seed=seed, progress=progress)
    typer.echo(story(history))
    paths = save(figure(history), out, "live-demo")
    typer.echo(files("figure", paths))
    if store is not None:
        typer.echo(f"store: {store}\nlook inside with: unfog live show {store} {demo.NAME}")
