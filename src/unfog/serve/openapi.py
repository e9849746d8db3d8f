"""The description of the service, made of the rows of operations.py."""

from functools import cache
from typing import Any

from unfog.serve.operations import OPERATIONS


@cache
def document() -> dict[str, Any]:
    """OpenAPI 3.1."""
    paths: dict[str, Any] = {}
    for one in OPERATIONS:
        said = {"operationId": one.id, "summary": one.summary, "responses": {"200": {"description": "Done."}}}
        paths.setdefault(one.path, {})[one.method.lower()] = said
    return {"openapi": "3.1.0", "info": {"title": "unfog", "version": "1"}, "paths": paths}
