"""Code of the caller's own, by module:name, and its fingerprint.

A log holds no code. What a feature map or an agent of one's own computes must be what it was when the log was
written, or a replay would be another story: so the source of its module is remembered by its SHA-256.
"""

import inspect
import sys
from hashlib import sha256
from typing import Any

from unfog.agents.catalogue import EVERY
from unfog.validation import REFERENCE, InputError, imported, shown


def path_of(field: str, value: object) -> str:
    """A name, or the module:name of something importable that is given itself."""
    if isinstance(value, str):
        return value
    module, name = _home(value)
    known = sys.modules.get(module)
    if module == "__main__" or known is None or vars(known).get(name) is not value:
        allowed = "a name, or something that can be imported: module:name"
        raise InputError(field, shown(value), allowed)
    return f"{module}:{name}"


def _home(value: Any) -> tuple[str, str]:
    """Where it says that it was defined; nowhere, if it does not."""
    try:
        return str(value.__module__), str(value.__qualname__)
    except AttributeError:
        return "", ""


def fingerprint(field: str, path: str) -> str | None:
    """The SHA-256 of the source of a module:name; None for names of our own."""
    home = path.partition(":")[0]
    if not REFERENCE.fullmatch(path) or home in EVERY:
        return None
    imported(field, path, "a name, or module:name of something that can be imported")
    try:
        text = inspect.getsource(sys.modules[home])
    except (OSError, TypeError):
        return "no source"
    return sha256(text.encode()).hexdigest()


def refuse_changed(field: str, path: str, was: object) -> None:
    """Complain of code of the caller's own that is not what it was; names of our own have no fingerprint."""
    if was is not None and fingerprint(field, path) != was:
        raise InputError(field, f"{path} has changed", "the code with which it was made")
