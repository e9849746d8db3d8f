"""What can be seen of a problem: itself, its past, what is believed, whether it works."""

from collections.abc import Iterator
from typing import Any

from unfog.live.named import whole
from unfog.live.ring import MOST
from unfog.serve import pieces, strict
from unfog.serve.calls import Call
from unfog.validation import InputError

POINTS = 2000  # decisions that are told one by one, unless told


def about(call: Call) -> dict[str, Any]:
    """The problem itself: its arms, units, shadows and counts."""
    return call.problem.about()


def history(call: Call) -> Iterator[bytes]:
    """What happened, of all units or of one: decisions, rewards, shares of arms, how beliefs went."""
    points = call.number("points", 1, MOST, POINTS)
    return pieces.written(call.problem.history(call.query.get("unit"), points))


def pending(call: Call) -> dict[str, Any]:
    """Decisions whose reward may still come, oldest first."""
    return {"pending": call.problem.pending()}


def fingerprint(call: Call) -> dict[str, Any]:
    """A hash of all that is remembered: two services with the same one will decide the same."""
    return {"fingerprint": call.problem.fingerprint()}


def belief(call: Call) -> dict[str, Any]:
    """What is believed of the bias of a unit, of theta, and of what may be wrong with the channel."""
    return whole(call.problem.belief(call.query.get("unit")))


def expected(call: Call) -> dict[str, Any]:
    """What each arm would be expected to earn in a context; nothing is decided or learnt."""
    asked = {name: _value(name, text) for name, text in call.query.items()}
    return whole(call.problem.expected(asked.pop("context", None), **asked))


def _value(field: str, text: str) -> Any:
    """What a part of the query says: a unit as it is, the rest as JSON."""
    try:
        return text if field == "unit" else strict.read(text.encode())
    except strict.Malformed as error:
        raise InputError(field, text, f"JSON ({error})") from None


def diagnostics(call: Call) -> dict[str, Any]:
    """Whether it works: readings against the channel, rewards against what was said, arms, pending."""
    return whole(call.problem.diagnostics())
