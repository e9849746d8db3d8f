"""Ownership of problems in a shared database: leases, and a store for each problem of this process.

One process at a time owns a problem, for as long as it renews its lease (`Owners`):

    lease_until < now   nobody owns it; the first to claim the problem gets it, in a new epoch
    otherwise           the owner's url says where it is served

All times in the table are those of the database. A process cannot read that clock without asking, so it
counts its own lease from before it asked, by a clock that nobody can set: its own count ends first.

`Shared` has a store for each problem that this process owns. A problem is claimed when it is asked for.
Problems that nobody serves are claimed when they are found, so that their decisions expire. A valid lease is
never taken away: processes do not fight over problems. While a lease may be over the problem is not served;
if another process turns out to own it, its store is dropped.
"""

import contextlib
import logging
import threading
from collections.abc import Callable
from types import TracebackType
from typing import NamedTuple, Self

from unfog.live.errors import Elsewhere, Lost, StoreError, Unknown
from unfog.live.log import Log
from unfog.live.postgres import connection
from unfog.live.postgres.backend import PostgresBackend
from unfog.live.postgres.connection import Pool, asking
from unfog.live.processor import passing
from unfog.live.store import Store
from unfog.validation import check_name, one_of

LEASE = 3.0  # seconds
FAR = 100  # problems without an owner that are named at a time

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
MADE = "EXISTS (SELECT FROM event WHERE event.problem = problem.id AND seq = 1)"
NAMES = f"SELECT name FROM problem WHERE {MADE} ORDER BY id"
IS_MADE = f"SELECT 1 FROM problem WHERE name = %s AND {MADE}"

ABANDONED = (
    "SELECT name FROM problem LEFT JOIN owner ON owner.problem = name"
    f" WHERE (lease_until IS NULL OR lease_until < clock_timestamp()) AND {MADE} ORDER BY id LIMIT %s"
)

EVERY = 1.0  # seconds between renewals
TAIL = 1000  # events that whoever takes over may have to read ...
SAVED = 10.0  # ... or those of so many seconds
SILENT = LEASE  # seconds without an answer after which the database is taken to be away
EMPTY = 60.0  # seconds after which a problem that was placed and never made is given back
log = logging.getLogger("unfog.live")


class Owner(NamedTuple):
    """What the table says of a problem."""

    url: str | None
    epoch: int
    alive: bool  # its lease lasts


class Held(NamedTuple):
    """A problem that this process owns."""

    epoch: int
    until: float  # of the clock of this process


