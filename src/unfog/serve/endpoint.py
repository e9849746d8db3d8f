"""One address of the service: from a request to its answer, by the operations that it has."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack
from time import perf_counter
from typing import Any
from urllib.parse import parse_qsl

from starlette.types import Receive, Scope, Send

from unfog.live import Store
from unfog.live.errors import Elsewhere, StoreError
from unfog.serve import bodies, fixed, refusals, strict
from unfog.serve.calls import Answer, Call
from unfog.serve.doors import Caller
from unfog.serve.everywhere import Erasing
from unfog.serve.exchange import as_json, as_problem, body_of, headers_of, sent
from unfog.serve.forward import asked_by
from unfog.serve.media import JSON, LINES
from unfog.serve.mistakes import told
from unfog.serve.operations import ONCE, Done, Operation
from unfog.serve.refusals import Refused
from unfog.serve.service import Service
from unfog.validation import InputError, shown

SMALL = 64 << 10  # bytes of a body; to read a larger one would keep others waiting
log = logging.getLogger("unfog.serve")


class CutShort(Exception):
    """The rest of an answer could not be had; why is in the log already."""


class Endpoint:
    """An ASGI application for one path."""

    def __init__(self, service: Service, path: str, operations: Sequence[Operation]) -> None:
        """With an operation for each method; to look at what is not of one problem needs none."""
        self._service = service
        self._by_method = {one.method: one for one in operations}
        self._fixed, self._file = fixed.ADDRESSES.get(path), fixed.page_files().get(path)
        self._name = "page" if self._fixed is None else self._fixed.__name__
        looks = self._fixed is not None or self._file is not None
        self._allowed = [*self._by_method, *(["GET", "HEAD"] if looks else [])]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer; whatever goes wrong is an answer, too."""
        started = perf_counter()
        operation = self._by_method.get(scope["method"])
        name = operation.id if operation is not None else self._name
        with ExitStack() as places:
            answer = await self._certain(operation, scope, receive, places)
            try:
                await sent(answer, send, head_only=scope["method"] == "HEAD")
            except asyncio.CancelledError:
                log.warning("an answer to %s was cut short: the service stops", name)
                return
            except Exception as error:  # noqa: BLE001
                log.error("an answer was cut short: %s", told(error))
                raise CutShort from None  # so that the connection ends: what came is not taken for all
        self._service.metrics.answered(name, answer.status, perf_counter() - started)

    async def _certain(
        self, operation: Operation | None, scope: Scope, receive: Receive, places: ExitStack
    ) -> Answer:
        """An answer, whatever happens; `places` are left when it is sent."""
        try:
            return await self._answer(operation, scope, receive, places)
        except asyncio.CancelledError:  # the service stops, and has waited long enough
            return as_problem(refusals.given_up())
        except Exception as error:  # noqa: BLE001
            found = refusals.refusal(_discreet(error, scope.get("caller")), self._service.folders())
            self._log(operation, error, known=found is not None)
            return as_problem(found or refusals.mistake())

    async def _answer(
        self, operation: Operation | None, scope: Scope, receive: Receive, places: ExitStack
    ) -> Answer:
        if operation is None:
            return await self._looked(scope)
        headers, service = headers_of(scope), self._service
        name = scope["path_params"].get("name", "")
        caller = scope["caller"] = service.admit(scope, headers)
        if operation.names:
            caller.check_some(operation.scope)
        else:
            caller.check(operation.scope, name or None)
        query = _query(operation, scope["query_string"])
        if operation.done is Done.BESIDE:
            places.enter_context(service.room.place(operation))  # before there is a body that takes memory
        raw = await self._raw(operation, receive, headers)
        given = operation, headers, raw
        body = _body(*given) if len(raw) <= SMALL else await asyncio.to_thread(_body, *given)
        if operation.names:
            caller.check(operation.scope, body.name)
        if isinstance(body, bodies.Erase) and body.problem is None and not service.shelf.single:
            return await Erasing(service, operation, scope, headers).answer(body.unit)
        try:
            store = await self._store(operation, name, body)
        except Elsewhere as other:
            asked = asked_by(scope, headers, raw)
            return await service.passed_on(other, name or _named(body), asked)
        decision = scope["path_params"].get("id", "")
        call = Call(store, service.settings, name, decision, body, query, _key(operation, headers))
        found = await service.do(operation, call)
        if isinstance(found, Iterator):
            return Answer(_streamed(found), 200, LINES if operation.lines else JSON)
        return as_json(found, 201 if operation.id == "make" and found["made"] else 200)

    def _log(self, operation: Operation | None, error: Exception, *, known: bool) -> None:
        """A mistake; and a failure beside the writer, which tells of its own."""
        if not known:
            log.error("a mistake in %s: %s", operation.id if operation else "nothing", told(error))
        elif isinstance(error, StoreError) and operation is not None and operation.done is Done.BESIDE:
            log.warning("%s was not done: %s", operation.id, told(error))

    async def _raw(self, operation: Operation, receive: Receive, headers: dict[bytes, bytes]) -> bytes:
        """The bytes of the body, no more than may be."""
        if operation.method != "POST":
            return b""
        settings = self._service.settings
        with self._service.readers.reading():
            return await body_of(receive, headers, settings.bulk if operation.large else settings.body)

    async def _looked(self, scope: Scope) -> Answer:
        """What is not of one problem; or that there is no such thing."""
        if not self._allowed:
            raise Refused(404, "There is nothing at this address; /docs says what there is.")
        if scope["method"] not in self._allowed:
            allowed = ", ".join(self._allowed)
            raise Refused(405, f"Allowed here: {allowed}.", {"Allow": allowed})
        if self._file is not None:
            return Answer(self._file.content, 200, self._file.kind)
        assert self._fixed is not None
        return await self._fixed(self._service, scope)

    async def _store(self, operation: Operation, name: str, body: Any) -> Store:
        """The store that is meant."""
        if operation.id in ("make", "take_in"):
            return await self._service.place(name or body.name)
        if isinstance(body, bodies.Erase) and body.problem is not None:
            return await self._service.store(body.problem)
        return await self._service.store(name) if name else self._service.only()


