"""An experiment as a TOML file, checked field by field.

name = "mine"                    # optional: the file's name unless told
title = "..."                    # optional
[problem]                        # the fields of the world named by `kind`
kind = "gaussian"
[run]
rounds = 1000
trials = 100
seed = 0
agents = ["alg1", "oracle"]
[sweep]                          # optional: the same run for each value of one field of the problem
actions = [10, 20, 40, 80]
"""

import dataclasses
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from unfog.agents.agent import Agent
from unfog.agents.catalogue import AGENTS, Catalogue, named
from unfog.inputs import InputError, count, one_of
from unfog.lab.airquality import AirQuality
from unfog.lab.movielens import MovieLens
from unfog.simulate import MOST_SEED, MOST_TRIALS
from unfog.simulate.job import ENGINES, PRECISIONS
from unfog.simulate.schedule import MOST_POINTS
from unfog.worlds.channel import ChannelFields
from unfog.worlds.gaussian import GaussianProblem
from unfog.worlds.logistic import LogisticProblem
from unfog.worlds.problem import Problem

KINDS: dict[str, type[GaussianProblem | LogisticProblem | MovieLens | AirQuality]] = {
    "gaussian": GaussianProblem,
    "logistic": LogisticProblem,
    "movielens": MovieLens,
    "airquality": AirQuality,
}
SHARED = {field.name for field in dataclasses.fields(ChannelFields)}
DEFAULTS = {
    kind: {
        field.name: field.default
        for field in sorted(dataclasses.fields(world), key=lambda field: field.name in SHARED)
        if field.init
    }
    for kind, world in KINDS.items()
}  # a world's own fields, then those of every channel


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class RunSpec(_Strict):
    """How long, how often, from which seed, and who plays."""

    rounds: int = 1000
    trials: int = 100
    seed: int = 0
    agents: list[str] = Field(default_factory=lambda: ["alg1", "alg2", "naive", "oracle", "kk"])
    points: int | None = None
    decompose: bool = True
    engine: str = "numpy"
    precision: str | None = None


class Spec(_Strict):
    """An experiment."""

    name: str = "experiment"
    title: str = ""
    problem: dict[str, Any]
    run: RunSpec = RunSpec()
    sweep: dict[str, list[Any]] = Field(default_factory=dict)

    def settings(self) -> list[tuple[str, Problem]]:
        """The problems to run, each with what to append to the agents' names."""
        if not self.sweep:
            return [("", build_problem(self.problem))]
        [(field, values)] = self.sweep.items()
        problems = [build_problem({**self.problem, field: value}, [field]) for value in values]
        return [(f" {field}={value}", problem) for value, problem in zip(values, problems, strict=True)]


def build_problem(fields: Mapping[str, Any], swept: Sequence[str] = ()) -> Problem:
    """The world these fields describe; complaints name the table that a field came from."""
    rest = dict(fields)
    kind = rest.pop("kind", None)
    if not isinstance(kind, str) or kind not in KINDS:
        raise InputError("problem.kind", "missing" if kind is None else repr(kind), ", ".join(KINDS))
    for field, value in rest.items():
        if field not in DEFAULTS[kind]:
            raise InputError(f"problem.{field}", "unknown field", ", ".join(["kind", *DEFAULTS[kind]]))
        if isinstance(DEFAULTS[kind][field], str) and not isinstance(value, str):
            raise InputError(
                f"{'sweep' if field in swept else 'problem'}.{field}", repr(value), "a name in quotes"
            )
    try:
        return KINDS[kind](**rest)
    except InputError as error:
        if error.field == "data":  # what is missing is a file, not a field
            raise
        raise InputError.prefixed("sweep" if error.field in swept else "problem", error) from None


def describe(problem: Problem) -> dict[str, Any] | None:
    """The fields that build this problem, or None where TOML cannot say them (features made in Python)."""
    for kind, world in KINDS.items():
        if isinstance(problem, world):
            fields = {name: getattr(problem, name) for name in DEFAULTS[kind]}
            plain = {
                name: np.asarray(value).tolist() for name, value in fields.items() if not callable(value)
            }
            return {"kind": kind, **plain} if len(plain) == len(fields) else None
    return None