class Owners:
    """The table of owners, for one process that can be reached at `url`. Threads may share it."""

    def __init__(
        self, dsn: str, url: str | None = None, *, connect: connection.Connect = connection.plain
    ) -> None:
        """Nothing is owned yet."""
        self.url = url
        self._held: dict[str, Held] = {}
        self._guard = threading.Lock()  # of changes to that
        self._asking = Pool(dsn, size=1, connect=connect)
        # Its own, so that nobody who waits for a claim holds it up.
        self._renewing = Pool(dsn, size=1, connect=connect)

    def names(self) -> list[str]:
        """All problems, whoever serves them, in the order in which they were made."""
        with asking(self._asking) as connection:
            return [name for (name,) in connection.execute(NAMES)]

    def is_made(self, problem: str) -> bool:
        """Whether there is such a problem."""
        with asking(self._asking) as connection:
            return connection.execute(IS_MADE, (problem,)).fetchone() is not None

    def abandoned(self) -> list[str]:
        """Problems that nobody serves."""
        with asking(self._asking) as connection:
            return [name for (name,) in connection.execute(ABANDONED, (FAR,))]

    def lookup(self, problem: str) -> Owner | None:
        """Who serves a problem; None: nobody ever did."""
        with asking(self._asking) as connection:
            found = connection.execute(LOOKUP, (problem,)).fetchone()
        return None if found is None else Owner(*found)

    def claim(self, problem: str) -> int | None:
        """Serve a problem from now on, in this epoch; None where somebody else does."""
        with asking(self._asking) as connection:
            if connection.execute("SELECT 1 FROM problem WHERE name = %s", (problem,)).fetchone() is None:
                said = "INSERT INTO problem (name) VALUES (%s) ON CONFLICT DO NOTHING"
                connection.execute(said, (problem,))
            started = passing()
            found = connection.execute(CLAIM, (problem, self.url, LEASE, LEASE)).fetchone()
        if found is None:
            return None
        with self._guard:
            self._held[problem] = Held(found[0], started + LEASE)
        return int(found[0])

    def epoch(self, problem: str) -> int | None:
        """In which this process owns a problem, as far as it knows; None: it does not."""
        found = self._held.get(problem)
        return None if found is None else found.epoch

    def holds(self, problem: str) -> bool:
        """Whether the lease lasts for certain."""
        found = self._held.get(problem)
        return found is not None and passing() < found.until

    def renew(self) -> None:
        """Extend the leases of all that this process owns; what another has by now it does not own.

        The database is asked even where nothing is owned: that it answers is worth knowing.
        """
        with self._guard:
            held = dict(self._held)
        with asking(self._renewing) as connection:
            started = passing()
            told = (LEASE, list(held), [one.epoch for one in held.values()])
            kept = {name for (name,) in connection.execute(RENEW, told)}
        with self._guard:
            for name, found in held.items():
                if self._held.get(name) != found:
                    continue  # released or claimed anew meanwhile
                if name in kept:
                    self._held[name] = Held(found.epoch, started + LEASE)
                else:
                    del self._held[name]

    def release(self, problem: str) -> None:
        """Let others have it at once; where that cannot be said, when the lease is over."""
        with self._guard:
            held = self._held.pop(problem, None)
        if held is not None:
            with contextlib.suppress(StoreError), asking(self._asking) as connection:
                connection.execute(RELEASE, (problem, held.epoch))

    def close(self) -> None:
        """Own nothing."""
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
        """Connect, and begin to renew."""
        self._pool = Pool(dsn, one_of("sync", sync, tuple(connection.SYNC)), connect=connect)
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
        """The stores of the problems that this process serves."""
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
        found = self._asked_for(check_name("name", name))
        if found is None and not self.owners.is_made(name):
            raise Unknown("name", repr(name), ", ".join(self.names()) or "none: the database is empty")
        return self._claimed(name) if found is None else found

    def place(self, name: str) -> Store:
        """The store in which a new problem of this name is to be made."""
        found = self._asked_for(check_name("name", name))
        return self._claimed(name) if found is None else found

    def adopt(self) -> None:
        """Serve what nobody serves."""
        for name in self.owners.abandoned():
            if not self._closing.is_set():
                self._tried(self._claimed, name)

    @property
    def trouble(self) -> str:
        """Says that the database does not answer, if so; else empty."""
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
                store = Store(Log(PostgresBackend(self._pool, name, epoch)), self._clock)
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
            closed = store.processor.log
            with contextlib.suppress(StoreError):
                closed.close()
            if closed.lost is None:  # nothing waited in it: whoever still has the store is to know
                closed.lost = Lost(f"{name!r} is not served here any more")

    def _is_lost(self, name: str, store: Store) -> bool:
        return store.processor.log.lost is not None or self.owners.epoch(name) is None

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
        if store is None or store.processor.cache.unsaved(name) < TAIL:
            return
        if passing() - self._saved.get(name, -SAVED) >= SAVED:
            store.processor.cache.save()
            self._saved[name] = passing()

    def _give_back(self) -> None:
        """Problems that were placed here and never made."""
        for name, store in list(self._stores.items()):
            if store.processor.log.last == 0 and passing() - self._since[name] > EMPTY:
                self._drop(name)
                self.owners.release(name)
