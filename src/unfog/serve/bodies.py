"""What requests carry: the fields of each body, for the description of the service and as the first check.

Types here are strict, so that "1", true and 1e999 are no numbers, and a field that there is not is refused.
What a value may be beyond its type is known to `unfog.live`, which checks it again in its own words.
"""

from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, WithJsonSchema

from unfog.serve import plainly
from unfog.validation import LONGEST_NAME, InputError, shown

MOST = 1000  # decisions or rewards in one request

NUMBER: dict[str, Any] = {"type": "number"}
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


class Terms(Body):
    """A problem: its name and its terms."""

    name: Name
    context: list[Name] | None = None
    arms: Arms = None
    arm_size: int | None = None
    features: Name | None = None
    rewards: Name | None = None
    reward_var: float | None = None
    reward_range: Annotated[list[float], Field(min_length=2, max_length=2)] | None = None
    prior_mean: Matrix = None
    prior_cov: Matrix = None
    channel: Annotated[Any, WithJsonSchema({"anyOf": [{"type": "object"}, {"type": "null"}]})] = None
    standardise: bool | None = None
    agent: Name | None = None
    seed: int | None = None
    floor: Annotated[float, Field(ge=0, le=1)] | None = None
    wait: Span = None
    default_reward: float | None = None
    learn: Name | None = None
    combine: Name | None = None
    reveal_within: Span = None


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
    return plainly.allowed(first["type"], first["msg"], first.get("ctx", {}))
