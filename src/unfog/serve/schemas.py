"""Schemas of requests and answers: pydantic models, and strict JSON.

The models of bodies validate them first, and describe them in the OpenAPI document. Types are strict: "1",
true and 1e999 are not numbers, and unknown fields are refused. `unfog.live` checks the values again, with its
own messages. Messages of pydantic are rephrased, since they speak of Python and callers write JSON.

The models of answers only describe them; answers are not built from them, since that would take time.

JSON is read strictly: no NaN, no infinite numbers, no repeated names, no deep nesting. Python would silently
accept NaN, 1e999 and repeated names.
"""

import json
from collections import Counter
from collections.abc import Mapping
from math import isfinite
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, WithJsonSchema, create_model

from unfog.channel.context import FIELDS as FIELDS_OF_COORDINATES
from unfog.channel.context import LIKELY_OPTIONS, Category, Cycle, Reading
from unfog.live.config import FIELDS
from unfog.live.requests import MESSAGES
from unfog.serve.errors import InvalidJSONError
from unfog.validation import LONGEST_NAME, InputError, display

MOST = 1000  # decisions or rewards in one request
DEEPEST = 16  # brackets within brackets: a matrix in a channel in a problem takes five

PYDANTIC_WORDS = {
    "missing": "a value: this field is required",
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

Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]


def _with_schema(kind: Any, **more: Any) -> WithJsonSchema:
    """Describe a value as this type without checking it: `unfog.live` does that, with its own messages."""
    return WithJsonSchema(TypeAdapter(kind).json_schema() | more)


Context = Annotated[
    Any,
    _with_schema(
        dict[str, float | str | None] | list[float | str | None],
        description="A reading by the names of its coordinates, or a list in their order: numbers, and the"
        " levels of categories; null where it was lost.",
        examples=[{"steps": 1648, "sleep": None, "weekday": "mon"}, [1648, None, "mon"]],
    ),
]
_NAMED: Any = Name | Annotated[int, Field(ge=-(2**53), le=2**53)]
Arms = Annotated[
    Any,
    _with_schema(
        Annotated[list[_NAMED], Field(min_length=1)] | dict[str, list[float] | None],
        description="Names of arms; or a mapping from names to vectors, where arms have any.",
    ),
]
Identifier = Annotated[
    Any,
    _with_schema(
        _NAMED, description="A name: text, or an integer (the same as its text).", examples=["ann", 7]
    ),
]
IdentifierOrNone = Annotated[
    Any, _with_schema(_NAMED | None, description="A name: text, or an integer; null for none.")
]
Time = Annotated[
    Any,
    _with_schema(
        float | Annotated[str, Field(json_schema_extra={"format": "date-time"})] | None,
        description="Seconds since 1970; or a date with its time and zone, as in ISO 8601.",
        examples=[1772366400.0, "2026-03-01T12:00:00Z"],
    ),
]
Matrix = Annotated[Any, _with_schema(float | list[float] | list[list[float]], description="Numbers.")]
StandardDeviations = Annotated[
    Any,
    _with_schema(
        float | dict[str, float] | None,
        description="A standard deviation for all coordinates, or those of some by name.",
    ),
]
Span = Annotated[
    Any,
    _with_schema(
        str | float | None,
        description="A duration: text such as 30m, or seconds.",
        examples=["30m", "7d"],
    ),
]


