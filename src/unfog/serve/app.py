"""The application: routes made of the rows of operations.py and fixed.py, and how it starts and stops."""

from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.routing import BaseRoute, Route

from unfog.serve import fixed
from unfog.serve.endpoint import Endpoint
from unfog.serve.operations import OPERATIONS, Operation
from unfog.serve.service import Service


def application(service: Service) -> Starlette:
    """An ASGI application that serves until it is stopped."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:  # noqa: ARG001
        await service.start()
        try:
            yield
        finally:
            await service.stop()

    return Starlette(routes=_routes(service), lifespan=lifespan)


def _routes(service: Service) -> list[BaseRoute]:
    """An endpoint for each path; the last one takes what no other does, and says so."""
    paths: defaultdict[str, list[Operation]] = defaultdict(list)
    for operation in OPERATIONS:
        paths[operation.path].append(operation)
    for path in (*fixed.ADDRESSES, *fixed.page_files()):
        paths[path] += ()
    found = [Route(path, Endpoint(service, path, of)) for path, of in paths.items()]
    return [*found, Route("/{rest:path}", Endpoint(service, "", ()))]
