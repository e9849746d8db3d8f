"""Files of JSON, an object a line: a live problem that was exported, or the dsjson of Vowpal Wabbit.

The first object says which it is: events have a kind; dsjson has a context c, or is the reward of one. The
events of a live problem are read in readers/live.py.

dsjson is the log of Vowpal Wabbit's decision service, and of Azure Personalizer after it:

    {"_label_cost": -1, "_label_probability": 0.8, "_label_Action": 2, "_labelIndex": 1, "a": [2, 1],
     "p": [0.8, 0.2], "c": {"Sensor": {"steps": 1648}, "_multi": [{"_tag": "wait"}, {"_tag": "send"}]}}

The reward is minus the cost. `a` ranks the actions, numbered from 1, the drawn one first; `p` are their
probabilities in that order. Numbers of the shared context `c` are the coordinates: `Sensor.steps`, or `steps`
where no other namespace has one. An action's name is its `_tag`, or its `id`; else its number, and then
action 2 must be the same in every line. Events that were not to be learnt from are passed over, as Vowpal
Wabbit does it, and so are rewards whose decision is not in the log.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from unfog._table import Column, Where, seconds
from unfog.evaluation import log as logs
from unfog.evaluation.log import Log, gaps
from unfog.evaluation.readers import live, table
from unfog.evaluation.readers.live import Asked, Told
from unfog.evaluation.readers.table import even
from unfog.maths.arrays import Array, Bools
from unfog.validation import InputError, shown

MARKS = frozenset({"_label_cost", "_label_probability", "_labelIndex", "_label_Action", "c", "RewardValue"})
TAKES = ("arms", "coordinates", "probability")  # of what a caller may say
CALLED = {"time": "Timestamp", "reward": "_label_cost", "probability": "_label_probability"}
ONCE = "actions with a _tag or an id of their own; or a list of arms, by number"
BOTH = "an export of `unfog live`, whose events have a kind; or dsjson, with _label_cost, a, c and p"
Line = tuple[int, Told]


class Event(NamedTuple):
    """One line of dsjson: a decision with its reward."""

    line: int
    context: dict[str, float]  # by namespace and name
    arm: str
    names: tuple[str, ...]  # of its actions
    reward: float
    probability: float
    law: dict[str, float] | None  # by name
    time: float


def read_lines(path: Path, asked: Asked) -> Log:
    """The log of a file."""
    with open(path, "rb") as file:
        objects = _objects(file)
        number, first = next(objects, (0, None))
        if first is None:
            raise InputError("log", f"no rows in {path.name}", BOTH)
        both = _again(number, first, objects)
        if "kind" in first and "seq" in first:
            asked.only(path.name, *live.TAKES)
            numbered = ((f"line {i}", one) for i, one in both)
            return live.of_lines(numbered, asked.problem, asked.arms, path.name)
        if not MARKS & first.keys():
            raise InputError(f"line {number}", f"an object with {', '.join(list(first)[:8])}", BOTH)
        asked.only(path.name, *TAKES)
        return read_dsjson(both, asked.arms, asked.coordinates, asked.probability, path.name)


def _again(number: int, first: Any, rest: Iterator[tuple[int, Any]]) -> Iterator[tuple[int, Any]]:
    yield number, first
    yield from rest


def _objects(lines: Iterable[bytes]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each with the number of its line; empty lines are passed over."""
    for number, line in enumerate(lines, 1):
        shown = line[:60].decode("utf-8", "replace")
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            if not text.strip():
                continue
            found = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InputError(f"line {number}", shown, f"one JSON object, in UTF-8 ({error})") from None
        if not isinstance(found, dict):
            raise InputError(f"line {number}", shown, "one JSON object")
        yield number, found


def read_dsjson(
    lines: Iterable[Line],
    arms: Sequence[str] | None,
    coordinates: Sequence[str] | None,
    probability: float | None,
    source: str,
) -> Log:
    """The log of numbered lines of dsjson."""
    kept, notes = _kept(lines)
    if not kept:
        raise InputError("log", f"no rows: {'; '.join(notes) or 'nothing'}", "one decision with its reward")
    words, named = set[str](), _named(kept, arms)
    found = [
        event(line, told, names, probability, words) for (line, told), names in zip(kept, named, strict=True)
    ]
    contexts = _contexts(found, coordinates)
    if lost := gaps(contexts[0]):
        notes.append(f"{lost} numbers are not in their line: lost (Vowpal Wabbit takes them for 0)")
    if words:
        notes.append(f"no numbers, and so no coordinates: {', '.join(sorted(words))}")
    return _log(found, arms, contexts, probability)._replace(source=source, notes=tuple(notes))


def _kept(lines: Iterable[Line]) -> tuple[list[Line], list[str]]:
    """The decisions that were to be learnt from, and how many others there are."""
    kept, left = list[Line](), Counter[str]()
    drops = dict[float, int]()
    for number, told in lines:
        why = passed_over(number, told)
        if why:
            left[why] += 1
            continue
        kept.append((number, told))
        drops.setdefault(live.number_or_none(f"line {number}", told, "pdrop") or 0.0, number)
    if len(drops) > 1:
        said = f"pdrop {list(drops)[1]:g} after {next(iter(drops)):g}"
        allowed = "one share of events that were dropped: other decisions would count too much"
        raise InputError(f"line {list(drops.values())[1]}", said, allowed)
    return kept, [f"{number} {why}: left out" for why, number in left.items()]


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


