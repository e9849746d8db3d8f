"""Requests made of the description of the service by schemathesis, and answers held against it."""

import json
from collections.abc import Callable
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS
from schemathesis.core.result import Ok

from tests.serve.running import TERMS, Running

# That all that fits its schema is accepted cannot be asked: which coordinates there are is not in it.
NAMES = ["not_a_server_error", "status_code_conformance", "content_type_conformance"]
NAMES += ["response_headers_conformance", "response_schema_conformance"]
BODIES: dict[str, Any] = {
    "context": {"steps": 1.5, "sleep": None},
    "arms": ["send", "wait"],
    "unit": "ann",
    "value": 1.5,
    "agent": "naive",
    "channel": TERMS["channel"],
}
MODES = [GenerationMode.POSITIVE, GenerationMode.NEGATIVE]


@schemathesis.serializer("application/x-ndjson")
def lines(ctx: Any, value: Any) -> bytes:
    """A log is text; whatever else is made for it is sent as JSON."""
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else json.dumps(value).encode()


def operations(service: Running) -> dict[str, Any]:
    """All that the description has, by their ids."""
    schema = schemathesis.openapi.from_url(f"{service.url}/openapi.json")
    found = [one.ok() for one in schema.get_all_operations() if isinstance(one, Ok)]
    return {one.definition.raw["operationId"]: one for one in found}


def ask(service: Running, operation: Any, cases: int, headers: dict[str, str]) -> int:
    """So many requests of one operation; how many of them were answered with a 2xx."""
    good = 0
    decision = _decision(service, headers)
    fresh = operation.path.endswith(("/reward", "/rewards", "/cancel"))  # what was rewarded is done with
    checks = CHECKS.get_by_names(NAMES)
    made = st.one_of([operation.as_strategy(generation_mode=mode) for mode in MODES])

    @given(case=made, how=st.integers(0, 3))
    @settings(
        max_examples=cases,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.explicit, Phase.generate],
    )
    def run(case: Any, how: int) -> None:
        nonlocal good
        _known(case, _decision(service, headers) if fresh else decision, how)
        answer = case.call_and_validate(checks=checks, headers=headers, timeout=30)
        good += answer.status_code < 300

    work: Callable[[], None] = run
    work()
    return good


def _decision(service: Running, headers: dict[str, str]) -> str:
    told = {"context": {"steps": 1.0, "sleep": 2.0}, "unit": "ann"}
    found = service.http.post("/v1/problems/walks/decide", json=told, headers=headers)
    return str(found.json()["id"])


def _known(case: Any, decision: str, how: int) -> None:
    """In three of four cases ask for what there is, in two of four with what may be told of it."""
    if how and isinstance(case.path_parameters, dict):
        known = {"name": "walks", "id": decision}
        case.path_parameters |= {name: known[name] for name in case.path_parameters}
    if how > 2 and isinstance(case.body, dict) and case.path == "/v1/problems":
        case.body = {"name": str(case.body.get("name", "new")), **TERMS}
        return
    if how > 2 and isinstance(case.body, dict) and case.path.endswith("/decide"):
        case.body = {"context": BODIES["context"]}
        return
    for part in (case.body, case.query):
        if how > 1 and isinstance(part, dict):
            told = BODIES | {"rewards": {decision: 1.5}}
            part |= {name: told[name] for name in part if name in told}
    if how > 1 and isinstance(case.query, dict) and "context" in case.query:
        case.query["context"] = json.dumps(BODIES["context"])
