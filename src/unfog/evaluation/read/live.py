"""The log of a live problem, from its events: of a store, of a service, of an export, all the same.

A decision is a row when its reward was learnt: told in time, combined of several as the terms say, or the
default once the wait was over. Decisions that are void, open, erased, or expired without a default are left
out, and the notes say how many. What the terms say of the noise is in the log, too.

A store is taken by what it offers, since the evaluation of logs is no part of deciding live.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from unfog.evaluation.log import Log
from unfog.evaluation.read import fields, refusals, values
from unfog.evaluation.read.fold import Event, Fold, Row
from unfog.evaluation.read.where import Where
from unfog.maths.arrays import Array, Bools
from unfog.validation import InputError, shown

TAKES = ("problem", "arms")  # of what a caller may say
LEFT = {
    "void": "were void",
    "open": "have no reward yet",
    "expired": "have no reward: the wait for it was over",
    "erased": "were erased",
    "forced": "were forced by somebody else, and no probability was told",
    "partly": "were forced by somebody else, who told the probability of the chosen arm alone",
}


@runtime_checkable
class Problem(Protocol):
    """One live problem: `unfog.live.Problem`, or one of a service."""

    name: str

    def events(self, since: int = 0) -> Iterable[Event]:
        """All that happened."""


@runtime_checkable
class Store(Protocol):
    """Many of them: `unfog.live.Store`, or a service."""

    def names(self) -> Sequence[str]:
        """The problems."""

    def events(self, name: str, since: int = 0) -> Iterable[Event]:
        """All that happened in one."""


def read(events: Iterable[Event], problem: str | None, arms: Sequence[str] | None, source: str = "") -> Log:
    """The log of one problem, out of events that may be of several."""
    return of_lines(((f"event {one.get('seq')}", one) for one in events), problem, arms, source)


def of_lines(
    lines: Iterable[tuple[str, Event]], problem: str | None, arms: Sequence[str] | None, source: str
) -> Log:
    """The same, of events of which each is said where it stands."""
    folds: dict[str, Fold] = {}
    for where, event in lines:
        name, kind = fields.text(where, event, "problem"), fields.text(where, event, "kind")
        if problem is not None and name != problem:
            continue
        if kind == "problem":
            folds[name] = Fold(where, event)
        elif name not in folds:
            raise InputError("log", f"an event of {name!r} before its terms", "a log from its beginning")
        else:
            folds[name].add(where, event)
    if len(folds) != 1:
        said = f"the problems {', '.join(folds)}" if folds else "no such problem" if problem else "no problem"
        raise InputError("problem", said, "the name of one that is in the log")
    (fold,) = folds.values()
    return _log(fold, arms, source or f"live problem {fold.name!r}")


def of_store(store: Store, problem: str | None, arms: Sequence[str] | None) -> Log:
    """The log of a problem of a store; it need not be named where it is the only one."""
    names = list(store.names())
    if problem is None and len(names) == 1:
        problem = names[0]
    if problem is None or problem not in names:
        said = "not said, and there are several" if problem is None and names else shown(problem)
        raise InputError("problem", said, ", ".join(names) or "none: the store is empty")
    return read(store.events(problem), problem, arms)


def _log(fold: Fold, arms: Sequence[str] | None, source: str) -> Log:
    kept, notes = _kept(fold)
    if not kept:
        said = "; ".join(notes) or "no decisions"
        raise InputError("log", f"no rows: {said}", "one decision at least, with its reward and probability")
    where = Where("decision", [row.id for row in kept])
    listed = list(fold.active) if arms is None else list(arms)
    arm, order = values.arms("arm", [row.arm for row in kept], where, listed)
    true = _numbers([row.true for row in kept], fold.coordinates)
    unit, units = _units(kept)
    log = Log(
        fold.coordinates,
        order,
        _numbers([row.context for row in kept], fold.coordinates),
        arm,
        np.array([row.reward for row in kept], dtype=float),
        np.array([row.probability for row in kept], dtype=float),
        _laws(kept, order, where),
        None if np.isnan(true).all() else true,
        np.array([row.time for row in kept], dtype=float),
        unit,
        units,
        source,
        notes,
        _offered(kept, order),
        fold.channel,
    )
    return refusals.checked(log, where)


def _kept(fold: Fold) -> tuple[list[Row], tuple[str, ...]]:
    """The decisions that say something, and what was passed over.

    Of a forced arm only its own probability is known. Where most are so nothing is known of the other arms
    anyway; where few are, they would cost what is known of all other decisions, and are left out.
    """
    rows, left = [], Counter[str]()
    for row in fold.rows.values():
        why = row.state if row.state != "learnt" else "forced" if row.probability is None else ""
        left[why] += 1
        rows += [row] if not why else []
    partly = [row for row in rows if row.law is None]
    if 2 * len(partly) < len(rows):
        rows = [row for row in rows if row.law is not None]
        left["partly"] = len(partly)
    notes = [f"{left[why]} decisions {said}: left out" for why, said in LEFT.items() if left[why]]
    if 0 < len(rows) - len(partly) < len(rows) and left["partly"] == 0 and partly:
        notes.append(f"{len(partly)} arms were forced: the probabilities of all arms are not used")
    if fold.noises:
        notes.append(f"{fold.noises} readings had a noise of their own, which is not used")
    return rows, tuple(notes)


def _laws(kept: Sequence[Row], arms: Sequence[str], where: Where) -> Array | None:
    if any(row.law is None for row in kept):
        return None
    place = {name: i for i, name in enumerate(arms)}
    found = np.zeros((len(kept), len(arms)))
    for i, row in enumerate(kept):
        for name, chance in (row.law or {}).items():
            if name not in place:
                raise InputError(
                    where.of(i), f"{name!r} might be chosen", f"arms in the list: {', '.join(arms)}"
                )
            found[i, place[name]] = chance
    return found


def _offered(kept: Sequence[Row], arms: Sequence[str]) -> Bools | None:
    """The arms that might be chosen; None where that is all of them, or not known."""
    if any(row.law is None for row in kept):
        return None
    found = np.array([[name in (row.law or ()) for name in arms] for row in kept])
    return None if found.all() else found


def _numbers(told: Sequence[Mapping[str, float]], names: Sequence[str]) -> Array:
    return np.array([[one.get(name, np.nan) for name in names] for one in told])


def _units(kept: Sequence[Row]) -> tuple[Any, tuple[str, ...]]:
    """Whose each context is, as the agent took it: those without a name are of one unit, too."""
    said = [row.unit for row in kept]
    names = list(dict.fromkeys(said))
    place = {name: i for i, name in enumerate(names)}
    return (None, ()) if names == [""] else (np.array([place[one] for one in said]), tuple(names))
