"""The service apart from HTTP: stores and their writers, readiness, and how a call is carried out.

Problems are in one SQLite file that this process holds (`Single`), or in a database that several processes
share (`Shared` of live/postgres/ownership.py): both are a `Stores`. Most calls are carried out by the writer
of a store (serve/writer.py). Long ones run beside the writers, in threads of their own (`Room`).
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from unfog.live import Store
from unfog.live.errors import ServedElsewhereError, StoreError
from unfog.live.inspection import Gauges, gauges
from unfog.serve.auth import Authentication, Buckets, Caller, address
from unfog.serve.errors import ServiceError, busy, described, words
from unfog.serve.forwarding import Away, ForwardedRequest
from unfog.serve.metrics import Metrics, Seen
from unfog.serve.operations import Operation
from unfog.serve.responses import Answer, Call
from unfog.serve.settings import Settings
from unfog.serve.writer import Writer
from unfog.validation import InputError

if TYPE_CHECKING:
    from starlette.types import Scope

MOST = 16  # long operations at a time
LARGE = 2  # long operations with bodies as large as a log, at a time
LATER = 5  # seconds after which to retry a very long operation
EVERY = 1.0  # seconds between checks for expired decisions and for changed keys
STOPPING = "The service is stopping; nothing was done."
log = logging.getLogger("unfog.serve")


class Stores(Protocol):
    """The stores of a service: one file, or those that this process owns in a database."""

    single: bool  # whether one store has all problems

    @property
    def trouble(self) -> str:
        """Why no problem can be served at the moment; "" if they can."""

    def adopt(self) -> None:
        """Take over the problems that nobody serves."""

    def announce(self, url: str) -> None:
        """Publish the URL of this process for others who want its problems."""

    def here(self, name: str) -> Store | None:
        """The open store that has the problem, if that is known without asking the database."""

    def names(self) -> list[str]:
        """All problems there are."""

    def store(self, name: str) -> Store:
        """The open store that has the problem; raises if another process has it, or if nobody does."""

    def place(self, name: str) -> Store:
        """The store in which to create a problem of this name."""

    def stores(self) -> Sequence[Store]:
        """The stores that are open here."""

    def close(self) -> None:
        """Commit and release all stores."""


class Single:
    """One store for all problems."""

    single = True
    trouble = ""

    def __init__(self, store: Store) -> None:
        """The store must be open."""
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
        """Nothing to do: the file is held already."""

    def stores(self) -> list[Store]:
        """The only store."""
        return [self._store]

    def announce(self, url: str) -> None:
        """Publish the URL of this process for others who want the file."""
        self._store.processor.log.announce(url)

    def close(self) -> None:
        """Snapshot, commit, close."""
        self._store.close()


class Room:
    """A limited number of slots for long operations, and the threads in which they run.

    A slot is taken before the body of a request is read, and released when its answer is sent: until then it
    takes memory. If none is free, the caller is told to retry. Used by the event loop alone.
    """

    def __init__(self) -> None:
        """All slots are free."""
        self._taken: Counter[str] = Counter()
        self._threads = ThreadPoolExecutor(MOST, "beside the writers")

    @contextmanager
    def place(self, operation: Operation) -> Iterator[None]:
        """Take a slot for an operation; raise if none is free."""
        limits = {"": MOST}
        if operation.large:
            limits["large"] = LARGE
        if operation.alone:
            limits[operation.id] = 1
        for kind, most in limits.items():
            if self._taken[kind] >= most:
                description = "that take long" if not kind else "of this kind"
                detail = f"{most} requests {description} are under way already; nothing was done."
                raise busy(detail, LATER if kind else 1)
        self._taken.update(limits.keys())
        try:
            yield
        finally:
            self._taken.subtract(limits.keys())

    async def do(self, work: Callable[[], Any]) -> Any:
        """Run work in a thread and return its result."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def close(self) -> None:
        """Stop the threads without waiting for work under way."""
        self._threads.shutdown(wait=False, cancel_futures=True)


