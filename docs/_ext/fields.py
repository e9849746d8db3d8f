"""The Reference of experiment files: every field, its type and default from the models."""

import inspect
import tomllib
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from docs._ext.tables import code, table

from unfog.lab.spec import DEFAULTS, KINDS, SHARED, UNITS, RunSpec, Spec
from unfog.validation import Numbers

HEAD = ("field", "type", "default", "allowed", "meaning")
MEANINGS: dict[str, Any] = tomllib.loads((Path(__file__).parent / "fields.toml").read_text("utf-8"))
REQUIRED = {"recorded": ("file", "noisy", "true")}  # empty by default, which is refused
WORDS = {int: "whole number", float: "number", str: "text", bool: "true or false", type(None): "none"}


def pages() -> dict[str, str]:
    """One page."""
    return {"fields": "\n".join(_page())}


def meaning(kind: str, field: str) -> tuple[str, str]:
    """What a field of a kind of problem may be, and what it means."""
    own: Mapping[str, Any] = MEANINGS["problem"].get(kind, {})
    allowed, said = own.get(field) or MEANINGS["problem"][field]
    return allowed, said


def _page() -> Iterator[str]:
    yield "# Every field of an experiment\n"
    yield "An experiment is a TOML file. [The experiment file](../spec.md) explains it with examples."
    yield "Here is every field with what may stand there.\n"
    yield "## At the top\n"
    yield table(HEAD, _models("top", Spec))
    yield "## run\n"
    yield table(HEAD, _models("run", RunSpec))
    yield "## problem\n"
    yield "`kind` says which world is played, and is required: " + ", ".join(map(code, KINDS)) + ".\n"
    for kind, world in KINDS.items():
        yield f'### kind = "{kind}"\n'
        yield " ".join((inspect.getdoc(world) or "").partition("\n\n")[0].split()) + "\n"
        yield table(HEAD, _problem(kind, world, lambda name: name not in SHARED | UNITS))
    yield "### Units, shared by `gaussian`, `logistic` and `temporal`\n"
    yield table(HEAD, _problem("gaussian", KINDS["gaussian"], lambda name: name in UNITS))
    yield "### The channel, shared by every kind\n"
    yield table(HEAD, _problem("gaussian", KINDS["gaussian"], lambda name: name in SHARED))


def _models(part: str, model: Any) -> Iterator[tuple[str, ...]]:
    for name, field in model.model_fields.items():
        default = field.get_default(call_default_factory=True)
        plain = isinstance(default, Mapping) or not isinstance(default, str | int | float | list | None)
        told = "required" if field.is_required() else "none" if plain or default is None else _shown(default)
        yield (code(name), words(field.annotation), told, *MEANINGS[part][name])


def _problem(kind: str, world: Any, wanted: Any) -> Iterator[tuple[str, ...]]:
    types = typing.get_type_hints(world)
    for name, default in DEFAULTS[kind].items():
        if wanted(name):
            told = "required" if name in REQUIRED.get(kind, ()) else _shown(default)
            yield (code(name), words(types[name]), told, *meaning(kind, name))


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return code(str(value).lower())
    if isinstance(value, list | tuple):
        return ", ".join(map(_shown, value)) or "none"
    return "none" if value in ("", None) else code(value)


def words(kind: Any) -> str:
    """A type, in words."""
    if kind in WORDS:
        return WORDS[kind]
    if kind == Numbers:
        return "numbers"
    origin, inside = typing.get_origin(kind), typing.get_args(kind)
    if origin in (list, tuple) and inside:
        return f"list of {words(inside[0])}" + ("s" if inside[0] in (int, float) else "")
    if origin is typing.Annotated or origin is dict or kind is dict:
        return "table"
    if inside and origin is not None and "Callable" not in str(origin):
        said = dict.fromkeys(words(one) for one in inside)
        several = [one for one in said if one.endswith("numbers")]
        return " or ".join([one for one in said if one not in several[1:]])
    if "Callable" in str(kind):
        return "function"
    return "table" if "Spec" in str(kind) or "Mapping" in str(kind) else "numbers"
