"""A problem of `unfog live`: `create` it, say who may be chosen and by whom, and `erase` a unit from it.

`arms`, `pin` and `unpin` say which arms may be chosen; `shadow` adds an agent whose decisions are not acted
on. `erase` removes what is known about a unit, for privacy.
"""

import json
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unfog.cli.live import common
from unfog.cli.live.common import (
    Name,
    StoreFile,
    Sync,
    opened,
    parsed,
    read_file,
    read_named,
    read_names,
    say,
    say_receipt,
    text_of,
)

if TYPE_CHECKING:
    from unfog.live import Store
    from unfog.serve import Client

CREATE_EXAMPLE = (
    "Examples: unfog live create walks.unfog walks --context steps=1200,hour=0 --arms send,wait   |"
    "   unfog live create walks.unfog --terms walks.toml"
)
ARMS = (
    "Examples: unfog live arms walks.unfog walks --add call --retire send   |"
    "   unfog live arms shop.unfog shop --add 'shoes=[0.2, 1.0]'"
)
PIN = "Example: unfog live pin walks.unfog walks wait"
UNPIN = "Example: unfog live unpin walks.unfog walks"
SHADOW = (
    "Examples: unfog live shadow walks.unfog walks naive   |"
    "   unfog live shadow walks.unfog walks naive --remove"
)
ERASE_EXAMPLE = "Example: unfog live erase walks.unfog --unit ann --yes"
CONTEXT = '{"steps": 1200, "weekday": ["mon", "tue", "wed"]}'
SIMPLE = '{"context": {"steps": 1200, "sleep": 0.4}, "arms": ["send", "wait"]}'


class Create(common.Anywhere):
    """A command whose help ends with all terms and their defaults."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Add the terms, whose import takes a second: too long for the help of other commands."""
        from unfog.live.config import FIELDS

        terms = [
            name if field.default is None else f"{name} = {json.dumps(field.default)}"
            for name, field in FIELDS.items()
        ]
        formatter.write_paragraph()
        formatter.write_text(f"Terms: {', '.join(terms)}")
        super().format_epilog(ctx, formatter)


def create_command(
    store: StoreFile,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]", help="The name of the problem; without, all [problem.NAME] of the file."
        ),
    ] = None,
    terms: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|-",
            help="FILE.toml, FILE.json, or - for JSON on stdin: the options of one problem, as"
            " `unfog.live.Store.problem` has them; or of several, each in a table [problem.NAME].",
        ),
    ] = None,
    context: Annotated[
        str | None,
        typer.Option(
            metavar="A=1200,B=0|JSON",
            help="How far one reading of each coordinate may be off, as a standard deviation; 0: exact.",
        ),
    ] = None,
    arms: Annotated[
        str | None, typer.Option(metavar="A,B|JSON", help="What can be chosen; in JSON with vectors.")
    ] = None,
    agent: Annotated[str | None, typer.Option(help="A name from `unfog list`, or module:name.")] = None,
    rewards: Annotated[str | None, typer.Option(help="numeric or binary.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="The share of decisions by lot.")] = None,
    reward_window: Annotated[
        str | None, typer.Option(metavar="TIME", help="How long a reward may take, such as 30m.")
    ] = None,
    default_reward: Annotated[
        float | None,
        typer.Option(help="The reward to learn if none is reported within the window."),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="The seed of all random choices.")] = None,
    sync: Sync = "full",
) -> None:
    """Create a problem, and its store if need be. Repeating the command changes nothing."""
    options: dict[str, Any] = {
        "context": None if context is None else read_named("context", context, CONTEXT),
        "arms": None if arms is None else read_names("arms", arms),
        "agent": agent,
        "rewards": rewards,
        "epsilon": epsilon,
        "reward_window": reward_window,
        "default_reward": default_reward,
        "seed": seed,
    }
    given = {option: value for option, value in options.items() if value is not None}
    problems = _read_problems(name, terms, given)
    if not store.remote and not store.path.exists():
        for each, params in problems.items():
            with _name_problem(each, len(problems)):
                _check_params(each, params)
    with opened(store, sync, create=True) as connection:
        for each, params in problems.items():
            with _name_problem(each, len(problems)):
                answer = _create_problem(connection, each, params)
            say({"store": str(store), **answer})


def _create_problem(connection: "Store | Client", name: str, params: dict[str, Any]) -> dict[str, Any]:
    """Create a problem, and say what it is."""
    exists = name in connection.names()
    problem = connection.problem(name, **params)
    config = problem.terms
    return {
        "problem": name,
        "created": not exists,
        "message": "it is there, with these terms: nothing was changed" if exists else "created",
        "context": list(config.coordinates),
        "arms": config.arms if any(config.arms.values()) else list(config.arms),
        "agent": config.agent,
        "seed": config.seed,
        "note": problem.note or None,
    }


@contextmanager
def _name_problem(name: str, problems: int) -> Iterator[None]:
    """Let errors say which of several problems they are about."""
    from unfog.validation import InputError

    try:
        yield
    except InputError as error:
        if problems == 1:
            raise
        raise type(error).prefixed(f"problem.{name}", error) from None


