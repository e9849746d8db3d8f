"""What callers are told is in words of JSON; from Python it is in Python's again."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.serve.running import Running, running
from unfog.live.errors import ConflictError, DecisionClosedError, NotFoundError
from unfog.serve import Client, errors, schemas
from unfog.validation import InputError

DECIDE, MAKE = "/v1/problems/walks/decide", "/v1/problems"
NEW = {"name": "new", "context": ["a"], "arms": ["x", "y"]}
PYTHON = (
    "None",
    "dictionary",
    "instance",
    "DecisionRequest",
    "valid",
    "should",
    "validation",
    "pattern",
    "{",
)


@pytest.fixture(scope="module", name="service")
def _service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("served") / "a.unfog") as found:
        found.make()
        yield found


WORDS: list[tuple[str, Any, str]] = [
    (DECIDE, {"requests": [3]}, "an object"),
    (DECIDE, {"requests": 3}, "a list"),
    (DECIDE, {"requests": []}, "1 of them, or more"),
    (DECIDE, {"context": [1, 2], "unit": 3.5}, "text of 1 to 200 characters, or an integer"),
    (DECIDE, {"context": [1, 2], "unit": ""}, "text on one line, of 1 to 200 characters"),
    (DECIDE, {"context": [1, 2], "unit": "x" * 201}, "text on one line, of 1 to 200 characters"),
    (DECIDE, {"context": [1, 2], "probability": 0}, "a number above 0"),
    (DECIDE, {"context": [1, 2], "probability": 1.5}, "at most 1"),
    (DECIDE, {"context": {"steps": 1}}, "a value, or null where it was lost"),
    (DECIDE, {"context": {"steps": "a", "sleep": 1}}, "a finite number, or null where it was lost"),
    (DECIDE, {}, "a value: this field is required"),
    (MAKE, {**NEW, "name": ".."}, errors.NAMED),
    (MAKE, {**NEW, "seed": 1.5}, "a whole number"),
    (MAKE, {**NEW, "standardise": 1}, "true or false"),
    (MAKE, {**NEW, "reward_range": [3, 1]}, "null, or two numbers: the least and the largest reward"),
    ("/v1/backup", {"name": "../x"}, schemas.PYDANTIC_WORDS["string_pattern_mismatch"]),
]


def test_what_is_allowed_is_said_plainly(service: Running) -> None:
    for at, body, allowed in WORDS:
        found = service.http.post(at, json=body).json()
        assert (found["status"], found["allowed"]) == (422, allowed)
        assert found["detail"] == f"{found['field']}: {found['value']}; allowed: {allowed}"
        assert not [word for word in PYTHON if word in allowed]


def test_from_python_it_is_none_again(service: Running) -> None:
    with Client(service.url) as client:
        with pytest.raises(InputError, match=r"allowed: a value, or None where it was lost$"):
            client.problem("walks").decide({"steps": 1.0})
        with pytest.raises(InputError, match=r'"2w"; None for no end$'):
            client.problem("new", context=["a"], arms=["x", "y"], reward_window="1x")


def test_a_context_may_be_a_list_and_the_description_says_so(service: Running) -> None:
    assert service.http.post(DECIDE, json={"context": [1.0, None]}).status_code == 200
    context = service.http.get("/openapi.json").json()["components"]["schemas"]["DecisionRequest"][
        "properties"
    ]["context"]
    assert [one["type"] for one in context["anyOf"]] == ["object", "array"]


def test_who_may_not_read_is_told_no_name_of_another_unit_or_problem() -> None:
    for field, known in (("unit", "ann"), ("name", "walks")):
        error = NotFoundError(field, repr(known[:-1] + "x"), "one that there is", known)
        assert known in str(error)
        assert known not in str(errors.discreet(error))


def test_the_value_is_sent_without_the_name_that_was_meant() -> None:
    found = errors.refusal(InputError("arms", "'sned'", "send, wait"))
    assert found is not None
    assert found.body["value"] == "'sned'"
    assert found.body["detail"] == "arms: 'sned' (did you mean 'send'?); allowed: send, wait"


def test_each_kind_of_refusal_has_its_status_and_comes_back_as_itself() -> None:
    for kind, status in {
        InputError: 422,
        NotFoundError: 404,
        ConflictError: 409,
        DecisionClosedError: 410,
    }.items():
        found = errors.refusal(kind("field", "value", "one that there is"))
        assert found is not None
        assert found.status == found.body["status"] == status
        assert type(errors.raised(status, errors.encode(found.body).encode())) is kind
