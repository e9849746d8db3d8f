"""Reads a log for evaluation: a live store, CSV or a data frame (`table`), JSON lines, OBP's feedback.

    read("walks.csv", columns=Columns(context=["steps", "sleep"], arm="message", reward="walked"))

| what | how it is known |
|---|---|
| a live store, one of its problems, or of a service | by what it offers: names and events |
| `.ndjson`, `.jsonl`, `.json` | an export of `unfog live`, or dsjson: by the fields of its first line |
| `.csv`, `.tsv`, `.txt` | a header, then a row for each decision |
| `.parquet` | a row for each decision |
| a data frame of pandas, polars or pyarrow, a mapping of columns | by its columns |
| the feedback dictionary of obp | by n_rounds, n_actions, action and reward |

Errors name the first row that offends: see evaluation/log.py.
"""

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from unfog._frames import read_parquet
from unfog._io import check_file
from unfog._table import names_of, number_rows
from unfog.evaluation import log as logs
from unfog.evaluation.log import DecisionLog
from unfog.evaluation.readers import live, ndjson, obp, table
from unfog.evaluation.readers.live import Opener, ReaderOptions
from unfog.evaluation.readers.obp import to_obp
from unfog.evaluation.readers.table import Columns
from unfog.validation import InputError, check_keywords, display, positive

__all__ = ["Columns", "Opener", "read", "to_obp"]

TABLES, LINES, STORES = (".csv", ".tsv", ".txt"), (".ndjson", ".jsonl", ".json"), (".unfog",)
PARQUET = (".parquet",)
ENDINGS = ", ".join(TABLES + PARQUET + LINES + STORES)
ANY = (
    "a live store or problem; a path to its file, to an export (.ndjson), to dsjson (.json), to a .csv or"
    " .parquet; a data frame or a mapping of columns; the feedback dictionary of obp"
)


@check_keywords
def read(
    log: Any,
    *,
    columns: Columns | Mapping[str, Any] | str | PathLike[str] | None = None,
    problem: str | None = None,
    arms: Sequence[str] | None = None,
    coordinates: Sequence[str] | None = None,
    probability: float | None = None,
    opener: Opener | None = None,
) -> DecisionLog:
    """The log, checked.

    `columns` say which column of a table is what: `Columns`, a mapping, or a path to a file of TOML.
    `problem` names one of several problems of a store. `arms` lists all arms in their order, also those never
    drawn; `coordinates` names those of the context. `probability` is a number where all arms were drawn
    evenly and the log does not say so. `opener` opens the file of a store. What does not concern the log is
    refused.
    """
    options = ReaderOptions(
        _read_columns(columns),
        problem,
        None if arms is None else _check_names("arms", arms),
        None if coordinates is None else _check_names("coordinates", coordinates),
        None if probability is None else positive("probability", probability),
        opener,
    )
    return _read_path(Path(log), options) if isinstance(log, str | PathLike) else _read_object(log, options)


def _read_object(log: Any, options: ReaderOptions) -> DecisionLog:
    if isinstance(log, DecisionLog):
        options.only("a log that was read")
        return logs.check_log(log, number_rows(log.rounds))
    if isinstance(log, Mapping) and log.keys() >= obp.MARKS:
        options.only("feedback of obp", "arms", "coordinates", "probability")
        return obp.read(log, options.arms, options.coordinates, options.probability)
    if names_of(log) is not None:
        options.only("a table", *table.TAKES)
        return table.read_table(log, options.of_table, options.arms, options.coordinates, type(log).__name__)
    if isinstance(log, live.Store):
        options.only("a live store", *live.TAKES)
        return live.read_store(log, options.problem, options.arms)
    if isinstance(log, live.Problem):
        options.only("a live problem", *live.TAKES)
        return live.read(log.events(), options.problem, options.arms)
    raise InputError("log", display(log), ANY)


def _read_path(path: Path, options: ReaderOptions) -> DecisionLog:
    check_file("log", path, ANY)
    ending = path.suffix.lower()
    if ending in TABLES:
        options.only(path.name, *table.TAKES)
        return table.read_csv(path, options.of_table, options.arms, options.coordinates)
    if ending in PARQUET:
        options.only(path.name, *table.TAKES)
        frame = read_parquet("log", path)
        return table.read_table(frame, options.of_table, options.arms, options.coordinates, path.name)
    if ending in LINES:
        return ndjson.read_lines(path, options)
    if ending not in STORES:
        raise InputError("log", f"{path.name}", f"a name that ends in {ENDINGS}")
    options.only(path.name, *live.TAKES)
    if options.opener is None:
        raise InputError("log", path.name, "a store that is open: unfog.live.open(path)")
    with options.opener(path) as store:
        return live.read_store(store, options.problem, options.arms)._replace(source=path.name)


def _read_columns(columns: Any) -> Columns | None:
    if isinstance(columns, str | PathLike):
        return table.from_toml(Path(columns))
    if isinstance(columns, Mapping):
        return table.from_mapping(columns)
    if columns is None or isinstance(columns, Columns):
        return columns
    raise InputError("columns", display(columns), "Columns(…), a mapping, or a path to a file of TOML")


def _check_names(field: str, names: Sequence[str]) -> list[str]:
    """Check a list of names, which must differ, and return it as text."""
    try:
        texts = [] if isinstance(names, str | bytes) else [str(name) for name in names]
    except (TypeError, ValueError, RecursionError):  # it is no list, or of what cannot be written
        texts = []
    if not texts or len(set(texts)) < len(texts):
        raise InputError(field, display(names), "a list of names, each once")
    return texts
