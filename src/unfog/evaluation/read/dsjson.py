"""dsjson: the log of Vowpal Wabbit's decision service, and of Azure Personalizer after it.

    {"_label_cost": -1, "_label_probability": 0.8, "_label_Action": 2, "_labelIndex": 1, "a": [2, 1],
     "p": [0.8, 0.2], "c": {"Sensor": {"steps": 1648}, "_multi": [{"_tag": "wait"}, {"_tag": "send"}]}}

The reward is minus the cost. Numbers of the shared context `c` are the coordinates: `Sensor.steps`, or
`steps` where no other namespace has one. An action's name is its `_tag`, or its `id`; else its number, and
then action 2 must be the same in every line. What a line says is read in dsjson_line.py.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from unfog.evaluation.log import Log
from unfog.evaluation.read import fields, refusals, values
from unfog.evaluation.read.dsjson_line import Event, Told, actions, event, name, passed_over
from unfog.evaluation.read.table import even
from unfog.evaluation.read.where import Where, gaps
from unfog.maths.arrays import Array, Bools
from unfog.validation import InputError, shown

MARKS = frozenset({"_label_cost", "_label_probability", "_labelIndex", "_label_Action", "c", "RewardValue"})
TAKES = ("arms", "coordinates", "probability")  # of what a caller may say
CALLED = {"time": "Timestamp", "reward": "_label_cost", "probability": "_label_probability"}
ONCE = "actions with a _tag or an id of their own; or a list of arms, by number"
Line = tuple[int, Told]


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


def _log(
    found: Sequence[Event],
    arms: Sequence[str] | None,
    contexts: tuple[Array, tuple[str, ...]],
    probability: float | None,
) -> Log:
    """Of decisions with their rewards."""
    (noisy, called), where = contexts, Where("line", [one.line for one in found])
    listed = list(dict.fromkeys(name for one in found for name in one.names)) if arms is None else arms
    arm, order = values.arms("_label_Action", [one.arm for one in found], where, listed)
    time = np.array([one.time for one in found])
    log = Log(
        called,
        order,
        noisy,
        arm,
        np.array([one.reward for one in found]),
        np.array([one.probability for one in found]),
        _laws(found, order) if probability is None else even(probability, len(found), len(order)),
        time=None if np.isnan(time).all() else time,
        offered=_offered(found, order),
    )
    return refusals.checked(log, where, CALLED)


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
        drops.setdefault(fields.number_or_none(f"line {number}", told, "pdrop") or 0.0, number)
    if len(drops) > 1:
        said = f"pdrop {list(drops)[1]:g} after {next(iter(drops)):g}"
        allowed = "one share of events that were dropped: other decisions would count too much"
        raise InputError(f"line {list(drops.values())[1]}", said, allowed)
    return kept, [f"{number} {why}: left out" for why, number in left.items()]


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


def _refuse_moving(kept: Sequence[Line], every: Sequence[Sequence[Any]]) -> None:
    """Complain of an action that is another one than its number was before."""
    first: dict[int, Any] = {}
    for (line, _), those in zip(kept, every, strict=True):
        for i, one in enumerate(those):
            if first.setdefault(i, one) != one:
                allowed = f"what it was in lines before; else {ONCE}"
                raise InputError(f"line {line}, action {i + 1}", shown(one), allowed)


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
        for arm, chance in (one.law or {}).items():
            every[i, place[arm]] = chance
    return every
