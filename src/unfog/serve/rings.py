"""Where the keys of a store are kept: beside its file, or in its database."""

from unfog.inputs import InputError
from unfog.serve.keyfile import KeyFile
from unfog.serve.keys import KeyRing

DATABASE = ("postgresql://", "postgres://")


def is_database(store: str) -> bool:
    """Whether this is the address of a database, not the name of a file."""
    return store.startswith(DATABASE)


def ring_of(store: str) -> KeyRing:
    """The keys of a store."""
    if is_database(store):
        raise InputError("store", "a database", "a file: keys in a database are not known to this version")
    return KeyFile(store)
