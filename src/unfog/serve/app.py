"""The application: endpoints by address, of the rows of operations.py and fixed.py; how it starts and stops.

An address is looked up: there are few kinds of them, where Starlette would try one pattern after the other.
It has the beginning and the end.
"""

from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.types import ASGIApp, Receive, Scope, Send

from unfog.serve import fixed
from unfog.serve.endpoint import Endpoint
from unfog.serve.operations import OPERATIONS, Operation
from unfog.serve.service import Service

NAME, ID = 3, 5  # the places of a problem's name and of a decision's id, in an address that has them
PROBLEMS = "/v1/problems/"


def application(service: Service) -> ASGIApp:
    """An ASGI application that serves until it is stopped."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:  # noqa: ARG001
        await service.start()
        try:
            yield
        finally:
            await service.stop()

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


def _endpoints(service: Service) -> dict[str, Endpoint]:
    """An endpoint for each path."""
    paths: defaultdict[str, list[Operation]] = defaultdict(list)
    for operation in OPERATIONS:
        paths[operation.path].append(operation)
    for path in (*fixed.ADDRESSES, *fixed.page_files()):
        paths[path] += ()
    return {path: Endpoint(service, path, of) for path, of in paths.items()}
