"""Ownership of problems in a shared database: leases, and a store for each problem of this process.

One process at a time owns a problem, for as long as it renews its lease (`Owners`):

    lease_until < now   no process owns it; the first to claim the problem gets it, in a new epoch
    otherwise           the owner's url says where it is served

All times in the table are those of the database. A process cannot read that clock without asking, so it
counts its own lease from before it asked, by a clock that cannot be set: its own count ends first.

`Shared` has a store for each problem that this process owns. A problem is claimed when it is first used.
Problems that no process serves are claimed when they are noticed, so that their decisions expire. A valid
lease is never taken away: processes do not fight over problems. While a lease may be over, the problem is not
served; if another process turns out to own it, its store is dropped.
"""

import contextlib
import logging
import threading
from collections.abc import Callable
from types import TracebackType
from typing import NamedTuple, Self

from unfog.live.errors import NotFoundError, OwnershipLostError, ServedElsewhereError, StoreError
from unfog.live.log import EventLog
from unfog.live.postgres import connection
from unfog.live.postgres.backend import PostgresBackend
from unfog.live.postgres.connection import Pool, asking
from unfog.live.processor import passing
from unfog.live.store import Store
from unfog.validation import check_name, one_of

LEASE = 3.0  # seconds
FAR = 100  # problems without an owner that are listed at a time

CLAIM = (
    "INSERT INTO owner (problem, epoch, url, lease_until)"
    " VALUES (%s, 1, %s, clock_timestamp() + make_interval(secs => %s))"
    " ON CONFLICT (problem) DO UPDATE SET epoch = owner.epoch + 1, url = excluded.url, opening = 0,"
    " lease_until = clock_timestamp() + make_interval(secs => %s)"
    " WHERE owner.lease_until < clock_timestamp() RETURNING epoch"
)

RENEW = (
    "UPDATE owner SET lease_until = clock_timestamp() + make_interval(secs => %s)"
    " FROM unnest(%s::text[], %s::bigint[]) AS mine (problem, epoch)"
    " WHERE owner.problem = mine.problem AND owner.epoch = mine.epoch RETURNING owner.problem"
)

RELEASE = "UPDATE owner SET lease_until = clock_timestamp() WHERE problem = %s AND epoch = %s"
LOOKUP = "SELECT url, epoch, lease_until >= clock_timestamp() FROM owner WHERE problem = %s"
HAS_EVENTS = "EXISTS (SELECT FROM event WHERE event.problem = problem.id AND seq = 1)"
NAMES = f"SELECT name FROM problem WHERE {HAS_EVENTS} ORDER BY id"
EXISTS = f"SELECT 1 FROM problem WHERE name = %s AND {HAS_EVENTS}"

ABANDONED = (
    "SELECT name FROM problem LEFT JOIN owner ON owner.problem = name"
    f" WHERE (lease_until IS NULL OR lease_until < clock_timestamp()) AND {HAS_EVENTS} ORDER BY id LIMIT %s"
)

EVERY = 1.0  # seconds between renewals
TAIL = 1000  # events that a process that takes over may have to read ...
SAVED = 10.0  # ... or those of so many seconds
SILENT = LEASE  # seconds without an answer after which the database counts as unreachable
EMPTY = 60.0  # seconds after which a problem that was claimed but never created is released
log = logging.getLogger("unfog.live")


class Owner(NamedTuple):
    """The row of a problem in the table of owners."""

    url: str | None
    epoch: int
    alive: bool  # its lease lasts


class StoreLockedError(NamedTuple):
    """A problem that this process owns."""

    epoch: int
    until: float  # of the clock of this process


