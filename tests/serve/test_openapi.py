"""The description of the service: whole, and its examples work when they are pasted in order."""

import json
from pathlib import Path
from typing import Any

import jsonschema_rs

from tests.serve.running import running
from unfog.serve import system_routes
from unfog.serve.errors import PROBLEM
from unfog.serve.openapi import document
from unfog.serve.operations import EXAMPLES, ID, LOG, NAME, OPERATIONS
from unfog.serve.schemas import ANSWERS
from unfog.serve.settings import Settings


def test_every_operation_is_described_with_an_example_and_an_answer() -> None:
    assert {one.id for one in OPERATIONS} == set(EXAMPLES)
    described = {one["operationId"] for methods in document()["paths"].values() for one in methods.values()}
    assert described == {one.id for one in OPERATIONS} | {
        one.__name__ for one in system_routes.ADDRESSES.values()
    }
    assert set(ANSWERS) == described - {"events", "metrics"}


def test_every_reference_is_there() -> None:
    """And every part is used."""

    def refs(value: Any) -> set[str]:
        if isinstance(value, dict):
            own = {value["$ref"]} if "$ref" in value else set[str]()
            return own.union(*map(refs, value.values()))
        return set[str]().union(*map(refs, value)) if isinstance(value, list) else set()

    whole = document()
    assert refs(whole) == {f"#/components/schemas/{name}" for name in whole["components"]["schemas"]}


def held(answer: Any, schema: dict[str, Any]) -> None:
    jsonschema_rs.validate({**schema, "components": document()["components"]}, answer)


def test_the_examples_work_one_after_another(tmp_path: Path) -> None:
    """As the description has them, on an empty store; each answer is as the description says."""
    made, log = ID, ""
    with running(tmp_path / "a.unfog", Settings(backups=tmp_path / "copies")) as service:
        for path, methods in document()["paths"].items():
            for method, one in methods.items():
                if one["operationId"] not in EXAMPLES:
                    continue
                if one["operationId"] == "cancel":  # the reward of the last decision was learnt
                    told = {"context": {"steps": 1, "sleep": 2}}
                    made = service.http.post(f"/v1/problems/{NAME}/decide", json=told).json()["id"]
                at = path.replace("{name}", NAME).replace("{id}", made)
                found = asked(service.http, method, at, one, {ID: made, LOG: log})
                assert found.status_code in (200, 201), (one["operationId"], found.text)
                schema = one["responses"][str(found.status_code)]["content"]
                (kind,) = schema
                assert found.headers["content-type"].startswith(kind)
                if kind == "application/json":
                    held(found.json(), schema[kind]["schema"])
                made = found.json()["id"] if one["operationId"] == "decide" else made
                log = found.text if one["operationId"] == "events" else log


def asked(http: Any, method: str, at: str, one: dict[str, Any], known: dict[str, str]) -> Any:
    query = EXAMPLES[one["operationId"]].query
    if method == "get":
        return http.get(at, params=query)
    ((kind, told),) = one["requestBody"]["content"].items()
    text = told["example"] if isinstance(told["example"], str) else json.dumps(told["example"])
    for name, value in known.items():
        text = text.replace(name, value)
    return http.post(at, content=text, headers={"Content-Type": kind})


def test_a_refusal_is_as_described(tmp_path: Path) -> None:
    with running(tmp_path / "a.unfog") as service:
        service.make()
        for method, at, text, status in (
            ("POST", "/v1/problems/walks/decide", "{", 400),
            ("POST", "/v1/problems/walks/decide", "{}", 422),
            ("POST", "/v1/problems/nobody/decide", '{"context": {}}', 404),
            ("GET", "/v1/problems/nobody", None, 404),
            ("POST", "/v1/backup", "{}", 409),
        ):
            headers = {"Content-Type": "application/json"}
            found = service.http.request(method, at, content=text, headers=headers)
            assert (found.status_code, found.headers["content-type"]) == (status, PROBLEM)
            held(found.json(), {"$ref": "#/components/schemas/Problem"})
