"""Who owns a problem: one process at a time, for as long as it renews its lease.

    lease_until < now   nobody does; whoever claims the problem first has it, in a new epoch
    otherwise           the owner's url says where it is served

All times in the table are those of the database. A process cannot read that clock without asking, so it
counts its own lease from before it asked, by a clock that nobody can set: its count ends first.
"""

import contextlib
import threading
from typing import NamedTuple

from unfog.live.clock import passing
from unfog.live.errors import StoreError
from unfog.live.postgres import connecting
from unfog.live.postgres.session import Session

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


class Owner(NamedTuple):
    """What the table says of a problem."""

    url: str | None
    epoch: int
    alive: bool  # its lease lasts


class Held(NamedTuple):
    """What this process owns."""

    epoch: int
    until: float  # of the clock of this process


class Owners:
    """The table of owners, for one process that can be reached at `url`. Threads may share it."""

    def __init__(
        self, dsn: str, url: str | None = None, *, connect: connecting.Connect = connecting.plain
    ) -> None:
        """Nothing is owned yet."""
        self.url = url
        self._held: dict[str, Held] = {}
        self._guard = threading.Lock()  # of changes to that
        self._asking = Session(dsn, connect)
        self._renewing = Session(dsn, connect)  # its own: nobody who waits for a claim may hold it up

    def names(self) -> list[str]:
        """All problems, whoever serves them, in the order in which they were made."""
        with self._asking.using() as connection:
            return [name for (name,) in connection.execute(NAMES)]

    def is_made(self, problem: str) -> bool:
        """Whether there is such a problem."""
        with self._asking.using() as connection:
            return connection.execute(IS_MADE, (problem,)).fetchone() is not None

    def abandoned(self) -> list[str]:
        """Problems that nobody serves."""
        with self._asking.using() as connection:
            return [name for (name,) in connection.execute(ABANDONED, (FAR,))]

    def lookup(self, problem: str) -> Owner | None:
        """Who serves a problem; None: nobody ever did."""
        with self._asking.using() as connection:
            found = connection.execute(LOOKUP, (problem,)).fetchone()
        return None if found is None else Owner(*found)

    def claim(self, problem: str) -> int | None:
        """Serve a problem from now on, in this epoch; None where somebody else does."""
        with self._asking.using() as connection:
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
        with self._renewing.using() as connection:
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
            with contextlib.suppress(StoreError), self._asking.using() as connection:
                connection.execute(RELEASE, (problem, held.epoch))

    def close(self) -> None:
        """Own nothing."""
        for problem in list(self._held):
            self.release(problem)
        self._asking.close()
        self._renewing.close()
