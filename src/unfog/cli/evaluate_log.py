"""What the options of `unfog evaluate` say of a log: its columns, its probabilities, its channel."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

CHANNEL = (
    '{"context_mean": [0], "context_cov": [[1]], "noise_cov": [[0.5]], "bias_cov": [[0.1]], "bias": [0]}'
)


def listed(text: str | Sequence[str] | None) -> list[str] | None:
    """Names between commas; of an option that was given several times, all."""
    words = [text] if isinstance(text, str) else text
    return (
        None if words is None else [one.strip() for word in words for one in word.split(",") if one.strip()]
    )


def probability_of(text: str | None) -> dict[str, Any]:
    """A number, or the name of a column."""
    try:
        return {} if text is None else {"probability": float(text)}
    except ValueError:
        return {"column": text}


def reading(log: Path, file: Path | None, fields: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """How to read the log: columns of a table; of dsjson, which of its numbers are the context."""
    from unfog import _io
    from unfog.evaluation.readers import TABLES
    from unfog.evaluation.readers.table import Columns, from_toml
    from unfog.validation import InputError

    named = {name: value for name, value in fields.items() if value is not None}
    if (column := given.pop("column", None)) is not None:
        named["probability"] = column
    if log.suffix.lower() in TABLES:
        named |= {name: listed(named[name]) for name in ("context",) if name in named}
        named |= {"true": _true(named["true"])} if "true" in named else {}
        start = vars(from_toml(file)) if file is not None else {}
        return {**given, "columns": Columns(**{**start, **named})}
    if _io.is_missing(log):  # which is refused by whoever reads it
        return given
    if file is not None:
        named["columns"] = str(file)
    coordinates = listed(named.pop("context", None))
    for name, value in named.items():
        raise InputError(
            name, value, f"nothing, for {log.name}: only tables have columns ({', '.join(TABLES)})"
        )
    return {**given, "coordinates": coordinates}


def _true(text: str) -> list[str] | dict[str, str]:
    """Columns of truths: in order, or each with the column of the context that it belongs to."""
    names = listed(text) or []
    if not all("=" in name for name in names):
        return names
    return {name.split("=", 1)[0].strip(): name.split("=", 1)[1].strip() for name in names}


def told_channel(path: Path | None) -> dict[str, Any] | None:
    """What a file says of the noise."""
    from unfog import _io
    from unfog.cli.live.common import parsed
    from unfog.validation import InputError

    if path is None:
        return None
    allowed = "a file of TOML or JSON"
    if path.suffix == ".toml":
        return _io.toml("channel", path, allowed)
    text = _io.text("channel", path, allowed, _io.MOST_BYTES)
    found = parsed("channel", text, CHANNEL)
    if not isinstance(found, dict):
        raise InputError("channel", text, f"a JSON object such as {CHANNEL}")
    return found
