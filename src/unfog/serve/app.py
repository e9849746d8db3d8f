"""The ASGI application: an endpoint for each address, which turns a request into an answer.

The endpoints are made from the tables in serve/operations.py and serve/system_routes.py. An address is looked
up in a dictionary: there are few of them, and Starlette would try one pattern after the other. Starlette only
handles startup and shutdown.

An endpoint authenticates the caller, reads and checks the body, finds the store, runs the operation, and
answers; errors become answers, too. Requests for a problem that another process serves are passed on
(serve/forwarding.py).
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from time import perf_counter
from typing import Any
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.types import ASGIApp, Receive, Scope, Send

from unfog.live.errors import NotFoundError, ServedElsewhereError, StoreError
from unfog.serve import errors, schemas, system_routes
from unfog.serve.auth import Caller
from unfog.serve.errors import JSON, LINES, ServiceError, busy, described
from unfog.serve.forwarding import forwarded_request
from unfog.serve.operations import OPERATIONS, Operation
from unfog.serve.responses import Answer, Call, as_json, as_problem, body_of, headers_of, sent
from unfog.serve.schemas import Erase, read
from unfog.serve.service import Service
from unfog.validation import InputError, display

SMALL = 64 << 10  # bytes of a body that is parsed at once; a larger one would block other requests
NAME, ID = 3, 5  # positions of a problem's name and of a decision's id in an address split at slashes
PROBLEMS = "/v1/problems/"
log = logging.getLogger("unfog.serve")


def application(service: Service) -> ASGIApp:
    """An ASGI application that serves until it is stopped."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:  # noqa: ARG001
        await service.start()
        try:
            yield
        finally:
            await service.stop()
            await service.close()

    lifecycle = Starlette(lifespan=lifespan)
    endpoints, unknown = _make_endpoints(service), Endpoint(service, "", ())

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await lifecycle(scope, receive, send)
            return
        path, scope["path_params"] = address(scope["path"])
        await endpoints.get(path, unknown)(scope, receive, send)

    return app


def address(path: str) -> tuple[str, dict[str, str]]:
    """The path with `{name}` and `{id}` for the names in it, and the values that they stand for."""
    parts, params = path.split("/"), {}
    if path.startswith(PROBLEMS):
        has_id = len(parts) > ID + 1  # an id has a verb after it; `decisions/import` is no id
        for position, field in ((NAME, "name"), (ID, "id"))[: 1 + has_id]:
            if len(parts) > position and parts[position]:
                params[field], parts[position] = parts[position], f"{{{field}}}"
    return "/".join(parts), params


def _make_endpoints(service: Service) -> dict[str, "Endpoint"]:
    """An endpoint for each path."""
    paths: defaultdict[str, list[Operation]] = defaultdict(list)
    for operation in OPERATIONS:
        paths[operation.path].append(operation)
    for path in (*system_routes.ADDRESSES, *system_routes.page_files()):
        paths[path] += ()
    return {path: Endpoint(service, path, of) for path, of in paths.items()}


class ResponseAbortedError(Exception):
    """Sending an answer failed halfway; the reason has been logged."""


