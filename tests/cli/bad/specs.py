"""Experiments of the catalog with something wrong: fields dropped, renamed, of another type; garbled."""

import random
import tomllib
from functools import cache
from importlib import resources
from typing import Any

from tests.cli.bad.case import LONG, Case, junk, misspelt, toml
from unfog.lab.spec import DEFAULTS

PLAIN = ["fig1-gaussian", "fig1-logistic", "fig-actions", "gaussian-correlated", "drift", "late", "missing"]
PLAIN += ["temporal", "heavy-tails", "contexts", "choosers", "learners", "unknown-noise", "told-wrong"]
BASELINES = [
    "baseline-clbbf",
    "baseline-kk",
    "baseline-lmcts",
    "baseline-meb",
    "baseline-park",
    "baseline-polinucb",
]
BASELINES += ["baseline-samplinucb", "baseline-lmcts-logistic"]
RECORDED = ["fig1-movielens", "airquality", "heartsteps", "movielens-users"]
RUN = ["run", "spec.toml", "--workers", "1"]
FEW = ["--rounds", "3", "--trials", "2"]
OF_RUN = ["seed", "points", "decompose", "precision", "kind"]
SCALES = ("_cov", "_var", "_mean", "_walk", "_time", "step", "_scale")
MARKS = [b"\x00", b"\xff", b"[", b"]", b"=", b'"', b"'''", b"\n", b"{", b".", b"-"]
HEAD = b'[problem]\nkind = "gaussian"\n'
WHOLE = [
    b"",
    b"a = " + b"[" * 5000 + b"]" * 5000,
    b"a = " + b"{a = " * 3000,
    b"a." * 5000 + b"a = 1",
    HEAD + b"bias = " + b"[" * 60 + b"1" + b"]" * 60,
    HEAD + b"dim = " + b"9" * 5000,
    HEAD + b"dim = 0x" + b"9" * 5000,
    HEAD + b"noise_cov = [0x" + b"9" * 400 + b"]",
    b"#" * 1_000_001,
    HEAD.decode().encode("utf-16"),
    HEAD + b"\x00",
    b'name = "' + LONG.encode() + b'"\n' + HEAD,
    b'title = "' + LONG.encode() + b'"\n' + HEAD,
    HEAD + b"dim = 2020-01-01\nbias = 10:00:00",
    HEAD + b"dim = 2\ndim = 3\n",
    b"<html><body>no</body></html>",
    b'[problem]\nkind = "recorded"\nfile = "/dev/zero"\nnoisy = ["a"]\ntrue = ["b"]\n',
    b'[problem]\nkind = "recorded"\nfile = "pipe"\nnoisy = ["a"]\ntrue = ["b"]\n',
    b'[problem]\nkind = "recorded"\nfile = "' + LONG.encode() + b'"\nnoisy = ["a"]\ntrue = ["b"]\n',
]


@cache
def _text(name: str) -> str:
    return (resources.files("unfog.lab") / "catalog" / f"{name}.toml").read_text("utf-8")


def small(name: str) -> dict[str, Any]:
    """An experiment of the catalog, made small."""
    data = tomllib.loads(_text(name))
    run = data.setdefault("run", {})
    run |= {"rounds": 3, "trials": 2, "agents": run.get("agents", ["alg1"])[:2], "engine": "numpy"}
    if isinstance(data["problem"].get("actions"), int):
        data["problem"]["actions"] = min(5, data["problem"]["actions"])
    data["sweep"] = {field: values[:2] for field, values in data.get("sweep", {}).items()}
    return data


def spec(chance: random.Random, names: list[str]) -> Case:
    """A few fields are wrong."""
    data = small(chance.choice(names))
    kind = data["problem"]["kind"]
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        if tables := [name for name, value in data.items() if isinstance(value, dict)]:
            _spoil(chance, data, chance.choice(tables), kind)
    words = ["bounds", "spec.toml", *FEW, "--workers", "1"] if chance.random() < 0.05 else RUN
    return Case(words, {"spec.toml": toml(data)})


def _spoil(chance: random.Random, data: dict[str, Any], table: str, kind: str) -> None:
    fields = data[table]
    field = chance.choice([*fields, *(OF_RUN if table == "run" else DEFAULTS[kind])])
    other = chance.choice(["problem", "run", "sweep", "x", LONG, "name", "title"])
    way = chance.randrange(8)
    if way == 0:
        fields.pop(field, None)
    elif way == 1:
        fields[misspelt(chance, field)] = fields.pop(field, 1)
    elif way < 4:
        data[table if way == 2 else other] = junk(chance, "")
    else:
        fields[field] = [junk(chance, field)] if table == "sweep" else junk(chance, field)


def extreme(chance: random.Random, names: list[str]) -> Case:
    """Numbers that are each large or small enough to be taken, and far apart."""
    data = small(chance.choice(names))
    for field, value in {**DEFAULTS[data["problem"]["kind"]], **data["problem"]}.items():
        if isinstance(value, float) and any(part in field for part in SCALES) and chance.random() < 0.4:
            data["problem"][field] = 10.0 ** chance.choice([-49, -30, -20, -9, -4, 0, 0, 4, 9, 20, 30, 49])
    return Case(RUN, {"spec.toml": toml(data)})


def garbled(chance: random.Random, names: list[str]) -> Case:
    """The text has bytes that do not belong there, or lacks some."""
    text = bytearray(toml(small(chance.choice(names))))
    for _ in range(chance.randrange(1, 4)):
        at, way = chance.randrange(len(text)), chance.randrange(5)
        if way == 0:
            del text[at : at + chance.randrange(1, 40)]
        elif way == 1:
            text[at:at] = chance.randbytes(chance.randrange(1, 9))
        elif way == 2:
            text[at:at] = chance.choice(MARKS)
        elif way == 3:
            text[at] = chance.randrange(256)
        else:
            text = text[: at + 1]
    return Case([*RUN, *FEW], {"spec.toml": bytes(text)})


def whole_file(chance: random.Random, _: list[str]) -> Case:
    """What is no experiment at all."""
    text = chance.choice([*WHOLE, chance.randbytes(200)])
    words = chance.choice([["run"], ["run"], ["bounds"], ["reproduce"], ["check", "posterior"]])
    return Case([*words, "spec.toml"], {"spec.toml": text}, ("pipe",))
