"""Connections to PostgreSQL that the server ends when they are told to: before a statement, or after it."""

from collections.abc import Container
from typing import Any

import psycopg

from unfog.live.postgres.connection import plain


class Server:
    """Counts what is said over all its connections; around the calls in `bad` the server ends the session."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self.calls = 0
        self.bad: Container[int] = ()
        self.late = False  # done, and the answer does not arrive

    def fail(self, calls: Container[int], late: bool = False) -> None:
        """Let these calls fail, counted from now on."""
        self.calls, self.bad, self.late = 0, calls, late

    def connect(self, dsn: str) -> psycopg.Connection:
        connection = plain(dsn)
        own = connection.execute

        def execute(query: Any, *told: Any, **more: Any) -> Any:
            self.calls += 1
            bad = self.calls in self.bad
            if bad and not self.late:
                self.end(connection)
            done = own(query, *told, **more)
            if bad and self.late:
                self.end(connection)
                own("SELECT 1")  # the session is over, whatever it was
            return done

        connection.execute = execute  # type: ignore[method-assign]
        return connection

    def end(self, connection: psycopg.Connection) -> None:
        """As an operator would."""
        pid = connection.info.backend_pid
        with psycopg.connect(self.dsn, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))
