"""One line of dsjson: a decision with its reward, or a reason to pass over it.

`a` ranks the actions, numbered from 1, the drawn one first; `p` are their probabilities in that order. Events
that were not to be learnt from are passed over, as Vowpal Wabbit does it, and so are rewards whose decision
is not in the log.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from unfog.evaluation.read import fields, refusals, values
from unfog.validation import InputError, shown

Told = Mapping[str, Any]


class Event(NamedTuple):
    """A decision with its reward."""

    line: int
    context: dict[str, float]  # by namespace and name
    arm: str
    names: tuple[str, ...]  # of its actions
    reward: float
    probability: float
    law: dict[str, float] | None  # by name
    time: float


def passed_over(line: int, event: Told) -> str:
    """Why there is nothing to learn from a line; empty where there is."""
    if "c" not in event:
        paid = {"RewardValue", "v"} & event.keys()
        return "rewards without their decision" if paid else "lines without a context"
    if event.get("_skipLearn"):
        return "events that were not to be learnt from (_skipLearn)"
    later = event.get("o") or []
    if not isinstance(later, list):
        raise InputError(f"line {line}, o", shown(later), "a list of what was observed later")
    taken = any(one.get("ActionTaken") for one in later if isinstance(one, Mapping))
    deferred = event.get("DeferredAction") and not taken
    return "events whose action was never taken (deferred, not activated)" if deferred else ""


def actions(line: int, event: Told) -> Sequence[Any]:
    """What there was to choose from."""
    context = event["c"]
    if "_slots" in event or (isinstance(context, Mapping) and "_slots" in context):
        raise InputError(f"line {line}", "_slots", "one action a decision: slates are not read")
    found = context.get("_multi") if isinstance(context, Mapping) else None
    if not isinstance(found, list) or not found:
        raise InputError(f"line {line}, c._multi", shown(found), "a list of actions")
    return found


def name(action: Any) -> str:
    """What an action is called, by itself or in one of its namespaces; empty where nothing says so."""
    if not isinstance(action, Mapping):
        return ""
    inner = [one for one in action.values() if isinstance(one, Mapping)]
    for key in ("_tag", "id"):
        for place in (action, *inner):
            if isinstance(place.get(key), str | int):
                return str(place[key])
    return ""


def event(line: int, told: Told, names: tuple[str, ...], probability: float | None, words: set[str]) -> Event:
    """The decision of a line whose actions have these names; `words` gathers what is no number."""
    where = f"line {line}"
    arm = names[_chosen(where, told, len(names)) - 1]
    law = _law(where, told, names)
    own = told.get("_label_probability", probability if law is None else law[arm])
    if own is None:
        raise InputError(f"{where}, _label_probability", "nothing", refusals.WITHOUT)
    own, cost = (
        fields.as_number(f"{where}, _label_probability", own),
        fields.number(where, told, "_label_cost"),
    )
    context: dict[str, float] = {}
    _flatten(where, told["c"], "", context, words)
    at = values.seconds(f"{where}, Timestamp", told.get("Timestamp"))
    return Event(line, context, arm, names, 0.0 - cost, own, law, at)


def _chosen(where: str, told: Told, number: int) -> int:
    """Which action was drawn, from 1."""
    label, shift = ("_label_Action", 0) if "_label_Action" in told else ("_labelIndex", 1)
    found, allowed = told.get(label), f"a number from {1 - shift} to {number - shift}"
    if isinstance(found, bool) or not isinstance(found, int) or not 1 <= found + shift <= number:
        raise InputError(f"{where}, {label}", "nothing" if found is None else shown(found), allowed)
    return found + shift


def _law(where: str, told: Told, names: tuple[str, ...]) -> dict[str, float] | None:
    """The probabilities by name: `p` is in the order of `a`."""
    chances, places = told.get("p"), list(range(1, len(names) + 1))
    if chances is None:
        return None
    ranked = told.get("a", places)
    both = isinstance(ranked, list) and isinstance(chances, list) and len(ranked) == len(chances)
    if not both or not all(type(one) is int for one in ranked) or sorted(ranked) != places:
        allowed = f"both as long as there are actions, which are {len(names)}, and each of them once"
        raise InputError(f"{where}, a and p", f"{shown(ranked)} and {shown(chances)}", allowed)
    pairs = zip(ranked, chances, strict=True)
    return {names[action - 1]: fields.as_number(f"{where}, p", chance) for action, chance in pairs}


def _flatten(where: str, told: Any, key: str, into: dict[str, float], words: set[str]) -> None:
    """Numbers of the shared context, by namespace and name."""
    if isinstance(told, Mapping | list):
        for inner, value in told.items() if isinstance(told, Mapping) else enumerate(told):
            if not str(inner).startswith("_"):
                _flatten(where, value, f"{key}.{inner}" if key else str(inner), into, words)
    elif isinstance(told, int | float) and not isinstance(told, bool):
        into[key] = fields.as_number(f"{where}, {key}", told)
    elif told is not None:
        words.add(key)
