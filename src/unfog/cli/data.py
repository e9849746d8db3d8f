"""`unfog data`: which data sets are there, and how to get the others."""

import json as jsonlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unfog.cli import common
from unfog.lab.tables import wrap

if TYPE_CHECKING:
    from unfog.lab.datasets.files import Dataset

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
    """List the data sets: whether each is here, can be fetched, or must be brought, and its licence."""
    from unfog.lab.datasets.files import DATASETS

    facts = {name: _read_facts(dataset, data) for name, dataset in DATASETS.items()}
    if json:
        typer.echo(jsonlib.dumps(facts))
        return
    width = max(map(len, facts)) + 2
    for name, fact in facts.items():
        typer.echo("\n".join(_format_lines(name, fact, width)))


def _read_facts(dataset: "Dataset", folder: Path | None) -> dict[str, Any]:
    from unfog.lab.datasets.files import way

    availability = way(dataset, folder)
    fields = {field: getattr(dataset, field) for field in ("title", "file", "sha256", "url", "licence")}
    return {"path": availability.path, "problem": availability.problem, **fields, **availability._asdict()}


def _format_lines(name: str, fact: dict[str, Any], width: int) -> list[str]:
    """A data set in 80 columns; a path stays whole."""
    sentences = [f"{fact['status']}: {fact['path'] or fact['problem']}"]
    if fact["fetch"]:
        sentences += [f"get it with `{fact['fetch']}`"]
    elif fact["why"]:
        sentences += [f"why: {fact['why']}", f"get it from {fact['where']}"]
        sentences += [f"put it as {fact['file']} into a folder that --data or UNFOG_DATA names"]
    sentences += [f"licence: {fact['licence']}"]
    indent = " " * width
    lines = [f"{name:<{width}}{fact['title']}"]
    for sentence in sentences:
        lines += wrap(sentence, f"{indent}  ", first=indent, long_words=False)
    return lines


@app.command("fetch", epilog=FETCH_EXAMPLE)
def fetch_data(
    name: Annotated[str, typer.Argument(help="A name from `unfog data list`.", autocompletion=common.data)],
    url: Annotated[
        str | None, typer.Option(help="Address of the archive, instead of the publisher's.")
    ] = None,
    into: Annotated[
        Path | None, typer.Option(help="Data folder to put it in, instead of the user's cache.")
    ] = None,
) -> None:
    """Download a data set, check it, and keep it where experiments look for it."""
    from unfog.lab.datasets.files import fetch, is_there, named, source_of, target_of
    from unfog.lab.progress import bar

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