def _discreet(error: Exception, caller: Caller | None) -> Exception:
    """As this caller may hear of it."""
    return error if caller is not None and caller.may("read", None) else refusals.discreet(error)


def _named(body: Any) -> str:
    """The problem that a body names."""
    return str(body.problem if isinstance(body, bodies.Erase) else body.name)


def _query(operation: Operation, text: bytes) -> dict[str, str]:
    """The query by names: those that there are, each once."""
    if not text:
        return {}
    try:
        pairs = parse_qsl(text.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=20)
    except ValueError:
        raise Refused(400, "The query cannot be read.") from None
    for i, (name, _) in enumerate(pairs):
        if name not in operation.query:
            raise InputError(name, "no such field", ", ".join(operation.query) or "nothing")
        if name in dict(pairs[:i]):
            raise InputError(name, "stands twice", "once")
    return dict(pairs)


def _body(operation: Operation, headers: dict[bytes, bytes], raw: bytes) -> Any:
    """What the body says, checked."""
    if operation.method != "POST":
        return None
    if not raw and operation.empty and operation.body is not None:
        return operation.body()
    wanted = LINES if operation.lines else JSON
    kind = headers.get(b"content-type", b"").split(b";")[0].strip().lower()
    if kind != wanted.encode():
        raise Refused(415, f"The header Content-Type must say {wanted}.")
    if operation.body is None:
        return _text(raw)
    return _checked(operation.body, strict.read(raw))


def _checked(model: type[bodies.Body], told: Any) -> bodies.Body:
    """By the model of the operation; several decisions may come as a list, or as `asked`."""
    if model is bodies.Ask and isinstance(told, list):
        told = {"asked": told}
    if model is bodies.Ask and isinstance(told, dict) and "asked" in told:
        return bodies.checked(bodies.Asks, told)
    return bodies.checked(model, told)


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise strict.Malformed(f"it is not UTF-8 at byte {error.start}") from None


def _key(operation: Operation, headers: dict[bytes, bytes]) -> str | None:
    """Of the header that other services have for it, too; who relies on it where it does nothing is told."""
    found = headers.get(b"idempotency-key")
    if found is None:
        return None
    if operation.id not in ONCE:
        raise InputError(
            "Idempotency-Key", shown(found.decode("latin-1")), f"one with {', '.join(ONCE)} only"
        )
    try:
        return found.decode()
    except UnicodeDecodeError:
        raise InputError("Idempotency-Key", repr(found), "text in UTF-8") from None


async def _streamed(parts: Iterator[bytes]) -> AsyncIterator[bytes]:
    while (part := await asyncio.to_thread(next, parts, None)) is not None:
        yield part
