"""The OpenAPI 3.1 document of the service, made from the rows of serve/operations.py."""

from collections.abc import Mapping
from functools import cache
from http import HTTPStatus
from typing import Annotated, Any, TypeAlias

from pydantic import Field, TypeAdapter

from unfog.live.backend import LAST
from unfog.serve.errors import JSON, LINES, PROBLEM
from unfog.serve.operations import EXAMPLES, ID, NAME, OPERATIONS, Operation
from unfog.serve.schemas import ANSWERS, MOST, Name, Problem
from unfog.serve.system_routes import ADDRESSES
from unfog.version import __version__

Schema: TypeAlias = dict[str, Any]
TEMPLATE = "#/components/schemas/{model}"
NAMES: Schema = TypeAdapter(Name).json_schema()
TEXT: Schema = {"type": "string"}

REFUSALS = {
    400: "It cannot be read: no JSON, or a query that is none.",
    401: "This takes a key.",
    403: "The key is not for this; or, without keys, the request does not come from this machine.",
    404: "There is no such problem, decision, unit or shadow.",
    408: "The body did not come in time.",
    409: "It contradicts an earlier request: the same key with another body, or a second, different reward.",
    410: "The decision is closed for this.",
    413: "The body is too large.",
    415: "The body is of another kind.",
    422: "A field is wrong: `field`, `value` and `allowed` say which, what it was, and what it may be;"
    " `suggestion`, what was probably meant.",
    429: "Too many requests; `Retry-After` says when to ask again.",
    503: "Not now: the queue is full, the logs are being read, the disk failed. Nothing was done; ask again.",
}
ALWAYS = (401, 403, 429, 503)

PARAMETERS: dict[str, Schema] = {
    "name": {"in": "path", "required": True, "schema": NAMES, "example": NAME},
    "id": {
        "in": "path",
        "required": True,
        "schema": NAMES,
        "example": ID,
        "description": "The id that `decide` has answered.",
    },
    "unit": {"in": "query", "schema": NAMES, "description": "Whose."},
    "context": {"in": "query", "content": {JSON: {"schema": {"type": "object"}}}, "required": True},
    "arms": {"in": "query", "content": {JSON: {"schema": {"type": "array", "items": NAMES}}}},
    "measured_at": {"in": "query", "content": {JSON: {"schema": {"type": "number"}}}},
    "noise_sd": {"in": "query", "content": {JSON: {"schema": {"type": ["number", "object"]}}}},
    "noise_cov": {
        "in": "query",
        "content": {JSON: {"schema": {"type": "array", "items": {"type": "number"}}}},
    },
    "points": {"in": "query", "schema": {"type": "integer", "minimum": 1}},
    "since": {"in": "query", "schema": {"type": "integer", "minimum": 0, "maximum": LAST}},
    "limit": {"in": "query", "schema": {"type": "integer", "minimum": 0, "maximum": LAST}},
}
KEY_HEADER: Schema = {
    "name": "Idempotency-Key",
    "in": "header",
    "schema": NAMES | {"pattern": "^[!-~]+$"},
    "description": "As `key` in the body: asked again with it, the answer is the same.",
}
FIXED = {  # by the name of a route: the content type of its answer, and statuses besides 200
    "problems": (JSON, ALWAYS),
    "health": (JSON, ()),
    "readiness": (JSON, (503,)),
    "metrics": ("text/plain", ALWAYS),
    "description": (JSON, ()),
}


@cache
def document() -> dict[str, Any]:
    """The document; its examples work one after another, in the order of the operations."""
    paths: dict[str, Any] = {}
    bodies, components = _make_schemas(
        {one.id: _body_type(one) for one in OPERATIONS if one.body is not None}
    )
    answers, definitions = _make_schemas({**ANSWERS, "": Problem})
    order = list(EXAMPLES)
    for one in sorted(OPERATIONS, key=lambda one: order.index(one.id)):
        entry = _describe_operation(one, bodies.get(one.id, TEXT), answers.get(one.id, TEXT))
        paths.setdefault(one.path, {})[one.method.lower()] = entry
    for path, route in ADDRESSES.items():
        name = route.__name__
        kind, statuses = FIXED[name]
        paths.setdefault(path, {})["get"] = {
            "operationId": name,
            "summary": route.__doc__,
            "tags": ["The service"],
            "responses": _describe_answers(kind, answers.get(name, TEXT), (200,), statuses),
            **({} if statuses == ALWAYS else {"security": []}),
        }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "unfog",
            "version": __version__,
            "description": "Decisions with noisy contexts: decide, reward, reveal, and nothing lost.",
        },
        "security": [{"key": []}, {}],
        "paths": paths,
        "components": {
            "schemas": dict(sorted({**components, **definitions}.items())),
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer", "description": SECURITY}},
        },
    }