class Body(BaseModel):
    """A body that is read strictly: values are not converted, and unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class DecisionRequest(Body):
    """A request for a decision."""

    context: Context
    unit: IdentifierOrNone = None
    arms: Arms = None
    key: Name | None = None
    measured_at: Time = None
    noise_sd: StandardDeviations = None
    noise_cov: Matrix = None
    logged_arm: IdentifierOrNone = None
    probability: Annotated[float, Field(gt=0, le=1)] | None = None


class DecisionRequests(Body):
    """Requests for several decisions in one commit; if one is refused, none is made."""

    requests: Annotated[list[DecisionRequest], Field(min_length=1, max_length=MOST)]


class Reward(Body):
    """The reward of a decision."""

    value: float
    key: Name | None = None


class Rewards(Body):
    """The rewards of several decisions, by their ids."""

    rewards: Annotated[dict[Name, float], Field(min_length=1, max_length=MOST)]
    keys: dict[Name, Name] | None = None


class Reveal(Body):
    """The true context of a decision, complete or in part."""

    context: Context
    key: Name | None = None


class Cancel(Body):
    """A decision that was never carried out."""

    key: Name | None = None


class Change(Body):
    """Arms to add, to retire and to restore."""

    add: Arms = None
    retire: list[Identifier] = []
    restore: list[Identifier] = []


class PinArm(Body):
    """The arm to take from now on; null lets the agent decide again."""

    arm: IdentifierOrNone


class Shadow(Body):
    """A shadow to add or to remove: an agent whose decisions are not carried out."""

    agent: Name
    remove: bool = False


_SD: Mapping[str, Any] = {"type": "number", "minimum": 0}


def _table_schema(kind: type[Reading | Category | Cycle], /, **fields: Any) -> dict[str, Any]:
    """The schema of a coordinate that is written as a table; its first field is required."""
    names = FIELDS_OF_COORDINATES[kind]
    return {
        "type": "object",
        "title": kind.__name__,
        "properties": {name: fields[name] for name in names},
        "required": names[:1],
        "additionalProperties": False,
    }


def _or_null(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


_LEVELS: Mapping[str, Any] = {"type": "array", "items": {"type": ["string", "integer"]}, "minItems": 1}
PROBLEM_CONTEXT: dict[str, Any] = {
    "description": "What is said of each coordinate, by its name: a number is how far one reading may be off"
    " by chance, as a standard deviation, and 0 is exact; a list has the levels of a category. Or a list of"
    " names, which says that all are exact or that the channel says the rest.",
    "examples": [{"steps": 1200, "mood": {"noise_sd": 0.6, "sd": 1.1}, "hour": {"period": 24}}],
    "anyOf": [
        {"type": "array", "items": {"type": "string"}},
        {
            "type": "object",
            "additionalProperties": {
                "anyOf": [
                    dict(_SD),
                    _LEVELS,
                    _table_schema(
                        Reading,
                        noise_sd=_SD,
                        bias_sd=_or_null(_SD),
                        mean=_or_null({"type": "number"}),
                        sd=_or_null({"type": "number", "exclusiveMinimum": 0}),
                        between_sd=_or_null(_SD),
                    ),
                    _table_schema(Category, levels=_LEVELS, other={"type": "boolean"}),
                    _table_schema(Cycle, period={"type": "number", "exclusiveMinimum": 0}),
                ]
            },
        },
        {"type": "null"},
    ],
}
JSON_TYPES: dict[str, Any] = {
    "arms": Arms,
    "boolean": bool,
    "context": Annotated[Any, WithJsonSchema(PROBLEM_CONTEXT)],
    "channel": Annotated[Any, _with_schema(dict[str, Any] | None)],
    "integer or null": int | None,
    "name": Name,
    "name or null": Name | None,
    "number or null": float | None,
    "numbers": Matrix,
    "range or null": Annotated[list[float], Field(min_length=2, max_length=2)] | None,
    "reference": Name,  # or module:name of something that can be imported
    "reference or null": Name | None,
    "share": Annotated[float, Field(ge=0, le=1)],
    "span": Span,
}
_TERMS: dict[str, Any] = {name: (JSON_TYPES[field.json], field.default) for name, field in FIELDS.items()}
CreateProblemBody = create_model(
    "CreateProblemBody", __base__=Body, __doc__="A problem: its name and its terms.", name=Name, **_TERMS
)


class Table(Body):
    """Decisions that were made elsewhere, one row each."""

    table: Annotated[str, Field(description="CSV with a header: coordinates, arm, reward and more.")]


class Backup(Body):
    """A copy of the store."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")] | None = None


class Erase(Body):
    """The unit to erase, from one problem or from all."""

    unit: Identifier
    problem: Name | None = None


class Replay(Body):
    """How to replay the log."""

    verify: bool = False


Model = TypeVar("Model", bound=Body)


def _parse_float(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise InvalidJSONError(f"{text} is too large for a number")
    return number


def _check_constant(text: str) -> float:
    raise InvalidJSONError(f"{text} is no number of JSON")


def _check_distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        repeated = next(name for name, number in counts.items() if number > 1)
        raise InvalidJSONError(f"the name {display(repeated)[:80]} stands twice")
    return mapping


_decode = json.JSONDecoder(
    parse_float=_parse_float, parse_constant=_check_constant, object_pairs_hook=_check_distinct
).decode


def read(body: bytes) -> Any:
    """Parse JSON strictly."""
    try:
        value = _decode(body.decode())
    except InvalidJSONError:
        raise
    except UnicodeDecodeError as error:
        raise InvalidJSONError(f"it is not UTF-8 at byte {error.start}") from None
    except RecursionError:
        raise InvalidJSONError(f"it is nested more than {DEEPEST} deep") from None
    except ValueError as error:
        raise InvalidJSONError(f"it is not JSON: {error}") from None
    if body.count(b"[") + body.count(b"{") > DEEPEST and _depth(value) > DEEPEST:
        raise InvalidJSONError(f"it is nested more than {DEEPEST} deep")
    return value


def _depth(value: Any, above: int = 0) -> int:
    """The depth of nesting, counted no further than just beyond the limit."""
    if above > DEEPEST or not isinstance(value, dict | list):
        return above
    inner = value.values() if isinstance(value, dict) else value
    return max((_depth(one, above + 1) for one in inner), default=above + 1)


def checked(model: type[Model], data: Any) -> Model:
    """Validate data with a model; an InputError names the first wrong field."""
    if not isinstance(data, dict):
        raise InputError(
            "body", display(data), f"an object with {', '.join(model.model_fields) or 'nothing'}"
        )
    try:
        return model.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field, near = _field_path(first["loc"]), None
        if model is CreateProblemBody and first["type"] == "extra_forbidden":
            near = LIKELY_OPTIONS.get(field)
        raise InputError(field, _display_value(first), _allowed(model, first), near) from None


def _field_path(loc: tuple[int | str, ...]) -> str:
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc)
    return path.removeprefix(".") or "body"


