"""Files read whole or refused in one line, and files that appear whole or not at all.

A path from a user may lead to anything. A pipe or a device may block whoever opens it, or never end: only
ordinary files are opened.

A sealed file is JSON whose last entry, `sha256`, is the hash of the rest as we write it. It is undamaged if
writing its data gives the same bytes again: so even damage that changes no value is found.

A draft is a temporary file, which is renamed when it is complete. Each draft is a file of its own, even if
several are written at the same time.
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
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EIO)  # failures of the disk, not of the request
PRIVATE = 0o600  # the mode of a file for its owner alone: a store holds contexts of people
NO_LINKS = (errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK)


class DamagedError(ValueError):
    """A file that was changed since it was written, or is not an ordinary file."""


class TooLargeError(DamagedError):
    """A file with more bytes than allowed."""

    def __init__(self, path: str | Path, most: int) -> None:
        """Say which file."""
        super().__init__(f"{str(path)!r} is too large")
        self.most = most


def reason(error: Exception) -> str:
    """Why a file could not be read or written, in a few words."""
    return one_line(error.strerror or str(error) if isinstance(error, OSError) else str(error))


def is_file(path: str | Path) -> bool:
    """Whether there is an ordinary file of this name; any name is accepted, however long or odd."""
    try:
        return Path(path).is_file()
    except (OSError, ValueError):
        return False


def is_folder(path: str | Path) -> bool:
    """Whether there is a folder of this name; likewise."""
    try:
        return Path(path).is_dir()
    except (OSError, ValueError):
        return False


def is_missing(path: str | Path) -> bool:
    """Whether there is nothing of this name; likewise."""
    try:
        return not os.path.lexists(path)
    except ValueError:
        return False


def near(path: str | Path) -> str:
    """The existing path whose name, and whose folder's name, is most similar; "" if there is none."""
    missing = Path(path)
    try:
        folder = missing.parent if missing.parent.is_dir() else Path(near(missing.parent) or "\0")
        names = os.listdir(folder)
    except (OSError, ValueError):
        return ""
    name = missing.name if missing.name in names else _nearest_name(missing, names)
    return str(folder / name) if name else ""


def _nearest_name(path: Path, names: list[str]) -> str:
    """The most similar name; among files with the same suffix, only stems are compared."""
    alike = [name for name in names if Path(name).suffix == path.suffix]
    stem = nearest(path.stem, [Path(name).stem for name in alike])
    if stem:
        return stem + path.suffix
    kind = nearest(path.suffix, [Path(name).suffix for name in names])
    return nearest(path.name, [name for name in names if Path(name).suffix == kind])


def check(path: str | Path, most: int | None = None) -> None:
    """Raise, without opening it, if a path is not an ordinary file or has more than `most` bytes."""
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        kind = "a folder" if stat.S_ISDIR(status.st_mode) else "no ordinary file"
        raise DamagedError(f"{str(path)!r} is {kind}")
    if most is not None and status.st_size > most:
        raise TooLargeError(path, most)


def content_of(path: str | Path, most: int | None = None) -> bytes:
    """Read an ordinary file; raise if it has more than `most` bytes, without reading the rest."""
    check(path, most)
    with open(path, "rb") as file:
        data = file.read(-1 if most is None else most + 1)
    if most is not None and len(data) > most:
        raise TooLargeError(path, most)
    return data


@contextmanager
def _translate_errors(field: str, path: str | Path, allowed: str) -> Iterator[None]:
    """Turn errors about a file that a user named into an InputError."""
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


def check_file(field: str, path: str | Path, allowed: str, most: int | None = None) -> None:
    """Raise an InputError if `check` refuses a file that a user named."""
    with _translate_errors(field, path, allowed):
        check(path, most)


def content(field: str, path: str | Path, allowed: str, most: int | None = None) -> bytes:
    """Read a file that a user named, or raise an InputError."""
    with _translate_errors(field, path, allowed):
        return content_of(path, most)


def text(field: str, path: str | Path, allowed: str, most: int | None = None) -> str:
    """The text of an ordinary file in UTF-8."""
    try:
        return content(field, path, allowed, most).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(field, f"{str(path)!r} cannot be read ({error})", f"{allowed} in UTF-8") from None


def toml(field: str, path: str | Path, allowed: str = "a TOML file") -> dict[str, Any]:
    """Read a TOML file that a user named."""
    words = text(field, path, allowed, MOST_BYTES)
    try:
        return tomllib.loads(words)
    except (ValueError, RecursionError) as error:
        raise InputError(field, f"{str(path)!r} is not TOML ({error})", allowed) from None


@contextmanager
def writing(path: str | Path) -> Iterator[None]:
    """Add this file's name to system errors without one, such as that of a full disk."""
    try:
        yield
    except OSError as error:
        if error.filename is not None or error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def write_atomically(path: Path, content: bytes | Iterable[bytes], mode: int = 0o666) -> None:
    """Write a file completely or not at all. The user's umask limits `mode`, as it does for `open`."""
    with temporary_file(path, mode) as temporary:
        with writing(path), open(temporary, "wb") as file:
            for part in [content] if isinstance(content, bytes) else content:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    sync_folder(path.parent)


@contextmanager
def temporary_file(target: Path, mode: int = PRIVATE) -> Iterator[Path]:
    """A temporary file beside the target, to be written and renamed; it is removed at the end."""
    path = target.with_name(f"{target.name}-{secrets.token_hex(8)}.tmp")
    try:
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, mode))
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(target)) from error
        yield path
    finally:
        path.unlink(missing_ok=True)


def publish(path: Path, target: Path) -> None:
    """Rename a draft durably; FileExistsError if the name is taken by now."""
    with open(path, "rb+") as file:
        os.fsync(file.fileno())
    try:
        os.link(path, target)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_RDWR, PRIVATE))  # reserves the name
        os.replace(path, target)
    sync_folder(target.parent)


def sync_folder(folder: Path) -> None:
    """Make a rename durable, on systems where a folder can be opened and synced."""
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
    """Remove a file, a link or a folder."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def json_bytes(data: Mapping[str, Any]) -> bytes:
    """JSON as we write it."""
    return (json.dumps(data, indent=2, allow_nan=False) + "\n").encode()


def digest(data: Mapping[str, Any]) -> str:
    """A hash of the data, whatever the order of keys."""
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def seal(data: Mapping[str, Any]) -> bytes:
    """The bytes of a file with these data and their hash."""
    return json_bytes({**data, SEAL: hashlib.sha256(json_bytes(data)).hexdigest()})


def unseal(content: bytes) -> dict[str, Any]:
    """The data of a sealed file; raises if it is damaged."""
    data = parse_json(content)
    data.pop(SEAL, None)
    try:
        is_whole = seal(data) == content
    except ValueError:  # NaN, which we never write
        is_whole = False
    if not is_whole:
        raise DamagedError("its hash differs")
    return data


def parse_json(content: bytes) -> dict[str, Any]:
    """The object in a JSON file."""
    try:
        data = json.loads(content)
    except (ValueError, RecursionError):
        raise DamagedError("it is no JSON") from None
    if not isinstance(data, dict):
        raise DamagedError("it is no table")
    return data
