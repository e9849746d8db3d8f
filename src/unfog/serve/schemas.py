"""Schemas of requests and answers: pydantic models of bodies, JSON Schema of answers, strict JSON.

The models are the first check of a body, and describe it in the OpenAPI document. Types are strict: "1", true
and 1e999 are no numbers, and unknown fields are refused. `unfog.live` checks the values again and in its own
words. Messages of pydantic are put in plain words, since they speak of Python and callers write JSON.

JSON is read strictly: no NaN, no infinite number, no name twice, no deep nesting. Python would silently
accept NaN, 1e999 and doubled names.
"""

import json
from collections import Counter
from collections.abc import Mapping
from math import isfinite
from typing import Annotated, Any, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, WithJsonSchema, create_model

from unfog.live.config import FIELDS
from unfog.live.requests import WORDS
from unfog.serve.errors import Malformed
from unfog.validation import LONGEST_NAME, InputError, shown

MOST = 1000  # decisions or rewards in one request
DEEPEST = 16  # brackets within brackets: a matrix in a channel in a problem takes five

PYDANTIC_WORDS = {
    "missing": "a value: it must be given",
    "model_type": "an object",
    "dict_type": "an object",
    "list_type": "a list",
    "string_type": "text",
    "bool_type": "true or false",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "too_short": "{min_length} of them, or more",
    "too_long": "at most {max_length} of them",
    "string_too_short": "text that is not empty",
    "string_too_long": "text of at most {max_length} characters",
    "string_pattern_mismatch": "letters, digits, dots, - and _, at most 100, the first a letter or a digit",
    "greater_than": "a number above {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "less_than_equal": "at most {le:g}",
}

Schema: TypeAlias = dict[str, Any]
TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
WHOLE: Schema = {"type": "integer"}
TRUTH: Schema = {"type": "boolean"}
NAME: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": LONGEST_NAME}
NUMBERS = {"type": "array", "items": NUMBER}
READING = {"type": ["number", "null"]}
Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]

Context = Annotated[
    Any,
    WithJsonSchema(
        {
            "description": "A reading by the names of its coordinates, or a list in their order;"
            " null where it was lost.",
            "anyOf": [
                {"type": "object", "additionalProperties": READING},
                {"type": "array", "items": READING},
            ],
            "examples": [{"steps": 1648, "sleep": None}, [1648, None]],
        }
    ),
]

Arms = Annotated[
    Any,
    WithJsonSchema(
        {
            "description": "Names of arms; or a mapping from names to vectors, where arms have any.",
            "anyOf": [
                {"type": "array", "items": NAME, "minItems": 1},
                {"type": "object", "additionalProperties": {"anyOf": [NUMBERS, {"type": "null"}]}},
            ],
        }
    ),
]

Matrix = Annotated[
    Any,
    WithJsonSchema(
        {"anyOf": [NUMBER, NUMBERS, {"type": "array", "items": NUMBERS}], "description": "Numbers."}
    ),
]

Span = Annotated[
    Any,
    WithJsonSchema(
        {
            "anyOf": [{"type": "string"}, NUMBER, {"type": "null"}],
            "description": "How long: a text such as 30m, or seconds.",
            "examples": ["30m", "7d"],
        }
    ),
]


