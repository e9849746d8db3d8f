"""Files that appear whole or not at all, and say themselves whether they still are.

A sealed file is JSON whose last entry, `sha256`, is the hash of the rest as we write it. One is whole where
writing what was read gives the same bytes again: no damage passes, not even one that changes no value.
"""

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from unfog.files import DamagedError, writing

SEAL = "sha256"
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EIO)  # trouble of the disk, not with what was asked for


def write_atomically(path: Path, content: bytes) -> None:
    """The file appears whole, or not at all."""
    temporary = path.with_name(path.name + ".tmp")
    try:
        with writing(path), open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:  # where a disk is full, what is of no use takes no room
        with suppress(OSError):
            os.unlink(temporary)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make a rename durable; not every system lets a folder be opened, or written out by itself."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        with writing(folder):
            os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(handle)


def remove(path: Path) -> None:
    """A file, or whatever is in its place."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def text(data: Mapping[str, Any]) -> bytes:
    """JSON as we write it."""
    return (json.dumps(data, indent=2, allow_nan=False) + "\n").encode()


def digest(data: Mapping[str, Any]) -> str:
    """A hash of what is said, in whatever order."""
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def sealed(data: Mapping[str, Any]) -> bytes:
    """A file of these data with a hash of its own."""
    return text({**data, SEAL: hashlib.sha256(text(data)).hexdigest()})


def unsealed(content: bytes) -> dict[str, Any]:
    """The data of a sealed file, whole or refused."""
    found = parsed(content)
    found.pop(SEAL, None)
    try:
        whole = sealed(found) == content
    except ValueError:  # NaN, which we never write
        whole = False
    if not whole:
        raise DamagedError("its hash differs")
    return found


def parsed(content: bytes) -> dict[str, Any]:
    """The table that a JSON file holds."""
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        raise DamagedError("it is no JSON") from None
    if not isinstance(found, dict):
        raise DamagedError("it is no table")
    return found