SECURITY = (
    "A key of `unfog serve keys add`, with the scope that the operation names and for its problem. A service"
    " on one machine alone may be without keys."
)


def _body_type(one: Operation) -> Any:
    """The type of a request's body."""
    kind: Any = one.body
    if one.several is None:
        return kind
    return kind | one.several | Annotated[list[kind], Field(min_length=1, max_length=MOST)]


def _make_schemas(kinds: Mapping[str, Any]) -> tuple[dict[str, Schema], dict[str, Schema]]:
    """The schemas of these types by name, and the definitions that they refer to."""
    schemas, definitions = TypeAdapter.json_schemas(
        ((name, "validation", TypeAdapter(kind)) for name, kind in kinds.items()), ref_template=TEMPLATE
    )
    return {name: schema for (name, _), schema in schemas.items()}, definitions["$defs"]


def _describe_operation(one: Operation, body: Schema, answer: Schema) -> dict[str, Any]:
    success = (200, 201) if one.created_field else (200,)
    entry = {
        "operationId": one.id,
        "summary": one.summary,
        "description": f"{one.summary} Scope: {one.scope}.",
        "tags": ["One problem" if "{name}" in one.path else "The service"],
        "parameters": _list_parameters(one),
        "responses": _describe_answers(one.kind, answer, success, _list_statuses(one)),
    }
    if one.method == "POST":
        content = {"schema": body, "example": EXAMPLES[one.id].body}
        needed = one.body is not None and not one.empty
        entry["requestBody"] = {"required": needed, "content": {JSON if one.body else LINES: content}}
    return entry


def _list_parameters(one: Operation) -> list[Schema]:
    names = [name for name in ("name", "id") if f"{{{name}}}" in one.path] + list(one.query)
    examples = EXAMPLES[one.id].query
    parameters = [{"name": name, **PARAMETERS[name], **_get_example(name, examples)} for name in names]
    return parameters + ([KEY_HEADER] if one.once else [])


def _get_example(name: str, examples: dict[str, str]) -> Schema:
    return {"example": examples[name]} if name in examples and "schema" in PARAMETERS[name] else {}


def _list_statuses(one: Operation) -> tuple[int, ...]:
    """The statuses with which it may be refused."""
    statuses = {*ALWAYS, 400, 422, *one.refused}
    if "{name}" in one.path or one.problem_field:
        statuses.add(404)
    if one.method == "POST":
        statuses |= {408, 409, 413, 415}
    if one.scope == "report":
        statuses.add(410)
    return tuple(sorted(statuses))


def _describe_answers(
    kind: str, schema: Schema, success: tuple[int, ...], refused: tuple[int, ...]
) -> dict[str, Any]:
    words = {200: "Done.", 201: "Made."}
    done = {
        str(status): {"description": words[status], "content": {kind: {"schema": schema}}}
        for status in success
    }
    return done | {str(status): _describe_refusal(status) for status in refused}


def _describe_refusal(status: int) -> Schema:
    entry: Schema = {
        "description": f"{HTTPStatus(status).phrase}. {REFUSALS[status]}",
        "content": {PROBLEM: {"schema": {"$ref": TEMPLATE.format(model=Problem.__name__)}}},
    }
    if status in (429, 503):
        entry["headers"] = {"Retry-After": {"schema": {"type": "string"}, "description": "Seconds."}}
    if status == 401:
        entry["headers"] = {"WWW-Authenticate": {"schema": {"type": "string"}}}
    return entry
