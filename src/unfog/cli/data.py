"""`unfog data`: which data sets are there, and how to get the others."""

import json as jsonlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unfog.cli import complete

if TYPE_CHECKING:
    from unfog.lab.datasets import Dataset

EXAMPLE = "Examples: unfog data list   |   unfog data fetch movielens"
LIST_EXAMPLE = "Examples: unfog data list   |   unfog data list --data FOLDER --json"
FETCH_EXAMPLE = "Examples: unfog data fetch movielens   |   unfog data fetch movielens --into FOLDER"

app = typer.Typer(
    help="Data sets: what is there, and how to get the rest. None comes with unfog.",
    epilog=EXAMPLE,
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command("list", epilog=LIST_EXAMPLE)
def list_data(
    data: Annotated[
        Path | None, typer.Option(help="Look in this folder alone, not in UNFOG_DATA and the user's cache.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False,
) -> None:
    """List the data sets, whether each was found and where, and its licence."""
    from unfog.lab.datasets import DATASETS

    facts = {name: _facts(dataset, data) for name, dataset in DATASETS.items()}
    if json:
        typer.echo(jsonlib.dumps(facts))
        return
    width = max(map(len, facts)) + 2
    for name, fact in facts.items():
        hint = f" (get it with `unfog data fetch {name}`)" if fact["problem"] and fact["url"] else ""
        typer.echo(f"{name:<{width}}{fact['title']}: {fact['path'] or fact['problem']}{hint}")
        typer.echo(f"{'':<{width}}licence: {fact['licence']}")


def _facts(dataset: "Dataset", folder: Path | None) -> dict[str, Any]:
    from unfog.inputs import InputError
    from unfog.lab.datasets import locate

    path, problem = None, None
    try:
        path = str(locate(dataset.name, folder))
    except InputError as error:
        problem = str(error.value)
    about = {field: getattr(dataset, field) for field in ("title", "file", "sha256", "url", "licence")}
    return {"path": path, "problem": problem, **about}


@app.command("fetch", epilog=FETCH_EXAMPLE)
def fetch_data(
    name: Annotated[str, typer.Argument(help="A name from `unfog data list`.", autocompletion=complete.data)],
    url: Annotated[
        str | None, typer.Option(help="Address of the archive, instead of the publisher's.")
    ] = None,
    into: Annotated[
        Path | None, typer.Option(help="Data folder to put it in, instead of the user's cache.")
    ] = None,
) -> None:
    """Download a data set, check it, and keep it where experiments look for it."""
    from unfog.cli.progress import bar
    from unfog.lab.datasets import named
    from unfog.lab.fetch import fetch, is_there, source_of, target_of

    dataset = named(name)
    target = target_of(dataset, into)
    if is_there(dataset, target):
        typer.echo(f"{target} is there already, and right: nothing to do")
        return
    source = source_of(dataset, url)
    typer.echo(f"{dataset.title}, licence: {dataset.licence}")
    typer.echo(f"downloading {source} for {target}")
    with bar(name) as progress:
        fetch(name, url, into, progress)
    typer.echo(f"kept in {target}")
    if into is not None:
        typer.echo(f"to be used by --data {into}, or with UNFOG_DATA={into}")
