"""The service apart from HTTP: stores and their writers, readiness, and how a call is done.

Problems are in one SQLite file that this process holds (`Single`), or in a database that several processes
share (`Shared` of live/postgres/ownership.py): both are a `Shelf`. Most calls are done by the writer of a
store (serve/writer.py). What takes long is done beside the writers, in threads of its own (`Room`).
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
from unfog.live.errors import Elsewhere, StoreError
from unfog.live.inspection import Vitals, vitals
from unfog.serve.auth import Buckets, Caller, Doors, address
from unfog.serve.errors import Refused, busy, described, words
from unfog.serve.forwarding import Asked, Away
from unfog.serve.metrics import Metrics, Seen
from unfog.serve.operations import Operation
from unfog.serve.responses import Answer, Call
from unfog.serve.settings import Settings
from unfog.serve.writer import Writer
from unfog.validation import InputError

if TYPE_CHECKING:
    from starlette.types import Scope

MOST = 16  # operations that take long, at a time
LARGE = 2  # of them with bodies that may be as large as a log
LATER = 5  # seconds after which to ask again for what takes very long
EVERY = 1.0  # seconds between looks for what has expired, and for keys that have changed
STOPPING = "The service is stopping; nothing was done."
log = logging.getLogger("unfog.serve")


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
        """The stores that are open here."""

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
        self._store.processor.log.announce(url)

    def close(self) -> None:
        """Snapshot, commit, close."""
        self._store.close()


class Room:
    """Places for what takes long: so much of it at a time, and no more.

    A place is taken before the body of a request is read, and left when its answer is sent: until then it
    takes memory. Who finds none is told to ask again. Used by the event loop alone.
    """

    def __init__(self) -> None:
        """All are free."""
        self._taken: Counter[str] = Counter()
        self._threads = ThreadPoolExecutor(MOST, "beside the writers")

    @contextmanager
    def place(self, operation: Operation) -> Iterator[None]:
        """Where an operation may take its time; a complaint where there is none."""
        wanted = {"": MOST}
        if operation.large:
            wanted["large"] = LARGE
        if operation.alone:
            wanted[operation.id] = 1
        for kind, most in wanted.items():
            if self._taken[kind] >= most:
                what = "that take long" if not kind else "of this kind"
                detail = f"{most} requests {what} are under way already; nothing was done."
                raise busy(detail, LATER if kind else 1)
        self._taken.update(wanted.keys())
        try:
            yield
        finally:
            self._taken.subtract(wanted.keys())

    async def do(self, work: Callable[[], Any]) -> Any:
        """What work comes to that is done by a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def close(self) -> None:
        """No more of it; what is under way is not waited for."""
        self._threads.shutdown(wait=False, cancel_futures=True)


class Readers:
    """Requests whose bodies are on their way. When the service stops nobody waits for the rest of them.

    Used by the event loop alone.
    """

    def __init__(self) -> None:
        """None yet."""
        self._tasks = set[asyncio.Task[Any]]()
        self._is_stopping = False

    @contextmanager
    def reading(self) -> Iterator[None]:
        """A body is read; a complaint where the service stops before it is there."""
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
        """The service stops."""
        self._is_stopping = True
        for task in self._tasks:
            task.cancel()


