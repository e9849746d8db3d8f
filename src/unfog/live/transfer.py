"""Export and import of a problem's log as NDJSON, one event a line.

An imported log keeps its ids, keys and times, so that the beliefs are the same. It may be imported again, or
after an interruption: events that are already there are skipped, and if one of them differs nothing is
changed.

All events are checked and applied to a separate state before the first is written, so a bad file does no
harm. Each event is checked against the state that the events before it lead to: a caller must have been able
to ask for it then. For a decision that covers the request, the choice and the belief. Answers are not
computed again: that is what a verifying replay is for.
"""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from unfog import validation
from unfog.agents.catalogue import EVERY
from unfog.live import config, requests, snapshot
from unfog.live.backend import Row
from unfog.live.config import PreparedProblem, ProblemConfig, module_hash
from unfog.live.errors import ConflictError
from unfog.live.requests import REQUEST, DecisionRequest
from unfog.live.state import State
from unfog.validation import REFERENCE, InputError, display

if TYPE_CHECKING:
    from unfog.live.processor import Processor

CHUNK = 10_000  # events that are written with one commit
AHEAD = 86_400.0  # seconds by which clocks may differ: later events would make the problem's time stand still
HEAD = ("seq", "problem", "kind", "decision", "key", "time")
KINDS = ("problem", "decide", "reward", "reveal", "cancel", "expire", "arms", "pin", "shadow", "erase")

OUTCOMES = {
    "reward": ("learnt", "kept", "waits", "late", "ignored", "known"),
    "reveal": ("learnt", "noted", "late", "known"),
    "cancel": ("cancelled", "known"),
    "arms": ("done",),
    "pin": ("done",),
    "shadow": ("done",),
    "erase": ("done",),
}

ANSWER = ("arm", "probability", "agent_probabilities", "denoised", "sd")

FIELDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {  # those there must be, those there may be
    "problem": ((*config.FIELDS, "module_hashes", "uid"), ()),
    "decide": (("number", "context", *ANSWER), (*REQUEST, "pinned", "shadows")),
    "reward": (("value", "outcome"), ()),
    "reveal": (("context", "outcome"), ("believed",)),
    "cancel": (("outcome",), ()),
    "expire": (("expired",), ("value",)),
    "arms": (("outcome",), ("add", "retire", "restore")),
    "pin": (("arm", "outcome"), ()),
    "shadow": (("agent", "outcome"), ("module_hash", "removed")),
    "erase": (("decisions", "outcome"), ()),
}

ERASED = (
    ("erased",),
    ("number", "arm", "probability", "agent_probabilities", "pinned", "logged_probability", "outcome"),
)
Body = Mapping[str, Any]

Line: TypeAlias = tuple[int, dict[str, Any]]
"""An event, and the number of the line that it stands in."""


