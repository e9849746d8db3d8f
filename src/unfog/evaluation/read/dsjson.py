"""dsjson: the log of Vowpal Wabbit's decision service, and of Azure Personalizer after it.

    {"_label_cost": -1, "_label_probability": 0.8, "_label_Action": 2, "_labelIndex": 1, "a": [2, 1],
     "p": [0.8, 0.2], "c": {"Sensor": {"steps": 1648}, "_multi": [{"_tag": "wait"}, {"_tag": "send"}]}}

The reward is minus the cost. `a` ranks the actions, numbered from 1, the drawn one first; `p` are their
probabilities in that order. Numbers of the shared context `c` are the coordinates: `Sensor.steps`, or `steps`
where no other namespace has one. An action's name is its `_tag`, or its `id`; else its number, and then
action 2 must be the same in every line. Events that were not to be learnt from are passed over, as Vowpal
Wabbit does it, and so are rewards whose decision is not in the log.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from unfog.evaluation.log import Log
from unfog.evaluation.read import refusals, values
from unfog.evaluation.read.table import even
from unfog.evaluation.read.where import Where, gaps
from unfog.inputs import InputError, shown
from unfog.maths.arrays import Array, Bools

MARKS = frozenset({"_label_cost", "_label_probability", "_labelIndex", "_label_Action", "c", "RewardValue"})
Line = tuple[int, Mapping[str, Any]]


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


def read(
    lines: Iterable[Line],
    arms: Sequence[str] | None,
    coordinates: Sequence[str] | None,
    probability: float | None,
    source: str,
) -> Log:
    """The log of lines that are numbered."""
    kept, notes = _kept(lines)
    if not kept:
        raise InputError("log", f"no rows: {'; '.join(notes) or 'nothing'}", "one decision with its reward")
    words = set[str]()
    named = _named(kept, arms)
    found = [
        _event(line, event, names, probability, words)
        for (line, event), names in zip(kept, named, strict=True)
    ]
    where = Where("line", [one.line for one in found])
    listed = list(dict.fromkeys(name for one in found for name in one.names)) if arms is None else arms
    arm, order = values.arms("_label_Action", [one.arm for one in found], where, listed)
    noisy, called = _contexts(found, coordinates)
    every = even(probability, len(found), len(order)) if probability is not None else _laws(found, order)
    time = np.array([one.time for one in found])
    if gaps(noisy):
        notes.append(f"{gaps(noisy)} numbers are not in their line: lost (Vowpal Wabbit takes them for 0)")
    if words:
        notes.append(f"no numbers, and so no coordinates: {', '.join(sorted(words))}")
    log = Log(
        called,
        order,
        noisy,
        arm,
        np.array([one.reward for one in found]),
        np.array([one.probability for one in found]),
        every,
        time=None if np.isnan(time).all() else time,
        source=source,
        notes=tuple(notes),
        offered=_offered(found, order),
    )
    return refusals.checked(log, where, {"time": "Timestamp", "reward": "_label_cost"})


def _kept(lines: Iterable[Line]) -> tuple[list[Line], list[str]]:
    """The decisions that were to be learnt from, and how many others there are."""
    kept, left = list[Line](), Counter[str]()
    drops = dict[float, int]()
    for number, event in lines:
        why = _passed_over(event)
        if why:
            left[why] += 1
            continue
        kept.append((number, event))
        drops.setdefault(float(event.get("pdrop", 0.0)), number)
    if len(drops) > 1:
        said = f"pdrop {list(drops)[1]:g} after {next(iter(drops)):g}"
        allowed = "one share of events that were dropped: other decisions would count too much"
        raise InputError(f"line {list(drops.values())[1]}", said, allowed)
    return kept, [f"{number} {why}: left out" for why, number in left.items()]


def _passed_over(event: Mapping[str, Any]) -> str:
    if "c" not in event:
        return (
            "rewards without their decision"
            if {"RewardValue", "v"} & event.keys()
            else "lines without a context"
        )
    if event.get("_skipLearn"):
        return "events that were not to be learnt from (_skipLearn)"
    taken = any(one.get("ActionTaken") for one in event.get("o") or () if isinstance(one, Mapping))
    deferred = event.get("DeferredAction") and not taken
    return "events whose action was never taken (deferred, not activated)" if deferred else ""


def _named(kept: Sequence[Line], arms: Sequence[str] | None) -> list[tuple[str, ...]]:
    """The names of the actions of each line."""
    actions = [_actions(line, event) for line, event in kept]
    told = [tuple(_name(one) for one in those) for those in actions]
    if arms is None and all(name for names in told for name in names):
        return told
    first: dict[int, Any] = {}
    for (line, _), those in zip(kept, actions, strict=True):
        for i, one in enumerate(those):
            if arms is None and first.setdefault(i, one) != one:
                allowed = (
                    "what it was in lines before; else actions with a _tag or an id, or arms=[…] by number"
                )
                raise InputError(f"line {line}, action {i + 1}", shown(one), allowed)
        if arms is not None and len(those) > len(arms):
            raise InputError(
                f"line {line}, _multi", f"{len(those)} actions", f"{len(arms)}: {', '.join(arms)}"
            )
    return [tuple(str(i + 1) if arms is None else arms[i] for i in range(len(those))) for those in actions]


def _actions(line: int, event: Mapping[str, Any]) -> Sequence[Any]:
    found = event["c"].get("_multi") if isinstance(event["c"], Mapping) else None
    if "_slots" in event or (isinstance(event["c"], Mapping) and "_slots" in event["c"]):
        raise InputError(f"line {line}", "_slots", "one action a decision: slates are not read")
    if not isinstance(found, list) or not found:
        raise InputError(f"line {line}, c._multi", shown(found), "a list of actions")
    return found


def _name(action: Any) -> str:
    """What an action is called, by itself or in one of its namespaces; empty where nothing says so."""
    if not isinstance(action, Mapping):
        return ""
    inner = [one for one in action.values() if isinstance(one, Mapping)]
    for key in ("_tag", "id"):
        for place in (action, *inner):
            if isinstance(place.get(key), str | int):
                return str(place[key])
    return ""


def _event(
    line: int, event: Mapping[str, Any], names: tuple[str, ...], probability: float | None, words: set[str]
) -> Event:
    chosen = event.get("_label_Action", event.get("_labelIndex", -1) + 1)
    if not isinstance(chosen, int) or not 1 <= chosen <= len(names):
        raise InputError(f"line {line}, _label_Action", shown(chosen), f"a number from 1 to {len(names)}")
    law = _law(line, event, names)
    own = event.get("_label_probability", probability if law is None else law[names[chosen - 1]])
    cost = event.get("_label_cost")
    if own is None:
        raise InputError(f"line {line}, _label_probability", "nothing", refusals.WITHOUT)
    for name, value in (("_label_cost", cost), ("_label_probability", own)):
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InputError(f"line {line}, {name}", shown(value), "a number")
    context: dict[str, float] = {}
    _flatten(event["c"], "", context, words)
    at = values.seconds(f"line {line}, Timestamp", event.get("Timestamp"))
    return Event(line, context, names[chosen - 1], names, -float(cost or 0), float(own), law, at)


def _law(line: int, event: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, float] | None:
    """The probabilities by name: `p` is in the order of `a`."""
    ranked, chances = event.get("a"), event.get("p")
    if chances is None:
        return None
    ranked = list(range(1, len(chances) + 1)) if ranked is None else ranked
    if len(ranked) != len(chances) or sorted(ranked) != list(range(1, len(names) + 1)):
        allowed = f"both as long as there are actions, which are {len(names)}, and each of them once"
        raise InputError(f"line {line}, a and p", f"{shown(ranked)} and {shown(chances)}", allowed)
    return {names[action - 1]: float(chance) for action, chance in zip(ranked, chances, strict=True)}


def _flatten(told: Any, name: str, into: dict[str, float], words: set[str]) -> None:
    """Numbers of the shared context, by namespace and name."""
    if isinstance(told, Mapping | list):
        for key, value in told.items() if isinstance(told, Mapping) else enumerate(told):
            if not str(key).startswith("_"):
                _flatten(value, f"{name}.{key}" if name else str(key), into, words)
    elif isinstance(told, int | float) and not isinstance(told, bool):
        into[name] = float(told)
    elif told is not None:
        words.add(name)


def _contexts(found: Sequence[Event], coordinates: Sequence[str] | None) -> tuple[Array, tuple[str, ...]]:
    """The contexts (n, d), and what coordinates are called."""
    whole = list(dict.fromkeys(name for one in found for name in one.context))
    short = Counter(name.rpartition(".")[2] for name in whole)
    called = {name: last if short[last := name.rpartition(".")[2]] == 1 else name for name in whole}
    if coordinates is not None:
        by_name = {**{name: name for name in whole}, **{last: name for name, last in called.items()}}
        for name in coordinates:
            if name not in by_name:
                raise InputError("coordinates", shown(name), f"numbers of the context: {', '.join(by_name)}")
        whole, called = [by_name[name] for name in coordinates], {by_name[name]: name for name in coordinates}
    if not whole:
        raise InputError("c", "no numbers", "a context with numbers outside _multi")
    noisy = np.array([[one.context.get(name, np.nan) for name in whole] for one in found])
    return noisy, tuple(called[name] for name in whole)


def _offered(found: Sequence[Event], arms: Sequence[str]) -> Bools | None:
    """The actions of each line; None where these are always all."""
    there = np.array([[name in one.names for name in arms] for one in found])
    return None if there.all() else there


def _laws(found: Sequence[Event], arms: Sequence[str]) -> Array | None:
    if any(one.law is None for one in found):
        return None
    place = {name: i for i, name in enumerate(arms)}
    every = np.zeros((len(found), len(arms)))
    for i, one in enumerate(found):
        for name, chance in (one.law or {}).items():
            every[i, place[name]] += chance
    return every
