"""A decision that comes from elsewhere, checked: what was asked, what was chosen, what was believed."""

from collections.abc import Mapping
from typing import Any

from unfog.live import asking
from unfog.live.asking import REQUEST, Ask, number
from unfog.live.state import State
from unfog.validation import InputError, shown

Body = Mapping[str, Any]


def refuse_fields(body: Body, needed: tuple[str, ...], allowed: tuple[str, ...]) -> None:
    """Complain of a field that is missing, and of one that there is not."""
    for name in needed:
        if name not in body:
            raise InputError(name, "missing", "all that such an event says")
    for name in body:
        if name not in needed and name not in allowed:
            raise InputError(name, "no such field", ", ".join(dict.fromkeys((*needed, *allowed))))


def decision(state: State, body: Body) -> None:
    """Refuse one that could not have been made."""
    ask = _asked(state, body)
    _chosen(state, ask, body)
    whole_context("denoised", body["denoised"], state)
    whole_context("sd", body["sd"], state)
    if body.get("frozen", True) is not True:
        raise InputError("frozen", shown(body["frozen"]), "true, or nothing")
    for name, other in mapping("shadow", body.get("shadow", {})).items():
        if name not in state.minds:
            raise InputError(f"shadow.{name}", "no such shadow", ", ".join(state.minds))
        refuse_fields(mapping(f"shadow.{name}", other), ("arm", "probability", "shares"), ())
        _own_choice(state, ask, other)


def _asked(state: State, body: Body) -> Ask:
    """What was asked for, as it might have been then."""
    asked = {name: body[name] for name in REQUEST if name in body}
    ask = asking.ask(
        state.made, **{"probability" if name == "given" else name: value for name, value in asked.items()}
    )
    for name, value in asked.items():
        known = ask.request.get(name)
        if known is None or known != value or type(known) is not type(value):
            raise InputError(name, shown(value), "as it is logged")
    state.arms.check(ask)
    state.minds.refuse(ask, state.offer(ask))
    return ask


def _chosen(state: State, ask: Ask, body: Body) -> None:
    """The arm that was taken, whoever chose it."""
    forced = body.get("forced")
    if forced is None:
        _own_choice(state, ask, body)
        return
    if body["arm"] != forced:
        raise InputError("arm", shown(body["arm"]), forced)
    if body["probability"] != body.get("given") or type(body["probability"]) is bool:
        raise InputError("probability", shown(body["probability"]), "that which was given, if any was")
    _shares(state, ask, body["shares"])


def _own_choice(state: State, ask: Ask, chosen: Body) -> None:
    """An arm that an agent chose, and its probability."""
    choice = state.arms.choice(ask)
    if chosen["arm"] not in choice:
        raise InputError("arm", shown(chosen["arm"]), ", ".join(choice))
    _share("probability", chosen["probability"])
    _shares(state, ask, chosen["shares"])


def _shares(state: State, ask: Ask, shares: object) -> None:
    arms = state.arms.place if ask.vectors is None else ask.vectors
    for name, share in mapping("shares", shares).items():
        if name not in arms:
            raise InputError(f"shares.{name}", "no such arm", ", ".join(arms))
        _share(f"shares.{name}", share)
    if abs(sum(mapping("shares", shares).values()) - 1) > 1e-6:
        raise InputError("shares", shown(shares), "shares that sum to 1")


def mapping(field: str, value: object) -> Mapping[str, Any]:
    """A mapping."""
    if not isinstance(value, Mapping):
        raise InputError(field, shown(value), "a mapping")
    return value


def _share(field: str, value: object) -> None:
    if not 0 <= number(field, value) <= 1 + 1e-9:
        raise InputError(field, value, "a number from 0 to 1")


def whole_context(field: str, value: object, state: State, lost: bool = False) -> None:
    """A whole context by name."""
    found = asking.context_of(field, mapping(field, value), state.terms.context)
    for name, one in found.items():
        if one is None and not lost:
            raise InputError(f"{field}.{name}", one, "a number")
