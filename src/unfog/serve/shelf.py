"""Where problems are kept: one SQLite file that this process holds, or a database that several share."""

from collections.abc import Sequence
from typing import Protocol

from unfog.live import Store


class Shelf(Protocol):
    """What the service asks of a place for problems."""

    single: bool  # whether there is one store for all

    @property
    def trouble(self) -> str:
        """Why nobody can be served from here at the moment, if so."""

    def adopt(self) -> None:
        """Take what nobody serves."""

    def announce(self, url: str) -> None:
        """Tell those who are refused where this process can be asked."""

    def here(self, name: str) -> Store | None:
        """The open store that has it, if that is known without asking anybody."""

    def names(self) -> list[str]:
        """All problems there are."""

    def store(self, name: str) -> Store:
        """The open store that has it; an error where that is elsewhere, or nobody's yet."""

    def place(self, name: str) -> Store:
        """The store in which a new problem of this name is to be made."""

    def stores(self) -> Sequence[Store]:
        """Those that are open here."""

    def close(self) -> None:
        """Write what is left, and give all of it back."""


class Single:
    """One store for all problems."""

    single = True
    trouble = ""

    def __init__(self, store: Store) -> None:
        """It is open already."""
        self._store = store

    def names(self) -> list[str]:
        """All problems there are."""
        return self._store.names()

    def here(self, name: str) -> Store:  # noqa: ARG002
        """Always the same."""
        return self._store

    def store(self, name: str) -> Store:  # noqa: ARG002
        """Always the same."""
        return self._store

    def place(self, name: str) -> Store:  # noqa: ARG002
        """Always the same."""
        return self._store

    def adopt(self) -> None:
        """It has been taken."""

    def stores(self) -> list[Store]:
        """The one."""
        return [self._store]

    def announce(self, url: str) -> None:
        """Tell those who want the file where it can be reached."""
        self._store.log.announce(url)

    def close(self) -> None:
        """Snapshot, commit, close."""
        self._store.close()
