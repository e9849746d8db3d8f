"""Connections whose statements fail when they are told to: before they are done, or after."""

import sqlite3
from collections.abc import Callable, Container
from pathlib import Path
from typing import Any

from unfog.live.sqlite import INSERT


class Disk:
    """Counts what is said to SQLite over all its connections; the calls in `bad` fail."""

    def __init__(self) -> None:
        self.calls = 0
        self.bad: Container[int] = ()
        self.late = False  # done, and then said to have failed
        self.error: Callable[[], BaseException] = failure
        self.at_commit: Callable[[sqlite3.Connection], None] | None = None

    def connect(self, path: Path) -> sqlite3.Connection:
        def act() -> Connection:
            return sqlite3.connect(
                path, timeout=0.1, isolation_level=None, check_same_thread=False, factory=Connection
            )

        connection: Connection = self.do(act)
        connection.disk = self
        return connection

    def do(self, act: Callable[[], Any]) -> Any:
        self.calls += 1
        bad = self.calls in self.bad
        if bad and not self.late:
            raise self.error()
        done = act()
        if bad:
            raise self.error()
        return done

    def fail(self, calls: Container[int], late: bool = False) -> None:
        """Let these calls fail, counted from now on."""
        self.calls, self.bad, self.late = 0, calls, late


class Connection(sqlite3.Connection):
    """One that fails with its disk."""

    disk: Disk

    def execute(self, sql: str, parameters: Any = ()) -> sqlite3.Cursor:
        alone = sql == INSERT and not self.in_transaction  # a transaction by itself
        if (sql == "COMMIT" or alone) and self.disk.at_commit is not None:
            self.disk.at_commit(self)
        return self.disk.do(lambda: sqlite3.Connection.execute(self, sql, parameters))

    def executemany(self, sql: str, parameters: Any) -> sqlite3.Cursor:
        return self.disk.do(lambda: sqlite3.Connection.executemany(self, sql, parameters))


def failure() -> sqlite3.Error:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR
    return error
