"""Which classes of tuples may be written and read: NamedTuples, by the module that holds them."""

import sys
from functools import lru_cache
from importlib import import_module
from typing import Any

from unfog.inputs import InputError

HOUSE = "unfog."  # classes of its modules may be read
ALLOWED = (
    "None, True, False, whole numbers, floats, text, lists, tuples, NamedTuples that a module holds, "
    "mappings with text for keys, NumPy arrays and numbers of kind b, i, u or f"
)


class DecodeError(ValueError):
    """Bytes that are damaged, or not of values that may be read."""


def name_of(kind: type[Any]) -> str:
    """As it is written."""
    return f"{kind.__module__}:{kind.__qualname__}"


def fields_of(kind: type[Any]) -> tuple[str, ...]:
    """Of a NamedTuple; nothing of what is none."""
    found = getattr(kind, "_fields", ())
    return found if issubclass(kind, tuple) and isinstance(found, tuple) else ()


@lru_cache(maxsize=1024)
def writable(kind: type[Any]) -> type[Any]:
    """A class of tuples that will be found again by its name."""
    if not (fields_of(kind) and _found(kind.__module__, kind.__qualname__) is kind):
        raise InputError("value", f"a tuple of the class {name_of(kind)}", ALLOWED)
    return kind


@lru_cache(maxsize=1024)
def readable(name: str, fields: tuple[str, ...], allowed: tuple[str, ...]) -> type[Any]:
    """The class of that name, if it may be read and is as it was."""
    module, _, path = name.partition(":")
    if not module.startswith(HOUSE) and module not in allowed:
        raise DecodeError(f"{name}: classes of the module {module!r} are not allowed")
    try:
        import_module(module)
    except ImportError as error:
        raise DecodeError(f"{name}: {error}") from error
    found = _found(module, path)
    if not (isinstance(found, type) and fields_of(found)):
        raise DecodeError(f"{name}: there is no NamedTuple of that name")
    if fields_of(found) != fields:
        raise DecodeError(f"{name}: its fields were {fields}, and are {fields_of(found)}")
    return found


def _found(module: str, path: str) -> Any:
    """What a module that is loaded holds under a dotted name, or None."""
    found: Any = sys.modules.get(module)
    for name in path.split("."):
        found = vars(found).get(name) if isinstance(found, type(sys) | type) else None
    return found
