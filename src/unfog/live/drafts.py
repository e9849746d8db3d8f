"""A file that is not whole yet, and how it gets its name: it is there whole, or not at all.

Each draft is a file of its own, however many are written at a time, and for its owner alone: a store holds
contexts of people. Its name says which process writes it, so that what a process that was killed has left is
found and removed by whoever writes the next one.
"""

import contextlib
import errno
import os
import re
import secrets
import time
from collections.abc import Iterator
from pathlib import Path

PRIVATE = 0o600
STILL = 60.0  # seconds: a draft that was written to since may be of a process that cannot be seen from here
NAME = re.compile(r".*-(\d+)-[0-9a-f]{16}-backup(-journal)?")
NO_LINKS = (errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK)
_open: set[str] = set()  # drafts of this process


@contextlib.contextmanager
def draft(target: Path) -> Iterator[Path]:
    """An empty file beside the target, for this call alone; at the end it is gone."""
    path = target.with_name(f"{target.name}-{os.getpid()}-{secrets.token_hex(8)}-backup")
    _open.add(path.name)
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, PRIVATE))
        yield path
    finally:
        for left in (path, path.with_name(f"{path.name}-journal")):
            with contextlib.suppress(OSError):
                left.unlink(missing_ok=True)
        _open.discard(path.name)


def appear(path: Path, target: Path) -> None:
    """Give a draft its name; FileExistsError where that is taken by now."""
    try:
        os.link(path, target)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_RDWR, PRIVATE))  # so that nobody else has it
        os.replace(path, target)


def sweep(folder: Path) -> None:
    """Remove drafts that nobody writes any more."""
    for path in folder.iterdir():
        found = NAME.fullmatch(path.name)
        if found is None or path.name.removesuffix("-journal") in _open or _runs(int(found[1])):
            continue
        with contextlib.suppress(OSError):  # it may be gone by now, or another user's
            if time.time() - path.stat().st_mtime > STILL:
                path.unlink()


def _runs(pid: int) -> bool:
    """Whether another process has this number; one of ours that is not open was another's before us."""
    if pid == os.getpid():
        return False
    if os.name == "nt":
        return True  # there to ask would be to end it
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True