def _display_value(first: Any) -> str:
    if first["type"] == "missing":
        return "missing"
    return "no such field" if first["type"] == "extra_forbidden" else display(first["input"])


def _allowed(model: type[Body], first: Any) -> str:
    if first["type"] == "extra_forbidden":
        return ", ".join(model.model_fields)
    return allowed(first["type"], first["msg"], first.get("ctx", {}))


def allowed(kind: str, message: str, bounds: Mapping[str, Any]) -> str:
    """What a field may be, by pydantic's type of error; its own message for types without a phrase."""
    template = PYDANTIC_WORDS.get(kind)
    return message[:1].lower() + message[1:] if template is None else template.format(**bounds)


class Answer(BaseModel):
    """The fields of an answer. Those with a default may be missing."""

    model_config = ConfigDict(extra="forbid")


class Decision(Answer):
    """A decision, and what was believed when it was made."""

    id: str
    arm: str
    probability: float | None
    probabilities: dict[str, float]
    denoised: dict[str, float | dict[str, float]]
    sd: dict[str, float | dict[str, float]]
    number: int
    shadows: dict[str, Any] = Field(default_factory=dict, description="What shadows would have done.")


class Receipt(Answer):
    """What became of a report."""

    seq: int
    outcome: Annotated[str, Field(json_schema_extra={"enum": list(MESSAGES)})]
    message: str


class About(Answer, extra="allow"):
    """A problem: its arms, units, shadows and counts."""

    name: str
    agent: str
    context: list[str]
    columns: list[str]
    arms: list[str]
    retired: list[str]
    pinned: str | None
    shadows: list[str]
    units: list[str]
    units_total: int
    note: str | None
    decisions: int
    decisions_today: int
    rewards: int
    pending: int
    alarm: list[str]
    learnt: dict[str, Any]


class Glance(Answer):
    """A summary of a problem, or why there is none."""

    name: str
    agent: str | None
    decisions: int | None
    decisions_today: int | None
    pending: int | None
    alarm: list[str]
    error: str | None


class DataSet(Answer, extra="allow"):
    """Variables by name, each by the labels of its `dims`; null stands for NaN."""

    dims: dict[str, list[str]]
    coordinates: dict[str, Any]


class History(Answer, extra="allow"):
    """Decisions, rewards and beliefs over time."""

    problem: str
    unit: str | None
    coordinates: list[str]
    arms: list[str]
    decisions: int
    kept: int
    points: dict[str, Any]
    worth: dict[str, Any]
    rewards: dict[str, Any]
    shares: dict[str, Any]
    estimates: dict[str, Any]
    tracks: dict[str, Any]


class Problem(Answer):
    """Why nothing was done: problem JSON, RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    field: str = Field(default_factory=str, description="Which field is wrong.")
    value: str = Field(default_factory=str, description="What it was.")
    allowed: str = Field(default_factory=str, description="What it may be.")
    suggestion: str | float = Field(default_factory=str, description="What was probably meant.")


def _make_model(model: str, base: type[Answer] = Answer, /, **kinds: Any) -> type[Answer]:
    fields: dict[str, Any] = {name: (kind, ...) for name, kind in kinds.items()}
    return create_model(model, __base__=base, **fields)


ANSWERS: dict[str, Any] = {  # by operation: the kind of an answer that went well
    "decide": Decision | _make_model("Decisions", decisions=list[Decision]),
    "reward": Receipt,
    "reveal": Receipt,
    "cancel": Receipt,
    "rewards": _make_model("Receipts", receipts=dict[str, Receipt]),
    "describe": About,
    "pending": _make_model("Pending", pending=list[str]),
    "state_hash": _make_model("StateHash", state_hash=str),
    "belief": DataSet,
    "predict_rewards": DataSet,
    "diagnostics": DataSet,
    "history": History,
    "import_events": _make_model("ImportedLog", problem=str, events=int),
    "import_decisions": _make_model("ImportedTable", problem=str, decisions=int),
    "create": _make_model("Created", About, created=bool),
    "arms": Receipt,
    "pin": Receipt,
    "shadow": Receipt,
    "replay": _make_model("Replayed", problem=str, events=int, decisions=int, verified=int, same=bool),
    "erase": _make_model("Erased", decisions=dict[str, int]),
    "backup": _make_model("Copied", name=str, bytes=int),
    "problems": _make_model("Problems", problems=list[Glance]),
    "health": _make_model("Health", status=Literal["ok"]),
    "readiness": _make_model("Readiness", status=Literal["ready"], broken=int),
    "description": dict[str, Any],
}
