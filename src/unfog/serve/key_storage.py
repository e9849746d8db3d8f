"""Where API keys are stored: in a file beside the store, or in a table of its database.

Keys can be added and revoked while the service runs. The file is written whole or not at all, and only its
owner can read it. A file that is damaged, or written by a newer version, is refused by name: to treat it as a
file without keys would let everybody in.

With the table all processes that share a database accept the same keys. Each call opens its own connection:
one look a second is no load, and a connection that is kept may be lost.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, LiteralString

from unfog._io import PRIVATE, write_atomically
from unfog.live.sqlite_file import place
from unfog.serve.auth import Key, KeyRing, KeysError, check_known

if TYPE_CHECKING:
    import psycopg

DATABASE = ("postgresql://", "postgres://")
VERSION = 1  # of the file

TABLE: LiteralString = (
    "CREATE TABLE IF NOT EXISTS key (id TEXT PRIMARY KEY, digest TEXT NOT NULL, scopes TEXT[] NOT NULL,"
    " problems TEXT[], note TEXT NOT NULL, created DOUBLE PRECISION NOT NULL, revoked DOUBLE PRECISION)"
)

FIELDS: LiteralString = "id, digest, scopes, problems, note, created, revoked"  # as Key has them


def is_database(store: str) -> bool:
    """Whether this is the address of a database, not the name of a file."""
    return store.startswith(DATABASE)


def ring_of(store: str) -> KeyRing:
    """The keys of a store."""
    if is_database(store):
        return KeyTable(store)
    return KeyFile(store)


def shown(store: str) -> str:
    """How a store is called where anybody may read it: the address of a database holds a password."""
    if is_database(store):
        from unfog.live.postgres.connection import where

        return where(store)
    return store


class KeyFile:
    """The keys of one store."""

    def __init__(self, store: str | Path) -> None:
        """Beside the file of the store, links followed."""
        found = place(store)
        self.path = found.with_name(f"{found.name}-keys")

    def stamp(self) -> object:
        """Which file it is, how long, and when it was written."""
        try:
            found = self.path.stat()
        except OSError as error:
            return error.errno
        return found.st_ino, found.st_size, found.st_mtime_ns

    def load(self) -> dict[str, Key]:
        """All by their ids."""
        try:
            text = self.path.read_bytes()
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise KeysError(f"{self.path.name} cannot be read: {error.strerror or error}") from None
        try:
            said = json.loads(text)
            if said["version"] > VERSION:
                raise KeysError(f"{self.path.name} was written by a newer version of unfog")
            if said["checksum"] != _checksum(said["keys"]):
                raise ValueError
        except (ValueError, KeyError, TypeError):
            raise KeysError(f"{self.path.name} is damaged: nobody can be let in") from None
        return {one["id"]: _key(**one) for one in said["keys"]}

    def add(self, key: Key) -> None:
        """Keep one more."""
        with self._changing():
            self._write({**self.load(), key.id: key})

    def revoke(self, key: str, now: float) -> None:
        """What is kept of its secret goes, too."""
        with self._changing():
            known = self.load()
            self._write({**known, key: check_known(known, key)._replace(digest="", revoked=now)})

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """One process at a time: what another adds meanwhile would be lost. The lock is on the folder."""
        try:
            folder = os.open(self.path.parent, os.O_RDONLY)
        except OSError as error:
            raise KeysError(f"{self.path} cannot be written: {error.strerror or error}") from None
        try:
            _lock(folder)
            yield
        finally:
            os.close(folder)

    def _write(self, keys: Mapping[str, Key]) -> None:
        listed = [key._asdict() for key in keys.values()]
        said = {"version": VERSION, "checksum": _checksum(listed), "keys": listed}
        try:
            write_atomically(self.path, json.dumps(said, indent=1).encode(), PRIVATE)
        except OSError as error:
            raise KeysError(f"{self.path} cannot be written: {error.strerror or error}") from None


def _lock(folder: int) -> None:
    try:
        import fcntl
    except ImportError:  # there is no such lock on this system
        return
    fcntl.flock(folder, fcntl.LOCK_EX)


def _checksum(keys: list[Any]) -> str:
    return hashlib.sha256(json.dumps(keys, sort_keys=True).encode()).hexdigest()


def _key(*, scopes: list[str], problems: list[str] | None, **rest: Any) -> Key:
    return Key(scopes=tuple(scopes), problems=None if problems is None else tuple(problems), **rest)


class KeyTable:
    """The keys of one database. Any thread may use it."""

    def __init__(self, dsn: str) -> None:
        """Nothing is asked yet."""
        from unfog.live.postgres import connection as connections

        self._dsn = connections.check(dsn)
        self._there = False  # whether the table is known to be

    def stamp(self) -> object:
        """How many keys there are, and how many of them are revoked: nothing else can change."""
        return self._asked("SELECT count(*), count(revoked) FROM key")

    def load(self) -> dict[str, Key]:
        """All by their ids."""
        rows = self._asked(f"SELECT {FIELDS} FROM key ORDER BY created, id")
        return {row[0]: _key(**dict(zip(Key._fields, row, strict=True))) for row in rows}

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
        import psycopg

        from unfog.live.postgres import connection as connections

        try:
            with connections.connected(self._dsn) as connection:
                self._make(connection)
                found = connection.execute(said, told)
                return found.fetchall() if found.description else []
        except psycopg.Error as error:
            where = connections.where(self._dsn)
            raise KeysError(f"the keys of {where} cannot be had: {connections.reason(error)}") from None

    def _make(self, connection: "psycopg.Connection") -> None:
        """Make the table where there is none."""
        if self._there:
            return
        from unfog.live.postgres.connection import LOCK

        connection.execute("SET client_min_messages = warning")
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
            connection.execute(TABLE)
        self._there = True
