"""Agents spelled out by name: a row of the catalogue with another learner, another chooser, or both.

    alg1                                  the row; for rewards of 0 or 1 with its learner for these
    alg1-pg                               the row with another learner
    alg1-lmc:temperature=1:steps=20       with settings of one's own
    alg1-exact-hetero-ucb                 with another learner and another chooser
    drift:step=0.01:tail=8                the row with other settings of its own three parts

The name says everything, so that it is all that a spec or a run folder needs to be told.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from unfog.agents import choose, learn
from unfog.agents.assemble import PLACES, Agent
from unfog.validation import LONGEST_LOOKED_UP, InputError, nearest, one_of, positive

LEARNERS: dict[str, Any] = {part.name: part for part in (vars(learn)[name] for name in learn.__all__)}
CHOOSERS: dict[str, Any] = {part.name: part for part in (vars(choose)[name] for name in choose.__all__)}
FORMER = {"online": "adf"}  # names that specs and results of older versions hold
PARTS = {**LEARNERS, **CHOOSERS}
_CUT = re.compile(rf"-(?=(?:{'|'.join([*PARTS, *FORMER])})(?:[-:]|$))")


def spelled_out(rows: Mapping[str, Agent], name: str, kind: str = "gaussian") -> Agent:
    """The agent that a name means; KeyError where no row or part has it."""
    base, *pieces = _CUT.split(name)
    whole, *settings = base.split(":")
    row, found = rows[whole].for_rewards(kind), dict(_parts(kind, whole, pieces))
    if settings:
        row = _tuned(whole, row, settings, [place for place in PLACES if place not in found])
    notes = [part.note for part in found.values()]
    if kind != rows[whole].learner.rewards and "learner" not in found:
        notes.insert(0, row.learner.note)
    if row.name == name and not notes:
        return row
    summary = "; ".join([row.summary, *notes])
    return replace(row, **{"name": name, "summary": summary, "label": "", **found})


def row_of(name: str) -> str:
    """The name of the row that a name begins with."""
    return _CUT.split(name)[0].partition(":")[0]


def near(rows: Iterable[str], name: str, kind: str) -> str:
    """Which name was meant, by its row or, where that is known, by the parts after it; or empty.

    alg1-exat is alg1-exact, orcale-ucb is oracle-ucb, alg1-hetro-ucb is alg1-hetero-ucb.
    """
    plain = name.partition(":")[0][: 2 * LONGEST_LOOKED_UP]
    rows, row = list(rows), row_of(plain)
    learners = [one for one, part in LEARNERS.items() if part.rewards == kind]
    parts = [*learners, *CHOOSERS, *(f"{one}-{other}" for one in learners for other in CHOOSERS)]
    heads = [one for one in rows if plain.startswith(f"{one}-")]
    known = [f"{one}-{part}" for one in heads for part in parts]
    others = [] if row in rows else [one + plain[len(row) :] for one in rows]
    return nearest(plain, [*rows, *others, *known])


def _parts(kind: str, whole: str, pieces: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Each part with its place in an agent; a part twice, or for other rewards, is not known."""
    places = set()
    for piece in pieces:
        told, *settings = piece.split(":")
        part = PARTS[FORMER.get(told, told)]
        place = "learner" if part in LEARNERS.values() else "chooser"
        if place in places or (place == "learner" and part.rewards != kind):
            raise KeyError(whole)
        places.add(place)
        yield place, _made(f"{whole}-{told}", part, settings)


def _made(whole: str, part: Any, settings: Sequence[str]) -> Any:
    try:
        return part(**_settings(_defaults(part), settings))
    except InputError as error:
        raise InputError.prefixed(whole, error) from None


def _tuned(whole: str, row: Agent, settings: Sequence[str], kept: Sequence[str]) -> Agent:
    """The row with other settings of those of its parts that it keeps: each goes to the part that has it."""
    parts: dict[str, Any] = {place: vars(row)[place] for place in kept}
    defaults = {place: _defaults(part) for place, part in parts.items()}
    own = {} if row.limit is None else {"limit": row.limit}
    try:
        known = {f: value for one in (*defaults.values(), own) for f, value in one.items()}
        found = _settings(known, settings)
        changed: dict[str, Any] = {
            place: replace(parts[place], **{f: value for f, value in found.items() if f in one})
            for place, one in defaults.items()
        }
        limit = positive("limit", found["limit"]) if "limit" in found else row.limit
    except InputError as error:
        raise InputError.prefixed(whole, error) from None
    return replace(row, **changed, limit=limit)


def settings_of(part: str) -> list[str]:
    """A part's settings and their defaults, as they are written in a name."""
    return settings_in(PARTS[part])


def settings_in(part: Any) -> list[str]:
    """Likewise of a part that was made, or of its class: what its settings are."""
    return _written(_defaults(part))


def _defaults(part: Any) -> dict[str, Any]:
    """The settings that a name may change, and what they are unless told: of a part, or of its class."""
    defaults: dict[str, Any] = {field.name: field.default for field in fields(part)}
    own = defaults if isinstance(part, type) else vars(part)
    # A row may have written 2 for a number that is 2.5 to others.
    return {name: type(default)(own[name]) for name, default in defaults.items()}


def _written(defaults: Mapping[str, Any]) -> list[str]:
    return [f"{field}={str(value).lower()}" for field, value in defaults.items()]


def _settings(defaults: Mapping[str, Any], given: Sequence[str]) -> dict[str, Any]:
    """Settings written as field=value; the part itself checks what they say."""
    found: dict[str, Any] = {}
    for setting in given:
        field, equals, text = setting.partition("=")
        if field not in defaults:
            allowed = ", ".join(_written(defaults)) or "none"
            raise InputError(field or "settings", "no such setting", allowed, nearest(field, defaults))
        if not equals:
            raise InputError(field, "has no value", f"{field}={str(defaults[field]).lower()}, for instance")
        if field in found:
            raise InputError(field, "given twice", "each setting once")
        found[field] = _value(field, text, defaults[field])
    return found


def _value(field: str, text: str, default: Any) -> Any:
    """A setting as what its default is: a truth value or a number."""
    if isinstance(default, bool):
        return one_of(field, text, ("true", "false")) == "true"
    plain = re.fullmatch(r"[0-9]+" if isinstance(default, int) else r"[-+.0-9eE]+", text)
    try:
        return type(default)(text if plain else "none")
    except ValueError:
        whole = "whole " * isinstance(default, int)
        raise InputError(field, repr(text), f"a {whole}number, such as {default}") from None
