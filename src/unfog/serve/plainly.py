"""What a field may be, in plain words: those of pydantic are Python's, and callers write JSON."""

from collections.abc import Mapping
from typing import Any

WORDS = {
    "missing": "a value: it must be given",
    "model_type": "an object",
    "dict_type": "an object",
    "list_type": "a list",
    "string_type": "text",
    "bool_type": "true or false",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "too_short": "{min_length} of them, or more",
    "too_long": "at most {max_length} of them",
    "string_too_short": "text that is not empty",
    "string_too_long": "text of at most {max_length} characters",
    "string_pattern_mismatch": "letters, digits, dots, - and _, at most 100, the first a letter or a digit",
    "greater_than": "a number above {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "less_than_equal": "at most {le:g}",
}


def allowed(kind: str, message: str, bounds: Mapping[str, Any]) -> str:
    """By the kind of a complaint; what there are no words for is told as it came."""
    found = WORDS.get(kind)
    return message[:1].lower() + message[1:] if found is None else found.format(**bounds)
