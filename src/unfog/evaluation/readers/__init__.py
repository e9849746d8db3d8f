"""Reads a log for evaluation: a live store, CSV or a data frame (`table`), JSON lines, OBP's feedback.

    read("walks.csv", columns=Columns(context=["steps", "sleep"], arm="message", reward="walked"))

| what | how it is known |
|---|---|
| a live store, one of its problems, or of a service | by what it offers: names and events |
| `.ndjson`, `.jsonl`, `.json` | an export of `unfog live`, or dsjson: by the fields of its first line |
| `.csv`, `.tsv`, `.txt` | a header, then a row for each decision |
| a data frame, a mapping of columns | by its columns |
| the feedback dictionary of obp | by n_rounds, n_actions, action and reward |

What is wrong is refused with the first row that offends: evaluation/log.py.
"""

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from unfog._io import refuse_others
from unfog._table import counted, names_of
from unfog.evaluation import log as logs
from unfog.evaluation.log import Log
from unfog.evaluation.readers import live, ndjson, obp, table
from unfog.evaluation.readers.live import Asked, Opener
from unfog.evaluation.readers.obp import to_obp
from unfog.evaluation.readers.table import Columns
from unfog.validation import InputError, positive, shown

__all__ = ["Columns", "Opener", "read", "to_obp"]

TABLES, LINES, STORES = (".csv", ".tsv", ".txt"), (".ndjson", ".jsonl", ".json"), (".unfog",)
ANY = (
    "a live store or problem; a path to its file, to an export (.ndjson), to dsjson (.json) or to a .csv; a "
    "data frame or a mapping of columns; the feedback dictionary of obp"
)


def read(
    log: Any,
    *,
    columns: Columns | Mapping[str, Any] | str | PathLike[str] | None = None,
    problem: str | None = None,
    arms: Sequence[str] | None = None,
    coordinates: Sequence[str] | None = None,
    probability: float | None = None,
    opener: Opener | None = None,
) -> Log:
    """The log, checked.

    `columns` say which column of a table is what: `Columns`, a mapping, or a path to a file of TOML.
    `problem` names one of several problems of a store. `arms` lists all arms in their order, also those never
    drawn; `coordinates` names those of the context. `probability` is a number where all arms were drawn
    evenly and the log does not say so. `opener` opens the file of a store. What does not concern the log is
    refused.
    """
    asked = Asked(
        _columns(columns),
        problem,
        None if arms is None else _names("arms", arms),
        None if coordinates is None else _names("coordinates", coordinates),
        None if probability is None else positive("probability", probability),
        opener,
    )
    return _of_path(Path(log), asked) if isinstance(log, str | PathLike) else _of_object(log, asked)


def _of_object(log: Any, asked: Asked) -> Log:
    if isinstance(log, Log):
        asked.only("a log that was read")
        return logs.check_log(log, counted(log.rounds))
    if isinstance(log, Mapping) and log.keys() >= obp.MARKS:
        asked.only("feedback of obp", "arms", "coordinates", "probability")
        return obp.read(log, asked.arms, asked.coordinates, asked.probability)
    if names_of(log) is not None:
        asked.only("a table", *table.TAKES)
        return table.read_table(log, asked.of_table, asked.arms, asked.coordinates, type(log).__name__)
    if isinstance(log, live.Store):
        asked.only("a live store", *live.TAKES)
        return live.of_store(log, asked.problem, asked.arms)
    if isinstance(log, live.Problem):
        asked.only("a live problem", *live.TAKES)
        return live.read(log.events(), asked.problem, asked.arms)
    raise InputError("log", shown(log), ANY)


def _of_path(path: Path, asked: Asked) -> Log:
    refuse_others("log", path, ANY)
    ending = path.suffix.lower()
    if ending in TABLES:
        asked.only(path.name, *table.TAKES)
        return table.read_csv(path, asked.of_table, asked.arms, asked.coordinates)
    if ending in LINES:
        return ndjson.read_lines(path, asked)
    if ending not in STORES:
        raise InputError("log", f"{path.name}", f"a name that ends in {', '.join(TABLES + LINES + STORES)}")
    asked.only(path.name, *live.TAKES)
    if asked.opener is None:
        raise InputError("log", path.name, "a store that is open: unfog.live.open(path)")
    with asked.opener(path) as store:
        return live.of_store(store, asked.problem, asked.arms)._replace(source=path.name)


def _columns(told: Any) -> Columns | None:
    if isinstance(told, str | PathLike):
        return table.from_toml(Path(told))
    if isinstance(told, Mapping):
        return table.from_mapping(told)
    if told is None or isinstance(told, Columns):
        return told
    raise InputError("columns", shown(told), "Columns(…), a mapping, or a path to a file of TOML")


def _names(field: str, told: Sequence[str]) -> list[str]:
    """Names, each once."""
    try:
        found = [] if isinstance(told, str | bytes) else [str(one) for one in told]
    except (TypeError, ValueError, RecursionError):  # it is no list, or of what cannot be written
        found = []
    if not found or len(set(found)) < len(found):
        raise InputError(field, shown(told), "a list of names, each once")
    return found