class Body(BaseModel):
    """Strict: nothing is converted, nothing unknown is passed over."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class Ask(Body):
    """A decision that is asked for."""

    context: Context
    unit: Name | None = None
    arms: Arms = None
    key: Name | None = None
    at: float | None = None
    noise: Matrix = None
    forced: Name | None = None
    probability: Annotated[float, Field(gt=0, le=1)] | None = None


class Asks(Body):
    """Several decisions, with one commit; where one is refused, so are all."""

    asked: Annotated[list[Ask], Field(min_length=1, max_length=MOST)]


class Reward(Body):
    """What a decision earned."""

    value: float
    key: Name | None = None


class Rewards(Body):
    """What several decisions earned, by their ids."""

    rewards: Annotated[dict[Name, float], Field(min_length=1, max_length=MOST)]
    keys: dict[Name, Name] | None = None


class Reveal(Body):
    """The true context of a decision, whole or in part."""

    context: Context
    key: Name | None = None


class Void(Body):
    """It was never shown."""

    key: Name | None = None


class Change(Body):
    """Arms that come, go, and come back."""

    add: Arms = None
    retire: list[Name] = []
    restore: list[Name] = []


class Freeze(Body):
    """One arm from now on; null: the agent decides again."""

    arm: Name | None


class Shadow(Body):
    """One more agent that decides without being obeyed; or one that leaves."""

    agent: Name
    leave: bool = False


JSON_TYPES: dict[str, Any] = {
    "arms": Arms,
    "boolean": bool,
    "channel": Annotated[Any, WithJsonSchema({"anyOf": [{"type": "object"}, {"type": "null"}]})],
    "integer or null": int | None,
    "name": Name,
    "name or null": Name | None,
    "names or null": list[Name] | None,
    "number or null": float | None,
    "numbers": Matrix,
    "range or null": Annotated[list[float], Field(min_length=2, max_length=2)] | None,
    "reference": Name,  # or module:name of something that can be imported
    "share": Annotated[float, Field(ge=0, le=1)],
    "span": Span,
}
_TERMS: dict[str, Any] = {name: (JSON_TYPES[field.json], field.default) for name, field in FIELDS.items()}
Terms = create_model(
    "Terms", __base__=Body, __doc__="A problem: its name and its terms.", name=Name, **_TERMS
)


class Table(Body):
    """Decisions that were made elsewhere, a row each."""

    table: Annotated[str, Field(description="CSV with a header: coordinates, arm, reward and more.")]


class Backup(Body):
    """A copy of the store."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")] | None = None


class Erase(Body):
    """A unit whose contexts are to go, in all problems or in one."""

    unit: Name
    problem: Name | None = None


class Replay(Body):
    """The log read from its beginning."""

    verify: bool = False


Model = TypeVar("Model", bound=Body)


def _float(text: str) -> float:
    found = float(text)
    if not isfinite(found):
        raise Malformed(f"{text} is too large for a number")
    return found


def _constant(text: str) -> float:
    raise Malformed(f"{text} is no number of JSON")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        times = Counter(name for name, _ in pairs)
        twice = next(name for name, number in times.items() if number > 1)
        raise Malformed(f"the name {shown(twice)[:80]} stands twice")
    return found


_decode = json.JSONDecoder(parse_float=_float, parse_constant=_constant, object_pairs_hook=_distinct).decode


def read(body: bytes) -> Any:
    """What a body says."""
    try:
        found = _decode(body.decode())
    except Malformed:
        raise
    except UnicodeDecodeError as error:
        raise Malformed(f"it is not UTF-8 at byte {error.start}") from None
    except RecursionError:
        raise Malformed(f"it is nested more than {DEEPEST} deep") from None
    except ValueError as error:
        raise Malformed(f"it is not JSON: {error}") from None
    if body.count(b"[") + body.count(b"{") > DEEPEST and _depth(found) > DEEPEST:
        raise Malformed(f"it is nested more than {DEEPEST} deep")
    return found


def _depth(value: Any, above: int = 0) -> int:
    """How deep it is nested; counted no further than needed."""
    if above > DEEPEST or not isinstance(value, dict | list):
        return above
    inner = value.values() if isinstance(value, dict) else value
    return max((_depth(one, above + 1) for one in inner), default=above + 1)


def checked(model: type[Model], told: Any) -> Model:
    """What a body says, or a complaint that names the field."""
    if not isinstance(told, dict):
        raise InputError("body", shown(told), f"an object with {', '.join(model.model_fields) or 'nothing'}")
    try:
        return model.model_validate(told)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise InputError(_path(first["loc"]), _value(first), _allowed(model, first)) from None


def _path(loc: tuple[int | str, ...]) -> str:
    found = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc)
    return found.removeprefix(".") or "body"


def _value(first: Any) -> str:
    if first["type"] == "missing":
        return "missing"
    return "no such field" if first["type"] == "extra_forbidden" else shown(first["input"])


def _allowed(model: type[Body], first: Any) -> str:
    if first["type"] == "extra_forbidden":
        return ", ".join(model.model_fields)
    return allowed(first["type"], first["msg"], first.get("ctx", {}))


def allowed(kind: str, message: str, bounds: Mapping[str, Any]) -> str:
    """By the kind of a complaint; what there are no words for is told as it came."""
    found = PYDANTIC_WORDS.get(kind)
    return message[:1].lower() + message[1:] if found is None else found.format(**bounds)


def or_null(kind: Schema) -> Schema:
    """It, or nothing."""
    return {"anyOf": [kind, {"type": "null"}]}


def listed(kind: Schema) -> Schema:
    """Several."""
    return {"type": "array", "items": kind}


