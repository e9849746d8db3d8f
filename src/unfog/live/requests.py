"""Requests for decisions, checked and as they are logged; and the answers of a problem's verbs.

A request is logged as it was understood. So a replay reads the same numbers, and a second request with the
same key can be compared with the first.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np

from unfog import validation
from unfog.live.config import Made
from unfog.live.errors import Conflict
from unfog.maths.arrays import Array
from unfog.validation import LARGEST, InputError, shown

ASKED = ("context", "unit", "arms", "key", "at", "noise", "forced", "probability")
REQUEST = ("context", "unit", "arms", "at", "noise", "forced", "given")  # what is logged of a request

WORDS = {
    "learnt": "learnt",
    "kept": "kept until the wait is over",
    "waits": "kept until its true context is known",
    "late": "came too late: logged and counted, not learnt",
    "ignored": "logged, not learnt: the first reward counts",
    "noted": "logged: this agent does not learn from true contexts",
    "void": "void: nothing will be learnt from this decision",
    "known": "known already: nothing was changed",
    "done": "done",
}


class Ask(NamedTuple):
    """One request."""

    request: dict[str, Any]  # as it is logged
    noisy: Array  # (1, d)  in the agent's units; the mean where it was lost
    mask: Array | None  # (1, d)  0 where it was lost; None: nowhere
    unit: str  # "" where none is named
    arms: list[str] | None  # those that may be chosen; None: all there are
    vectors: dict[str, Any] | None  # of arms that come with the decision
    at: float | None
    noise: Array | None  # (1, d, d)  in the agent's units


class Decision(NamedTuple):
    """A decision, and what was believed when it was made.

    >>> import unfog
    >>> store = unfog.live.open("walks.unfog")
    >>> channel = {"context_mean": [7000], "context_cov": 4e6, "noise_cov": 1e6, "bias_cov": 4e6}
    >>> walks = store.problem("walks", context=["steps"], arms=["send", "wait"], channel=channel, seed=1)
    >>> d = walks.decide({"steps": 1648})
    >>> d.arm in ("send", "wait"), 0 < d.probability <= 1
    (True, True)
    >>> round(d.denoised["steps"])  # between the reading and what is usual
    4621
    >>> store.close()
    """

    id: str
    arm: str
    probability: float | None  # of this arm; None where it was forced and no probability was told
    probabilities: dict[str, float]  # with which the agent takes each arm that might be chosen
    denoised: dict[str, float]  # the context as it is believed to be
    sd: dict[str, float]  # how uncertain that is: standard deviations
    number: int  # of the decision, from 0
    shadow: dict[str, dict[str, Any]] = {}  # what other agents would have done  # noqa: RUF012


class Receipt(NamedTuple):
    """What became of something reported.

    >>> import unfog
    >>> store = unfog.live.open("walks.unfog")
    >>> channel = {"context_mean": [7000], "context_cov": 4e6, "noise_cov": 1e6, "bias_cov": 4e6}
    >>> walks = store.problem("walks", context=["steps"], arms=["send", "wait"], channel=channel, seed=1)
    >>> d = walks.decide({"steps": 1648})
    >>> walks.reward(d.id, 1.0).learnt
    True
    >>> store.close()
    """

    seq: int  # its number in the log
    outcome: str  # learnt, kept, waits, late, ignored, noted, void, done
    words: str  # the same in words

    @property
    def learnt(self) -> bool:
        """Whether the belief has changed by it already."""
        return self.outcome == "learnt"


def ask(
    made: Made,
    context: Any,
    unit: object = None,
    arms: Any = None,
    at: object = None,
    noise: Any = None,
    forced: object = None,
    probability: object = None,
) -> Ask:
    """The request, checked."""
    request: dict[str, Any] = {"context": context_of("context", context, made.terms.context)}
    if unit is not None:
        request["unit"] = validation.check_name("unit", unit)
    if arms is not None:
        request["arms"] = _arms(arms)
    if at is not None:
        request["at"] = _time(at)
    if noise is not None:
        request["noise"] = validation.covariance("noise", noise, len(made.terms.context)).tolist()
    if forced is not None:
        request["forced"] = validation.check_name("forced", forced)
    if probability is not None:
        request["given"] = _probability(probability, forced)
    return read(made, request)


def context_of(
    field: str, value: Any, coordinates: Sequence[str], whole: bool = True
) -> dict[str, float | None]:
    """A context by name: from a mapping, a sequence or an array; None for what was lost, or is not known.

    Unless it need not be `whole`, every coordinate is named.
    """
    if isinstance(value, Mapping):
        for name in value:
            if name not in coordinates:
                raise InputError(f"{field}.{name}", "no such coordinate", ", ".join(coordinates))
        missing = [name for name in coordinates if name not in value] if whole else []
        if missing:
            raise InputError(f"{field}.{missing[0]}", "missing", "a number, or None where it was lost")
        given = {name: value[name] for name in coordinates if name in value}
    else:
        given = dict(zip(coordinates, _row(field, value, len(coordinates)), strict=True))
    return {name: one if _is_plain(one) else _number_of(field, name, one) for name, one in given.items()}


def _is_plain(value: Any) -> bool:
    """Whether it is a number that may stand as it is: most are."""
    return type(value) is float and -LARGEST <= value <= LARGEST


def _number_of(field: str, name: str, value: Any) -> float | None:
    return None if value is None else number(f"{field}.{name}", value, "a finite number, or None")


def _row(field: str, value: Any, size: int) -> list[Any]:
    """As many values as there are coordinates."""
    allowed = f"a mapping by name, or {size} values"
    if isinstance(value, np.ndarray):
        value = value.reshape(-1).tolist() if value.shape in ((size,), (1, size)) else None
    if isinstance(value, str | bytes) or not isinstance(value, Sequence) or len(value) != size:
        raise InputError(field, shown(value), allowed)
    return list(value)


def number(field: str, value: object, allowed: str = "a finite number") -> float:
    """A finite number that is no truth value and no text."""
    found = value if type(value) is float else _float(field, value, allowed)
    if not -LARGEST <= found <= LARGEST:
        raise InputError(field, shown(value), f"{allowed}, at most {LARGEST:g} in size")
    return found


def _float(field: str, value: object, allowed: str) -> float:
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise InputError(field, shown(value), allowed)
    try:
        return float(value)
    except OverflowError:
        raise InputError(field, value, allowed) from None


def _arms(given: Any) -> Any:
    """Names, or names with vectors."""
    found = validation.check_arms("arms", given)
    return found if isinstance(given, Mapping) else list(found)


def _time(at: object) -> float:
    allowed = "a number, or a datetime with its time zone"
    try:
        if isinstance(at, datetime) and at.tzinfo is None:
            raise InputError("at", f"{at.isoformat()} has no time zone", allowed)
        return at.timestamp() if isinstance(at, datetime) else number("at", at, allowed)
    except (OverflowError, OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError("at", shown(at), allowed) from None


def _probability(value: object, forced: object) -> float:
    allowed = "a number above 0 and at most 1, and only where an arm is forced"
    found = number("probability", value, allowed)
    if forced is None or not 0 < found <= 1:
        raise InputError("probability", shown(value), allowed)
    return found


def read(made: Made, request: dict[str, Any]) -> Ask:
    """The request as a round wants it; it was checked before it was written."""
    told = request["context"]  # whose order is the caller's, where it comes from elsewhere
    values = [told[name] for name in made.terms.context]
    lost = None in values
    raw = np.array([[np.nan if x is None else x for x in values]] if lost else [values])
    noisy, mask = made.units.read(raw), None
    if lost:
        if made.terms.channel is None:
            first = next(name for name, x in request["context"].items() if x is None)
            allowed = "a number: without a channel nothing says what it would have been"
            raise InputError(f"context.{first}", None, allowed)
        here = ~np.isnan(raw)
        noisy, mask = np.where(here, noisy, 0.0), here.astype(np.float64)
    given, noise = request.get("arms"), request.get("noise")
    return Ask(
        request,
        noisy,
        mask,
        request.get("unit", ""),
        None if given is None else list(given),
        given if isinstance(given, dict) else None,
        request.get("at"),
        None if noise is None else made.units.noise(np.asarray([noise])),
    )


def several(field: str, asked: Any) -> list[dict[str, Any]]:
    """Mappings of what a decision is asked for with."""
    found = validation.as_list(field, asked, "a list of mappings, one for each decision")
    for i, one in enumerate(found):
        if not isinstance(one, Mapping):
            raise InputError(f"{field}[{i}]", shown(one), f"a mapping with {', '.join(ASKED)}")
        for name in one:
            if name not in ASKED:
                raise InputError(f"{field}[{i}].{name}", "no such field", ", ".join(ASKED))
        if "context" not in one:
            raise InputError(f"{field}[{i}].context", "missing", "the context of a decision")
    return [dict(one) for one in found]


@contextmanager
def in_place(field: str) -> Iterator[None]:
    """Complaints say which of several requests they are of."""
    try:
        yield
    except InputError as error:
        raise type(error).prefixed(field, error) from None


def refuse_keys(field: str, keys: Sequence[object], asks: Sequence[Ask]) -> None:
    """Complain of a key that stands for two requests of one batch."""
    first: dict[object, Ask] = {}
    for i, (key, ask) in enumerate(zip(keys, asks, strict=True)):
        if key is not None and first.setdefault(key, ask).request != ask.request:
            raise Conflict(f"{field}[{i}].key", shown(key), "a key for each request of a batch")


def decision(
    id_: str, body: Mapping[str, Any], probabilities: dict[str, float], shadows: dict[str, dict[str, Any]]
) -> Decision:
    """From the event of a decision."""
    return Decision(
        id_,
        body["arm"],
        body["probability"],
        probabilities,
        body["denoised"],
        body["sd"],
        body["number"],
        shadows,
    )


def receipt(seq: int, outcome: str) -> Receipt:
    """With its words."""
    return Receipt(seq, outcome, WORDS[outcome])
