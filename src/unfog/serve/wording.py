"""The words of a store as they are told over HTTP: without folders, and as JSON has them.

Where files are is the operator's business; the log of the service has the whole words. What is None in Python
is null in JSON; whoever asks from Python reads None again.
"""

import re
from collections.abc import Iterable
from pathlib import Path

NAMED = "a name without a slash, and neither . nor ..: it is part of an address"
FOLDERS = re.compile(r"(?<![^\s'\"(])/(?:[^\s/'\"]+/)+")  # of a path: what is before its name
NONE, NULL = (re.compile(rf"^{word}\b|(?<=, or ){word}\b|(?<=; ){word}\b") for word in ("None", "null"))
DIGITS = re.compile(r"(?:it is not JSON: )?Exceeds the limit \((\d+) digits\).*")


def is_addressable(name: str) -> bool:
    """Whether an address can have a name as one of its parts."""
    return "/" not in name and name not in (".", "..")


def told(words: str, folders: Iterable[Path] = ()) -> str:
    """Files by their names alone; `folders` are those that are known, which may have spaces in them."""
    for folder in sorted(map(str, folders), key=len, reverse=True):
        words = words.replace(f"{folder}/", "")
        words = re.sub(rf"{re.escape(folder)}(?![^\s'\":;,])", "its folder", words)
    return FOLDERS.sub("", words)


def as_json(allowed: str) -> str:
    """What is allowed, for who writes JSON."""
    return NONE.sub("null", allowed)


def as_python(allowed: str) -> str:
    """Likewise, for who writes Python."""
    return NULL.sub("None", allowed)


def of_json(words: str) -> str:
    """Why JSON cannot be read, without what Python would have done about it."""
    return DIGITS.sub(r"a number has more than \1 digits", words)
