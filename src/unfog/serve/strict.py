"""JSON read strictly: no NaN, no number without an end, no name twice, nothing nested without measure.

Python reads NaN, 1e999 and doubled names without a word, and so would whoever trusts it.
"""

import json
from collections import Counter
from math import isfinite
from typing import Any

from unfog.validation import shown

DEEPEST = 16  # brackets within brackets: a matrix in a channel in a problem takes five


class Malformed(ValueError):
    """It is no JSON, or not as it may come; the message is one sentence."""


def _float(text: str) -> float:
    found = float(text)
    if not isfinite(found):
        raise Malformed(f"{text} is too large for a number")
    return found


def _constant(text: str) -> float:
    raise Malformed(f"{text} is no number of JSON")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        times = Counter(name for name, _ in pairs)
        twice = next(name for name, number in times.items() if number > 1)
        raise Malformed(f"the name {shown(twice)[:80]} stands twice")
    return found


_decode = json.JSONDecoder(parse_float=_float, parse_constant=_constant, object_pairs_hook=_distinct).decode


def read(body: bytes) -> Any:
    """What a body says."""
    try:
        found = _decode(body.decode())
    except Malformed:
        raise
    except UnicodeDecodeError as error:
        raise Malformed(f"it is not UTF-8 at byte {error.start}") from None
    except RecursionError:
        raise Malformed(f"it is nested more than {DEEPEST} deep") from None
    except ValueError as error:
        raise Malformed(f"it is not JSON: {error}") from None
    if body.count(b"[") + body.count(b"{") > DEEPEST and _depth(found) > DEEPEST:
        raise Malformed(f"it is nested more than {DEEPEST} deep")
    return found


def _depth(value: Any, above: int = 0) -> int:
    """How deep it is nested; counted no further than needed."""
    if above > DEEPEST or not isinstance(value, dict | list):
        return above
    inner = value.values() if isinstance(value, dict) else value
    return max((_depth(one, above + 1) for one in inner), default=above + 1)
