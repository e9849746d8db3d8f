"""Connections to a database of unfog, set up so that nobody waits for one that is gone.

A process that stops in the middle of a transaction keeps its locks until the server ends its session: that
is after `IDLE` seconds, less than a lease lasts. A server that does not answer is given up after `SILENT`.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import psycopg
from psycopg.conninfo import conninfo_to_dict

from unfog.live import errors
from unfog.live.errors import StoreError
from unfog.live.postgres import layout
from unfog.validation import InputError

Connect: TypeAlias = Callable[[str], "psycopg.Connection"]

PATIENCE = 3  # seconds to connect
IDLE = 1.0  # seconds a transaction may do nothing
LOCKED = 2.0  # seconds to wait for a lock
SILENT = 4.0  # seconds until a server that does not acknowledge is taken to be gone
NETWORK: dict[str, Any] = {
    "connect_timeout": PATIENCE,
    "keepalives_idle": 2,
    "keepalives_interval": 1,
    "keepalives_count": 2,
    "tcp_user_timeout": int(SILENT * 1000),
    "application_name": "unfog",
}
SETTINGS = {
    "search_path": layout.SCHEMA,
    "client_encoding": "UTF8",
    "idle_in_transaction_session_timeout": f"{IDLE}s",
    "lock_timeout": f"{LOCKED}s",
    "default_transaction_isolation": "read committed",
}
# With both a row is on the server's disk when its commit returns. "normal" does not wait for standbys, so
# that it may be gone if the server is lost for good. "off" would forget rows when a server process is killed.
SYNC = {"full": "on", "normal": "local"}


def plain(dsn: str) -> "psycopg.Connection":
    """A connection without implicit transactions, to be used under a lock from any thread."""
    told = conninfo_to_dict(dsn)
    return psycopg.connect(dsn, autocommit=True, **{k: v for k, v in NETWORK.items() if k not in told})


def check(dsn: object) -> str:
    """Complain of what is no address of a database."""
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
    told = conninfo_to_dict(dsn)
    port = f":{told['port']}" if "port" in told else ""
    return f"postgresql://{told.get('host', '')}{port}/{told.get('dbname', '')}"


def connected(dsn: str, sync: str = "full", connect: Connect = plain) -> "psycopg.Connection":
    """A connection to tables of this version, set up."""
    connection = connect(dsn)
    try:
        settings = {**SETTINGS, "synchronous_commit": SYNC[sync]}
        said = "SELECT set_config(name, value, false) FROM unnest(%s::text[], %s::text[]) AS x (name, value)"
        connection.execute(said, (list(settings), list(settings.values())))
        layout.prepare(connection)
        (fsync,) = connection.execute("SHOW fsync").fetchone() or ("",)
        if sync == "full" and fsync != "on":
            raise StoreError(f"{where(dsn)} has fsync {fsync}, so that it may forget; allowed: on")
    except BaseException:
        connection.close()
        raise
    return connection


def reason(error: BaseException) -> str:
    """What PostgreSQL said of it, on one line."""
    if isinstance(error, psycopg.Error):
        lines = str(error).strip().splitlines() or [type(error).__name__]
        return f"PostgreSQL says: {lines[0]}"
    return errors.reason(error)
