"""What may go wrong with a store: it could not do it, or what it was asked for does not fit what it holds."""

import errno
import sqlite3

from unfog.inputs import InputError

SENTENCES = {
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_IOERR: "the disk failed",
    sqlite3.SQLITE_CORRUPT: "the file is damaged",
    sqlite3.SQLITE_NOTADB: "it is no store of unfog",
    sqlite3.SQLITE_READONLY: "the file may not be written",
    sqlite3.SQLITE_CANTOPEN: "the file cannot be opened",
    sqlite3.SQLITE_PERM: "the file may not be opened",
    sqlite3.SQLITE_TOOBIG: "a text is too long",
    sqlite3.SQLITE_NOMEM: "there is not enough memory",
}

# What SQLite may raise: of a damaged file it quotes bytes that are no text, and its quoting then fails.
FAILURES = (sqlite3.Error, UnicodeError)


class StoreError(Exception):
    """The store could not do it: disk, damage, held, closed. The message is one sentence.

    Services write it to their logs: it names files, problems and rows, never a caller's values.
    """


class Held(StoreError):
    """Another process, or this one, holds the file."""


class Reserved(StoreError):
    """The log of the problem is being taken in: nothing else is done with it meanwhile."""


class Differs(StoreError):
    """A decision would come out otherwise today. Its words hold what was believed: no log is to have them."""


class Lost(StoreError):
    """Another process serves the problem by now: nothing can be written here any more."""

    def __init__(self, message: str, kept: int | None = None) -> None:
        """`kept`: the last row of those that were written here, where that could be asked."""
        super().__init__(message)
        self.kept = kept


class Elsewhere(StoreError):
    """Another process serves the problem, and can be reached."""

    def __init__(self, message: str, url: str) -> None:
        """`url`: where."""
        super().__init__(message)
        self.url = url


class Conflict(InputError):
    """The same key with another body, or a second, different reward."""


class Unknown(InputError):
    """There is no such decision, problem or unit."""


class Gone(InputError):
    """A decision that is closed for this."""


class Stale(KeyError):
    """What was asked for is not remembered any more: look it up in the file."""


def reason(error: BaseException) -> str:
    """Why it failed, in plain words, with what SQLite or the system said of it."""
    if isinstance(error, StoreError):
        return str(error)
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return "the disk is full"
    if isinstance(error, sqlite3.Error):
        code = vars(error).get("sqlite_errorcode", 0) & 0xFF  # the low byte is the kind, the rest its detail
        said = f"SQLite says: {error}"
        return f"{SENTENCES[code]} ({said})" if code in SENTENCES else said
    if isinstance(error, UnicodeError):
        return "the file is damaged (what should be text is not)"
    if isinstance(error, Exception):
        return f"{type(error).__name__}: {error}"
    return "it was interrupted"


def is_busy(error: BaseException) -> bool:
    """Whether somebody else has the lock."""
    code = vars(error).get("sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