class Readers:
    """Requests whose bodies are being received. When the service stops, it does not wait for the rest.

    Used by the event loop alone.
    """

    def __init__(self) -> None:
        """No body is being received yet."""
        self._tasks = set[asyncio.Task[Any]]()
        self._is_stopping = False

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Receive a body; raise if the service stops before it is complete."""
        if self._is_stopping:
            raise busy(STOPPING)
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            yield
        except asyncio.CancelledError:
            task.uncancel()
            raise busy(STOPPING) from None
        finally:
            self._tasks.discard(task)

    def leave(self) -> None:
        """Stop waiting for bodies, since the service stops."""
        self._is_stopping = True
        for task in self._tasks:
            task.cancel()


class Service:
    """The whole service; used by the event loop alone, which starts and stops it."""

    def __init__(self, open_stores: Stores, settings: Settings, auth: Authentication) -> None:
        """No log has been read yet."""
        self.open_stores, self.settings, self.auth, self.metrics = open_stores, settings, auth, Metrics()
        self.ready, self.failed = False, ""  # why it could not shut down properly
        self._buckets, self.room, self.readers = Buckets(settings.rate), Room(), Readers()
        self.broken: dict[str, str] = {}  # problems that cannot be served, and why
        self._writers: dict[Store, Writer] = {}
        self._forwarder = None if open_stores.single else Away()
        self._stopping = False
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Read the logs, and start the checks for expired decisions and changed keys."""
        self._tasks += [asyncio.create_task(self._warm_up()), asyncio.create_task(self._watch())]

    def admit(self, scope: "Scope", headers: Mapping[bytes, bytes]) -> Caller:
        """Who sent a request; raises if they may not, or send too many."""
        try:
            caller = self.auth.caller(scope, headers)
        except ServiceError:
            self._buckets.take(address(scope))
            raise
        self._buckets.take(caller.name)
        return caller

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(EVERY)
            try:
                await asyncio.to_thread(self.auth.refresh)
            except Exception as error:  # noqa: BLE001
                log.error("keys could not be looked at: %s", described(error))

    async def _warm_up(self) -> None:
        # Importing xarray is slow: the first request must not wait for it.
        await asyncio.to_thread(import_module, "xarray")
        await asyncio.to_thread(self.open_stores.adopt)
        for store in self.open_stores.stores():
            for name in store.names():
                await self._load(store, name)
        self.ready = True
        self._tasks.append(asyncio.create_task(self._expire()))

    async def _load(self, store: Store, name: str) -> None:
        """Read a problem's log; a failure does not stop other problems from being served."""
        try:
            await asyncio.to_thread(store.processor.cache.load, name)
            self.broken.pop(name, None)
        except Exception as error:  # noqa: BLE001
            self._mark_broken(name, error)

    def _mark_broken(self, name: str, error: Exception) -> None:
        """Record why a problem cannot be served; the same reason is logged once."""
        reason = words(error)
        if self.broken.get(name) != reason:
            log.warning("problem %r cannot be served: %s", name, described(error))
        self.broken[name] = reason

    async def _expire(self) -> None:
        while True:
            await asyncio.sleep(EVERY)
            stores = self.open_stores.stores()
            await asyncio.gather(*map(self._expire_store, stores))
            await asyncio.gather(*(writer.prove() for writer in self._writers.values()))
            for store in [one for one in self._writers if one not in stores]:
                if store.processor.log.lost is not None:
                    await self._writers.pop(store).close()
            names = {name for store in stores for name in store.names()}
            self.broken = {name: reason for name, reason in self.broken.items() if name in names}

    async def _expire_store(self, store: Store) -> None:
        for name in store.names():
            await self._expire_problem(store, name)

    async def _expire_problem(self, store: Store, name: str) -> None:
        try:
            await self.writer(store).ask(partial(_update, store, name))
            self.broken.pop(name, None)
        except ServiceError:
            pass  # the queue is full: the next request for the problem expires them
        except Exception as error:  # noqa: BLE001
            self._mark_broken(name, error)

    async def stop(self) -> None:
        """Finish waiting work, write snapshots, and release the stores. A second call does nothing."""
        if self._stopping:
            return
        self._stopping = True
        for task in self._tasks:
            task.cancel()
        self.room.close()
        await asyncio.gather(*(writer.close() for writer in self._writers.values()))
        try:
            await asyncio.to_thread(self.open_stores.close)
        except StoreError as error:
            self.failed = str(error)
            log.error("the store could not be closed: %s", described(error))

    async def close(self) -> None:
        """Close the connections to other processes, once all requests are answered."""
        if self._forwarder is not None:
            await self._forwarder.close()

    def writer(self, store: Store) -> Writer:
        """The writer of a store, created at its first use."""
        writer = self._writers.get(store)
        if writer is None:
            writer = self._writers[store] = Writer(
                store.processor, self.settings.queue, self.metrics.committed, local=self.open_stores.single
            )
        return writer

    async def store(self, name: str, may_create: bool = False) -> Store:
        """The store that has or will have a problem; looked up in a thread if it is not known."""
        store = self.open_stores.here(name)
        look_up = self.open_stores.place if may_create else self.open_stores.store
        return await asyncio.to_thread(look_up, name) if store is None else store

    async def store_of(self, operation: Operation, problem: str) -> Store:
        """The store that an operation needs."""
        return await self.store(problem, operation.may_create) if problem else self._get_only_store()

    async def passed_on(self, other: ServedElsewhereError, name: str, request: ForwardedRequest) -> Answer:
        """Forward a request to the process that serves the problem, and return its answer."""
        assert self._forwarder is not None  # nobody else serves a file
        return await self._forwarder.ask(other, request, partial(self._is_still, other.url, name))

    async def _is_still(self, url: str, name: str) -> bool:
        """Whether that process still serves the problem; if nobody does, this process takes it over."""
        try:
            await self.store(name)
        except ServedElsewhereError as other:
            return other.url == url
        except (InputError, StoreError):
            return False
        return False

    def _get_only_store(self) -> Store:
        if not self.open_stores.single:
            detail = "The logs are in a database: copy it with its own tools, such as pg_dump."
            raise ServiceError(409, detail)
        return self.open_stores.stores()[0]

    def folders(self) -> list[Path]:
        """The folders of stores and backups, which concern only the operator."""
        paths = [store.processor.log.path for store in self.open_stores.stores()]
        folders = [path.parent for path in paths if path is not None]
        return folders if self.settings.backups is None else [*folders, self.settings.backups.resolve()]

    async def measured(self) -> bytes:
        """The metrics in the text format of Prometheus."""
        problems: dict[str, Gauges] = {}
        events: dict[tuple[str, str, str], int] = {}
        for store in self.open_stores.stores() if self.ready else ():
            with suppress(StoreError, ServiceError):  # busy or closed: report the others
                problems |= await self.writer(store).ask(partial(_read_gauges, store))
            events |= store.processor.written
        queue = sum(writer.waiting for writer in self._writers.values())
        ready = self.ready and not self.trouble()
        return self.metrics.text(Seen(problems, events, queue, ready))

    def trouble(self) -> str:
        """Why nothing can be written; "" if it can."""
        causes = [self.open_stores.trouble, *(writer.trouble for writer in self._writers.values())]
        return "; ".join(filter(None, causes))

    async def do(self, operation: Operation, call: Call) -> Any:
        """Carry out an operation and return its result."""
        if self._stopping:
            raise busy(STOPPING)
        if not self.ready:
            raise busy("The logs are being read; nothing was done.")
        work: Callable[[], Any] = partial(operation.work, call)
        if operation.beside:
            return await self.room.do(work)
        return await self.writer(call.store).ask(work, call.name if operation.short(call.body) else None)


def _read_gauges(store: Store) -> dict[str, Gauges]:
    by_problem, processor = {}, store.processor
    for name in store.names():
        # A problem that cannot be served has none; why is logged elsewhere.
        with suppress(Exception), processor.lock:
            by_problem[name] = gauges(processor.cache.get(name), processor.now(name))
    return by_problem


def _update(store: Store, name: str) -> None:
    store.processor.up_to_date(name)