class Owners:
    """The table of owners, for one process that can be reached at `url`. Threads may share it."""

    def __init__(
        self, dsn: str, url: str | None = None, *, connect: connection.Connect = connection.plain
    ) -> None:
        """Start without problems."""
        self.url = url
        self._held: dict[str, StoreLockedError] = {}
        self._guard = threading.Lock()  # for changes of `_held`
        self._asking = Pool(dsn, size=1, connect=connect)
        # Its own pool, so that a thread that waits for a claim does not delay it.
        self._renewing = Pool(dsn, size=1, connect=connect)

    def names(self) -> list[str]:
        """All problems, whichever process serves them, in the order in which they were created."""
        with asking(self._asking) as connection:
            return [name for (name,) in connection.execute(NAMES)]

    def is_made(self, problem: str) -> bool:
        """Whether there is such a problem."""
        with asking(self._asking) as connection:
            return connection.execute(EXISTS, (problem,)).fetchone() is not None

    def abandoned(self) -> list[str]:
        """Problems that no process serves."""
        with asking(self._asking) as connection:
            return [name for (name,) in connection.execute(ABANDONED, (FAR,))]

    def lookup(self, problem: str) -> Owner | None:
        """The owner of a problem; None if it never had one."""
        with asking(self._asking) as connection:
            row = connection.execute(LOOKUP, (problem,)).fetchone()
        return None if row is None else Owner(*row)

    def claim(self, problem: str) -> int | None:
        """Own a problem from now on; the new epoch, or None if another process owns it."""
        with asking(self._asking) as connection:
            if connection.execute("SELECT 1 FROM problem WHERE name = %s", (problem,)).fetchone() is None:
                sql = "INSERT INTO problem (name) VALUES (%s) ON CONFLICT DO NOTHING"
                connection.execute(sql, (problem,))
            started = passing()
            row = connection.execute(CLAIM, (problem, self.url, LEASE, LEASE)).fetchone()
        if row is None:
            return None
        with self._guard:
            self._held[problem] = StoreLockedError(row[0], started + LEASE)
        return int(row[0])

    def epoch(self, problem: str) -> int | None:
        """The epoch in which this process owns a problem, as far as it knows; None if it does not."""
        lease = self._held.get(problem)
        return None if lease is None else lease.epoch

    def holds(self, problem: str) -> bool:
        """Whether the lease is certainly valid."""
        lease = self._held.get(problem)
        return lease is not None and passing() < lease.until

    def renew(self) -> None:
        """Extend the leases of all problems of this process, and forget those that another process owns now.

        The database is asked even if nothing is owned, to know whether it answers.
        """
        with self._guard:
            held = dict(self._held)
        with asking(self._renewing) as connection:
            started = passing()
            params = (LEASE, list(held), [lease.epoch for lease in held.values()])
            renewed = {name for (name,) in connection.execute(RENEW, params)}
        with self._guard:
            for name, lease in held.items():
                if self._held.get(name) != lease:
                    continue  # released or claimed again meanwhile
                if name in renewed:
                    self._held[name] = StoreLockedError(lease.epoch, started + LEASE)
                else:
                    del self._held[name]

    def release(self, problem: str) -> None:
        """Let others claim a problem at once; if the database does not answer, when the lease is over."""
        with self._guard:
            lease = self._held.pop(problem, None)
        if lease is not None:
            with contextlib.suppress(StoreError), asking(self._asking) as connection:
                connection.execute(RELEASE, (problem, lease.epoch))

    def close(self) -> None:
        """Release all problems, and close the connections."""
        for problem in list(self._held):
            self.release(problem)
        self._asking.close()
        self._renewing.close()


