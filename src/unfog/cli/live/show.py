"""`unfog live show`: the problems of a store, or all that there is to know of one."""

import json as jsonlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unfog.cli.live.common import CONTEXT, StoreFile, check_known, opened, parsed, refuse_store, text_of

if TYPE_CHECKING:
    from unfog.live import Problem, Store
    from unfog.serve import Client
    from unfog.serve.client import Remote

EXAMPLE = (
    "Examples: unfog live show walks.unfog   |   unfog live show walks.unfog walks --unit ann --json   |"
    f"   unfog live show walks.unfog walks --context '{CONTEXT}' --figure walks.png"
)
FORMATS = ("png", "svg", "pdf")


def command(
    store: StoreFile,
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="One problem; a list of all without.")
    ] = None,
    unit: Annotated[str | None, typer.Option(help="Whose bias to show, and whose context it is.")] = None,
    context: Annotated[
        str | None,
        typer.Option(metavar="JSON|-", help="What each arm would be expected to earn in this context."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print everything as JSON and nothing else.")] = False,
    figure: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw it, too: FILE.png, FILE.svg or FILE.pdf.")
    ] = None,
) -> None:
    """Show what a problem believes, how its arms do, and whether its readings are as the channel says."""
    from unfog.cli.live import summary
    from unfog.validation import InputError

    if name is None and (unit is not None or context is not None or figure is not None):
        raise InputError("name", "not given", "the name of a problem, for --unit, --context and --figure")
    if figure is not None and figure.suffix[1:] not in FORMATS:
        raise InputError("figure", str(figure), ", ".join(f"FILE.{kind}" for kind in FORMATS))
    noisy = None if context is None else parsed("context", text_of("context", context), CONTEXT)
    with opened(store) as found:
        if name is None:
            facts = {one: listed(found, one) for one in found.names()}
            typer.echo(jsonlib.dumps(facts, allow_nan=False) if json else summary.of_all(str(store), facts))
            return
        check_known(found, name)
        whole = told(found.problem(name), unit, noisy)
        if figure is not None:
            refuse_store("figure", figure, found)
            _draw(found.problem(name), figure)
            whole["figure"] = str(figure)
    typer.echo(jsonlib.dumps(whole, allow_nan=False) if json else summary.of_one(whole))


def told(problem: "Problem | Remote", unit: str | None, noisy: Any) -> dict[str, Any]:
    """All there is to know of a problem, as JSON has it."""
    from unfog.live.inspection import plain

    about = problem.about()
    found: dict[str, Any] = {
        "problem": problem.name,
        **{name: about[name] for name in ("seed", "channel", "frozen", "retired", "shadows")},
        "diagnostics": plain(problem.diagnostics()),
        "belief": plain(problem.belief(unit)),
    }
    if noisy is not None:
        found["expected"] = plain(problem.expected(noisy, unit=unit))
    return found


LISTED = ("agent", "context", "arms", "decisions", "rewards", "pending")


def listed(store: "Store | Client", name: str) -> dict[str, Any]:
    """A problem in a few words."""
    about = store.problem(name).about()
    return {part: about[part] for part in LISTED}


def _draw(problem: "Problem | Remote", path: Path) -> None:
    from unfog.lab.figures import save

    save(problem.figure(), path.parent, path.stem, (path.suffix[1:],))