def _named(kept: Sequence[Line], arms: Sequence[str] | None) -> list[tuple[str, ...]]:
    """The names of the actions of each line."""
    every = [actions(line, told) for line, told in kept]
    if arms is not None:
        for (line, _), those in zip(kept, every, strict=True):
            if len(those) > len(arms):
                allowed = f"{len(arms)}: {', '.join(arms)}"
                raise InputError(f"line {line}, _multi", f"{len(those)} actions", allowed)
        return [tuple(arms[: len(those)]) for those in every]
    found = [tuple(name(one) for one in those) for those in every]
    if not all(one for names in found for one in names):
        _refuse_moving(kept, every)
        return [tuple(str(i + 1) for i in range(len(those))) for those in every]
    for (line, _), names in zip(kept, found, strict=True):
        if len(set(names)) < len(names):
            twice = next(one for one in names if names.count(one) > 1)
            raise InputError(f"line {line}, _multi", f"two actions called {twice!r}", ONCE)
    return found


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


def _refuse_moving(kept: Sequence[Line], every: Sequence[Sequence[Any]]) -> None:
    """Complain of an action that is another one than its number was before."""
    first: dict[int, Any] = {}
    for (line, _), those in zip(kept, every, strict=True):
        for i, one in enumerate(those):
            if first.setdefault(i, one) != one:
                allowed = f"what it was in lines before; else {ONCE}"
                raise InputError(f"line {line}, action {i + 1}", shown(one), allowed)


def event(line: int, told: Told, names: tuple[str, ...], probability: float | None, words: set[str]) -> Event:
    """The decision of a line whose actions have these names; `words` gathers what is no number."""
    where = f"line {line}"
    arm = names[_chosen(where, told, len(names)) - 1]
    law = _law(where, told, names)
    own = told.get("_label_probability", probability if law is None else law[arm])
    if own is None:
        raise InputError(f"{where}, _label_probability", "nothing", logs.WITHOUT)
    own, cost = (
        live.as_number(f"{where}, _label_probability", own),
        live.number(where, told, "_label_cost"),
    )
    context: dict[str, float] = {}
    _flatten(where, told["c"], "", context, words)
    at = seconds(f"{where}, Timestamp", told.get("Timestamp"))
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
    return {names[action - 1]: live.as_number(f"{where}, p", chance) for action, chance in pairs}


def _flatten(where: str, told: Any, key: str, into: dict[str, float], words: set[str]) -> None:
    """Numbers of the shared context, by namespace and name."""
    if isinstance(told, Mapping | list):
        for inner, value in told.items() if isinstance(told, Mapping) else enumerate(told):
            if not str(inner).startswith("_"):
                _flatten(where, value, f"{key}.{inner}" if key else str(inner), into, words)
    elif isinstance(told, int | float) and not isinstance(told, bool):
        into[key] = live.as_number(f"{where}, {key}", told)
    elif told is not None:
        words.add(key)


def _contexts(found: Sequence[Event], coordinates: Sequence[str] | None) -> tuple[Array, tuple[str, ...]]:
    """The contexts (n, d), and what coordinates are called."""
    whole = list(dict.fromkeys(name for one in found for name in one.context))
    short = Counter(name.rpartition(".")[2] for name in whole)
    called = {name: last if short[last := name.rpartition(".")[2]] == 1 else name for name in whole}
    if coordinates is not None:
        by_name = {**{name: name for name in whole}, **{last: name for name, last in called.items()}}
        for one in coordinates:
            if one not in by_name:
                raise InputError("context", shown(one), f"numbers of the context: {', '.join(by_name)}")
        whole, called = [by_name[name] for name in coordinates], {by_name[name]: name for name in coordinates}
    if not whole:
        raise InputError("c", "no numbers", "a context with numbers outside _multi")
    return live.matrix([one.context for one in found], whole), tuple(called[name] for name in whole)


def _log(
    found: Sequence[Event],
    arms: Sequence[str] | None,
    contexts: tuple[Array, tuple[str, ...]],
    probability: float | None,
) -> Log:
    """The log of decisions with their rewards."""
    (noisy, called), where = contexts, Where("line", [one.line for one in found])
    listed = list(dict.fromkeys(name for one in found for name in one.names)) if arms is None else arms
    drawn = Column("_label_Action", np.array([one.arm for one in found], object), where)
    arm, order = table.arm_numbers(drawn, listed)
    time = np.array([one.time for one in found])
    log = Log(
        called,
        order,
        noisy,
        arm,
        np.array([one.reward for one in found]),
        np.array([one.probability for one in found]),
        live.laws([one.law for one in found], order, where)
        if probability is None
        else even(probability, len(found), len(order)),
        time=None if np.isnan(time).all() else time,
        offered=_offered(found, order),
    )
    return logs.check_log(log, where, CALLED)


def _offered(found: Sequence[Event], arms: Sequence[str]) -> Bools | None:
    """The actions of each line; None where these are always all."""
    there = np.array([[name in one.names for name in arms] for one in found])
    return None if there.all() else there
