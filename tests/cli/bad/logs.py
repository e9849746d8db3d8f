"""Logs that cannot be read, or not be used: tables, dsjson, exports, and what is told of their noise."""

import json
import random
from typing import Any

from tests.cli.bad.case import NUMBERS, WORDS, Case, junk

FEW = ["--policies", "logger,uniform", "--estimators", "ips"]
SPOILT: list[Any] = [*NUMBERS, *WORDS[:10], '"', "a,b", "9" * 5000]
CHANNEL = ["context_mean", "context_cov", "noise_cov", "bias_cov"]
NOT_JSON = [b"[" * 5000, b'{"a":' * 3000, b'{"c": ' + b"9" * 5000 + b"}"]
DSJSON = {"_label_cost": -1, "_label_probability": 0.5, "_label_Action": 1, "_labelIndex": 0, "a": [1, 2]}
TERMS = {"seq": 1, "problem": "p", "context": ["x"], "arms": ["a", "b"], "epsilon": 0.1, "decision": "d"}


def table(chance: random.Random, spoilt: list[Any]) -> bytes:
    """A log as a table; values that are spoilt stand anywhere."""
    rows = [["arm", "reward", "probability", "context.x", "context.y"]]
    for _ in range(12):
        number = chance.gauss(0, 1)
        rows.append([chance.choice(["a", "b"]), f"{number:.3f}", "0.5", f"{number:.2f}", "1.5"])
    for value in spoilt:
        row = chance.choice(rows)
        row[chance.randrange(len(row))] = str(value)
    return "\n".join(",".join(row) for row in rows).encode() + b"\n"


def log(chance: random.Random, names: list[str]) -> Case:
    """One of them."""
    way = chance.random()
    if way < 0.4:
        spoilt = [chance.choice(SPOILT) for _ in range(chance.randrange(1, 4))]
        return Case(["evaluate", "log.csv", *FEW], {"log.csv": table(chance, spoilt)})
    if way < 0.55:
        told = json.dumps({name: junk(chance, name) for name in CHANNEL}).encode()
        files = {"log.csv": table(chance, []), "channel.json": told}
        return Case(["evaluate", "log.csv", *FEW, "--channel", "channel.json"], files)
    line: dict[str, Any] = _dsjson(chance) if way < 0.8 else _event(chance)
    for _ in range(chance.randrange(3)):
        line[chance.choice([*line])] = junk(chance, "")
    text = json.dumps(line).encode()
    text = chance.choice([text, text, text, text[:-5], *NOT_JSON])
    return Case(["evaluate", "log.json", *FEW], {"log.json": (text + b"\n") * 3})


def _dsjson(chance: random.Random) -> dict[str, Any]:
    context: dict[str, Any] = {"S": {"x": chance.gauss(0, 1)}, "_multi": [{"_tag": "a"}, {"_tag": "b"}]}
    return {**DSJSON, "p": [0.5, 0.5], "c": context}


def _event(chance: random.Random) -> dict[str, Any]:
    return {**TERMS, "kind": chance.choice(["problem", "decide", "reward"])}