def as_lines(events: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Events as NDJSON."""
    for event in events:
        yield json.dumps(event, allow_nan=False) + "\n"


def read_lines(lines: Iterable[str]) -> Iterator[Line]:
    """Read NDJSON as events, each with the number of its line."""
    try:
        lines = iter(lines)
    except TypeError:
        raise InputError("lines", display(lines), "the lines of an exported log") from None
    for number, line in enumerate(lines, 1):
        if not isinstance(line, str | bytes):
            raise InputError(f"line {number}", display(line), "one JSON object, as text")
        if not line.strip():
            continue
        try:
            event = json.loads(line, parse_constant=check_constant)
        except (ValueError, RecursionError) as error:
            raise InputError(f"line {number}", line[:60], f"one JSON object ({error})") from None
        if not isinstance(event, dict) or event.get("kind") not in KINDS:
            raise InputError(f"line {number}", line[:60], f"an event whose kind is one of {', '.join(KINDS)}")
        yield number, event


def check_constant(text: str) -> float:
    """Raise ValueError for NaN and the infinities, which Python would read."""
    raise ValueError(f"{text} is no number of JSON")


def import_events(
    processor: "Processor", lines: Iterable[Line], name: str | None = None, allow_modules: Sequence[str] = ()
) -> int:
    """Import the exported events of one problem, and return how many were new."""
    rest = iter(lines)
    first = next(rest, None)
    if first is None or first[1]["kind"] != "problem":
        raise InputError("line 1", "no problem", "the export of a problem, whose first event says its terms")
    name = validation.check_name("problem", first[1].get("problem") if name is None else name)
    with processor.cache.reserved(name):
        return _import_reserved(processor, name, first, chain([first], rest), allow_modules)


def _import_reserved(
    processor: "Processor", name: str, first: Line, lines: Iterator[Line], allow_modules: Sequence[str]
) -> int:
    """Import the events of a problem that nothing else can change meanwhile."""
    log = processor.log
    is_there = name in log.names()
    new, keys, last = _skip_known(lines, log.read(name) if is_there else iter(()))
    pending = list(new)
    for number, event in pending:
        with _name_line(number):
            check_modules(event, allow_modules)
    with _name_line(first[0]):
        check_terms(first[1].get("decision"), first[1].get("key"), body_of(first[1]))
        if is_there:
            state, _ = snapshot.restore_state(log, name, processor.made(name))
        else:
            state = State(PreparedProblem(ProblemConfig.read(body_of(first[1]))))
    _apply_events(state, pending, keys, Times(last, processor.now()))
    for start in range(0, len(pending), CHUNK):
        processor.append(name, [event for _, event in pending[start : start + CHUNK]])
    return len(pending)


def _skip_known(lines: Iterator[Line], rows: Iterator[Row]) -> tuple[Iterator[Line], set[str | None], float]:
    """The events after the stored rows, which must be equal; keys and last time of those rows."""
    keys, last = set[str | None](), 0.0
    for row in rows:
        number, event = next(lines, (0, None))
        if event is None:
            return iter(()), keys, last
        head = event["kind"], event.get("decision"), event.get("key"), event.get("time")
        if head != (row.kind, row.decision, row.key, row.time) or body_of(event) != json.loads(row.body):
            raise ConflictError(f"line {number}", event["kind"], f"what is in the store: event {row.seq}")
        keys.add(row.key)
        last = row.time
    return lines, keys, last


def body_of(event: Mapping[str, Any]) -> dict[str, Any]:
    """An event without the fields that have columns of their own."""
    return {name: value for name, value in event.items() if name not in HEAD}


class Times(NamedTuple):
    """The times between which the next event must be."""

    last: float  # of the event before
    now: float  # of the store

    def checked(self, time: object) -> float:
        """The time of the next event; InputError if it is not possible."""
        if not isinstance(time, int | float) or isinstance(time, bool) or not self.last <= time:
            raise InputError("time", time, f"a number, not before that of the event before: {self.last}")
        if time > self.now + AHEAD:
            raise InputError("time", time, f"at most a day after the store's own time, which is {self.now}")
        return float(time)


def _apply_events(state: State, lines: Sequence[Line], keys: set[str | None], times: Times) -> None:
    """Apply all events to a separate state before one of them is written."""
    for i, (number, event) in enumerate(lines):
        with _name_line(number):
            times = times._replace(last=times.checked(event.get("time")))
            if event["kind"] != "problem":
                _apply_event(state, event, keys, times.last)
            elif i:
                raise InputError("kind", "problem", "the terms once, in the first line")


def _apply_event(state: State, event: dict[str, Any], keys: set[str | None], time: float) -> None:
    kind, decision, key, body = event["kind"], event.get("decision"), event.get("key"), body_of(event)
    check(state, kind, decision, key, body, time)
    if key is not None and key in keys:
        raise InputError("key", repr(key), "a key that no event before has")
    keys.add(key)
    state.apply(kind, decision, body, time)


@contextmanager
def _name_line(line: int) -> Iterator[None]:
    """Make errors name the line of the event."""
    try:
        yield
    except InputError as error:
        raise InputError(f"line {line}, {error.field}", error.value, error.allowed, error.near) from error
    except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError) as error:
        message = f"{type(error).__name__}: {error}"
        raise InputError(f"line {line}", message, "events as they were exported") from error


def check_modules(event: Body, allow_modules: Collection[str]) -> None:
    """Raise InputError if an event names code whose module is not allowed: importing it would run it."""
    names_code = event["kind"] == "problem" or (
        event["kind"] == "shadow" and event.get("removed") is not True
    )
    for field in ("features", "agent") if names_code else ():
        path = event.get(field)
        if not isinstance(path, str) or not REFERENCE.fullmatch(path):
            continue
        module = path.partition(":")[0]
        if module not in allow_modules and (field == "features" or module not in EVERY):
            how = f"allow_modules=[{module!r}] in Python, --allow-modules {module} on the command line"
            raise InputError(field, path, f"code of one's own if its module is allowed, by {how}")


def check_fields(body: Body, needed: tuple[str, ...], allowed: tuple[str, ...]) -> None:
    """Raise InputError if a field is missing or unknown."""
    for name in needed:
        if name not in body:
            raise InputError(name, "missing", "all that such an event says")
    for name in body:
        if name not in needed and name not in allowed:
            raise InputError(name, "no such field", ", ".join(dict.fromkeys((*needed, *allowed))))


def mapping(field: str, value: object) -> Mapping[str, Any]:
    """The value; InputError if it is not a mapping."""
    if not isinstance(value, Mapping):
        raise InputError(field, display(value), "a mapping")
    return value


def check_context(field: str, value: object, state: State, lost: bool = False) -> None:
    """Raise InputError if it is not a complete context by name."""
    context = requests.context_of(field, mapping(field, value), state.terms.context)
    for name, x in context.items():
        if x is None and not lost:
            raise InputError(f"{field}.{name}", x, "a number")


def check_terms(decision: object, key: object, body: Body) -> None:
    """Check the event with the terms of a problem."""
    for field, value in (("decision", decision), ("key", key)):
        if value is not None:
            raise InputError(field, display(value), "none: the terms of a problem have none")
    check_fields(body, *FIELDS["problem"])
    validation.check_name("uid", body["uid"])
    check_fields(mapping("module_hashes", body["module_hashes"]), (), ("features", "agent"))
    for name in ("seed", "update", "reward_sd"):
        if body[name] is None and (name, body["rewards"]) != ("reward_sd", "binary"):
            raise InputError(name, None, "what it was when the problem was made")
    config.check_unchanged(body, {name: body[name] for name in config.FIELDS})


def check(state: State, kind: str, decision: object, key: object, body: Body, time: float) -> None:
    """Raise InputError if an event could not come next, at this time."""
    erased = kind in ("decide", "reveal") and body.get("erased") is True
    check_fields(body, *(ERASED if erased else FIELDS[kind]))
    if key is not None:
        validation.check_name("key", key)
    if kind in OUTCOMES and body.get("outcome") not in OUTCOMES[kind]:
        raise InputError("outcome", display(body.get("outcome")), ", ".join(OUTCOMES[kind]))
    if kind == "decide":
        _check_number(state, decision, body)
    elif kind in ("reward", "reveal", "cancel", "expire"):
        _check_decision_id(state, decision)
    elif decision is not None:
        raise InputError("decision", display(decision), "none: this event is about no decision")
    if not erased:
        _check_content(state, kind, str(decision), body, time)


def _check_number(state: State, decision: object, body: Body) -> None:
    """Check the number, id and arm of a decision: decisions come in their order."""
    number = body.get("number")
    if type(number) is not int or number != state.number:
        raise InputError("number", display(number), f"{state.number}, the next")
    if decision != state.id_of(state.number):
        raise InputError("decision", display(decision), state.id_of(state.number))
    validation.check_name("arm", body.get("arm"))


def _check_decision_id(state: State, decision: object) -> None:
    """Raise InputError if there was no such decision."""
    first = validation.check_name("decision", decision).partition("-")[0]
    number = int(first) if first.isascii() and first.isdigit() and len(first) < 16 else -1
    if not 0 <= number < state.number or decision != state.id_of(number):
        raise InputError("decision", display(decision), "a decision of an event before")


def _check_content(state: State, kind: str, decision: str, body: Body, time: float) -> None:
    if kind == "decide":
        check_decision(state, body)
        return
    CHECKS[kind](state, decision, body)
    if kind == "expire":
        _check_window_over(state, decision, body["expired"], time)


def check_decision(state: State, body: Body) -> None:
    """Raise InputError if a decision could not have been made."""
    ask = _check_request(state, body)
    _check_chosen_arm(state, ask, body)
    check_context("denoised", body["denoised"], state)
    check_context("sd", body["sd"], state)
    if body.get("pinned", True) is not True:
        raise InputError("pinned", display(body["pinned"]), "true, or nothing")
    for name, choice in mapping("shadows", body.get("shadows", {})).items():
        if name not in state.runners:
            raise InputError(f"shadows.{name}", "no such shadow", ", ".join(state.runners))
        check_fields(mapping(f"shadows.{name}", choice), ("arm", "probability", "agent_probabilities"), ())
        _check_choice(state, ask, choice)


def _check_request(state: State, body: Body) -> DecisionRequest:
    """The request of a decision; InputError if it could not have been made then."""
    logged = {name: body[name] for name in REQUEST if name in body}
    ask = requests.check_request(
        state.made,
        **{"probability" if name == "logged_probability" else name: value for name, value in logged.items()},
        by_column=True,
    )
    for name, value in logged.items():
        value_now = ask.request.get(name)
        if value_now is None or value_now != value or type(value_now) is not type(value):
            raise InputError(name, display(value), "as it is logged")
    state.arms.check(ask)
    state.runners.check_reading(ask, state.moment(ask))
    return ask


def _check_chosen_arm(state: State, ask: DecisionRequest, body: Body) -> None:
    """Check the arm that was taken, whether the agent or the caller chose it."""
    logged_arm = body.get("logged_arm")
    if logged_arm is None:
        _check_choice(state, ask, body)
        return
    if body["arm"] != logged_arm:
        raise InputError("arm", display(body["arm"]), logged_arm)
    if body["probability"] != body.get("logged_probability") or type(body["probability"]) is bool:
        raise InputError("probability", display(body["probability"]), "that which was given, if any was")
    _check_probabilities(state, ask, body["agent_probabilities"])


def _check_choice(state: State, ask: DecisionRequest, choice: Body) -> None:
    """Check an arm that an agent chose, and its probability."""
    arms = state.arms.choice(ask)
    if choice["arm"] not in arms:
        raise InputError("arm", display(choice["arm"]), ", ".join(arms))
    _check_probability("probability", choice["probability"])
    _check_probabilities(state, ask, choice["agent_probabilities"])


def _check_probabilities(state: State, ask: DecisionRequest, probabilities: object) -> None:
    arms = state.arms.place if ask.vectors is None else ask.vectors
    for name, chance in mapping("agent_probabilities", probabilities).items():
        if name not in arms:
            raise InputError(f"agent_probabilities.{name}", "no such arm", ", ".join(arms))
        _check_probability(f"agent_probabilities.{name}", chance)
    if abs(sum(mapping("agent_probabilities", probabilities).values()) - 1) > 1e-6:
        raise InputError("agent_probabilities", display(probabilities), "probabilities that sum to 1")


def _check_probability(field: str, value: object) -> None:
    if not 0 <= validation.number(field, value) <= 1 + 1e-9:
        raise InputError(field, value, "a number from 0 to 1")


def _check_reward(state: State, decision: str, body: Body) -> None:
    _check_reward_value(state, body["value"])
    pending = state.open.get(decision)
    if pending is None or body["outcome"] not in ("learnt", "kept", "waits"):
        return
    if pending.paid is not None or pending.settled:
        raise InputError("outcome", body["outcome"], "known, late or ignored: its reward is settled")
    if (body["outcome"] == "kept") is not (state.terms.update == "at_close"):
        raise InputError("outcome", body["outcome"], f"one that update {state.terms.update!r} leads to")


def _check_reward_value(state: State, value: object) -> None:
    state.terms.check_reward("value", value)


def _check_reveal(state: State, decision: str, body: Body) -> None:  # noqa: ARG001
    raw = mapping("context", body["context"])
    context = requests.context_of("context", raw, state.terms.context, whole=False)
    if not context or None in context.values():
        raise InputError("context", display(raw), "numbers by name, one at least")
    if (
        state.runner.agent.awaits_context
        and body["outcome"] == "learnt"
        and len(context) < len(state.terms.context)
    ):
        raise InputError(
            "context", display(raw), "the complete context: this agent cannot learn from a part of it"
        )
    if "believed" in body:
        belief = mapping("believed", body["believed"])
        check_fields(belief, ("noisy", "denoised", "sd"), ())
        for name in belief:
            check_context(f"believed.{name}", belief[name], state, lost=name == "noisy")


def _check_expire(state: State, decision: str, body: Body) -> None:
    if body["expired"] not in ("reward", "context"):
        raise InputError("expired", display(body["expired"]), "reward, context")
    if body["expired"] == "context":
        return
    if "value" not in body:
        raise InputError("value", "missing", "what is learnt, or null")
    if body["value"] is not None:
        _check_expired_value(state, body["value"])
    pending = state.open.get(decision)
    if pending is not None and pending.settled:
        raise InputError("expired", "reward", "context: its reward is settled")


def _check_window_over(state: State, decision: str, what: str, time: float) -> None:
    """Raise InputError if the window is not over."""
    pending = state.open.get(decision)
    span = state.terms.reward_window if what == "reward" else state.terms.context_window
    if pending is None:
        return
    if span is None:
        raise InputError("expired", what, "nothing: the window for it has no end")
    if pending.time + span > time:
        raise InputError("time", time, f"the end of the window, {pending.time + span}, or later")


def _check_expired_value(state: State, value: object) -> None:
    """Check the value learnt at an expiry, which may be a mean or sum of several rewards."""
    validation.number("value", value)
    if state.terms.update == "immediate":
        raise InputError("value", value, "null: rewards are learnt at once")


def _check_arms(state: State, decision: str, body: Body) -> None:  # noqa: ARG001
    if not any(body.get(name) for name in ("add", "retire", "restore")):
        raise InputError("arms", display(sorted(body)), "add, retire or restore")
    for name in ("retire", "restore"):
        names = body.get(name, [""])
        if not isinstance(names, list):
            raise InputError(name, display(names), "a list of names")
        for arm in body.get(name, ()):
            validation.check_name(name, arm)
    if "add" in body and validation.check_arms("add", mapping("add", body["add"])) != body["add"]:
        raise InputError("add", display(body["add"]), "names, each with its numbers or null")
    state.check_arms(body)


def _check_pin(state: State, decision: str, body: Body) -> None:  # noqa: ARG001
    if body["arm"] is None:
        return
    validation.check_name("arm", body["arm"])
    if state.arms.vectors and body["arm"] not in state.arms.available:
        raise InputError("arm", display(body["arm"]), ", ".join(state.arms.available))


def _check_shadow(state: State, decision: str, body: Body) -> None:  # noqa: ARG001
    if "removed" in body:
        _check_leaving(state, body)
        return
    if validation.check_name("agent", body["agent"]) in state.runners:
        raise InputError("agent", body["agent"], "one that is not a shadow already")
    state.made.agent_named("agent", body["agent"], state.arms.features, new="agent")
    if module_hash("shadow", body["agent"]) != body.get("module_hash"):
        raise InputError("shadow", f"{body['agent']} has changed", "the code with which it joined")


def _check_leaving(state: State, body: Body) -> None:
    if body["removed"] is not True:
        raise InputError("removed", display(body["removed"]), "true, or nothing")
    if validation.check_name("agent", body["agent"]) not in state.runners:
        raise InputError("agent", body["agent"], "a shadow that there is")


def _check_erase(state: State, decision: str, body: Body) -> None:  # noqa: ARG001
    if type(body["decisions"]) is not int or not 0 < body["decisions"] <= state.number:
        raise InputError("decisions", display(body["decisions"]), "how many were erased")


def _accept(state: State, decision: str, body: Body) -> None:
    """Accept the event: there is nothing more to check."""


CHECKS: dict[str, Callable[[State, str, Body], None]] = {
    "reward": _check_reward,
    "reveal": _check_reveal,
    "cancel": _accept,
    "expire": _check_expire,
    "arms": _check_arms,
    "pin": _check_pin,
    "shadow": _check_shadow,
    "erase": _check_erase,
}
