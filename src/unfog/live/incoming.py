"""Events that come from elsewhere, checked before they are applied: whatever a file says, nothing breaks.

Each is held against the state that the events before it have led to. What it asks for must be what a caller
might have asked for then; what was answered is not made again, that is what a replay that verifies is for.
"""

from collections.abc import Callable, Mapping
from typing import Any

from unfog.inputs import InputError, shown
from unfog.live import asking, names, terms
from unfog.live.asking import Ask, number
from unfog.live.reference import fingerprint
from unfog.live.state import REQUEST, State

Body = Mapping[str, Any]
OUTCOMES = {
    "reward": ("learnt", "kept", "waits", "late", "ignored", "known"),
    "reveal": ("learnt", "noted", "late", "known"),
    "void": ("void", "known"),
    "arms": ("done",),
    "freeze": ("done",),
    "shadow": ("done",),
    "erase": ("done",),
}
ANSWER = ("arm", "probability", "shares", "denoised", "sd")
FIELDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {  # those there must be, those there may be
    "problem": (terms.Terms._fields, ()),
    "decide": (("number", "context", *ANSWER), (*REQUEST, "frozen", "shadow")),
    "reward": (("value", "outcome"), ()),
    "reveal": (("context", "outcome"), ("then",)),
    "void": (("outcome",), ()),
    "expire": (("what",), ("value",)),
    "arms": (("outcome",), ("add", "retire", "restore")),
    "freeze": (("arm", "outcome"), ()),
    "shadow": (("agent", "outcome"), ("fingerprint",)),
    "erase": (("decisions", "outcome"), ()),
}
ERASED = (("erased",), ("number", "arm", "probability", "shares", "frozen", "given", "outcome"))


def problem(decision: object, key: object, body: Body) -> None:
    """The terms of a problem."""
    for field, value in (("decision", decision), ("key", key)):
        if value is not None:
            raise InputError(field, shown(value), "none: the terms of a problem have none")
    _fields(body, *FIELDS["problem"])
    names.name("uid", body["uid"])
    _fields(_mapping("fingerprints", body["fingerprints"]), (), ("features", "agent"))
    for name in ("seed", "learn", "reward_var"):
        if body[name] is None and (name, body["rewards"]) != ("reward_var", "bernoulli"):
            raise InputError(name, None, "what it was when the problem was made")
    terms.refuse_other(body, {name: body[name] for name in terms.FIELDS})


def check(state: State, kind: str, decision: object, key: object, body: Body) -> None:
    """Refuse an event that could not come next."""
    erased = kind in ("decide", "reveal") and body.get("erased") is True
    _fields(body, *(ERASED if erased else FIELDS[kind]))
    if key is not None:
        names.name("key", key)
    if kind in OUTCOMES and body.get("outcome") not in OUTCOMES[kind]:
        raise InputError("outcome", shown(body.get("outcome")), ", ".join(OUTCOMES[kind]))
    if kind == "decide":
        _numbered(state, decision, body)
    elif kind in ("reward", "reveal", "void", "expire"):
        _known(state, decision)
    elif decision is not None:
        raise InputError("decision", shown(decision), "none: this event is about no decision")
    if not erased:
        CHECKS[kind](state, str(decision), body)


def _fields(body: Body, needed: tuple[str, ...], allowed: tuple[str, ...]) -> None:
    for name in needed:
        if name not in body:
            raise InputError(name, "missing", "all that such an event says")
    for name in body:
        if name not in needed and name not in allowed:
            raise InputError(name, "no such field", ", ".join(dict.fromkeys((*needed, *allowed))))


def _numbered(state: State, decision: object, body: Body) -> None:
    """Decisions come in their order."""
    found = body.get("number")
    if type(found) is not int or found != state.number:
        raise InputError("number", shown(found), f"{state.number}, the next")
    if decision != state.id_of(state.number):
        raise InputError("decision", shown(decision), state.id_of(state.number))
    names.name("arm", body.get("arm"))


def _known(state: State, decision: object) -> None:
    first = names.name("decision", decision).partition("-")[0]
    place = int(first) if first.isascii() and first.isdigit() and len(first) < 16 else -1
    if not 0 <= place < state.number or decision != state.id_of(place):
        raise InputError("decision", shown(decision), "a decision of an event before")


def _decide(state: State, decision: str, body: Body) -> None:  # noqa: ARG001
    ask = _asked(state, body)
    _chosen(state, ask, body)
    _context("denoised", body["denoised"], state)
    _context("sd", body["sd"], state)
    if body.get("frozen", True) is not True:
        raise InputError("frozen", shown(body["frozen"]), "true, or nothing")
    for name, other in _mapping("shadow", body.get("shadow", {})).items():
        if name not in state.minds:
            raise InputError(f"shadow.{name}", "no such shadow", ", ".join(state.minds))
        _fields(_mapping(f"shadow.{name}", other), ("arm", "probability", "shares"), ())
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
    state.minds.refuse(ask)
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
    for name, share in _mapping("shares", shares).items():
        if name not in arms:
            raise InputError(f"shares.{name}", "no such arm", ", ".join(arms))
        _share(f"shares.{name}", share)
    if abs(sum(_mapping("shares", shares).values()) - 1) > 1e-6:
        raise InputError("shares", shown(shares), "shares that sum to 1")


