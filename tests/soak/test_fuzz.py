"""A hundred thousand calls with nonsense: each works or is refused by name, and none changes anything."""

import random
from typing import Any

import numpy as np
import pytest

from unfog.agents.catalogue import AGENTS, PARTS, Catalogue, select_rows
from unfog.lab.prepare import prepare
from unfog.lab.spec import DEFAULTS, KINDS, parse
from unfog.validation import InputError

NAMES, SPECS = 70_000, 30_000
SETTINGS = ["step", "nu", "pairs", "quantile", "growth", "trust", "hetero", "steps", "temperature", "", "x"]
VALUES = ["1", "0", "-1", "1e9", "nan", "inf", "true", "false", "", "1e-3", "0.5", "é", "1_0", " 2", "None"]
JUNK: list[Any] = [
    0,
    1,
    -1,
    2,
    1e9,
    1e-300,
    1e300,
    float("nan"),
    float("inf"),
    True,
    None,
    "",
    "product",
    "x:y",
]
JUNK += ["normal", [1.0, 2.0], [[1.0, 0.5], [0.5, 1.0]], [[1.0, 2.0], [2.0, 1.0]], [], {}, [1, [2]], "cuda"]


def name(chance: random.Random) -> str:
    pieces = [chance.choice([*AGENTS, "nobody", "", "mod:x", "a.b:c"])]
    pieces += chance.choices([*PARTS, "junk", ""], k=chance.randrange(3))
    told = [f":{chance.choice(SETTINGS)}={chance.choice(VALUES)}" for _ in range(chance.randrange(3))]
    text = list("-".join(pieces) + "".join(told))
    if chance.random() < 0.2 and text:
        text[chance.randrange(len(text))] = chance.choice(":-= \x00é\n")
    return "".join(text)


@pytest.mark.soak
def test_names_of_agents() -> None:
    chance, before, found, refused = random.Random(1), dict(AGENTS), 0, []
    for _ in range(NAMES):
        kind = chance.choice(["gaussian", "bernoulli"])
        try:
            rows = select_rows([name(chance), "alg1"][: chance.randrange(3)], rows=Catalogue(kind))
        except InputError as error:
            refused.append(str(error))
            continue
        found += 1
        assert all(row.learner.rewards == kind for row in rows)
    assert found > 1000
    assert all(told.startswith("agents") and "; allowed: " in told for told in refused)
    assert before == AGENTS


def spec(chance: random.Random) -> dict[str, Any]:
    kind = chance.choice([*KINDS][:2])
    problem: dict[str, Any] = {"kind": kind, "dim": 2, "actions": 3}
    for field in chance.choices([*DEFAULTS[kind], "junk"], k=chance.randrange(4)):
        problem[field] = chance.choice(JUNK)
    run: dict[str, Any] = {"rounds": 2, "trials": 1, "agents": ["alg1"]}
    for field in chance.choices([*run, "seed", "engine", "points", "precision", "decompose"], k=2):
        if chance.random() < 0.5:
            run[field] = chance.choice(JUNK)
    sweep = (
        {chance.choice(["dim", "missing", "junk"]): [chance.choice(JUNK)]} if chance.random() < 0.1 else {}
    )
    return {"problem": problem, "run": run, "sweep": sweep}


@pytest.mark.soak
def test_specs() -> None:
    chance, found, refused = random.Random(2), 0, []
    for _ in range(SPECS):
        data = spec(chance)
        if data["problem"].get("dim", 2) in (1e9, 1) or data["problem"].get("actions") == 1e9:
            continue
        try:
            with np.errstate(all="ignore"):
                plan = prepare(parse(data))
        except InputError as error:
            refused.append(error)
            continue
        found += 1
        assert plan.work.total >= 1
    assert found > 300
    assert all(error.field and len(str(error)) < 2000 for error in refused)