def parse(data: Mapping[str, Any], name: str = "experiment", own: Sequence[Agent] = ()) -> Spec:
    """A checked spec from plain data; one without a name takes the one given here."""
    try:
        spec = Spec.model_validate({"name": name, **data})
    except ValidationError as error:
        raise _explain(error) from None
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,79}", spec.name):
        raise InputError(
            "name", repr(spec.name), "letters, digits, '.', '_' and '-', at most 80, no leading '.' or '-'"
        )
    count("run.rounds", spec.run.rounds)
    count("run.trials", spec.run.trials, most=MOST_TRIALS)
    count("run.seed", spec.run.seed, 0, MOST_SEED)
    if spec.run.points is not None:
        count("run.points", spec.run.points, most=MOST_POINTS)
    one_of("run.engine", spec.run.engine, (*ENGINES, "auto"))
    if spec.run.precision is not None:
        one_of("run.precision", spec.run.precision, PRECISIONS)
    problem = build_problem(spec.problem)
    if "agents" not in spec.run.model_fields_set and not problem.has_bias:
        rest = [name for name in spec.run.agents if not AGENTS[name].privileged]
        spec = spec.model_copy(update={"run": spec.run.model_copy(update={"agents": rest})})
    named(spec.run.agents, "run.agents", Catalogue(problem.rewards.kind, own))
    _check_sweep(spec)
    spec.settings()
    # Defaults are written out, so that a stored spec says everything even when defaults change; and so is
    # what a world found out for itself.
    return spec.model_copy(update={"problem": {**spec.problem, **(describe(problem) or {})}})


def _check_sweep(spec: Spec) -> None:
    if len(spec.sweep) > 1:
        raise InputError("sweep", ", ".join(spec.sweep), "one field of the problem")
    for field, values in spec.sweep.items():
        allowed = DEFAULTS[spec.problem["kind"]]
        if field not in allowed:
            raise InputError(f"sweep.{field}", "unknown field", ", ".join(allowed))
        if not values or len({repr(v) for v in values}) < len(values):
            raise InputError(f"sweep.{field}", values, "a list of one or more values, all different")


def _explain(error: ValidationError) -> InputError:
    """The first complaint, in one line."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        owner = RunSpec if first["loc"][0] == "run" else Spec
        return InputError(where, "unknown field", ", ".join(owner.model_fields))
    if first["type"] == "missing":
        return InputError(where, "missing", f"a table: [{where}]")
    allowed = first["msg"].removeprefix("Input should be ").replace("a valid dictionary", "a table")
    allowed = allowed.replace(" or instance of RunSpec", "")
    return InputError(where, repr(first["input"]), allowed)


def catalog() -> dict[str, Spec]:
    """The experiments that come with the package, by name. Their worlds are not built: that may take long."""
    files = resources.files("unfog.lab") / "catalog"
    found = [file for file in files.iterdir() if file.name.endswith(".toml")]
    names = sorted((file.name.removesuffix(".toml"), file) for file in found)
    return {
        name: Spec.model_validate({"name": name, **tomllib.loads(file.read_text("utf-8"))})
        for name, file in names
    }


def load(source: str | Path, overrides: Mapping[str, Any] | None = None, own: Sequence[Agent] = ()) -> Spec:
    """The spec of a catalog name or a TOML file, with fields of [run] overridden."""
    data, name = _read(source)
    changes = {field: value for field, value in (overrides or {}).items() if value is not None}
    if changes:
        run = data.get("run", {})
        if not isinstance(run, dict):
            raise InputError("run", run, "a table: [run]")
        data = {**data, "run": {**run, **changes}}
    return parse(data, name, own)


def _read(source: str | Path) -> tuple[dict[str, Any], str]:
    text = str(source)
    known = catalog()
    if text in known:
        return known[text].model_dump(exclude={"name"}), text
    path = Path(source)
    if path.suffix != ".toml" and not path.is_file():
        raise InputError(
            "experiment", f"{text!r} is neither known nor a file", f"{', '.join(known)} or a .toml file"
        )
    try:
        data = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise InputError("experiment", f"no file {text!r}", f"{', '.join(known)} or a .toml file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            "experiment", f"{text!r} cannot be read ({error})", "a readable .toml file"
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise InputError("experiment", f"{text!r} is not TOML ({error})", "a TOML file") from None
    return data, re.sub(r"[^A-Za-z0-9._-]", "-", path.stem).lstrip(".-") or "spec"


def to_toml(spec: Spec) -> str:
    """The spec as a file that `unfog run` takes. JSON's numbers, strings and lists are TOML's too."""
    data = spec.model_dump(exclude_none=True)
    lines = [f"{field} = {_quoted(data.pop(field))}" for field in ("name", "title")]
    for table, fields in data.items():
        if fields:
            lines += [
                "",
                f"[{table}]",
                *(f"{field} = {json.dumps(value)}" for field, value in fields.items()),
            ]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """A TOML string: JSON's, with the one control character that JSON leaves bare."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