class Service:
    """The whole service; used by the event loop alone, which starts and stops it."""

    def __init__(self, shelf: Shelf, settings: Settings, doors: Doors) -> None:
        """Nothing is read yet."""
        self.shelf, self.settings, self.doors, self.metrics = shelf, settings, doors, Metrics()
        self.ready, self.failed = False, ""  # why it could not stop in good order
        self._buckets, self.room, self.readers = Buckets(settings.rate), Room(), Readers()
        self.broken: dict[str, str] = {}  # problems that cannot be served, and why
        self._writers: dict[Store, Writer] = {}
        self._forwarder = None if shelf.single else Away()
        self._stopping = False
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Read the logs, and look from time to time for what has expired."""
        self._tasks += [asyncio.create_task(self._warm_up()), asyncio.create_task(self._watch())]

    def admit(self, scope: "Scope", headers: Mapping[bytes, bytes]) -> Caller:
        """Who asks; a complaint of who may not come in, or asks too often."""
        try:
            caller = self.doors.caller(scope, headers)
        except Refused:
            self._buckets.take(address(scope))
            raise
        self._buckets.take(caller.name)
        return caller

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(EVERY)
            try:
                await asyncio.to_thread(self.doors.refresh)
            except Exception as error:  # noqa: BLE001
                log.error("keys could not be looked at: %s", described(error))

    async def _warm_up(self) -> None:
        await asyncio.to_thread(import_module, "xarray")  # it takes long: no first look is to wait for it
        await asyncio.to_thread(self.shelf.adopt)
        for store in self.shelf.stores():
            for name in store.names():
                await self._load(store, name)
        self.ready = True
        self._tasks.append(asyncio.create_task(self._expire()))

    async def _load(self, store: Store, name: str) -> None:
        """Read a problem's log; one that cannot be read does not keep others from being served."""
        try:
            await asyncio.to_thread(store.processor.cache.load, name)
            self.broken.pop(name, None)
        except Exception as error:  # noqa: BLE001
            self._mark_broken(name, error)

    def _mark_broken(self, name: str, error: Exception) -> None:
        """A problem cannot be served: that is told, and logged once."""
        why = words(error)
        if self.broken.get(name) != why:
            log.warning("problem %r cannot be served: %s", name, described(error))
        self.broken[name] = why

    async def _expire(self) -> None:
        while True:
            await asyncio.sleep(EVERY)
            stores = self.shelf.stores()
            await asyncio.gather(*map(self._expire_store, stores))
            await asyncio.gather(*(writer.prove() for writer in self._writers.values()))
            for store in [one for one in self._writers if one not in stores]:
                if store.processor.log.lost is not None:
                    await self._writers.pop(store).close()
            here = {name for store in stores for name in store.names()}
            self.broken = {name: why for name, why in self.broken.items() if name in here}

    async def _expire_store(self, store: Store) -> None:
        for name in store.names():
            await self._expire_problem(store, name)

    async def _expire_problem(self, store: Store, name: str) -> None:
        try:
            await self.writer(store).ask(partial(_update, store, name))
            self.broken.pop(name, None)
        except Refused:
            pass  # too much waits already: whoever asks next finds what has expired
        except Exception as error:  # noqa: BLE001
            self._mark_broken(name, error)

    async def stop(self) -> None:
        """Do what waits, write down what is remembered, and give the stores back. Again it does nothing."""
        if self._stopping:
            return
        self._stopping = True
        for task in self._tasks:
            task.cancel()
        self.room.close()
        await asyncio.gather(*(writer.close() for writer in self._writers.values()))
        try:
            await asyncio.to_thread(self.shelf.close)
        except StoreError as error:
            self.failed = str(error)
            log.error("the store could not be closed: %s", described(error))

    async def close(self) -> None:
        """When all requests are answered, those that were passed on as well: no more of them."""
        if self._forwarder is not None:
            await self._forwarder.close()

    def writer(self, store: Store) -> Writer:
        """The writer of a store."""
        writer = self._writers.get(store)
        if writer is None:
            writer = self._writers[store] = Writer(
                store.processor, self.settings.queue, self.metrics.committed, local=self.shelf.single
            )
        return writer

    async def store(self, name: str, may_create: bool = False) -> Store:
        """The store that has a problem, or is to have it; looked up in a thread if not known at once."""
        here = self.shelf.here(name)
        look_up = self.shelf.place if may_create else self.shelf.store
        return await asyncio.to_thread(look_up, name) if here is None else here

    async def store_of(self, operation: Operation, problem: str) -> Store:
        """The store that an operation needs."""
        return await self.store(problem, operation.may_create) if problem else self._get_only_store()

    async def passed_on(self, other: Elsewhere, name: str, request: Asked) -> Answer:
        """What the process that serves a problem answers."""
        assert self._forwarder is not None  # nobody else serves a file
        return await self._forwarder.ask(other, request, partial(self._is_still, other.url, name))

    async def _is_still(self, url: str, name: str) -> bool:
        """Whether a problem is served there; where nobody serves it by now, this process takes it over."""
        try:
            await self.store(name)
        except Elsewhere as other:
            return other.url == url
        except (InputError, StoreError):
            return False
        return False

    def _get_only_store(self) -> Store:
        if not self.shelf.single:
            detail = "The logs are in a database: copy it with its own tools, such as pg_dump."
            raise Refused(409, detail)
        return self.shelf.stores()[0]

    def folders(self) -> list[Path]:
        """Where files are, which is the operator's business alone."""
        paths = [store.processor.log.path for store in self.shelf.stores()]
        folders = [path.parent for path in paths if path is not None]
        return folders if self.settings.backups is None else [*folders, self.settings.backups.resolve()]

    async def measured(self) -> bytes:
        """What is counted, for Prometheus."""
        problems: dict[str, Vitals] = {}
        events: dict[tuple[str, str, str], int] = {}
        for store in self.shelf.stores() if self.ready else ():
            with suppress(StoreError, Refused):  # it is busy, or closed: the rest is told
                problems |= await self.writer(store).ask(partial(_read_vitals, store))
            events |= store.processor.written
        queue = sum(writer.waiting for writer in self._writers.values())
        ready = self.ready and not self.trouble()
        return self.metrics.text(Seen(problems, events, queue, ready))

    def trouble(self) -> str:
        """Why nothing can be written, if so."""
        causes = [self.shelf.trouble, *(writer.trouble for writer in self._writers.values())]
        return "; ".join(filter(None, causes))

    async def do(self, operation: Operation, call: Call) -> Any:
        """What an operation answers."""
        if self._stopping:
            raise busy(STOPPING)
        if not self.ready:
            raise busy("The logs are being read; nothing was done.")
        work: Callable[[], Any] = partial(operation.work, call)
        if operation.beside:
            return await self.room.do(work)
        return await self.writer(call.store).ask(work, call.name if operation.short(call.body) else None)


def _read_vitals(store: Store) -> dict[str, Vitals]:
    by_problem, processor = {}, store.processor
    for name in store.names():
        # One that cannot be served has none; why is logged elsewhere.
        with suppress(Exception), processor.lock:
            by_problem[name] = vitals(processor.cache.get(name), processor.now(name))
    return by_problem


def _update(store: Store, name: str) -> None:
    store.processor.up_to_date(name)