def by_name(kind: Schema) -> Schema:
    """One for each name."""
    return {"type": "object", "additionalProperties": kind}


def whole(more: bool = False, **fields: Schema) -> Schema:
    """An object with all of these fields; with others as well, where there may be more."""
    return {
        "type": "object",
        "properties": fields,
        "required": list(fields),
        "additionalProperties": more,
    }


def ref(name: str) -> Schema:
    """One of the components."""
    return {"$ref": f"#/components/schemas/{name}"}


_DECISION = whole(
    id=TEXT,
    arm=TEXT,
    probability=or_null(NUMBER),
    probabilities=by_name(NUMBER),
    denoised=by_name(NUMBER),
    sd=by_name(NUMBER),
    number=WHOLE,
)

_DECISION["properties"]["shadow"] = {"type": "object", "description": "What shadows would have done."}

_ABOUT = {
    "name": TEXT,
    "agent": TEXT,
    "context": listed(TEXT),
    "arms": listed(TEXT),
    "retired": listed(TEXT),
    "frozen": or_null(TEXT),
    "shadows": listed(TEXT),
    "units": listed(TEXT),
    "units_total": WHOLE,
    "note": or_null(TEXT),
    "decisions": WHOLE,
    "decisions_today": WHOLE,
    "rewards": WHOLE,
    "pending": WHOLE,
    "alarm": listed(TEXT),
}

_GLANCE = whole(
    name=TEXT,
    agent=or_null(TEXT),
    decisions=or_null(WHOLE),
    decisions_today=or_null(WHOLE),
    pending=or_null(WHOLE),
    alarm=listed(TEXT),
    error=or_null(TEXT),
)

_PROBLEM = whole(type=TEXT, title=TEXT, status=WHOLE, detail=TEXT)

_PROBLEM["properties"] |= {
    "field": {"type": "string", "description": "Which field is wrong."},
    "value": {"type": "string", "description": "What it was."},
    "allowed": {"type": "string", "description": "What it may be."},
}

COMPONENTS: dict[str, Schema] = {
    "Decision": _DECISION,
    "Receipt": whole(seq=WHOLE, outcome={"enum": list(WORDS)}, words=TEXT),
    "About": whole(more=True, **_ABOUT),
    "Glance": _GLANCE,
    "DataSet": whole(more=True, dims=by_name(listed(TEXT)), coordinates={"type": "object"})
    | {"description": "Variables by name, each by the names along its `dims`; null for not a number."},
    "Problem": _PROBLEM | {"description": "Why nothing was done: problem JSON, RFC 9457."},
}

ANSWERS: dict[str, Schema] = {
    "decide": {"anyOf": [ref("Decision"), whole(decisions=listed(ref("Decision")))]},
    "reward": ref("Receipt"),
    "reveal": ref("Receipt"),
    "void": ref("Receipt"),
    "rewards": whole(receipts=by_name(ref("Receipt"))),
    "about": ref("About"),
    "pending": whole(pending=listed(TEXT)),
    "fingerprint": whole(fingerprint=TEXT),
    "belief": ref("DataSet"),
    "expected": ref("DataSet"),
    "diagnostics": ref("DataSet"),
    "history": whole(
        more=True,
        problem=TEXT,
        unit=or_null(TEXT),
        coordinates=listed(TEXT),
        arms=listed(TEXT),
        decisions=WHOLE,
        kept=WHOLE,
        points=by_name({}),
        worth=by_name({}),
        rewards=by_name({}),
        shares=by_name({}),
        shadow=by_name({}),
        tracks=by_name({}),
    ),
    "take_in": whole(problem=TEXT, events=WHOLE),
    "take_in_table": whole(problem=TEXT, decisions=WHOLE),
    "make": whole(more=True, made=TRUTH, **_ABOUT),
    "arms": ref("Receipt"),
    "freeze": ref("Receipt"),
    "shadow": ref("Receipt"),
    "replay": whole(problem=TEXT, events=WHOLE, decisions=WHOLE, verified=WHOLE, same=TRUTH),
    "erase": whole(decisions=by_name(WHOLE)),
    "backup": whole(name=TEXT, bytes=WHOLE),
    "problems": whole(problems=listed(ref("Glance"))),
    "health": whole(status={"const": "ok"}),
    "readiness": whole(status={"const": "ready"}, broken=WHOLE),
    "description": {"type": "object"},
}
