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
from unfog.serve.auth import Key, KeysError, KeyStorage, check_known

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


def ring_of(store: str) -> KeyStorage:
    """The storage of a store's keys."""
    if is_database(store):
        return KeyTable(store)
    return KeyFile(store)


def hide_password(store: str) -> str:
    """The name of a store for display, without the password in the address of a database."""
    if is_database(store):
        from unfog.live.postgres.connection import where

        return where(store)
    return store


class KeyFile:
    """The keys of one store, in a file beside it."""

    def __init__(self, store: str | Path) -> None:
        """The file is beside that of the store, after symbolic links are resolved."""
        path = place(store)
        self.path = path.with_name(f"{path.name}-keys")

    def stamp(self) -> object:
        """The inode, size and modification time of the file, or why there is none."""
        try:
            stat = self.path.stat()
        except OSError as error:
            return error.errno
        return stat.st_ino, stat.st_size, stat.st_mtime_ns

    def load(self) -> dict[str, Key]:
        """All keys by id."""
        try:
            text = self.path.read_bytes()
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise KeysError(f"{self.path.name} cannot be read: {error.strerror or error}") from None
        try:
            data = json.loads(text)
            if data["version"] > VERSION:
                raise KeysError(f"{self.path.name} was written by a newer version of unfog")
            if data["checksum"] != _checksum(data["keys"]):
                raise ValueError
        except (ValueError, KeyError, TypeError):
            raise KeysError(f"{self.path.name} is damaged: nobody can be let in") from None
        return {one["id"]: _make_key(**one) for one in data["keys"]}

    def add(self, key: Key) -> None:
        """Store one more key."""
        with self._hold_lock():
            self._write({**self.load(), key.id: key})

    def revoke(self, key: str, now: float) -> None:
        """Revoke a key, and delete the hash of its secret."""
        with self._hold_lock():
            keys = self.load()
            self._write({**keys, key: check_known(keys, key)._replace(digest="", revoked=now)})

    @contextmanager
    def _hold_lock(self) -> Iterator[None]:
        """Lock the folder, so that two processes do not overwrite each other's keys."""
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
        rows = [key._asdict() for key in keys.values()]
        data = {"version": VERSION, "checksum": _checksum(rows), "keys": rows}
        try:
            write_atomically(self.path, json.dumps(data, indent=1).encode(), PRIVATE)
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


def _make_key(*, scopes: list[str], problems: list[str] | None, **rest: Any) -> Key:
    return Key(scopes=tuple(scopes), problems=None if problems is None else tuple(problems), **rest)


class KeyTable:
    """The keys of one database. Any thread may use it."""

    def __init__(self, dsn: str) -> None:
        """No connection is made yet."""
        from unfog.live.postgres import connection as connections

        self._dsn = connections.check(dsn)
        self._has_table = False  # whether the table is known to be

    def stamp(self) -> object:
        """The number of keys and of revoked ones: nothing else can change."""
        return self._query("SELECT count(*), count(revoked) FROM key")

    def load(self) -> dict[str, Key]:
        """All keys by id."""
        rows = self._query(f"SELECT {FIELDS} FROM key ORDER BY created, id")
        return {row[0]: _make_key(**dict(zip(Key._fields, row, strict=True))) for row in rows}

    def add(self, key: Key) -> None:
        """Store one more key."""
        problems = None if key.problems is None else list(key.problems)
        values = (key.id, key.digest, list(key.scopes), problems, key.note, key.created)
        self._query("INSERT INTO key VALUES (%s, %s, %s, %s, %s, %s, NULL)", values)

    def revoke(self, key: str, now: float) -> None:
        """Revoke a key, and delete the hash of its secret."""
        check_known(self.load(), key)
        self._query("UPDATE key SET digest = '', revoked = %s WHERE id = %s", (now, key))

    def _query(self, sql: LiteralString, params: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows, if it has any."""
        import psycopg

        from unfog.live.postgres import connection as connections

        try:
            with connections.connected(self._dsn) as connection:
                self._make_table(connection)
                cursor = connection.execute(sql, params)
                return cursor.fetchall() if cursor.description else []
        except psycopg.Error as error:
            where = connections.where(self._dsn)
            raise KeysError(f"the keys of {where} cannot be had: {connections.reason(error)}") from None

    def _make_table(self, connection: "psycopg.Connection") -> None:
        """Create the table if it does not exist."""
        if self._has_table:
            return
        from unfog.live.postgres.connection import LOCK

        connection.execute("SET client_min_messages = warning")
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
            connection.execute(TABLE)
        self._has_table = True
