"""Logs of `unfog live`: `export` and `import` move them, `log` and `replay` read them.

An export is a problem's whole log as NDJSON, or its decisions as a table. `replay` checks that what is
believed follows from the log.
"""

import csv
import io
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unfog.cli.live.common import Name, Place, StoreFile, Sync, check_known, opened, refuse_store, say, write

if TYPE_CHECKING:
    from unfog.live import Store
    from unfog.serve import Client

EXPORT = (
    "Examples: unfog live export walks.unfog walks > walks.ndjson   |"
    "   unfog live export walks.unfog walks --csv --out walks.csv"
)
IMPORT = (
    "Examples: unfog live import copy.unfog walks.ndjson   |"
    "   unfog live import walks.unfog past.csv --name walks"
)
LOG = (
    "Examples: unfog live log walks.unfog walks   |   unfog live log walks.unfog walks --since 120 --limit 10"
)
REPLAY = "Examples: unfog live replay walks.unfog   |   unfog live replay walks.unfog walks --verify"


def export(
    store: StoreFile,
    name: Name,
    out: Annotated[Path | None, typer.Option(help="A file, instead of stdout.")] = None,
    table: Annotated[
        bool, typer.Option("--csv", help="A table with a row for each decision, instead of the log.")
    ] = False,
    parquet: Annotated[
        bool, typer.Option("--parquet", help="The same table as a Parquet file, which needs --out.")
    ] = False,
) -> None:
    """Write out the log of a problem, from which `unfog live import` makes the same problem again."""
    with opened(store) as connection:
        check_known(connection, name)
        if parquet:
            _write_parquet(connection, name, out)
            return
        texts = _table_lines(connection, name) if table else connection.export(name)
        if out is not None:
            write(out, texts, connection)
            return
        for text in texts:
            typer.echo(text, nl=False)


def _write_parquet(store: "Store | Client", name: str, out: Path | None) -> None:
    from unfog import _frames
    from unfog.live.decision_table import as_table
    from unfog.validation import InputError

    if out is None:
        raise InputError("out", "not given", "--out FILE.parquet: a Parquet file is no text")
    refuse_store("out", out, store)
    context = next(iter(store.events(name)))["context"]
    names, *rows = as_table(store.events(name), context)
    columns = zip(*rows, strict=True) if rows else ((),) * len(names)
    _frames.write_parquet(out, dict(zip(names, columns, strict=True)))


def _table_lines(store: "Store | Client", name: str) -> Iterator[str]:
    from unfog.live.decision_table import as_table

    context = next(iter(store.events(name)))["context"]
    for row in as_table(store.events(name), context):
        line = io.StringIO()
        csv.writer(line, lineterminator="\n").writerow(row)
        yield line.getvalue()


def import_log(
    store: StoreFile,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE|-", help="An export; or a table FILE.csv or .parquet. - for NDJSON on stdin."
        ),
    ],
    name: Annotated[
        str | None,
        typer.Option(help="The name to import under; for a table, the problem to import into."),
    ] = None,
    allow_modules: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A module of your own that the log names; it is imported. Repeatable.",
        ),
    ] = None,
    sync: Sync = "full",
) -> None:
    """Import an export, into a store that is created if need be; or logged decisions from a table."""
    if file.endswith(".parquet"):
        _import_table(store, file, _read_parquet(file), name, sync)
        return
    with _open_lines(file) as lines:
        if file.endswith(".csv"):
            _import_table(store, file, lines, name, sync)
        else:
            _import_log(store, file, lines, name, sync, allow_modules or ())


def _read_parquet(file: str) -> Any:
    from unfog import _frames

    with _open_lines(file):  # says what is wrong if it cannot be opened
        return _frames.read_parquet("file", Path(file))


def _open_lines(file: str) -> Any:
    from unfog import _io
    from unfog.validation import InputError

    if file == "-":
        return nullcontext(sys.stdin)
    try:
        return open(file, encoding="utf-8", newline="")
    except OSError as error:
        near = _io.near(file) if _io.is_missing(file) else ""
        problem = f"{file} cannot be read ({error.strerror})"
        raise InputError("file", problem, "a file that can be read", near) from None


def _import_table(location: Place, file: str, table: Any, name: str | None, sync: str) -> None:
    """Import logged decisions from a table into an existing problem."""
    from unfog.live import Problem
    from unfog.live.decision_table import from_table
    from unfog.validation import InputError

    if name is None:
        raise InputError("name", "not given", "--name and the problem that the table goes into")
    with opened(location, sync) as connection:
        problem = connection.problem(name)
        if isinstance(problem, Problem):
            number = _run_decoding(file, lambda: from_table(problem, table))
        else:
            text = _run_decoding(file, table.read) if hasattr(table, "read") else table
            number = problem.import_decisions(text)
    say({"problem": name, "decisions": number})


def _import_log(
    location: Place,
    file: str,
    lines: Iterable[str],
    name: str | None,
    sync: str,
    allow_modules: Sequence[str],
) -> None:
    """Import an export; its first line is checked before a store is created for it."""
    rest = iter(lines)
    first = _run_decoding(file, lambda: next(rest, ""))
    exported_name = _read_name(first)
    with opened(location, sync, create=True) as connection:
        number = _run_decoding(
            file, lambda: connection.import_events(chain([first], rest), name, allow_modules=allow_modules)
        )
    message = "imported" if number else "all of it was there already"
    say({"problem": exported_name if name is None else name, "events": number, "message": message})


def _run_decoding(file: str, work: Any) -> Any:
    from unfog.validation import InputError

    try:
        return work()
    except UnicodeDecodeError as error:
        raise InputError("file", f"{file} cannot be read ({error})", "a file in UTF-8") from None


def _read_name(line: str) -> str:
    """The name of the exported problem, from the first line of the export."""
    from unfog.validation import InputError

    try:
        event = json.loads(line)
        if event["kind"] == "problem" and isinstance(event["problem"], str):
            return str(event["problem"])
    except (ValueError, RecursionError, KeyError, TypeError):
        pass
    allowed = "the export of a problem, whose first line says its terms"
    raise InputError("line 1", line[:60].strip() or "nothing", allowed)


def log(
    store: StoreFile,
    name: Name,
    since: Annotated[int, typer.Option(min=0, help="Print events after this number (seq).")] = 0,
    limit: Annotated[int | None, typer.Option(min=0, help="Print at most this many.")] = None,
) -> None:
    """Print the events of a problem as NDJSON, oldest first."""
    with opened(store) as connection:
        check_known(connection, name)
        for event in islice(connection.events(name, since), limit):
            say(event)


def replay(
    store: StoreFile,
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="The problem to replay; by default all.")
    ] = None,
    verify: Annotated[
        bool,
        typer.Option("--verify", help="Also repeat every decision and compare it with the log."),
    ] = False,
) -> None:
    """Replay the log from its beginning, and check that the state is the same to the last bit."""
    with opened(store) as connection:
        if name is not None:
            check_known(connection, name)
        results = connection.replay(verify=verify, problem=name)
    for problem, result in results.items():
        message = "equal to the bit" if result.same else "what is remembered is not what the log says"
        say({"problem": problem, **result._asdict(), "message": message})
    if not all(result.same for result in results.values()):
        raise typer.Exit(1)
