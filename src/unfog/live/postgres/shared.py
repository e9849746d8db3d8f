"""The problems of a database that several processes share: a store for each that this process owns.

A problem is claimed when it is asked for, and those that nobody serves are claimed as they are found, so that
what is to expire expires. A lease that lasts is never taken away: processes do not fight over problems. Where
a lease may be over the problem is not answered for; when it turns out to be another's, its store is dropped.
"""

import contextlib
import logging
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from unfog.live.clock import passing
from unfog.live.errors import Elsewhere, Lost, StoreError, Unknown
from unfog.live.log import Log
from unfog.live.postgres import connecting
from unfog.live.postgres.owners import LEASE, Owner, Owners
from unfog.live.postgres.place import PostgresPlace
from unfog.live.postgres.pool import Pool
from unfog.live.store import Store
from unfog.validation import check_name as checked
from unfog.validation import one_of

log = logging.getLogger("unfog.live")
EVERY = 1.0  # seconds between renewals
TAIL = 1000  # events that whoever takes over may have to read ...
SAVED = 10.0  # ... or those of so many seconds
SILENT = LEASE  # seconds without an answer after which the database is taken to be away
EMPTY = 60.0  # seconds after which a problem that was placed and never made is given back


class Shared:
    """Threads may share it. `url` is where other processes reach this one."""

    single = False  # each problem has a store of its own

    def __init__(
        self,
        dsn: str,
        url: str | None = None,
        *,
        sync: str = "full",
        clock: Callable[[], float] | None = None,
        connect: connecting.Connect = connecting.plain,
    ) -> None:
        """Connect, and begin to renew."""
        self._pool = Pool(dsn, one_of("sync", sync, tuple(connecting.SYNC)), connect=connect)
        self._clock = clock
        self.owners = Owners(dsn, url, connect=connect)
        self._stores: dict[str, Store] = {}
        self._since: dict[str, float] = {}
        self._saved: dict[str, float] = {}  # when a snapshot was last made
        self._lock = threading.RLock()  # of claims; who asks for a store that is open does not wait for it
        self._closing, self._complaint = threading.Event(), ""
        self.owners.names()  # so that a database that cannot be used is refused now
        self._heard = passing()  # when the database last answered
        # Two: a lease must not run out because somebody waits for a claim.
        works = {"unfog leases": self._renew, "unfog problems": self._tend}
        self._threads = [
            threading.Thread(target=self._again, args=(work,), name=name, daemon=True)
            for name, work in works.items()
        ]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def names(self) -> list[str]:
        """All problems that there are, whoever serves them."""
        return self.owners.names()

    def stores(self) -> list[Store]:
        """Those that this process serves."""
        return [store for name, store in list(self._stores.items()) if self.owners.holds(name)]

    def announce(self, url: str) -> None:
        """The owners' rows have it."""

    def here(self, name: str) -> Store | None:
        """The open store that has a problem, if it may be used now; nobody is asked."""
        found = self._stores.get(name)
        usable = found is not None and not self._is_lost(name, found) and self.owners.holds(name)
        return found if usable else None

    def store(self, name: str) -> Store:
        """The open store that has a problem; Elsewhere: another process has it, StoreError: nobody yet."""
        found = self._asked_for(checked("name", name))
        if found is None and not self.owners.is_made(name):
            raise Unknown("name", repr(name), ", ".join(self.names()) or "none: the database is empty")
        return self._claimed(name) if found is None else found

    def place(self, name: str) -> Store:
        """The store in which a new problem of this name is to be made."""
        found = self._asked_for(checked("name", name))
        return self._claimed(name) if found is None else found

    def adopt(self) -> None:
        """Serve what nobody serves."""
        for name in self.owners.abandoned():
            if not self._closing.is_set():
                self._tried(self._claimed, name)

    @property
    def trouble(self) -> str:
        """That the database does not answer, if so."""
        silent = passing() - self._heard
        return "" if silent < SILENT else f"the database has not answered for {silent:.0f} seconds"

    def close(self) -> None:
        """Commit and snapshot what is open, and let others have it, each as soon as it is closed."""
        self._closing.set()
        for thread in self._threads:
            thread.join()
        with self._lock:
            self._drop_lost()
            try:
                with contextlib.ExitStack() as stack:
                    for name, store in self._stores.items():
                        stack.callback(self.owners.release, name)
                        stack.callback(store.close)  # what is last is done first
            finally:
                self._stores.clear()
                self.owners.close()
                self._pool.close()

    def _asked_for(self, name: str) -> Store | None:
        """The store that is open. Where another process has the problem, that is seen without a lock."""
        if self._closing.is_set():
            raise StoreError("the store is closed")
        found = self._open(name)
        if found is None:
            other = self._other(name, self.owners.lookup(name))
            if other is not None:
                self._forget(name)
                raise other
        return found

    def _other(self, name: str, owner: Owner | None) -> Elsewhere | None:
        """Where another process has a problem, if one has."""
        if owner is None or not owner.alive or owner.url in (None, self.owners.url):
            return None
        return Elsewhere(f"{name!r} is served at {owner.url}", str(owner.url))

    def _open(self, name: str) -> Store | None:
        """The store that is open, if it may be used now."""
        found = self._stores.get(name)
        if found is None or self._is_lost(name, found):
            return None
        if not self.owners.holds(name):
            raise StoreError(f"the lease on {name!r} may be over: the database could not be asked; ask again")
        return found

    def _claimed(self, name: str) -> Store:
        """Own a problem and open its log."""
        with self._lock:
            if self._closing.is_set():
                raise StoreError("the store is closed")
            found = self._open(name)  # somebody else may have been quicker
            if found is not None:
                return found
            self._drop(name)
            epoch = self.owners.claim(name)
            if epoch is None:
                raise self._refusal(name)
            try:
                store = Store(Log(PostgresPlace(self._pool, name, epoch)), self._clock)
            except BaseException:
                self.owners.release(name)
                raise
            self._stores[name], self._since[name] = store, passing()
            return store

    def _refusal(self, name: str) -> StoreError:
        other = self._other(name, self.owners.lookup(name))
        return other or StoreError(f"nobody serves {name!r} yet; ask again in a few seconds")

    def _forget(self, name: str) -> None:
        """Drop what is another process's, if it is still here."""
        if name in self._stores:
            with self._lock:
                if name in self._stores and self._is_lost(name, self._stores[name]):
                    self._drop(name)

    def _drop(self, name: str) -> None:
        """Forget a store that is another process's by now. What waits in it is refused by the database."""
        store = self._stores.pop(name, None)
        if store is not None:
            with contextlib.suppress(StoreError):
                store.log.close()
            if store.log.lost is None:  # nothing waited in it: whoever still has the store is to know
                store.log.lost = Lost(f"{name!r} is not served here any more")

    def _is_lost(self, name: str, store: Store) -> bool:
        return store.log.lost is not None or self.owners.epoch(name) is None

    def _drop_lost(self) -> None:
        for name, store in list(self._stores.items()):
            if self._is_lost(name, store):
                self._drop(name)

    def _again(self, work: Callable[[], None]) -> None:
        while not self._closing.wait(EVERY):
            self._tried(work)

    def _tried(self, work: Callable[..., object], *given: object) -> None:
        """Whatever goes wrong is tried again in a second, and leases run out; what is new is logged."""
        try:
            work(*given)
        except StoreError:
            pass  # the database does not answer, or another process was quicker
        except Exception as error:
            if self._complaint != type(error).__name__:
                log.exception("the problems of the database are not tended")
            self._complaint = type(error).__name__

    def _renew(self) -> None:
        self.owners.renew()
        self._heard = passing()

    def _tend(self) -> None:
        """Drop what is lost, give back what was never made, save the rest, and serve what nobody serves."""
        with self._lock:
            self._drop_lost()
            self._give_back()
        for name in list(self._stores):
            with contextlib.suppress(StoreError):  # it is a cache
                self._save(name)
        self.adopt()

    def _save(self, name: str) -> None:
        store = self._stores.get(name)
        if store is None or store.unsaved(name) < TAIL:
            return
        if passing() - self._saved.get(name, -SAVED) >= SAVED:
            store.snapshot()
            self._saved[name] = passing()

    def _give_back(self) -> None:
        """Problems that were placed here and never made."""
        for name, store in list(self._stores.items()):
            if store.log.last == 0 and passing() - self._since[name] > EMPTY:
                self._drop(name)
                self.owners.release(name)
