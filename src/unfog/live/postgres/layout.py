"""The tables of a database of unfog, in a schema of their own, and their version.

    problem    a number for each name
    event      the rows: of each problem 1, 2, ... without holes, each with the epoch it was written in
    snapshot   what was remembered of a problem up to a row; a cache
    owner      who serves a problem, until when, in which epoch; `opening` counts the connections of an epoch

Rows are compared as bytes, whatever the language of the database.
"""

import psycopg

from unfog.live.errors import StoreError

SCHEMA = "unfog"
VERSION = 1
LOCK = 0x756E666F  # for those who make the tables: two that start at once would both do it

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
    " fingerprint TEXT NOT NULL, blob BYTEA NOT NULL, checksum BIGINT NOT NULL, PRIMARY KEY (problem, seq))",
    'CREATE TABLE owner (problem TEXT COLLATE "C" PRIMARY KEY, epoch BIGINT NOT NULL, url TEXT,'
    " lease_until TIMESTAMPTZ NOT NULL, opening BIGINT NOT NULL DEFAULT 0)",
)


def prepare(connection: psycopg.Connection) -> None:
    """Make the tables where there are none; refuse those of another version."""
    if _version(connection) is None:
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
            if _version(connection) is None:
                _lay_out(connection)
    found = _version(connection)
    if found != VERSION:
        raise StoreError(
            f"the database {connection.info.dbname} has tables of version {found} of unfog; "
            f"allowed: version {VERSION}; install the unfog that wrote them"
        )


def _version(connection: psycopg.Connection) -> int | None:
    # Not by to_regclass, which answers from a cache: while this waits for the lock another makes the table.
    there = "SELECT 1 FROM pg_tables WHERE schemaname = %s AND tablename = 'layout'"
    if connection.execute(there, (SCHEMA,)).fetchone() is None:
        return None
    version = connection.execute("SELECT version FROM layout").fetchone()
    return 0 if version is None else int(version[0])


def _lay_out(connection: psycopg.Connection) -> None:
    (encoding,) = connection.execute("SHOW server_encoding").fetchone() or ("",)
    if encoding != "UTF8":
        raise StoreError(f"the database {connection.info.dbname} has the encoding {encoding}; allowed: UTF8")
    connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
    for table in TABLES:
        connection.execute(table)
    connection.execute("INSERT INTO layout VALUES (%s)", (VERSION,))