class Endpoint:
    """An ASGI application for one path."""

    def __init__(self, service: Service, path: str, operations: Sequence[Operation]) -> None:
        """`operations` has one for each method; system routes and files of the page have none."""
        self._service = service
        self._by_method = {one.method: one for one in operations}
        self._fixed, self._file = system_routes.ADDRESSES.get(path), system_routes.page_files().get(path)
        self._name = "page" if self._fixed is None else self._fixed.__name__
        can_get = self._fixed is not None or self._file is not None
        self._allowed = [*self._by_method, *(["GET", "HEAD"] if can_get else [])]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; an error becomes an answer, too."""
        started = perf_counter()
        operation = self._by_method.get(scope["method"])
        name = operation.id if operation is not None else self._name
        with ExitStack() as slots:
            answer = await self._answer_or_refuse(operation, scope, receive, slots)
            try:
                await sent(answer, send, head_only=scope["method"] == "HEAD")
            except asyncio.CancelledError:
                log.warning("an answer to %s was cut short: the service stops", name)
                return
            except Exception as error:  # noqa: BLE001
                log.error("an answer was cut short: %s", described(error))
                raise ResponseAbortedError from None  # ends the connection, so that the client notices
        self._service.metrics.answered(name, answer.status, perf_counter() - started)

    async def _answer_or_refuse(
        self, operation: Operation | None, scope: Scope, receive: Receive, slots: ExitStack
    ) -> Answer:
        """Answer, or turn the exception into an answer; `slots` are released once it is sent."""
        try:
            return await self._answer(operation, scope, receive, slots)
        except asyncio.CancelledError:  # the service stops and no longer waits
            return as_problem(errors.given_up())
        except Exception as error:  # noqa: BLE001
            refusal = errors.refusal(_redact(error, scope.get("caller")), self._service.folders())
            self._log_error(operation, error, known=refusal is not None)
            return as_problem(refusal or errors.mistake())

    async def _answer(
        self, operation: Operation | None, scope: Scope, receive: Receive, slots: ExitStack
    ) -> Answer:
        if operation is None:
            return await self._answer_route(scope)
        headers, service = headers_of(scope), self._service
        name = scope["path_params"].get("name", "")
        caller = scope["caller"] = service.admit(scope, headers)
        named_in_body = operation.problem_field and not operation.everywhere
        if named_in_body:
            caller.check_some(operation.scope)
        else:
            caller.check(operation.scope, name or None)
        query = _read_query(operation, scope["query_string"])
        if operation.beside:
            slots.enter_context(service.room.place(operation))  # before the body takes up memory
        raw = await self._receive_body(operation, receive, headers)
        args = operation, headers, raw
        body = _body(*args) if len(raw) <= SMALL else await asyncio.to_thread(_body, *args)
        problem = operation.problem(name, body)
        if named_in_body:
            caller.check(operation.scope, problem)
        if operation.everywhere and not problem and not service.open_stores.single:
            return await UnitErasure(service, operation, scope, headers).answer(body.unit)
        try:
            store = await service.store_of(operation, problem)
        except ServedElsewhereError as other:
            return await service.passed_on(other, problem, forwarded_request(scope, headers, raw))
        decision = scope["path_params"].get("id", "")
        call = Call(store, service.settings, name, decision, body, query, _read_key(operation, headers))
        result = await service.do(operation, call)
        if isinstance(result, Iterator):
            return Answer(_stream(result), 200, operation.kind)
        return as_json(result, operation.status(result))

    def _log_error(self, operation: Operation | None, error: Exception, *, known: bool) -> None:
        """Log an internal error, or a store's failure outside the writer, which logs its own."""
        if not known:
            log.error("a mistake in %s: %s", operation.id if operation else "nothing", described(error))
        elif isinstance(error, StoreError) and operation is not None and operation.beside:
            log.warning("%s was not done: %s", operation.id, described(error))

    async def _receive_body(
        self, operation: Operation, receive: Receive, headers: dict[bytes, bytes]
    ) -> bytes:
        """Read the body, up to its size limit."""
        if operation.method != "POST":
            return b""
        settings = self._service.settings
        with self._service.readers.reading():
            return await body_of(receive, headers, settings.bulk if operation.large else settings.body)

    async def _answer_route(self, scope: Scope) -> Answer:
        """Answer for a system route or a file of the page, or refuse what does not exist."""
        if not self._allowed:
            raise ServiceError(404, "There is nothing at this address; /docs says what there is.")
        if scope["method"] not in self._allowed:
            allowed = ", ".join(self._allowed)
            raise ServiceError(405, f"Allowed here: {allowed}.", {"Allow": allowed})
        if self._file is not None:
            return Answer(self._file.content, 200, self._file.kind)
        assert self._fixed is not None
        return await self._fixed(self._service, scope)


def _redact(error: Exception, caller: Caller | None) -> Exception:
    """Hide names of other problems and units from a caller who may not read them."""
    return error if caller is not None and caller.may("read", None) else errors.discreet(error)


