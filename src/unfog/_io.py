"""Files read whole or refused in one line, and files that appear whole or not at all.

What a user names may be anything. A pipe or a device may keep whoever opens it waiting, or never end: only
ordinary files are opened.

A sealed file is JSON whose last entry, `sha256`, is the hash of the rest as we write it. It is whole where
writing what was read gives the same bytes again: no damage passes, not even one that changes no value.

A draft is a file that is not whole yet; when it is, it gets its name. Each draft is a file of its own,
however many are written at a time.
"""

import errno
import hashlib
import json
import os
import secrets
import shutil
import stat
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from unfog.validation import InputError, nearest, one_line

MOST_BYTES = 1_000_000  # of a file of TOML: tens of thousands of numbers
SEAL = "sha256"
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EIO)  # trouble of the disk, not with what was asked for
PRIVATE = 0o600  # of a file that is its owner's alone: a store holds contexts of people
NO_LINKS = (errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK)


class DamagedError(ValueError):
    """A file that is not as it was written, or something else in its place."""


class TooLargeError(DamagedError):
    """A file of more bytes than it may have."""

    def __init__(self, path: str | Path, most: int) -> None:
        """Say which file."""
        super().__init__(f"{str(path)!r} is too large")
        self.most = most


def reason(error: Exception) -> str:
    """Why a file could not be read or made, in a few words."""
    return one_line(error.strerror or str(error) if isinstance(error, OSError) else str(error))


def is_file(path: str | Path) -> bool:
    """Whether there is an ordinary file of this name; no name is too long, or too odd, to be asked about."""
    try:
        return Path(path).is_file()
    except (OSError, ValueError):
        return False


def is_folder(path: str | Path) -> bool:
    """Whether there is a folder of this name, likewise."""
    try:
        return Path(path).is_dir()
    except (OSError, ValueError):
        return False


def is_missing(path: str | Path) -> bool:
    """Whether there is nothing at all of this name, likewise."""
    try:
        return not os.path.lexists(path)
    except ValueError:
        return False


def near(path: str | Path) -> str:
    """What there is that is called most like this, its folder likewise; empty where nothing is."""
    wanted = Path(path)
    try:
        folder = wanted.parent if wanted.parent.is_dir() else Path(near(wanted.parent) or "\0")
        names = os.listdir(folder)
    except (OSError, ValueError):
        return ""
    name = wanted.name if wanted.name in names else _alike(wanted, names)
    return str(folder / name) if name else ""


def _alike(wanted: Path, names: list[str]) -> str:
    """The nearest name; of files of one kind the ending does not count, which all of them share."""
    same = [name for name in names if Path(name).suffix == wanted.suffix]
    stem = nearest(wanted.stem, [Path(name).stem for name in same])
    if stem:
        return stem + wanted.suffix
    kind = nearest(wanted.suffix, [Path(name).suffix for name in names])
    return nearest(wanted.name, [name for name in names if Path(name).suffix == kind])


def check(path: str | Path, most: int | None = None) -> None:
    """Complain of what is no ordinary file, without opening it, and of one of more than `most` bytes."""
    found = os.stat(path)
    if not stat.S_ISREG(found.st_mode):
        kind = "a folder" if stat.S_ISDIR(found.st_mode) else "no ordinary file"
        raise DamagedError(f"{str(path)!r} is {kind}")
    if most is not None and found.st_size > most:
        raise TooLargeError(path, most)


def content_of(path: str | Path, most: int | None = None) -> bytes:
    """The bytes of an ordinary file; of one that has more than `most` by now, no more are read."""
    check(path, most)
    with open(path, "rb") as file:
        data = file.read(-1 if most is None else most + 1)
    if most is not None and len(data) > most:
        raise TooLargeError(path, most)
    return data


@contextmanager
def _refusing(field: str, path: str | Path, allowed: str) -> Iterator[None]:
    """Whatever is wrong with a file that a user named is said in one line."""
    try:
        yield
    except FileNotFoundError:
        raise InputError(field, f"there is no file {str(path)!r}", allowed, near(path)) from None
    except TooLargeError as error:
        raise InputError(field, str(error), f"{allowed} of at most {error.most:,} bytes") from None
    except DamagedError as error:
        raise InputError(field, str(error), allowed) from None
    except (OSError, ValueError) as error:
        raise InputError(field, f"{str(path)!r} cannot be read ({reason(error)})", allowed) from None


def refuse_others(field: str, path: str | Path, allowed: str, most: int | None = None) -> None:
    """Refuse a file that a user named and that `check` complains of."""
    with _refusing(field, path, allowed):
        check(path, most)


def content(field: str, path: str | Path, allowed: str, most: int | None = None) -> bytes:
    """The bytes of a file that a user named, or a refusal."""
    with _refusing(field, path, allowed):
        return content_of(path, most)


def text(field: str, path: str | Path, allowed: str, most: int | None = None) -> str:
    """The text of an ordinary file in UTF-8."""
    try:
        return content(field, path, allowed, most).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(field, f"{str(path)!r} cannot be read ({error})", f"{allowed} in UTF-8") from None


def toml(field: str, path: str | Path, allowed: str = "a TOML file") -> dict[str, Any]:
    """What a file of TOML says."""
    words = text(field, path, allowed, MOST_BYTES)
    try:
        return tomllib.loads(words)
    except (ValueError, RecursionError) as error:
        raise InputError(field, f"{str(path)!r} is not TOML ({error})", allowed) from None


@contextmanager
def writing(path: str | Path) -> Iterator[None]:
    """An error of the system in here names this file, where it names none: a full disk does not."""
    try:
        yield
    except OSError as error:
        if error.filename is not None or error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def write_atomically(path: Path, content: bytes | Iterable[bytes], mode: int = 0o666) -> None:
    """The file appears whole, or not at all. The user's mask limits `mode`, as it does for `open`."""
    with draft(path, mode) as temporary:
        with writing(path), open(temporary, "wb") as file:
            for part in [content] if isinstance(content, bytes) else content:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    sync_folder(path.parent)


@contextmanager
def draft(target: Path, mode: int = PRIVATE) -> Iterator[Path]:
    """An empty file beside the target, to be written and given its name; at the end it is gone."""
    path = target.with_name(f"{target.name}-{secrets.token_hex(8)}.tmp")
    try:
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, mode))
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(target)) from error
        yield path
    finally:
        path.unlink(missing_ok=True)


def appear(path: Path, target: Path) -> None:
    """Give a draft its name, for good; FileExistsError where that is taken by now."""
    with open(path, "rb+") as file:
        os.fsync(file.fileno())
    try:
        os.link(path, target)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_RDWR, PRIVATE))  # so that nobody else has it
        os.replace(path, target)
    sync_folder(target.parent)


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


def json_bytes(data: Mapping[str, Any]) -> bytes:
    """JSON as we write it."""
    return (json.dumps(data, indent=2, allow_nan=False) + "\n").encode()


def digest(data: Mapping[str, Any]) -> str:
    """A hash of what is said, in whatever order."""
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def sealed(data: Mapping[str, Any]) -> bytes:
    """A file of these data with a hash of its own."""
    return json_bytes({**data, SEAL: hashlib.sha256(json_bytes(data)).hexdigest()})


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
