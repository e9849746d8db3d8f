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

from unfog.live.errors import Elsewhere, StoreError, Unknown
from unfog.serve import errors, schemas, system_routes
from unfog.serve.auth import Caller
from unfog.serve.errors import JSON, LINES, Refused, busy, described
from unfog.serve.forwarding import asked_by
from unfog.serve.operations import OPERATIONS, Operation
from unfog.serve.responses import Answer, Call, as_json, as_problem, body_of, headers_of, sent
from unfog.serve.schemas import Erase, read
from unfog.serve.service import Service
from unfog.validation import InputError, shown

SMALL = 64 << 10  # bytes of a body; to read a larger one would keep others waiting
NAME, ID = 3, 5  # the places of a problem's name and of a decision's id, in an address that has them
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

    life, endpoints, nothing = Starlette(lifespan=lifespan), _endpoints(service), Endpoint(service, "", ())

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await life(scope, receive, send)
            return
        path, scope["path_params"] = address(scope["path"])
        await endpoints.get(path, nothing)(scope, receive, send)

    return app


def address(path: str) -> tuple[str, dict[str, str]]:
    """An address with `{name}` and `{id}` in the place of what they are, and what they are."""
    parts, found = path.split("/"), {}
    if path.startswith(PROBLEMS):
        for place, field in ((NAME, "name"), (ID, "id")):
            if len(parts) > place and parts[place]:
                found[field], parts[place] = parts[place], f"{{{field}}}"
    return "/".join(parts), found


def _endpoints(service: Service) -> dict[str, "Endpoint"]:
    """An endpoint for each path."""
    paths: defaultdict[str, list[Operation]] = defaultdict(list)
    for operation in OPERATIONS:
        paths[operation.path].append(operation)
    for path in (*system_routes.ADDRESSES, *system_routes.page_files()):
        paths[path] += ()
    return {path: Endpoint(service, path, of) for path, of in paths.items()}


class CutShort(Exception):
    """The rest of an answer could not be had; why is in the log already."""


class Endpoint:
    """An ASGI application for one path."""

    def __init__(self, service: Service, path: str, operations: Sequence[Operation]) -> None:
        """With an operation for each method; to look at what is not of one problem needs none."""
        self._service = service
        self._by_method = {one.method: one for one in operations}
        self._fixed, self._file = system_routes.ADDRESSES.get(path), system_routes.page_files().get(path)
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
                log.error("an answer was cut short: %s", described(error))
                raise CutShort from None  # so that the connection ends: what came is not taken for all
        self._service.metrics.answered(name, answer.status, perf_counter() - started)

    async def _certain(
        self, operation: Operation | None, scope: Scope, receive: Receive, places: ExitStack
    ) -> Answer:
        """An answer, whatever happens; `places` are left when it is sent."""
        try:
            return await self._answer(operation, scope, receive, places)
        except asyncio.CancelledError:  # the service stops, and has waited long enough
            return as_problem(errors.given_up())
        except Exception as error:  # noqa: BLE001
            found = errors.refusal(_discreet(error, scope.get("caller")), self._service.folders())
            self._log(operation, error, known=found is not None)
            return as_problem(found or errors.mistake())

    async def _answer(
        self, operation: Operation | None, scope: Scope, receive: Receive, places: ExitStack
    ) -> Answer:
        if operation is None:
            return await self._looked(scope)
        headers, service = headers_of(scope), self._service
        name = scope["path_params"].get("name", "")
        caller = scope["caller"] = service.admit(scope, headers)
        named_in_body = operation.problem_field and not operation.everywhere
        if named_in_body:
            caller.check_some(operation.scope)
        else:
            caller.check(operation.scope, name or None)
        query = _query(operation, scope["query_string"])
        if operation.beside:
            places.enter_context(service.room.place(operation))  # before there is a body that takes memory
        raw = await self._raw(operation, receive, headers)
        given = operation, headers, raw
        body = _body(*given) if len(raw) <= SMALL else await asyncio.to_thread(_body, *given)
        problem = operation.problem(name, body)
        if named_in_body:
            caller.check(operation.scope, problem)
        if operation.everywhere and not problem and not service.shelf.single:
            return await Erasing(service, operation, scope, headers).answer(body.unit)
        try:
            store = await service.store_of(operation, problem)
        except Elsewhere as other:
            return await service.passed_on(other, problem, asked_by(scope, headers, raw))
        decision = scope["path_params"].get("id", "")
        call = Call(store, service.settings, name, decision, body, query, _key(operation, headers))
        found = await service.do(operation, call)
        if isinstance(found, Iterator):
            return Answer(_streamed(found), 200, operation.kind)
        return as_json(found, operation.status(found))

    def _log(self, operation: Operation | None, error: Exception, *, known: bool) -> None:
        """A mistake; and a failure beside the writer, which tells of its own."""
        if not known:
            log.error("a mistake in %s: %s", operation.id if operation else "nothing", described(error))
        elif isinstance(error, StoreError) and operation is not None and operation.beside:
            log.warning("%s was not done: %s", operation.id, described(error))

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