def _read_query(operation: Operation, text: bytes) -> dict[str, str]:
    """Parse the query; unknown and repeated names are refused."""
    if not text:
        return {}
    try:
        pairs = parse_qsl(text.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=20)
    except ValueError:
        raise ServiceError(400, "The query cannot be read.") from None
    for i, (name, _) in enumerate(pairs):
        if name not in operation.query:
            raise InputError(name, "no such field", ", ".join(operation.query) or "nothing")
        if name in dict(pairs[:i]):
            raise InputError(name, "stands twice", "once")
    return dict(pairs)


def _read_key(operation: Operation, headers: dict[bytes, bytes]) -> str | None:
    """Read the header Idempotency-Key; refuse it for operations that do not use it."""
    header = headers.get(b"idempotency-key")
    if header is None:
        return None
    if not operation.once:
        allowed = f"one with {', '.join(one.id for one in OPERATIONS if one.once)} only"
        raise InputError("Idempotency-Key", display(header.decode("latin-1")), allowed)
    try:
        return header.decode()
    except UnicodeDecodeError:
        raise InputError("Idempotency-Key", repr(header), "text in UTF-8") from None


def _body(operation: Operation, headers: dict[bytes, bytes], raw: bytes) -> Any:
    """Parse and validate the body."""
    if operation.method != "POST":
        return None
    if not raw and operation.empty and operation.body is not None:
        return operation.body()
    expected = LINES if operation.lines else JSON
    kind = headers.get(b"content-type", b"").split(b";")[0].strip().lower()
    if kind != expected.encode():
        raise ServiceError(415, f"The header Content-Type must say {expected}.")
    if operation.body is None:
        return _decode(raw)
    data = schemas.read(raw)
    if operation.several is not None:
        (field,) = operation.several.model_fields
        data = {field: data} if isinstance(data, list) else data
        if isinstance(data, dict) and field in data:
            return schemas.checked(operation.several, data)
    return schemas.checked(operation.body, data)


def _decode(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise errors.InvalidJSONError(f"it is not UTF-8 at byte {error.start}") from None


async def _stream(parts: Iterator[bytes]) -> AsyncIterator[bytes]:
    while (part := await asyncio.to_thread(next, parts, None)) is not None:
        yield part


class UnitErasure:
    """Erase a unit in all problems of a database, each through the process that serves it.

    If one of them fails, the answer says so, and what has been erased stays erased: a retry does the rest.
    """

    def __init__(
        self, service: Service, operation: Operation, scope: Scope, headers: Mapping[bytes, bytes]
    ) -> None:
        """Nothing is erased yet."""
        self._service, self._operation, self._scope, self._headers = service, operation, scope, headers
        self._counts: dict[str, int] = {}  # how many decisions of each problem

    async def answer(self, unit: str) -> Answer:
        """Erase the unit, and answer with the number of decisions of each problem."""
        for name in await asyncio.to_thread(self._service.open_stores.names):
            try:
                self._counts |= await self._erase(Erase(unit=unit, problem=name))
            except (StoreError, ServiceError) as error:
                done = ", ".join(self._counts) or "no problem"
                raise busy(f"Erased in {done} so far, and not in {name}: {error} Ask again.") from None
        if not self._counts:
            raise NotFoundError("unit", repr(unit), "a unit that decisions were made for")
        return as_json({"decisions": self._counts})

    async def _erase(self, body: Erase) -> Mapping[str, int]:
        """Erase in one problem; {} if it has no such unit."""
        assert body.problem is not None
        try:
            store = await self._service.store(body.problem)
            call = Call(store, self._service.settings, body=body)
            reply: Mapping[str, Mapping[str, int]] = await self._service.do(self._operation, call)
        except ServedElsewhereError as other:
            reply = await self._forward(other, body)
        except InputError:
            return {}
        return reply["decisions"]

    async def _forward(self, other: ServedElsewhereError, body: Erase) -> Mapping[str, Mapping[str, int]]:
        """Forward the request to the process that serves the problem."""
        request = forwarded_request(self._scope, self._headers, body.model_dump_json().encode())
        answer = await self._service.passed_on(other, str(body.problem), request)
        reply: dict[str, dict[str, int]] = read(await answer.content())
        if answer.status in (404, 422):
            return {"decisions": {}}
        if answer.status != 200:
            raise ServiceError(answer.status, str(reply["detail"]))
        return reply
