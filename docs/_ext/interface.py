"""The Reference of HTTP: every operation of the service, from the description that it gives of itself."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from docs._ext.tables import code, table

from unfog.serve.openapi import document

Schema = Mapping[str, Any]


def pages() -> dict[str, str]:
    """One page."""
    return {"http": "\n".join(_page(document()))}


def operations(described: Schema) -> Iterator[tuple[str, str, Schema]]:
    """Method, path and what is said of it."""
    for path, methods in described["paths"].items():
        for method, one in methods.items():
            yield method.upper(), path, one


def _page(described: Schema) -> Iterator[str]:
    yield "# The HTTP interface\n"
    yield "`unfog serve` starts a service that answers these; [the service](../../guide/service.md) explains"
    yield "them with examples. The same description, for machines, is at `/openapi.json` of every service.\n"
    yield described["components"]["securitySchemes"]["key"]["description"] + "\n"
    for method, path, one in operations(described):
        yield from _operation(method, path, one)
    yield "## What is sent, and what comes back\n"
    for name, schema in described["components"]["schemas"].items():
        yield f"### {name}\n"
        yield schema.get("description", "") + "\n"
        yield _properties(schema)


def _operation(method: str, path: str, one: Schema) -> Iterator[str]:
    yield f"## {method} {path.replace('{', chr(92) + '{')}\n"
    yield one.get("description", one["summary"]) + "\n"
    if one.get("parameters"):
        yield table(("parameter", "in", "what"), map(_parameter, one["parameters"]))
    for kind, content in one.get("requestBody", {}).get("content", {}).items():
        yield f"Sent: {_named(content['schema'])}, as `{kind}`. For instance\n"
        yield _example(content["example"])
    yield from _answers(one["responses"])


def _parameter(one: Schema) -> tuple[str, str, str]:
    shown = f" For instance {code(one['example'])}." if "example" in one else ""
    return code(one["name"]), one["in"], one.get("description", _named(one.get("schema", {}))) + shown


def _example(example: Any) -> str:
    """A field a line; what is no object stands as it is sent."""
    if not isinstance(example, dict):
        return f"```text\n{example.rstrip() if isinstance(example, str) else json.dumps(example)}\n```\n"
    lines = [f"  {json.dumps(name)}: {json.dumps(one, ensure_ascii=False)}" for name, one in example.items()]
    return "```json\n" + "{\n" + ",\n".join(lines) + "\n}\n```\n"


def _answers(responses: Schema) -> Iterator[str]:
    good = {status: one for status, one in responses.items() if status < "300"}
    for status, one in good.items():
        ((kind, content),) = one["content"].items()
        done = one["description"].rstrip(".").lower()
        yield f"Answered with {status} ({done}): {_named(content['schema'])}, as `{kind}`.\n"
    refused = ", ".join(
        f"{status} ({one['description'].split('.')[0].lower()})"
        for status, one in responses.items()
        if status >= "300"
    )
    if refused:
        yield f"It may be refused with {refused}; the answer is then a [Problem](#problem).\n"


def _properties(schema: Schema) -> str:
    required = schema.get("required", ())
    rows = [
        (code(name), _named(one), "yes" if name in required else "", one.get("description", ""))
        for name, one in schema.get("properties", {}).items()
    ]
    return table(("field", "type", "always", "meaning"), rows) if rows else _named(schema) + ".\n"


def _named(schema: Schema) -> str:
    """A schema in words."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return f"[{name}](#{name.lower()})"
    for many in ("anyOf", "oneOf"):
        if many in schema:
            return " or ".join(dict.fromkeys(_named(one) for one in schema[many]))
    if "const" in schema:
        return code(schema["const"])
    if "enum" in schema:
        return " or ".join(map(code, schema["enum"]))
    kind = schema.get("type", "anything")
    if isinstance(kind, list):
        return " or ".join(kind)
    return f"list of {_named(schema['items'])}" if kind == "array" and "items" in schema else str(kind)
