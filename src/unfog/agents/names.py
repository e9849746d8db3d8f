"""Agents spelled out by name: a row of the catalogue with another learner, another chooser, or both.

    alg1                                  the row; for rewards of 0 or 1 with the paper's learner
    alg1-pg                               the row with another learner
    alg1-lmc:temperature=1:steps=20       with settings of one's own
    alg1-exact-hetero-ucb                 with another learner and another chooser
    drift:step=0.01:quantile=0.9          the row with other settings of its own three parts

The name says everything, so that it is all that a spec, a run folder or a worker process needs to be told.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from unfog.agents.agent import Agent
from unfog.agents.choose.epsilon import Epsilon
from unfog.agents.choose.greedy import Greedy
from unfog.agents.choose.ids import Ids
from unfog.agents.choose.top_two import TopTwo
from unfog.agents.choose.ucb import Ucb
from unfog.agents.learn.adf import Online
from unfog.agents.learn.hetero import Hetero
from unfog.agents.learn.joint import Joint
from unfog.agents.learn.laplace import Laplace
from unfog.agents.learn.lmc import LMC
from unfog.agents.learn.pg import PG
from unfog.agents.learn.smoothing import Smoothing
from unfog.inputs import InputError, one_of

PAPERS = "lmc"
LEARNERS: dict[str, Any] = {
    PAPERS: LMC,
    "pg": PG,
    "laplace": Laplace,
    "online": Online,
    "hetero": Hetero,
    "smoothing": Smoothing,
    "joint": Joint,
}
CHOOSERS: dict[str, Any] = {"ucb": Ucb, "ids": Ids, "greedy": Greedy, "epsilon": Epsilon, "toptwo": TopTwo}
PARTS = {**LEARNERS, **CHOOSERS}
NOTES = {
    "lmc": "Langevin Monte Carlo",
    "pg": "Polya-Gamma Gibbs sampling: the exact posterior",
    "laplace": "a Gaussian at the posterior's mode",
    "online": "a Gaussian filtered reward by reward, at constant cost",
    "hetero": "weighs rewards by the variance they have given their expected features",
    "smoothing": "denoises all past rounds anew with what is known of the bias by now",
    "joint": "learns theta and the bias together: rewards, too, say something of the bias",
    "ucb": "Bayes-UCB: the largest upper quantile",
    "ids": "information-directed sampling: the least squared regret for each unit of information",
    "greedy": "the largest expected score",
    "epsilon": "the largest expected score, now and then any arm",
    "toptwo": "top-two Thompson sampling: the best arm of a draw, or that of another",
}
# Learners of rewards of 0 or 1 for rows whose own is not the paper's.
_HIDDEN, _SHOWN = Online(marginal=True), Online()
BERNOULLI: dict[str, Any] = {
    "unfog": _HIDDEN,
    "unfog-delayed": _SHOWN,
    "unfog-oracle": _HIDDEN,
    "gaps": _HIDDEN,
    "late": _HIDDEN,
    "unknown-noise": _HIDDEN,
    "drift": _HIDDEN,
    "robust": _HIDDEN,
}


def spelled_out(rows: Mapping[str, Agent], name: str, kind: str = "bernoulli") -> Agent:
    """The agent that a name means; KeyError where no row or part has it."""
    base, *pieces = re.split(rf"-(?=(?:{'|'.join(PARTS)})(?:[-:]|$))", name)
    whole, *settings = base.split(":")
    row = rows[whole]
    if kind == "bernoulli":
        row = row._replace(learner=BERNOULLI.get(whole, LMC()))
    if settings:
        row = _tuned(whole, row, settings)
    found = dict(_parts(kind, whole, pieces))
    notes = [NOTES[part] for part, _ in found.values()]
    if kind == "bernoulli" and "learner" not in found and whole not in BERNOULLI:
        notes.insert(0, NOTES[PAPERS])
    row = row._replace(**{place: made for place, (_, made) in found.items()})
    return row._replace(name=name, summary="; ".join([row.summary, *notes]))


def _parts(kind: str, whole: str, pieces: Sequence[str]) -> Iterator[tuple[str, tuple[str, Any]]]:
    """Each part with its place in an agent; a part twice, or for other rewards, is not known."""
    places = set()
    for piece in pieces:
        part, *settings = piece.split(":")
        place = "learner" if part in LEARNERS else "chooser"
        if place in places or (place == "learner" and PARTS[part].kind != kind):
            raise KeyError(whole)
        places.add(place)
        yield place, (part, _made(f"{whole}-{part}", PARTS[part], settings))


def _made(whole: str, part: Any, settings: Sequence[str]) -> Any:
    try:
        return part(**_settings(_defaults(part), settings))
    except InputError as error:
        raise InputError.prefixed(whole, error) from None


def _tuned(whole: str, row: Agent, settings: Sequence[str]) -> Agent:
    """The row with other settings of its own parts: each goes to the part that has it."""
    parts = {place: getattr(row, place) for place in ("learner", "denoiser", "chooser")}
    defaults = {place: _defaults(part) for place, part in parts.items() if is_dataclass(part)}
    try:
        found = _settings({f: value for own in defaults.values() for f, value in own.items()}, settings)
        changed = {
            place: replace(parts[place], **{f: value for f, value in found.items() if f in own})
            for place, own in defaults.items()
        }
    except InputError as error:
        raise InputError.prefixed(whole, error) from None
    return row._replace(**changed)


def settings_of(part: str) -> list[str]:
    """A part's settings and their defaults, as they are written in a name."""
    return _written(_defaults(PARTS[part]))


def _defaults(part: Any) -> dict[str, Any]:
    """The settings that a name may change, and what they are unless told."""
    return {field.name: field.default for field in fields(part) if field.metadata.get("named", True)}


def _written(defaults: Mapping[str, Any]) -> list[str]:
    return [f"{field}={str(value).lower()}" for field, value in defaults.items()]


def _settings(defaults: Mapping[str, Any], given: Sequence[str]) -> dict[str, Any]:
    """Settings written as field=value; the part itself checks what they say."""
    found: dict[str, Any] = {}
    for setting in given:
        field, equals, text = setting.partition("=")
        if field not in defaults:
            raise InputError(field or "settings", "no such setting", ", ".join(_written(defaults)) or "none")
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
