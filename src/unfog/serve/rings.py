"""Where the keys of a store are kept: beside its file, or in its database."""

from unfog.serve.keyfile import KeyFile
from unfog.serve.keys import KeyRing

DATABASE = ("postgresql://", "postgres://")


def is_database(store: str) -> bool:
    """Whether this is the address of a database, not the name of a file."""
    return store.startswith(DATABASE)


def ring_of(store: str) -> KeyRing:
    """The keys of a store."""
    if is_database(store):
        from unfog.serve.keytable import KeyTable

        return KeyTable(store)
    return KeyFile(store)


def shown(store: str) -> str:
    """How a store is called where anybody may read it: the address of a database holds a password."""
    if is_database(store):
        from unfog.live.postgres.connecting import where

        return where(store)
    return store
