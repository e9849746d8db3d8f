"""The connections of a process to its database: few, however many problems it serves.

Each is used by one at a time. One that failed is closed, and so are those that nobody uses: when a server was
restarted they are all broken.
"""

import contextlib
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

import psycopg
from psycopg.pq import TransactionStatus

from unfog.live.errors import StoreError
from unfog.live.postgres import connecting

if TYPE_CHECKING:
    from psycopg import Connection

SIZE = 8
WAIT = 10.0  # seconds for a connection that others use


class Pool:
    """Threads share it."""

    def __init__(
        self,
        dsn: str,
        sync: str = "full",
        *,
        size: int = SIZE,
        connect: connecting.Connect = connecting.plain,
    ) -> None:
        """Nothing is opened yet."""
        self.dsn = connecting.check(dsn)
        self._sync, self._connect = sync, connect
        self._free = threading.BoundedSemaphore(size)
        self._lock = threading.Lock()
        self._idle: list[Connection] = []

    @contextlib.contextmanager
    def using(self) -> "Iterator[Connection]":
        """A connection, alone."""
        if not self._free.acquire(timeout=WAIT):
            raise StoreError(f"all connections to {connecting.where(self.dsn)} are busy")
        try:
            connection = self._taken()
            try:
                yield connection
            except BaseException as error:
                with contextlib.suppress(psycopg.Error):
                    connection.close()
                if isinstance(error, psycopg.OperationalError):
                    self.close()
                raise
            self._give_back(connection)
        finally:
            self._free.release()

    def close(self) -> None:
        """Close those that nobody uses."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            with contextlib.suppress(psycopg.Error):
                connection.close()

    def _taken(self) -> "Connection":
        with self._lock:
            found = self._idle.pop() if self._idle else None
        return connecting.connected(self.dsn, self._sync, self._connect) if found is None else found

    def _give_back(self, connection: "Connection") -> None:
        if connection.info.transaction_status != TransactionStatus.IDLE:
            connection.close()
            return
        with self._lock:
            self._idle.append(connection)
