"""Keys in a table of the database, so that all processes that share it let in the same callers.

Each call has a connection of its own: a look a second is no load, and one that is kept may be gone.
"""

from typing import Any, LiteralString

import psycopg

from unfog.live.postgres import connecting, layout
from unfog.serve.keys import Key, KeysError, check_known

TABLE: LiteralString = (
    "CREATE TABLE IF NOT EXISTS key (id TEXT PRIMARY KEY, digest TEXT NOT NULL, scopes TEXT[] NOT NULL,"
    " problems TEXT[], note TEXT NOT NULL, created DOUBLE PRECISION NOT NULL, revoked DOUBLE PRECISION)"
)
FIELDS: LiteralString = "id, digest, scopes, problems, note, created, revoked"  # as Key has them


class KeyTable:
    """The keys of one database. Any thread may use it."""

    def __init__(self, dsn: str) -> None:
        """Nothing is asked yet."""
        self._dsn = connecting.check(dsn)
        self._there = False  # whether the table is known to be

    def stamp(self) -> object:
        """How many keys there are, and how many of them are revoked: nothing else can change."""
        return self._asked("SELECT count(*), count(revoked) FROM key")

    def load(self) -> dict[str, Key]:
        """All by their ids."""
        rows = self._asked(f"SELECT {FIELDS} FROM key ORDER BY created, id")
        found = [
            Key(name, digest, tuple(scopes), None if problems is None else tuple(problems), *rest)
            for name, digest, scopes, problems, *rest in rows
        ]
        return {key.id: key for key in found}

    def add(self, key: Key) -> None:
        """Keep one more."""
        problems = None if key.problems is None else list(key.problems)
        told = (key.id, key.digest, list(key.scopes), problems, key.note, key.created)
        self._asked("INSERT INTO key VALUES (%s, %s, %s, %s, %s, %s, NULL)", told)

    def revoke(self, key: str, now: float) -> None:
        """What is kept of its secret goes, too."""
        check_known(self.load(), key)
        self._asked("UPDATE key SET digest = '', revoked = %s WHERE id = %s", (now, key))

    def _asked(self, said: LiteralString, told: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """Rows, where there are any."""
        try:
            with connecting.connected(self._dsn) as connection:
                self._make(connection)
                found = connection.execute(said, told)
                return found.fetchall() if found.description else []
        except psycopg.Error as error:
            where = connecting.where(self._dsn)
            raise KeysError(f"the keys of {where} cannot be had: {connecting.reason(error)}") from None

    def _make(self, connection: psycopg.Connection) -> None:
        """Make the table where there is none."""
        if self._there:
            return
        connection.execute("SET client_min_messages = warning")
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (layout.LOCK,))
            connection.execute(TABLE)
        self._there = True