def _mapping(field: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InputError(field, shown(value), "a mapping")
    return value


def _share(field: str, value: object) -> None:
    if not 0 <= number(field, value) <= 1 + 1e-9:
        raise InputError(field, value, "a number from 0 to 1")


def _context(field: str, value: object, state: State, lost: bool = False) -> None:
    """A whole context by name."""
    found = asking.context_of(field, _mapping(field, value), state.terms.context)
    for name, one in found.items():
        if one is None and not lost:
            raise InputError(f"{field}.{name}", one, "a number")


def _reward(state: State, decision: str, body: Body) -> None:
    _paid(state, body["value"])
    found = state.open.get(decision)
    if found is None or body["outcome"] not in ("learnt", "kept", "waits"):
        return
    if found.paid is not None or found.settled:
        raise InputError("outcome", body["outcome"], "known, late or ignored: its reward is settled")
    if (body["outcome"] == "kept") is not (state.terms.learn == "after_wait"):
        raise InputError("outcome", body["outcome"], f"one that learning {state.terms.learn!r} leads to")


def _paid(state: State, value: object) -> None:
    state.terms.check_reward("value", value)


def _reveal(state: State, decision: str, body: Body) -> None:  # noqa: ARG001
    given = _mapping("context", body["context"])
    told = asking.context_of("context", given, state.terms.context, whole=False)
    if not told or None in told.values():
        raise InputError("context", shown(given), "numbers by name, one at least")
    if (
        state.mind.agent.awaits_context
        and body["outcome"] == "learnt"
        and len(told) < len(state.terms.context)
    ):
        raise InputError("context", shown(given), "the whole context: this agent learns from no part")
    if "then" in body:
        then = _mapping("then", body["then"])
        _fields(then, ("noisy", "denoised", "sd"), ())
        for name in then:
            _context(f"then.{name}", then[name], state, lost=name == "noisy")


def _expire(state: State, decision: str, body: Body) -> None:
    if body["what"] not in ("reward", "context"):
        raise InputError("what", shown(body["what"]), "reward, context")
    if body["what"] == "context":
        return
    if "value" not in body:
        raise InputError("value", "missing", "what is learnt, or null")
    if body["value"] is not None:
        _value(state, body["value"])
    found = state.open.get(decision)
    if found is not None and found.settled:
        raise InputError("what", "reward", "context: its reward is settled")


def _value(state: State, value: object) -> None:
    """What is learnt may be a mean of several rewards, or their sum."""
    number("value", value)
    if state.terms.learn == "at_once":
        raise InputError("value", value, "null: rewards are learnt at once")


def _arms(state: State, decision: str, body: Body) -> None:  # noqa: ARG001
    if sum(name in body for name in ("add", "retire", "restore")) != 1:
        raise InputError("arms", shown(sorted(body)), "one of add, retire, restore")
    for name in ("retire", "restore"):
        found = body.get(name, [""])
        if not isinstance(found, list):
            raise InputError(name, shown(found), "a list of names")
        for one in body.get(name, ()):
            names.name(name, one)
    if "add" in body and names.arms("add", _mapping("add", body["add"]), {}) != body["add"]:
        raise InputError("add", shown(body["add"]), "names, each with its numbers or null")
    state.arms.refuse(body)


def _freeze(state: State, decision: str, body: Body) -> None:  # noqa: ARG001
    if body["arm"] is None:
        return
    names.name("arm", body["arm"])
    if state.arms.vectors and body["arm"] not in state.arms.available:
        raise InputError("arm", shown(body["arm"]), ", ".join(state.arms.available))


def _shadow(state: State, decision: str, body: Body) -> None:  # noqa: ARG001
    if names.name("agent", body["agent"]) in state.minds:
        raise InputError("agent", body["agent"], "one that is not a shadow already")
    state.made.agent_named("agent", body["agent"], state.arms.features)
    if fingerprint("shadow", body["agent"]) != body.get("fingerprint"):
        raise InputError("shadow", f"{body['agent']} has changed", "the code with which it joined")


def _erase(state: State, decision: str, body: Body) -> None:  # noqa: ARG001
    if type(body["decisions"]) is not int or not 0 < body["decisions"] <= state.number:
        raise InputError("decisions", shown(body["decisions"]), "how many were erased")


def _nothing(state: State, decision: str, body: Body) -> None:
    """There is nothing more to it."""


CHECKS: dict[str, Callable[[State, str, Body], None]] = {
    "decide": _decide,
    "reward": _reward,
    "reveal": _reveal,
    "void": _nothing,
    "expire": _expire,
    "arms": _arms,
    "freeze": _freeze,
    "shadow": _shadow,
    "erase": _erase,
}
