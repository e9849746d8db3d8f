"""Connections to a database of unfog, with timeouts so that no thread waits for a lost one; and its tables.

A process that stops in the middle of a transaction keeps its locks until the server ends its session, after
`IDLE` seconds, which is less than a lease. A server that does not answer is given up after `SILENT` seconds.

A process uses few connections, however many problems it serves (`Pool`).

The tables are in a schema of their own and have a version:

    problem    a number for each name
    event      the rows: 1, 2, ... without holes for each problem, each with the epoch it was written in
    snapshot   the state of a problem up to a row; a cache
    owner      who serves a problem, until when, in which epoch; `opening` counts the connections of an epoch

Text is compared as bytes, whatever the language of the database.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus

from unfog.live import errors
from unfog.live.errors import StoreError
from unfog.validation import InputError

if TYPE_CHECKING:
    from psycopg import Connection

PATIENCE = 3  # seconds to connect
IDLE = 1.0  # seconds a transaction may do nothing
LOCKED = 2.0  # seconds to wait for a lock
SILENT = 4.0  # seconds after which a server that does not acknowledge is given up

NETWORK: dict[str, Any] = {
    "connect_timeout": PATIENCE,
    "keepalives_idle": 2,
    "keepalives_interval": 1,
    "keepalives_count": 2,
    "tcp_user_timeout": int(SILENT * 1000),
    "application_name": "unfog",
}

SCHEMA = "unfog"

SETTINGS = {
    "search_path": SCHEMA,
    "client_encoding": "UTF8",
    "idle_in_transaction_session_timeout": f"{IDLE}s",
    "lock_timeout": f"{LOCKED}s",
    "default_transaction_isolation": "read committed",
}

# With both a row is on the server's disk when its commit returns. "normal" does not wait for standbys, so
# that it may be gone if the server is lost for good. "off" would forget rows when a server process is killed.
SYNC = {"full": "on", "normal": "local"}

SIZE = 8  # connections of a pool
WAIT = 10.0  # seconds to wait for a free connection
VERSION = 2
LOCK = 0x756E666F  # held while tables are created: two processes that start at once would both do so

TABLES = (
    "CREATE TABLE layout (version INTEGER NOT NULL)",
    "CREATE TABLE problem (id INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
    ' name TEXT COLLATE "C" NOT NULL UNIQUE)',
    "CREATE TABLE event (problem INTEGER NOT NULL REFERENCES problem, seq BIGINT NOT NULL,"
    ' kind TEXT NOT NULL, decision TEXT COLLATE "C", key TEXT COLLATE "C", time DOUBLE PRECISION NOT NULL,'
    " body TEXT NOT NULL, checksum BIGINT NOT NULL, epoch BIGINT NOT NULL, PRIMARY KEY (problem, seq))",
    "CREATE UNIQUE INDEX event_key ON event (problem, key) WHERE key IS NOT NULL",
    "CREATE INDEX event_decision ON event (problem, decision) WHERE decision IS NOT NULL",
    "CREATE TABLE snapshot (problem INTEGER NOT NULL REFERENCES problem, seq BIGINT NOT NULL,"
    " snapshot_key TEXT NOT NULL, blob BYTEA NOT NULL, checksum BIGINT NOT NULL, PRIMARY KEY (problem, seq))",
    'CREATE TABLE owner (problem TEXT COLLATE "C" PRIMARY KEY, epoch BIGINT NOT NULL, url TEXT,'
    " lease_until TIMESTAMPTZ NOT NULL, opening BIGINT NOT NULL DEFAULT 0)",
)

Connect: TypeAlias = Callable[[str], "psycopg.Connection"]


def check(dsn: object) -> str:
    """Return the address of a database; InputError if it is none."""
    allowed = "an address such as postgresql://user@host:5432/database"
    if not isinstance(dsn, str):
        raise InputError("dsn", dsn, allowed)
    try:
        conninfo_to_dict(dsn)
    except psycopg.ProgrammingError:
        raise InputError("dsn", "what was given", allowed) from None  # it may hold a password
    return dsn


def where(dsn: str) -> str:
    """The address without user and password, for messages."""
    params = conninfo_to_dict(dsn)
    port = f":{params['port']}" if "port" in params else ""
    return f"postgresql://{params.get('host', '')}{port}/{params.get('dbname', '')}"


def plain(dsn: str) -> "psycopg.Connection":
    """A connection without implicit transactions, to be used under a lock from any thread."""
    params = conninfo_to_dict(dsn)
    return psycopg.connect(dsn, autocommit=True, **{k: v for k, v in NETWORK.items() if k not in params})


def connected(dsn: str, sync: str = "full", connect: Connect = plain) -> "psycopg.Connection":
    """A connection with its settings applied, to tables of this version."""
    connection = connect(dsn)
    try:
        settings = {**SETTINGS, "synchronous_commit": SYNC[sync]}
        sql = "SELECT set_config(name, value, false) FROM unnest(%s::text[], %s::text[]) AS x (name, value)"
        connection.execute(sql, (list(settings), list(settings.values())))
        prepare(connection)
        (fsync,) = connection.execute("SHOW fsync").fetchone() or ("",)
        if sync == "full" and fsync != "on":
            raise StoreError(f"{where(dsn)} has fsync {fsync}, so that it may forget; allowed: on")
    except BaseException:
        connection.close()
        raise
    return connection


def reason(error: BaseException) -> str:
    """Why it failed, with the message of PostgreSQL, on one line."""
    if isinstance(error, psycopg.Error):
        lines = str(error).strip().splitlines() or [type(error).__name__]
        return f"PostgreSQL says: {lines[0]}"
    return errors.reason(error)


def prepare(connection: psycopg.Connection) -> None:
    """Create the tables if there are none; StoreError if they are of another version."""
    if _read_version(connection) is None:
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
            if _read_version(connection) is None:
                _create_tables(connection)
    version = _read_version(connection)
    if version != VERSION:
        writer = "a newer unfog" if version is None or version > VERSION else "unfog 0.2 or older"
        raise StoreError(
            f"the database {connection.info.dbname} has tables of version {version}, written by {writer}; "
            f"allowed: version {VERSION}; install the unfog that wrote them"
        )


def _read_version(connection: psycopg.Connection) -> int | None:
    # Not to_regclass, which uses a cache: another process may create the table while this one waits.
    exists = "SELECT 1 FROM pg_tables WHERE schemaname = %s AND tablename = 'layout'"
    if connection.execute(exists, (SCHEMA,)).fetchone() is None:
        return None
    version = connection.execute("SELECT version FROM layout").fetchone()
    return 0 if version is None else int(version[0])


def _create_tables(connection: psycopg.Connection) -> None:
    (encoding,) = connection.execute("SHOW server_encoding").fetchone() or ("",)
    if encoding != "UTF8":
        raise StoreError(f"the database {connection.info.dbname} has the encoding {encoding}; allowed: UTF8")
    connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
    for table in TABLES:
        connection.execute(table)
    connection.execute("INSERT INTO layout VALUES (%s)", (VERSION,))


class Pool:
    """The connections of a process. Threads share it.

    Each connection is used by one thread at a time. One that failed is closed, and so are all idle ones:
    after a restart of the server they are all broken.
    """

    def __init__(
        self,
        dsn: str,
        sync: str = "full",
        *,
        size: int = SIZE,
        connect: Connect = plain,
    ) -> None:
        """Start without connections."""
        self.dsn = check(dsn)
        self._sync, self._connect = sync, connect
        self._free = threading.BoundedSemaphore(size)
        self._lock = threading.Lock()
        self._idle: list[Connection] = []

    @contextlib.contextmanager
    def using(self) -> "Iterator[Connection]":
        """A connection for this thread alone."""
        if not self._free.acquire(timeout=WAIT):
            raise StoreError(f"all connections to {where(self.dsn)} are busy")
        try:
            connection = self._take()
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
        """Close the idle connections."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            with contextlib.suppress(psycopg.Error):
                connection.close()

    def _take(self) -> "Connection":
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        return connected(self.dsn, self._sync, self._connect) if connection is None else connection

    def _give_back(self, connection: "Connection") -> None:
        if connection.info.transaction_status != TransactionStatus.IDLE:
            connection.close()
            return
        with self._lock:
            self._idle.append(connection)


@contextlib.contextmanager
def asking(pool: Pool) -> "Iterator[Connection]":
    """A connection for a query; errors of the database become StoreError."""
    try:
        with pool.using() as connection:
            yield connection
    except (psycopg.Error, OSError) as error:
        raise StoreError(f"{where(pool.dsn)} cannot be asked: {reason(error)}") from error
