"""Addresses that are not of one problem: all at a glance, health, metrics, the description, the page."""

import asyncio
import json
import mimetypes
from collections.abc import Awaitable, Callable, Iterator
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import quote

from starlette.types import Scope

from unfog.live import Problem
from unfog.live.errors import ServedElsewhereError
from unfog.serve import errors
from unfog.serve.errors import ServiceError, busy, words
from unfog.serve.forwarding import forwarded_request
from unfog.serve.responses import Answer, as_json, headers_of
from unfog.serve.service import Service

AT_ONCE = 16  # problems that are summarised at a time
LISTED = ("agent", "decisions", "decisions_today", "pending", "alarm")


async def problems(service: Service, scope: Scope) -> Answer:
    """All problems that the caller may read, at a glance."""
    caller = service.admit(scope, headers_of(scope))
    caller.check_some("read")
    semaphore = asyncio.Semaphore(AT_ONCE)

    async def glance(name: str) -> dict[str, Any]:
        async with semaphore:
            entry = await _glance(service, name, scope)
        return entry | {"error": entry["error"] and errors.without_folders(entry["error"], service.folders())}

    names = [name for name in await asyncio.to_thread(service.open_stores.names) if caller.may("read", name)]
    return as_json({"problems": await asyncio.gather(*map(glance, names))})


async def _glance(service: Service, name: str, scope: Scope) -> dict[str, Any]:
    """A summary of a problem, or why it cannot be served."""
    nothing: dict[str, Any] = {"name": name, **dict.fromkeys(LISTED), "alarm": [], "error": None}
    if not service.ready:
        return nothing | {"error": "its log is being read"}
    try:
        store = await service.store(name)
        if name in service.broken:
            return nothing | {"error": service.broken[name]}
        about = await service.writer(store).ask(lambda: Problem(store.processor, name).describe())
    except ServedElsewhereError as other:
        return nothing | await _ask_other(service, other, name, scope)
    except Exception as error:  # noqa: BLE001
        return nothing | {"error": words(error)}  # do not hide the other problems
    return nothing | {part: about[part] for part in LISTED}


async def _ask_other(
    service: Service, other: ServedElsewhereError, name: str, scope: Scope
) -> dict[str, Any]:
    """The summary from the process that serves the problem."""
    try:
        request = forwarded_request(scope, headers_of(scope), b"", f"/v1/problems/{quote(name, safe='')}")
        answer = await service.passed_on(other, name, request)
        about = json.loads(await answer.content())
    except ServiceError as error:
        return {"error": str(error)}
    if answer.status != 200:
        return {"error": about["detail"]}
    return {part: about[part] for part in LISTED}


async def health(service: Service, scope: Scope) -> Answer:  # noqa: ARG001
    """It runs."""
    return as_json({"status": "ok"})


async def readiness(service: Service, scope: Scope) -> Answer:  # noqa: ARG001
    """Whether it can decide: all logs are read, the database answers, and the last commit did not fail."""
    if not service.ready:
        raise busy("The logs are being read.")
    if service.open_stores.trouble:
        raise busy("The database does not answer.")
    if service.trouble():
        raise busy("The last commit failed; the log of the service says why.")
    return as_json({"status": "ready", "broken": len(service.broken)})


async def metrics(service: Service, scope: Scope) -> Answer:
    """For Prometheus."""
    service.admit(scope, headers_of(scope)).check("read", None)
    return Answer(await service.measured(), 200, "text/plain; version=0.0.4; charset=utf-8")


async def description(service: Service, scope: Scope) -> Answer:  # noqa: ARG001
    """What the service does, as OpenAPI 3.1."""
    from unfog.serve.openapi import document

    return as_json(document())


Fixed: TypeAlias = Callable[[Service, Scope], Awaitable[Answer]]

ADDRESSES: dict[str, Fixed] = {
    "/v1/problems": problems,
    "/healthz": health,
    "/readyz": readiness,
    "/metrics": metrics,
    "/openapi.json": description,
}
PAGES = {"/": "index.html", "/docs": "docs.html"}


class File(NamedTuple):
    """A file of the page."""

    content: bytes
    kind: str


@cache
def page_files() -> dict[str, File]:
    """All files of the page by their addresses; nothing else on the disk can be reached."""
    page = {}
    for name, item in _walk_files(files("unfog.serve").joinpath("page"), "/page"):
        kind = mimetypes.guess_type(item.name)[0] or "text/plain"
        charset = "; charset=utf-8" if kind.startswith("text/") else ""
        page[name] = File(item.read_bytes(), kind + charset)
    return page | {path: page[f"/page/{name}"] for path, name in PAGES.items()}


def _walk_files(folder: Traversable, address: str) -> Iterator[tuple[str, Traversable]]:
    """All files below a folder, with their addresses."""
    for item in folder.iterdir():
        if item.is_dir():
            yield from _walk_files(item, f"{address}/{item.name}")
        else:
            yield f"{address}/{item.name}", item
