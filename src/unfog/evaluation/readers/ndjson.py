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
from unfog.evaluation.log import DecisionLog, gaps
from unfog.evaluation.readers import live, table
from unfog.evaluation.readers.live import Fields, ReaderOptions
from unfog.evaluation.readers.table import even_probabilities
from unfog.maths.arrays import Array, Bools
from unfog.validation import InputError, display

MARKS = frozenset({"_label_cost", "_label_probability", "_labelIndex", "_label_Action", "c", "RewardValue"})
TAKES = ("arms", "coordinates", "probability")  # of what a caller may say
CALLED = {"time": "Timestamp", "reward": "_label_cost", "probability": "_label_probability"}
ONCE = "actions with a _tag or an id of their own; or a list of arms, by number"
BOTH = "an export of `unfog live`, whose events have a kind; or dsjson, with _label_cost, a, c and p"
Line = tuple[int, Fields]


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


def read_lines(path: Path, options: ReaderOptions) -> DecisionLog:
    """The log of a file."""
    with open(path, "rb") as file:
        objects = _read_objects(file)
        number, first = next(objects, (0, None))
        if first is None:
            raise InputError("log", f"no rows in {path.name}", BOTH)
        all_objects = _prepend(number, first, objects)
        if "kind" in first and "seq" in first:
            options.only(path.name, *live.TAKES)
            numbered = ((f"line {i}", one) for i, one in all_objects)
            return live.read_lines(numbered, options.problem, options.arms, path.name)
        if not MARKS & first.keys():
            raise InputError(f"line {number}", f"an object with {', '.join(list(first)[:8])}", BOTH)
        options.only(path.name, *TAKES)
        return read_dsjson(all_objects, options.arms, options.coordinates, options.probability, path.name)


def _prepend(number: int, first: Any, rest: Iterator[tuple[int, Any]]) -> Iterator[tuple[int, Any]]:
    yield number, first
    yield from rest


