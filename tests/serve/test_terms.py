"""The terms of a problem are the same in a store, a client, a body, a log and on the command line."""

import inspect
import json
import re
from typing import Any

import pytest

from unfog.cli import main
from unfog.live import Store
from unfog.live.config import FIELDS, ProblemConfig, written
from unfog.serve import Client
from unfog.serve.openapi import document

DEFAULTS = {name: field.default for name, field in FIELDS.items()}


@pytest.mark.parametrize("function", [Store.problem, Client.problem])
def test_a_signature_has_every_term_with_its_default(function: Any) -> None:
    keywords = [
        one for one in inspect.signature(function).parameters.values() if one.kind is one.KEYWORD_ONLY
    ]
    assert [(one.name, one.default) for one in keywords] == list(DEFAULTS.items())


def test_a_body_has_every_term_with_its_default() -> None:
    model = document()["components"]["schemas"]["CreateProblemBody"]
    told = {name: one["default"] for name, one in model["properties"].items() if name != "name"}
    assert list(told.items()) == list(DEFAULTS.items())
    assert model["required"] == ["name"]


def test_the_log_has_every_term() -> None:
    """And a default that is given is as one that is not."""
    body = written({"context": ["x"], "arms": ["a"], "seed": 1})
    assert tuple(body) == (*FIELDS, "module_hashes", "uid")
    assert ProblemConfig._fields == (*body, "spec")  # read from the context
    again = written(DEFAULTS | {"context": ["x"], "arms": ["a"], "seed": 1})
    assert again == body | {"uid": again["uid"]}


def test_the_command_line_tells_every_term_with_its_default(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["live", "create", "--help"])
    (told,) = re.findall(r"^Terms: (.*?)\n\n", capsys.readouterr().out, re.MULTILINE | re.DOTALL)
    pairs = [one.partition(" = ") for one in " ".join(told.split()).split(", ")]
    assert [(name, json.loads(value or "null")) for name, _, value in pairs] == list(DEFAULTS.items())