def _read_problems(
    name: str | None, source: str | None, options: dict[str, Any]
) -> dict[str, dict[str, Any]]:
    """The options of each problem by name: those of a file, and others beside or in place of them."""
    from unfog.validation import InputError, nearest

    params = {} if source is None else read(source)
    if isinstance(params.get("problem"), dict):
        tables = _read_tables(params)
        if name is not None and name not in tables:
            raise InputError("name", repr(name), ", ".join(tables), nearest(name, tables))
        return {each: table | options for each, table in tables.items() if name in (None, each)}
    if name is None:
        raise InputError("name", "not given", "the name of the problem; or a file with [problem.NAME]")
    if source is None and not options:
        raise InputError("context", "not given", "--context and --arms, or --terms FILE")
    return {name: params | options}


def _read_tables(params: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The tables [problem.NAME] of a file by name."""
    from unfog.validation import InputError

    for other in params:
        if other != "problem":
            raise InputError(other, "beside [problem.NAME]", "options in the table of their problem")
    for name, table in params["problem"].items():
        if not isinstance(table, dict):
            raise InputError(f"problem.{name}", repr(table), f"a table: [problem.{name}]")
    tables: dict[str, dict[str, Any]] = params["problem"]
    return tables


def read(source: str) -> dict[str, Any]:
    """Read the terms from a file or stdin, as keyword arguments."""
    from unfog.validation import InputError

    path = Path(source)
    text = text_of("terms", source) if source == "-" else read_file("terms", path)
    if source != "-" and path.suffix == ".toml":
        try:
            return tomllib.loads(text)
        except (ValueError, RecursionError) as error:
            raise InputError("terms", f"{source} is not TOML ({error})", "a file of TOML or JSON") from None
    params = parsed("terms", text, SIMPLE)
    if not isinstance(params, dict) or not params:
        raise InputError("terms", text, f"a JSON object such as {SIMPLE}")
    return params


def _check_params(name: str, params: dict[str, Any]) -> None:
    """Check terms before a store is created for them."""
    from unfog import validation
    from unfog.live import config
    from unfog.live.config import PreparedProblem

    validation.check_name("name", name)
    PreparedProblem(config.ProblemConfig.read(config.written(params)))


def arms(
    store: StoreFile,
    name: Name,
    add: Annotated[
        list[str] | None,
        typer.Option(metavar="ARM[=JSON]", help="A new arm, with its vector where arms have any."),
    ] = None,
    retire: Annotated[list[str] | None, typer.Option(metavar="ARM", help="An arm to retire.")] = None,
    restore: Annotated[
        list[str] | None, typer.Option(metavar="ARM", help="A retired arm to bring back.")
    ] = None,
) -> None:
    """Add, retire and restore arms, in turn; prints a receipt for each. Options may be repeated."""
    from unfog.validation import InputError

    new_arms = [_split_arm(text) for text in add or ()]
    if not (new_arms or retire or restore):
        raise InputError("arms", "nothing to do", "--add, --retire or --restore")
    with opened(store) as connection:
        problem = connection.problem(name)
        for arm, vector in new_arms:
            say_receipt(problem.add_arm(arm, vector), add=arm)
        for arm in restore or ():
            say_receipt(problem.restore_arm(arm), restore=arm)
        for arm in retire or ():
            say_receipt(problem.retire_arm(arm), retire=arm)


def _split_arm(text: str) -> tuple[str, Any]:
    """Split an arm into its name and the vector after an equals sign."""
    name, sign, vector = text.partition("=")
    return name, parsed("add", vector, "shoes=[0.2, 1.0]") if sign else None


def pin(
    store: StoreFile, name: Name, arm: Annotated[str, typer.Argument(metavar="ARM", help="The arm to take.")]
) -> None:
    """Take one arm from now on, whatever the context, until `unpin`."""
    with opened(store) as connection:
        receipt = connection.problem(name).pin_arm(arm)
    say_receipt(receipt, pin=arm)


def unpin(store: StoreFile, name: Name) -> None:
    """Let the agent decide again, after `pin`."""
    with opened(store) as connection:
        receipt = connection.problem(name).unpin_arm()
    say_receipt(receipt)


def shadow(
    store: StoreFile,
    name: Name,
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="A name from `unfog list`, or module:name.")],
    remove: Annotated[bool, typer.Option("--remove", help="Remove this shadow.")] = False,
) -> None:
    """Add a shadow: an agent that decides on the same readings, without being carried out."""
    with opened(store) as connection:
        problem = connection.problem(name)
        receipt = problem.remove_shadow(agent) if remove else problem.add_shadow(agent)
    say_receipt(receipt, shadow=agent)


def erase_command(
    store: StoreFile,
    unit: Annotated[str, typer.Option(help="The unit to erase, from all problems.")],
    yes: Annotated[
        bool,
        typer.Option("--yes", help="Confirm: it cannot be undone. Copies and exports stay."),
    ] = False,
) -> None:
    """Erase the contexts of a unit and what was learnt from them; arms and rewards stay, without the unit."""
    from unfog.validation import InputError

    if not yes:
        raise InputError("yes", "not given", "--yes: what is erased cannot be brought back")
    with opened(store) as connection:
        decisions = connection.erase(unit=unit)
    say({"unit": unit, "decisions": decisions, "message": "erased"})
