"""The service apart from HTTP: stores and their writers, whether they are ready, and how a call is done."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from starlette.types import Scope

from unfog.live import Store
from unfog.live.errors import Elsewhere, StoreError
from unfog.live.vitals import Vitals
from unfog.serve.calls import Answer, Call
from unfog.serve.doors import Caller, Doors, address
from unfog.serve.forward import Away
from unfog.serve.limits import Buckets
from unfog.serve.line import Asked
from unfog.serve.metrics import Metrics, Seen
from unfog.serve.mistakes import told
from unfog.serve.operations import Done, Operation
from unfog.serve.readers import Readers
from unfog.serve.refusals import Refused, busy, words
from unfog.serve.room import Room
from unfog.serve.settings import Settings
from unfog.serve.shelf import Shelf
from unfog.serve.writer import Writer
from unfog.validation import InputError

EVERY = 1.0  # seconds between looks for what has expired, and for keys that have changed
log = logging.getLogger("unfog.serve")


class Service:
    """All of it; used by the event loop alone, which starts and stops it."""

    def __init__(self, shelf: Shelf, settings: Settings, doors: Doors) -> None:
        """Nothing is read yet."""
        self.shelf, self.settings, self.doors, self.metrics = shelf, settings, doors, Metrics()
        self.ready, self.failed = False, ""  # why it could not stop in good order
        self._buckets, self.room, self.readers = Buckets(settings.rate), Room(), Readers()
        self.broken: dict[str, str] = {}  # problems that cannot be served, and why
        self._writers: dict[Store, Writer] = {}
        self._away, self._stopping = Away(), False
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Read the logs, and look from time to time for what has expired."""
        self._tasks += [asyncio.create_task(self._warm()), asyncio.create_task(self._watch())]

    def admit(self, scope: Scope, headers: Mapping[bytes, bytes]) -> Caller:
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
                log.error("keys could not be looked at: %s", told(error))

    async def _warm(self) -> None:
        await asyncio.to_thread(import_module, "xarray")  # it takes long: no first look is to wait for it
        await asyncio.to_thread(self.shelf.adopt)
        for store in self.shelf.stores():
            for name in store.names():
                await self._remember(store, name)
        self.ready = True
        self._tasks.append(asyncio.create_task(self._expire()))

    async def _remember(self, store: Store, name: str) -> None:
        """Read a problem's log; one that cannot be read does not keep others from being served."""
        try:
            await asyncio.to_thread(store.warmed, name)
            self.broken.pop(name, None)
        except Exception as error:  # noqa: BLE001
            self._break(name, error)

    def _break(self, name: str, error: Exception) -> None:
        """A problem cannot be served: that is told, and logged once."""
        why = words(error)
        if self.broken.get(name) != why:
            log.warning("problem %r cannot be served: %s", name, told(error))
        self.broken[name] = why

    async def _expire(self) -> None:
        while True:
            await asyncio.sleep(EVERY)
            stores = self.shelf.stores()
            await asyncio.gather(*map(self._expired_in, stores))
            await asyncio.gather(*(writer.prove() for writer in self._writers.values()))
            for store in [one for one in self._writers if one not in stores and one.log.lost is not None]:
                await self._writers.pop(store).close()
            here = {name for store in stores for name in store.names()}
            self.broken = {name: why for name, why in self.broken.items() if name in here}

    async def _expired_in(self, store: Store) -> None:
        for name in store.names():
            await self._expired(store, name)

    async def _expired(self, store: Store, name: str) -> None:
        try:
            await self.writer(store).ask(partial(_up_to_date, store, name))
            self.broken.pop(name, None)
        except Refused:
            pass  # too much waits already: whoever asks next finds what has expired
        except Exception as error:  # noqa: BLE001
            self._break(name, error)

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
            log.error("the store could not be closed: %s", told(error))

    def writer(self, store: Store) -> Writer:
        """The writer of a store."""
        found = self._writers.get(store)
        if found is None:
            found = self._writers[store] = Writer(
                store, self.settings.queue, self.metrics.committed, local=self.shelf.single
            )
        return found

    async def store(self, name: str) -> Store:
        """The store that has a problem; where it is not known at once it is asked for in a thread."""
        here = self.shelf.here(name)
        return await asyncio.to_thread(self.shelf.store, name) if here is None else here

    async def place(self, name: str) -> Store:
        """The store for a new problem."""
        here = self.shelf.here(name)
        return await asyncio.to_thread(self.shelf.place, name) if here is None else here

    async def passed_on(self, other: Elsewhere, name: str, asked: Asked) -> Answer:
        """What the process that serves a problem answers."""
        return await self._away.ask(other, asked, partial(self._is_still, other.url, name))

    async def _is_still(self, url: str, name: str) -> bool:
        """Whether a problem is served there; where nobody serves it by now, this process takes it over."""
        try:
            await self.store(name)
        except Elsewhere as other:
            return other.url == url
        except (InputError, StoreError):
            return False
        return False

    def only(self) -> Store:
        """The one store that there is."""
        if not self.shelf.single:
            said = "The logs are in a database: copy it with its own tools, such as pg_dump."
            raise Refused(409, said)
        return self.shelf.stores()[0]

    def folders(self) -> list[Path]:
        """Where files are, which is the operator's business alone."""
        found = [store.log.path.parent for store in self.shelf.stores() if store.log.path is not None]
        return found if self.settings.backups is None else [*found, self.settings.backups.resolve()]

    async def measured(self) -> bytes:
        """What is counted, for Prometheus."""
        problems: dict[str, Vitals] = {}
        events: dict[tuple[str, str, str], int] = {}
        for store in self.shelf.stores() if self.ready else ():
            with suppress(StoreError, Refused):  # it is busy, or closed: the rest is told
                problems |= await self.writer(store).ask(partial(_vitals, store))
            events |= store.written
        queue = sum(writer.waiting for writer in self._writers.values())
        ready = self.ready and not self.trouble()
        return self.metrics.text(Seen(problems, events, queue, ready))

    def trouble(self) -> str:
        """Why nothing can be written, if so."""
        found = [self.shelf.trouble, *(writer.trouble for writer in self._writers.values())]
        return "; ".join(filter(None, found))

    async def do(self, operation: Operation, call: Call) -> Any:
        """What an operation answers."""
        if self._stopping:
            raise busy("The service is stopping; nothing was done.")
        if not self.ready:
            raise busy("The logs are being read; nothing was done.")
        work: Callable[[], Any] = partial(operation.work, call)
        if operation.done is Done.BESIDE:
            return await self.room.do(work)
        return await self.writer(call.store).ask(work, call.name if operation.short(call.body) else None)


def _vitals(store: Store) -> dict[str, Vitals]:
    found = {}
    for name in store.names():
        with suppress(Exception):  # one that cannot be served has none; why is logged elsewhere
            found[name] = store.handle(name).vitals()
    return found


def _up_to_date(store: Store, name: str) -> None:
    store.up_to_date(name)
