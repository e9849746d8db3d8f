"""The words of a store as they are told over HTTP: without the folders of this machine.

Where files are is the operator's business; the log of the service has the whole words.
"""

import re
from collections.abc import Iterable
from pathlib import Path

FOLDERS = re.compile(r"(?<![^\s'\"(])/(?:[^\s/'\"]+/)+")  # of a path: what is before its name


def told(words: str, folders: Iterable[Path] = ()) -> str:
    """Files by their names alone; `folders` are those that are known, which may have spaces in them."""
    for folder in sorted(map(str, folders), key=len, reverse=True):
        words = words.replace(f"{folder}/", "")
        words = re.sub(rf"{re.escape(folder)}(?![^\s'\":;,])", "its folder", words)
    return FOLDERS.sub("", words)
