"""What tests need that is no part of Python: a PostgreSQL server, whose databases may be made and dropped.

`make services` starts one. Without it these tests are skipped and say so; where UNFOG_SERVICES=required that
is a failure.
"""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from unfog.live.postgres import connection as connections


def missing(what: str) -> None:
    """Skip a test, or fail it where services are required."""
    said = f"no {what}: run make services"
    if os.environ.get("UNFOG_SERVICES") == "required":
        pytest.fail(said)
    pytest.skip(said)


@contextmanager
def database() -> Iterator[str]:
    """A database of one's own, while it is needed."""
    server = os.environ.get("UNFOG_POSTGRES", "")
    if not server:
        missing("PostgreSQL")
    name = f"unfog_test_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    try:
        yield make_conninfo(server, dbname=name)
    finally:
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="session")
def postgres_database() -> Iterator[str]:
    """A database of this process's own."""
    with database() as found:
        yield found


@pytest.fixture
def postgres(postgres_database: str) -> str:
    """The address of a database in which unfog has no tables yet."""
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute("SET client_min_messages = warning")
        connection.execute(f"DROP SCHEMA IF EXISTS {connections.SCHEMA} CASCADE")
    return postgres_database
