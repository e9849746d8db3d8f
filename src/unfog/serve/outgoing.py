"""What callers of `unfog.live` may give, as JSON has it: arrays, times, channels, agents of the catalogue."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from math import isfinite
from typing import Any
from urllib.parse import quote

import numpy as np

from unfog import validation
from unfog.channel.channel import Channel
from unfog.channel.knowledge import Knowledge
from unfog.live import terms as live_terms
from unfog.live.asking import ASKED
from unfog.live.errors import Unknown
from unfog.serve import wording
from unfog.validation import InputError, shown


def address(name: str) -> str:
    """Where a problem is."""
    name = validation.check_name("name", name)
    if not wording.is_addressable(name):
        raise Unknown("name", repr(name), wording.NAMED)
    return f"/v1/problems/{quote(name, safe='')}"


def terms(given: Mapping[str, Any]) -> dict[str, Any]:
    """The terms of a problem."""
    live_terms.refuse_unknown(given)
    return {name: plain(name, _term(name, value, given)) for name, value in given.items()}


def _term(name: str, value: Any, given: Mapping[str, Any]) -> Any:
    """What no JSON can say, in the words of a log."""
    if name == "channel" and isinstance(value, Channel):
        return value.written()
    if name == "channel" and isinstance(value, Knowledge):
        return live_terms.FIELDS[name](name, value, {"context": given.get("context") or ()})
    if name in ("agent", "features") and not isinstance(value, str):
        return live_terms.FIELDS[name](name, value, given)
    return value


def asked(given: Mapping[str, Any], field: str = "") -> dict[str, Any]:
    """What a decision is asked for with; what is None is left out."""
    for name in given:
        if name not in ASKED:
            raise InputError(f"{field}{name}", "no such field", ", ".join(ASKED))
    return {
        name: plain(f"{field}{name}", value)
        for name, value in given.items()
        if value is not None or name == "context"
    }


def plain(field: str, value: Any) -> Any:
    """Numbers, texts, lists and mappings; what JSON cannot say is refused."""
    if value is None or isinstance(value, bool | np.bool_):
        return None if value is None else bool(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return _finite(field, float(value))
    if isinstance(value, datetime | timedelta):
        return _time(field, value)
    if isinstance(value, Mapping):
        return {_name(field, name): plain(f"{field}.{name}", one) for name, one in value.items()}
    return [plain(f"{field}[{i}]", one) for i, one in enumerate(_listed(field, value))]


def _finite(field: str, value: float) -> float:
    if not isfinite(value):
        raise InputError(field, value, "a finite number")
    return value


def _time(field: str, value: datetime | timedelta) -> float:
    if isinstance(value, timedelta):
        return value.total_seconds()
    if value.tzinfo is None:
        allowed = "a number, or a datetime with its time zone"
        raise InputError(field, f"{value.isoformat()} has no time zone", allowed)
    return value.timestamp()


def _name(field: str, name: object) -> str:
    if not isinstance(name, str):
        raise InputError(field, f"the name {shown(name)}", "names that are text")
    return str.__str__(name)


def _listed(field: str, value: Any) -> list[Any]:
    allowed = "numbers, text, lists and mappings of them"
    if isinstance(value, np.ndarray):
        value = value.tolist()
    return validation.as_list(field, value, allowed)