def _read_objects(lines: Iterable[bytes]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a file, each with the number of its line; empty lines are skipped."""
    for number, line in enumerate(lines, 1):
        start = line[:60].decode("utf-8", "replace")
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            if not text.strip():
                continue
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InputError(f"line {number}", start, f"one JSON object, in UTF-8 ({error})") from None
        if not isinstance(value, dict):
            raise InputError(f"line {number}", start, "one JSON object")
        yield number, value


def read_dsjson(
    lines: Iterable[Line],
    arms: Sequence[str] | None,
    coordinates: Sequence[str] | None,
    probability: float | None,
    source: str,
) -> DecisionLog:
    """The log of numbered lines of dsjson."""
    decisions, notes = _select_decisions(lines)
    if not decisions:
        raise InputError("log", f"no rows: {'; '.join(notes) or 'nothing'}", "one decision with its reward")
    non_numeric, action_names = set[str](), _name_actions(decisions, arms)
    events = [
        event(line, record, names, probability, non_numeric)
        for (line, record), names in zip(decisions, action_names, strict=True)
    ]
    contexts = _build_contexts(events, coordinates)
    if lost := gaps(contexts[0]):
        notes.append(f"{lost} numbers are not in their line: lost (Vowpal Wabbit takes them for 0)")
    if non_numeric:
        notes.append(f"no numbers, and so no coordinates: {', '.join(sorted(non_numeric))}")
    return _build_log(events, arms, contexts, probability)._replace(source=source, notes=tuple(notes))


def _select_decisions(lines: Iterable[Line]) -> tuple[list[Line], list[str]]:
    """The decisions that can be learnt from, and notes that count the other lines."""
    decisions, counts = list[Line](), Counter[str]()
    lines_by_drop = dict[float, int]()
    for number, record in lines:
        why = why_skipped(number, record)
        if why:
            counts[why] += 1
            continue
        decisions.append((number, record))
        lines_by_drop.setdefault(live.number_or_none(f"line {number}", record, "pdrop") or 0.0, number)
    if len(lines_by_drop) > 1:
        actual = f"pdrop {list(lines_by_drop)[1]:g} after {next(iter(lines_by_drop)):g}"
        allowed = "one share of events that were dropped: other decisions would count too much"
        raise InputError(f"line {list(lines_by_drop.values())[1]}", actual, allowed)
    return decisions, [f"{number} {why}: left out" for why, number in counts.items()]


def why_skipped(line: int, event: Fields) -> str:
    """Why a line is skipped; empty if it is a decision to learn from."""
    if "c" not in event:
        is_reward = {"RewardValue", "v"} & event.keys()
        return "rewards without their decision" if is_reward else "lines without a context"
    if event.get("_skipLearn"):
        return "events that were not to be learnt from (_skipLearn)"
    later = event.get("o") or []
    if not isinstance(later, list):
        raise InputError(f"line {line}, o", display(later), "a list of what was observed later")
    was_taken = any(one.get("ActionTaken") for one in later if isinstance(one, Mapping))
    is_deferred = event.get("DeferredAction") and not was_taken
    return "events whose action was never taken (deferred, not activated)" if is_deferred else ""


def _name_actions(decisions: Sequence[Line], arms: Sequence[str] | None) -> list[tuple[str, ...]]:
    """The names of the actions of each line."""
    choices = [actions(line, record) for line, record in decisions]
    if arms is not None:
        for (line, _), options in zip(decisions, choices, strict=True):
            if len(options) > len(arms):
                allowed = f"{len(arms)}: {', '.join(arms)}"
                raise InputError(f"line {line}, _multi", f"{len(options)} actions", allowed)
        return [tuple(arms[: len(options)]) for options in choices]
    own_names = [tuple(name(one) for one in options) for options in choices]
    if not all(one for names in own_names for one in names):
        _check_actions_stay(decisions, choices)
        return [tuple(str(i + 1) for i in range(len(options))) for options in choices]
    for (line, _), names in zip(decisions, own_names, strict=True):
        if len(set(names)) < len(names):
            duplicate = next(one for one in names if names.count(one) > 1)
            raise InputError(f"line {line}, _multi", f"two actions called {duplicate!r}", ONCE)
    return own_names


def actions(line: int, event: Fields) -> Sequence[Any]:
    """The actions of a line."""
    context = event["c"]
    if "_slots" in event or (isinstance(context, Mapping) and "_slots" in context):
        raise InputError(f"line {line}", "_slots", "one action a decision: slates are not read")
    options = context.get("_multi") if isinstance(context, Mapping) else None
    if not isinstance(options, list) or not options:
        raise InputError(f"line {line}, c._multi", display(options), "a list of actions")
    return options


def name(action: Any) -> str:
    """The name of an action, from its own fields or one of its namespaces; empty if it has none."""
    if not isinstance(action, Mapping):
        return ""
    inner = [one for one in action.values() if isinstance(one, Mapping)]
    for key in ("_tag", "id"):
        for mapping in (action, *inner):
            if isinstance(mapping.get(key), str | int):
                return str(mapping[key])
    return ""


def _check_actions_stay(decisions: Sequence[Line], choices: Sequence[Sequence[Any]]) -> None:
    """Raise InputError if the action of some number is not the same in every line."""
    first: dict[int, Any] = {}
    for (line, _), options in zip(decisions, choices, strict=True):
        for i, option in enumerate(options):
            if first.setdefault(i, option) != option:
                allowed = f"what it was in lines before; else {ONCE}"
                raise InputError(f"line {line}, action {i + 1}", display(option), allowed)


def event(
    line: int, record: Fields, names: tuple[str, ...], probability: float | None, non_numeric: set[str]
) -> Event:
    """The decision of a line whose actions have these names; fields without numbers go to `non_numeric`."""
    where = f"line {line}"
    arm = names[_read_choice(where, record, len(names)) - 1]
    law = _read_law(where, record, names)
    chance = record.get("_label_probability", probability if law is None else law[arm])
    if chance is None:
        raise InputError(f"{where}, _label_probability", "nothing", logs.WITHOUT)
    chance, cost = (
        live.as_number(f"{where}, _label_probability", chance),
        live.number(where, record, "_label_cost"),
    )
    context: dict[str, float] = {}
    _flatten(where, record["c"], "", context, non_numeric)
    time = seconds(f"{where}, Timestamp", record.get("Timestamp"))
    return Event(line, context, arm, names, 0.0 - cost, chance, law, time)


def _read_choice(where: str, record: Fields, number: int) -> int:
    """The number of the action that was drawn, counted from 1."""
    label, shift = ("_label_Action", 0) if "_label_Action" in record else ("_labelIndex", 1)
    value, allowed = record.get(label), f"a number from {1 - shift} to {number - shift}"
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value + shift <= number:
        raise InputError(f"{where}, {label}", "nothing" if value is None else display(value), allowed)
    return value + shift


def _read_law(where: str, record: Fields, names: tuple[str, ...]) -> dict[str, float] | None:
    """The probabilities by name: `p` is in the order of `a`."""
    chances, numbers = record.get("p"), list(range(1, len(names) + 1))
    if chances is None:
        return None
    ranked = record.get("a", numbers)
    match = isinstance(ranked, list) and isinstance(chances, list) and len(ranked) == len(chances)
    if not match or not all(type(number) is int for number in ranked) or sorted(ranked) != numbers:
        allowed = f"both as long as there are actions, which are {len(names)}, and each of them once"
        raise InputError(f"{where}, a and p", f"{display(ranked)} and {display(chances)}", allowed)
    pairs = zip(ranked, chances, strict=True)
    return {names[action - 1]: live.as_number(f"{where}, p", chance) for action, chance in pairs}


def _flatten(where: str, node: Any, key: str, into: dict[str, float], non_numeric: set[str]) -> None:
    """Collect the numbers of the shared context, by namespace and name."""
    if isinstance(node, Mapping | list):
        for inner, value in node.items() if isinstance(node, Mapping) else enumerate(node):
            if not str(inner).startswith("_"):
                _flatten(where, value, f"{key}.{inner}" if key else str(inner), into, non_numeric)
    elif isinstance(node, int | float) and not isinstance(node, bool):
        into[key] = live.as_number(f"{where}, {key}", node)
    elif node is not None:
        non_numeric.add(key)


def _build_contexts(
    events: Sequence[Event], coordinates: Sequence[str] | None
) -> tuple[Array, tuple[str, ...]]:
    """The contexts (n, d), and the names of their coordinates."""
    full_names = list(dict.fromkeys(name for one in events for name in one.context))
    counts = Counter(name.rpartition(".")[2] for name in full_names)
    labels = {name: last if counts[last := name.rpartition(".")[2]] == 1 else name for name in full_names}
    if coordinates is not None:
        by_name = {**{name: name for name in full_names}, **{last: name for name, last in labels.items()}}
        for one in coordinates:
            if one not in by_name:
                raise InputError("context", display(one), f"numbers of the context: {', '.join(by_name)}")
        full_names, labels = (
            [by_name[name] for name in coordinates],
            {by_name[name]: name for name in coordinates},
        )
    if not full_names:
        raise InputError("c", "no numbers", "a context with numbers outside _multi")
    return live.matrix([one.context for one in events], full_names), tuple(
        labels[name] for name in full_names
    )


def _build_log(
    events: Sequence[Event],
    arms: Sequence[str] | None,
    contexts: tuple[Array, tuple[str, ...]],
    probability: float | None,
) -> DecisionLog:
    """The log of decisions with their rewards."""
    (noisy, coordinates), where = contexts, Where("line", [one.line for one in events])
    known_arms = list(dict.fromkeys(name for one in events for name in one.names)) if arms is None else arms
    column = Column("_label_Action", np.array([one.arm for one in events], object), where)
    arm, order = table.arm_numbers(column, known_arms)
    time = np.array([one.time for one in events])
    log = DecisionLog(
        coordinates,
        order,
        noisy,
        arm,
        np.array([one.reward for one in events]),
        np.array([one.probability for one in events]),
        live.laws([one.law for one in events], order, where)
        if probability is None
        else even_probabilities(probability, len(events), len(order)),
        time=None if np.isnan(time).all() else time,
        offered=_find_offered(events, order),
    )
    return logs.check_log(log, where, CALLED)


def _find_offered(events: Sequence[Event], arms: Sequence[str]) -> Bools | None:
    """Which arms each line offers; None if every line offers all."""
    offered = np.array([[name in one.names for name in arms] for one in events])
    return None if offered.all() else offered
