"""The file of a log and its one connection: opened, opened again, given back, left to a parent."""

import contextlib
import ctypes
import sqlite3
from pathlib import Path

from unfog.live import opening, table
from unfog.live.errors import FAILURES, StoreError, reason
from unfog.live.holder import Holder


class File:
    """A path that this process holds. Whoever uses its connection does so alone."""

    def __init__(self, path: Path, sync: str, connect: opening.Connect) -> None:
        self.path = path
        self.holder = Holder(path)
        self.connection: sqlite3.Connection | None = None
        self._sync, self._connect = sync, connect
        self._log_path = path.with_name(f"{path.name}-wal")
        self._which: opening.Identity | None = None  # the file, from its first opening on
        self._log: opening.Identity | None = None  # its write-ahead log

    def open(self) -> table.Contents:
        """Open it, and what it holds."""
        try:
            if self._which is not None and self._which != opening.identity(self.path):
                raise StoreError(f"{self.path} was moved or taken away while it was open")
            connection, self._which = opening.connection(self.path, self._sync, self._connect)
            try:
                # What a holder that was killed, or an fsync that failed, left in the write-ahead log may not
                # be on the disk, though it can be read: a copy made anew is.
                table.checkpoint(connection)
                contents = table.contents(connection)
            except BaseException:
                connection.close()
                raise
        except (*FAILURES, OSError) as error:
            raise StoreError(f"{self.path} cannot be opened: {reason(error)}") from error
        self.connection, self._log = connection, opening.identity(self._log_path)
        self.holder.announce()
        return contents

    def check_place(self) -> None:
        """Refuse where it is not where it was: it would take rows that nobody ever finds."""
        for path, which in ((self.path, self._which), (self._log_path, self._log)):
            if opening.identity(path) != which:
                raise StoreError(f"{path} was moved or taken away while it was open")

    def close_connection(self) -> None:
        """Let the connection go, and with it the lock, but not the place among this process's stores."""
        connection, self.connection = self.connection, None
        if connection is not None:
            with contextlib.suppress(*FAILURES):  # what the file says is the truth
                connection.close()

    def close(self) -> None:
        """Give it back."""
        if self.connection is not None:
            self.holder.release()  # while the lock is still ours
        self.holder.forget()
        self.close_connection()

    def leave_to_parent(self) -> None:
        """After a fork the child may not even close the connection: that would end the parent's log.

        SQLite takes the lock to be the child's, and on closing it would remove the write-ahead log under the
        parent's feet. So the connection is kept from ever being collected.
        """
        if self.connection is not None:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.connection))
        self.connection = None
