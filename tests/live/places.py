"""Places for logs, for tests that hold for all of them: a file, and a problem in a real PostgreSQL."""

from pathlib import Path
from typing import Protocol

import psycopg

from unfog.live.backend import Row
from unfog.live.log import EventLog
from unfog.live.postgres.backend import PostgresBackend
from unfog.live.postgres.connection import Connect, Pool, plain
from unfog.live.postgres.ownership import Owners
from unfog.live.sqlite import SqliteBackend


class Ground(Protocol):
    """Where logs are opened one after the other."""

    def open(self, sync: str = "full") -> EventLog:
        """The log of the problem "walks"."""

    def said(self, log: EventLog, statement: str) -> list[tuple[object, ...]]:
        """What the database answers to a statement over the connection of a log."""


class Files:
    """A file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def open(self, sync: str = "full") -> EventLog:
        return EventLog(SqliteBackend(self.path, sync))

    def said(self, log: EventLog, statement: str) -> list[tuple[object, ...]]:
        assert isinstance(log.backend, SqliteBackend)
        return log.backend.alone.execute(statement).fetchall()


class Alone(PostgresBackend):
    """With one connection of its own."""

    def __init__(
        self, dsn: str, problem: str, epoch: int, sync: str = "full", connect: Connect = plain
    ) -> None:
        super().__init__(Pool(dsn, sync, size=1, connect=connect), problem, epoch)

    def close(self) -> None:
        super().close()
        self._pool.close()


class Database:
    """A problem in a database, owned anew with each opening."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn

    def open(self, sync: str = "full") -> EventLog:
        return EventLog(Alone(self.dsn, "walks", owned(self.dsn, "walks"), sync))

    def said(self, log: EventLog, statement: str) -> list[tuple[object, ...]]:
        assert isinstance(log.backend, PostgresBackend)
        with log.backend.using() as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []


def owned(dsn: str, problem: str) -> int:
    """Take a problem over, whoever has it; the epoch. The next one may take it over at once."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        if connection.execute("SELECT to_regclass('unfog.owner')").fetchone() != (None,):
            connection.execute("UPDATE unfog.owner SET lease_until = now() WHERE problem = %s", (problem,))
    owners = Owners(dsn)
    epoch = owners.claim(problem)
    owners.close()
    assert epoch is not None
    return epoch


def log_at(dsn: str, problem: str, epoch: int, connect: Connect = plain) -> EventLog:
    """The log of an owner."""
    return EventLog(Alone(dsn, problem, epoch, connect=connect))


def contents(ground: Ground) -> list[Row]:
    """What a log has that is opened anew."""
    with ground.open("normal") as log:
        return list(log.read())
