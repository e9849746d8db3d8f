"""Requests made of the description of the service by schemathesis, and answers held against it."""

from collections.abc import Callable
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS

from tests.serve.running import Running

# That all that fits its schema is accepted cannot be asked: which coordinates there are is not in it.
NAMES = ["not_a_server_error", "status_code_conformance", "content_type_conformance"]
NAMES += ["response_headers_conformance", "response_schema_conformance"]
MODES = [GenerationMode.POSITIVE, GenerationMode.NEGATIVE]


def operations(service: Running) -> dict[str, Any]:
    """All that the description has, by their ids."""
    schema = schemathesis.openapi.from_url(f"{service.url}/openapi.json")
    found = [one.ok() for one in schema.get_all_operations()]
    return {one.definition.raw["operationId"]: one for one in found}


def ask(service: Running, operation: Any, cases: int, headers: dict[str, str]) -> int:
    """So many requests of one operation; how many of them were answered with a 2xx."""
    good = 0
    decision = _decision(service, headers)
    checks = CHECKS.get_by_names(NAMES)

    @given(data=st.data())
    @settings(
        max_examples=cases,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.explicit, Phase.generate],
    )
    def run(data: st.DataObject) -> None:
        nonlocal good
        mode = data.draw(st.sampled_from(MODES))
        case = data.draw(operation.as_strategy(generation_mode=mode))
        _known(case, decision, data.draw(st.integers(0, 3)))
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
    """In three of four cases ask for what there is, in two of four with a context that there may be."""
    if how and isinstance(case.path_parameters, dict):
        known = {"name": "walks", "id": decision}
        case.path_parameters |= {name: known[name] for name in case.path_parameters}
    if how > 1 and isinstance(case.body, dict) and "context" in case.body:
        case.body["context"] = {"steps": 1.5, "sleep": None}
