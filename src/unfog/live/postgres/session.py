"""A connection for questions that stand for themselves: one at a time, opened when first used, and again."""

import contextlib
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

import psycopg

from unfog.live.errors import StoreError
from unfog.live.postgres import connecting

if TYPE_CHECKING:
    from psycopg import Connection


class Session:
    """Threads may share it; an error closes the connection, and the next use opens another."""

    def __init__(self, dsn: str, connect: connecting.Connect = connecting.plain) -> None:
        """Nothing is opened yet."""
        self._dsn, self._connect = dsn, connect
        self._lock = threading.Lock()
        self._connection: Connection | None = None

    @contextlib.contextmanager
    def using(self) -> "Iterator[Connection]":
        """The connection, alone."""
        with self._lock:
            try:
                if self._connection is None or self._connection.closed:
                    self._connection = connecting.connected(self._dsn, "full", self._connect)
                yield self._connection
            except (psycopg.Error, OSError) as error:
                self._drop()
                said = f"{connecting.where(self._dsn)} cannot be asked: {connecting.reason(error)}"
                raise StoreError(said) from error

    def close(self) -> None:
        """Let the connection go."""
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(psycopg.Error):
                connection.close()
