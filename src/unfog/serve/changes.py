"""What changes a problem itself: made, its arms, frozen, shadows."""

from typing import Any

from unfog import validation
from unfog.live.incoming import refuse_modules
from unfog.serve import wording
from unfog.serve.bodies import Change, Erase, Freeze, Shadow, Terms
from unfog.serve.calls import Call
from unfog.serve.verbs import received
from unfog.validation import InputError


def refuse_name(field: str, name: str) -> str:
    """Complain of a name that no address can have."""
    if not wording.is_addressable(name):
        raise InputError(field, repr(name), wording.NAMED)
    return validation.check_name(field, name)


def make(call: Call) -> dict[str, Any]:
    """Make a problem; of one that is there, the terms that are given must be as they were."""
    body: Terms = call.body
    given = body.model_dump(exclude_unset=True)
    name = refuse_name("name", given.pop("name"))
    refuse_modules({"kind": "problem", **given}, call.settings.modules)
    there = name in call.store.names()
    problem = call.store.problem(name, **given)
    return {"made": not there, **problem.about()}


def arms(call: Call) -> dict[str, Any]:
    """Add, retire and restore arms: all of it or, where one cannot be, nothing."""
    body: Change = call.body
    added = {} if body.add is None else validation.check_arms("add", body.add, {})
    return received(call.problem.change_arms(add=added, retire=body.retire, restore=body.restore))


def freeze(call: Call) -> dict[str, Any]:
    """From now on one arm, whatever the context; with null the agent decides again."""
    body: Freeze = call.body
    return received(call.problem.thaw() if body.arm is None else call.problem.freeze(body.arm))


def shadow(call: Call) -> dict[str, Any]:
    """One more agent that decides on the same stream without being obeyed, or one that leaves."""
    body: Shadow = call.body
    if body.leave:
        return received(call.problem.unshadow(body.agent))
    refuse_modules({"kind": "shadow", "agent": body.agent}, call.settings.modules)
    return received(call.problem.shadow(body.agent))


def erase(call: Call) -> dict[str, Any]:
    """Erase a unit's contexts, in all problems or in one, and what was learnt from them."""
    body: Erase = call.body
    return {"decisions": call.store.erase(unit=body.unit, problem=body.problem)}