class Shared:
    """The stores of this process. Threads may share it; other processes reach this one at `url`."""

    single = False  # each problem has a store of its own

    def __init__(
        self,
        dsn: str,
        url: str | None = None,
        *,
        sync: str = "full",
        clock: Callable[[], float] | None = None,
        connect: connection.Connect = connection.plain,
    ) -> None:
        """Connect, and start the threads that renew leases and look after problems."""
        self._pool = Pool(dsn, one_of("sync", sync, tuple(connection.SYNC)), connect=connect)
        self._clock = clock
        self.owners = Owners(dsn, url, connect=connect)
        self._stores: dict[str, Store] = {}
        self._since: dict[str, float] = {}
        self._saved: dict[str, float] = {}  # when a snapshot was last made
        self._lock = threading.RLock()  # for claims; a store that is open can be used without it
        self._closing, self._complaint = threading.Event(), ""
        self.owners.names()  # raises now if the database cannot be used
        self._heard = passing()  # when the database last answered
        # Two threads: a lease must not run out because a claim has to wait.
        works = {"unfog leases": self._renew, "unfog problems": self._tend}
        self._threads = [
            threading.Thread(target=self._repeat, args=(work,), name=name, daemon=True)
            for name, work in works.items()
        ]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def names(self) -> list[str]:
        """All problems, whichever process serves them."""
        return self.owners.names()

    def stores(self) -> list[Store]:
        """The stores of the problems that this process serves."""
        return [store for name, store in list(self._stores.items()) if self.owners.holds(name)]

    def announce(self, url: str) -> None:
        """Do nothing: the owners' rows have the address."""

    def here(self, name: str) -> Store | None:
        """The open store of a problem, if it may be used now; without asking the database."""
        store = self._stores.get(name)
        usable = store is not None and not self._is_lost(name, store) and self.owners.holds(name)
        return store if usable else None

    def store(self, name: str) -> Store:
        """The store of a problem; ServedElsewhereError if another process has it, StoreError if none does."""
        store = self._find_store(check_name("name", name))
        if store is None and not self.owners.is_made(name):
            raise NotFoundError("name", repr(name), ", ".join(self.names()) or "none: the database is empty")
        return self._claimed(name) if store is None else store

    def place(self, name: str) -> Store:
        """The store in which a new problem of this name can be created."""
        store = self._find_store(check_name("name", name))
        return self._claimed(name) if store is None else store

    def adopt(self) -> None:
        """Claim the problems that no process serves."""
        for name in self.owners.abandoned():
            if not self._closing.is_set():
                self._try(self._claimed, name)

    @property
    def trouble(self) -> str:
        """A message if the database does not answer; else empty."""
        silent = passing() - self._heard
        return "" if silent < SILENT else f"the database has not answered for {silent:.0f} seconds"

    def close(self) -> None:
        """Close all stores, and release each problem as soon as its store is closed."""
        self._closing.set()
        for thread in self._threads:
            thread.join()
        with self._lock:
            self._drop_lost()
            try:
                with contextlib.ExitStack() as stack:
                    for name, store in self._stores.items():
                        stack.callback(self.owners.release, name)
                        stack.callback(store.close)  # callbacks run in reverse order
            finally:
                self._stores.clear()
                self.owners.close()
                self._pool.close()

    def _find_store(self, name: str) -> Store | None:
        """The open store of a problem, or None; ServedElsewhereError if another process has it. No lock."""
        if self._closing.is_set():
            raise StoreError("the store is closed")
        store = self._find_open(name)
        if store is None:
            error = self._find_other_owner(name, self.owners.lookup(name))
            if error is not None:
                self._forget(name)
                raise error
        return store

    def _find_other_owner(self, name: str, owner: Owner | None) -> ServedElsewhereError | None:
        """The error that says where another process serves a problem, if one does."""
        if owner is None or not owner.alive or owner.url in (None, self.owners.url):
            return None
        return ServedElsewhereError(f"{name!r} is served at {owner.url}", str(owner.url))

    def _find_open(self, name: str) -> Store | None:
        """The open store of a problem, or None; StoreError if its lease may be over."""
        store = self._stores.get(name)
        if store is None or self._is_lost(name, store):
            return None
        if not self.owners.holds(name):
            raise StoreError(f"the lease on {name!r} may be over: the database could not be asked; ask again")
        return store

    def _claimed(self, name: str) -> Store:
        """Claim a problem and open its store."""
        with self._lock:
            if self._closing.is_set():
                raise StoreError("the store is closed")
            store = self._find_open(name)  # another thread may have been faster
            if store is not None:
                return store
            self._drop(name)
            epoch = self.owners.claim(name)
            if epoch is None:
                raise self._build_refusal(name)
            try:
                store = Store(EventLog(PostgresBackend(self._pool, name, epoch)), self._clock)
            except BaseException:
                self.owners.release(name)
                raise
            self._stores[name], self._since[name] = store, passing()
            return store

    def _build_refusal(self, name: str) -> StoreError:
        """The error for a problem that could not be claimed."""
        error = self._find_other_owner(name, self.owners.lookup(name))
        return error or StoreError(f"nobody serves {name!r} yet; ask again in a few seconds")

    def _forget(self, name: str) -> None:
        """Drop the store of a problem that another process owns, if it is still here."""
        if name in self._stores:
            with self._lock:
                if name in self._stores and self._is_lost(name, self._stores[name]):
                    self._drop(name)

    def _drop(self, name: str) -> None:
        """Drop a store whose problem another process owns. The database refuses rows that still wait."""
        store = self._stores.pop(name, None)
        if store is not None:
            store_log = store.processor.log
            with contextlib.suppress(StoreError):
                store_log.close()
            if store_log.lost is None:  # no row waited: callers that still use the store must get an error
                store_log.lost = OwnershipLostError(f"{name!r} is not served here any more")

    def _is_lost(self, name: str, store: Store) -> bool:
        return store.processor.log.lost is not None or self.owners.epoch(name) is None

    def _drop_lost(self) -> None:
        for name, store in list(self._stores.items()):
            if self._is_lost(name, store):
                self._drop(name)

    def _repeat(self, work: Callable[[], None]) -> None:
        while not self._closing.wait(EVERY):
            self._try(work)

    def _try(self, work: Callable[..., object], *arguments: object) -> None:
        """Call a function that is repeated soon; log its exceptions, but not the same one twice in a row."""
        try:
            work(*arguments)
        except StoreError:
            pass  # the database does not answer, or another process was faster
        except Exception as error:
            if self._complaint != type(error).__name__:
                log.exception("the problems of the database are not tended")
            self._complaint = type(error).__name__

    def _renew(self) -> None:
        self.owners.renew()
        self._heard = passing()

    def _tend(self) -> None:
        """Drop lost problems, release those never created, save the rest, and claim any without an owner."""
        with self._lock:
            self._drop_lost()
            self._give_back()
        for name in list(self._stores):
            with contextlib.suppress(StoreError):  # a snapshot is only a cache
                self._save(name)
        self.adopt()

    def _save(self, name: str) -> None:
        store = self._stores.get(name)
        if store is None or store.processor.cache.unsaved(name) < TAIL:
            return
        if passing() - self._saved.get(name, -SAVED) >= SAVED:
            store.processor.cache.save()
            self._saved[name] = passing()

    def _give_back(self) -> None:
        """Release problems that were claimed but never created."""
        for name, store in list(self._stores.items()):
            if store.processor.log.last == 0 and passing() - self._since[name] > EMPTY:
                self._drop(name)
                self.owners.release(name)