def _discreet(error: Exception, caller: Caller | None) -> Exception:
    """As this caller may hear of it."""
    return error if caller is not None and caller.may("read", None) else errors.discreet(error)


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


def _key(operation: Operation, headers: dict[bytes, bytes]) -> str | None:
    """The key of the header Idempotency-Key; it is refused where it would do nothing."""
    found = headers.get(b"idempotency-key")
    if found is None:
        return None
    if not operation.once:
        allowed = f"one with {', '.join(one.id for one in OPERATIONS if one.once)} only"
        raise InputError("Idempotency-Key", shown(found.decode("latin-1")), allowed)
    try:
        return found.decode()
    except UnicodeDecodeError:
        raise InputError("Idempotency-Key", repr(found), "text in UTF-8") from None


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
    told = schemas.read(raw)
    if operation.several is not None:
        (field,) = operation.several.model_fields
        told = {field: told} if isinstance(told, list) else told
        if isinstance(told, dict) and field in told:
            return schemas.checked(operation.several, told)
    return schemas.checked(operation.body, told)


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise errors.Malformed(f"it is not UTF-8 at byte {error.start}") from None


async def _streamed(parts: Iterator[bytes]) -> AsyncIterator[bytes]:
    while (part := await asyncio.to_thread(next, parts, None)) is not None:
        yield part


class Erasing:
    """A unit erased in all problems of a database: each is asked of the process that serves it.

    Where one of them cannot do it the answer says so, and what was done by then stays done: to ask again does
    the rest.
    """

    def __init__(
        self, service: Service, operation: Operation, scope: Scope, headers: Mapping[bytes, bytes]
    ) -> None:
        """Nothing is erased yet."""
        self._service, self._operation, self._scope, self._headers = service, operation, scope, headers
        self._found: dict[str, int] = {}  # how many decisions of each problem

    async def answer(self, unit: str) -> Answer:
        """What was erased."""
        for name in await asyncio.to_thread(self._service.shelf.names):
            try:
                self._found |= await self._erased(Erase(unit=unit, problem=name))
            except (StoreError, Refused) as error:
                done = ", ".join(self._found) or "no problem"
                raise busy(f"Erased in {done} so far, and not in {name}: {error} Ask again.") from None
        if not self._found:
            raise Unknown("unit", repr(unit), "a unit that decisions were made for")
        return as_json({"decisions": self._found})

    async def _erased(self, body: Erase) -> Mapping[str, int]:
        """In one problem; nothing where it has no such unit."""
        assert body.problem is not None
        try:
            store = await self._service.store(body.problem)
            call = Call(store, self._service.settings, body=body)
            told: Mapping[str, Mapping[str, int]] = await self._service.do(self._operation, call)
        except Elsewhere as other:
            told = await self._asked(other, body)
        except InputError:
            return {}
        return told["decisions"]

    async def _asked(self, other: Elsewhere, body: Erase) -> Mapping[str, Mapping[str, int]]:
        """Ask the process that serves the problem."""
        asked = asked_by(self._scope, self._headers, body.model_dump_json().encode())
        answer = await self._service.passed_on(other, str(body.problem), asked)
        told: dict[str, dict[str, int]] = read(await answer.content())
        if answer.status in (404, 422):
            return {"decisions": {}}
        if answer.status != 200:
            raise Refused(answer.status, str(told["detail"]))
        return told
