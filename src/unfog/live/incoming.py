"""Events that come from elsewhere, checked before they are applied: whatever a file says, nothing breaks.

Each is held against the state that the events before it have led to. What it asks for must be what a caller
might have asked for then; what was answered is not made again, that is what a replay that verifies is for.
"""

from collections.abc import Callable, Collection

from unfog import validation
from unfog.agents.catalogue import EVERY
from unfog.live import asking, incoming_choice, terms
from unfog.live.asking import REQUEST, number
from unfog.live.incoming_choice import Body, mapping, refuse_fields, whole_context
from unfog.live.reference import fingerprint
from unfog.live.state import State
from unfog.validation import REFERENCE, InputError, shown

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
    "shadow": (("agent", "outcome"), ("fingerprint", "leaves")),
    "erase": (("decisions", "outcome"), ()),
}
ERASED = (("erased",), ("number", "arm", "probability", "shares", "frozen", "given", "outcome"))


def refuse_modules(event: Body, modules: Collection[str]) -> None:
    """Complain of code that whoever takes in the log has not allowed: to import a module is to run it."""
    joins = event["kind"] == "problem" or (event["kind"] == "shadow" and event.get("leaves") is not True)
    for field in ("features", "agent") if joins else ():
        path = event.get(field)
        if not isinstance(path, str) or not REFERENCE.fullmatch(path):
            continue
        module = path.partition(":")[0]
        if module not in modules and (field == "features" or module not in EVERY):
            how = f"modules=[{module!r}] in Python, --allow-module {module} on the command line"
            raise InputError(field, path, f"code of one's own if its module is allowed, by {how}")


def problem(decision: object, key: object, body: Body) -> None:
    """The terms of a problem."""
    for field, value in (("decision", decision), ("key", key)):
        if value is not None:
            raise InputError(field, shown(value), "none: the terms of a problem have none")
    refuse_fields(body, *FIELDS["problem"])
    validation.check_name("uid", body["uid"])
    refuse_fields(mapping("fingerprints", body["fingerprints"]), (), ("features", "agent"))
    for name in ("seed", "learn", "reward_var"):
        if body[name] is None and (name, body["rewards"]) != ("reward_var", "bernoulli"):
            raise InputError(name, None, "what it was when the problem was made")
    terms.refuse_other(body, {name: body[name] for name in terms.FIELDS})


def check(state: State, kind: str, decision: object, key: object, body: Body, time: float) -> None:
    """Refuse an event that could not come next, at this time."""
    erased = kind in ("decide", "reveal") and body.get("erased") is True
    refuse_fields(body, *(ERASED if erased else FIELDS[kind]))
    if key is not None:
        validation.check_name("key", key)
    if kind in OUTCOMES and body.get("outcome") not in OUTCOMES[kind]:
        raise InputError("outcome", shown(body.get("outcome")), ", ".join(OUTCOMES[kind]))
    if kind == "decide":
        _numbered(state, decision, body)
    elif kind in ("reward", "reveal", "void", "expire"):
        _known(state, decision)
    elif decision is not None:
        raise InputError("decision", shown(decision), "none: this event is about no decision")
    if not erased:
        _check_content(state, kind, str(decision), body, time)


def _check_content(state: State, kind: str, decision: str, body: Body, time: float) -> None:
    if kind == "decide":
        incoming_choice.decision(state, body)
        return
    CHECKS[kind](state, decision, body)
    if kind == "expire":
        _over(state, decision, body["what"], time)


def _numbered(state: State, decision: object, body: Body) -> None:
    """Decisions come in their order."""
    found = body.get("number")
    if type(found) is not int or found != state.number:
        raise InputError("number", shown(found), f"{state.number}, the next")
    if decision != state.id_of(state.number):
        raise InputError("decision", shown(decision), state.id_of(state.number))
    validation.check_name("arm", body.get("arm"))


def _known(state: State, decision: object) -> None:
    first = validation.check_name("decision", decision).partition("-")[0]
    place = int(first) if first.isascii() and first.isdigit() and len(first) < 16 else -1
    if not 0 <= place < state.number or decision != state.id_of(place):
        raise InputError("decision", shown(decision), "a decision of an event before")


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
    given = mapping("context", body["context"])
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
        then = mapping("then", body["then"])
        refuse_fields(then, ("noisy", "denoised", "sd"), ())
        for name in then:
            whole_context(f"then.{name}", then[name], state, lost=name == "noisy")


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


def _over(state: State, decision: str, what: str, time: float) -> None:
    """Complain of a wait that is not over."""
    found = state.open.get(decision)
    span = state.terms.wait if what == "reward" else state.terms.reveal_within
    if found is None:
        return
    if span is None:
        raise InputError("what", what, "nothing: there is no end to the wait for it")
    if found.time + span > time:
        raise InputError("time", time, f"the end of the wait, {found.time + span}, or later")


def _value(state: State, value: object) -> None:
    """What is learnt may be a mean of several rewards, or their sum."""
    number("value", value)
    if state.terms.learn == "at_once":
        raise InputError("value", value, "null: rewards are learnt at once")


def _arms(state: State, decision: str, body: Body) -> None:  # noqa: ARG001
    if not any(body.get(name) for name in ("add", "retire", "restore")):
        raise InputError("arms", shown(sorted(body)), "add, retire or restore")
    for name in ("retire", "restore"):
        found = body.get(name, [""])
        if not isinstance(found, list):
            raise InputError(name, shown(found), "a list of names")
        for one in body.get(name, ()):
            validation.check_name(name, one)
    if "add" in body and validation.check_arms("add", mapping("add", body["add"]), {}) != body["add"]:
        raise InputError("add", shown(body["add"]), "names, each with its numbers or null")
    state.refuse_arms(body)


def _freeze(state: State, decision: str, body: Body) -> None:  # noqa: ARG001
    if body["arm"] is None:
        return
    validation.check_name("arm", body["arm"])
    if state.arms.vectors and body["arm"] not in state.arms.available:
        raise InputError("arm", shown(body["arm"]), ", ".join(state.arms.available))


def _shadow(state: State, decision: str, body: Body) -> None:  # noqa: ARG001
    if "leaves" in body:
        _leaves(state, body)
        return
    if validation.check_name("agent", body["agent"]) in state.minds:
        raise InputError("agent", body["agent"], "one that is not a shadow already")
    state.made.agent_named("agent", body["agent"], state.arms.features, new="agent")
    if fingerprint("shadow", body["agent"]) != body.get("fingerprint"):
        raise InputError("shadow", f"{body['agent']} has changed", "the code with which it joined")


def _leaves(state: State, body: Body) -> None:
    if body["leaves"] is not True:
        raise InputError("leaves", shown(body["leaves"]), "true, or nothing")
    if validation.check_name("agent", body["agent"]) not in state.minds:
        raise InputError("agent", body["agent"], "a shadow that there is")


def _erase(state: State, decision: str, body: Body) -> None:  # noqa: ARG001
    if type(body["decisions"]) is not int or not 0 < body["decisions"] <= state.number:
        raise InputError("decisions", shown(body["decisions"]), "how many were erased")


def _nothing(state: State, decision: str, body: Body) -> None:
    """There is nothing more to it."""


CHECKS: dict[str, Callable[[State, str, Body], None]] = {
    "reward": _reward,
    "reveal": _reveal,
    "void": _nothing,
    "expire": _expire,
    "arms": _arms,
    "freeze": _freeze,
    "shadow": _shadow,
    "erase": _erase,
}
