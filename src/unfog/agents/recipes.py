"""Agents for rewards of 0 or 1, spelled out by their names.

    alg1                                  the row with the paper's learner
    alg1-pg                               the row with another learner
    alg1-lmc:temperature=1:steps=20       with settings of one's own

The name says everything, so that it is all that a spec, a run folder or a worker process needs to be told.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from unfog.agents.agent import Agent
from unfog.agents.learn.laplace import Laplace
from unfog.agents.learn.lmc import LMC
from unfog.agents.learn.online import Online
from unfog.agents.learn.pg import PG
from unfog.inputs import InputError, one_of

PAPERS = "lmc"
LEARNERS: dict[str, Any] = {PAPERS: LMC, "pg": PG, "laplace": Laplace, "online": Online}
NOTES = {
    "lmc": "Langevin Monte Carlo",
    "pg": "Polya-Gamma Gibbs sampling: the exact posterior",
    "laplace": "a Gaussian at the posterior's mode",
    "online": "a Gaussian filtered reward by reward, at constant cost",
}


def spelled_out(rows: Mapping[str, Agent], name: str) -> Agent:
    """The agent that a name means; KeyError where no row or learner has it."""
    whole, *settings = name.split(":")
    base, _, suffix = (whole, "", PAPERS) if whole in rows else whole.rpartition("-")
    row, learner = rows[base], LEARNERS[suffix]
    try:
        made = learner(**_settings(suffix, settings))
    except InputError as error:
        raise InputError.prefixed(whole, error) from None
    return row._replace(name=name, learner=made, summary=f"{row.summary}; {NOTES[suffix]}")


def settings_of(learner: str) -> list[str]:
    """A learner's settings and their defaults, as they are written in a name."""
    return [f"{field.name}={str(field.default).lower()}" for field in fields(LEARNERS[learner])]


def _settings(suffix: str, given: Sequence[str]) -> dict[str, Any]:
    """Settings written as field=value; the learner itself checks what they say."""
    defaults = {field.name: field.default for field in fields(LEARNERS[suffix])}
    found: dict[str, Any] = {}
    for setting in given:
        field, equals, text = setting.partition("=")
        if field not in defaults:
            raise InputError(field or "settings", "no such setting", ", ".join(settings_of(suffix)))
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
