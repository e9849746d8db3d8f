"""What a caller is told when something is not done: problem JSON, RFC 9457.

    400 it is no JSON      401 no key          403 not with this key       404 there is no such thing
    405 not this method    408 too slow        409 a conflict              410 closed for this
    413 too large          415 not such a body 422 a field is wrong        429 too fast
    503 not now: ask again

`type` is "about:blank", so that `title` says what the status says; `detail` is a sentence. Where a field is
wrong `field`, `value` and `allowed` say which, what it was, and what it may be.
"""

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple

from unfog.live.errors import Conflict, Gone, StoreError, Unknown
from unfog.serve import wording
from unfog.serve.strict import Malformed
from unfog.validation import InputError

SOON = 1  # seconds after which to ask again

ALLOWED = "; allowed: "  # in the words of an InputError, after its value


class Refused(Exception):
    """Not done, for a reason that has a status.

    >>> import unfog
    >>> error = unfog.serve.Refused(429, "too many requests")
    >>> error.status, str(error)
    (429, 'too many requests')
    """

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        """What to say, and what more to say in headers."""
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, dict(headers or {})


class Refusal(NamedTuple):
    """As it is sent."""

    status: int
    body: dict[str, Any]
    headers: dict[str, str]


def busy(detail: str, seconds: int = SOON) -> Refused:
    """Nothing was done; it may be asked again."""
    return Refused(503, detail, {"Retry-After": str(seconds)})


def given_up() -> Refusal:
    """Nobody waits for what was asked for any longer; it may have been done."""
    said = "The service stops; it is not known whether this was done."
    return Refusal(503, _said(503, said), {"Retry-After": str(SOON), "Connection": "close"})


def refusal(error: Exception, folders: Iterable[Path] | None = None) -> Refusal | None:
    """Of an error, what to say; None where it is a mistake of ours. Callers are told without `folders`."""
    if isinstance(error, Refused):
        return Refusal(error.status, _said(error.status, error.detail), error.headers)
    if isinstance(error, Malformed):
        return Refusal(400, _said(400, f"The body cannot be read: {wording.of_json(str(error))}."), {})
    if isinstance(error, InputError):
        status = _status(error)
        before, mark, allowed = str(error).rpartition(ALLOWED)
        more = {"field": error.field, "value": _short(error), "allowed": wording.as_json(error.allowed)}
        return Refusal(status, _said(status, before + mark + wording.as_json(allowed)) | more, {})
    if isinstance(error, StoreError):
        said = str(error) if folders is None else wording.told(str(error), folders)
        return Refusal(503, _said(503, said), {"Retry-After": str(SOON)})
    return None


def discreet(error: Exception) -> Exception:
    """Without the names of other problems and units, for callers who may not know of them."""
    if isinstance(error, Unknown) and error.field == "unit":
        return Unknown("unit", error.value, error.allowed, "")
    if isinstance(error, Unknown) and error.field == "name":
        return Unknown("name", error.value, "a problem that there is: GET /v1/problems lists them")
    return error


def words(error: Exception) -> str:
    """An error in a sentence, its folders included; of a mistake of ours its kind alone."""
    found = refusal(error)
    return f"it failed with {type(error).__name__}" if found is None else str(found.body["detail"])


def _status(error: InputError) -> int:
    if isinstance(error, Conflict):
        return 409
    if isinstance(error, Gone):
        return 410
    return 404 if isinstance(error, Unknown) else 422


def _short(error: InputError) -> str:
    """The value as the sentence has it: `field: value; allowed: ...`, without the name that was meant."""
    said = str(error).removeprefix(f"{error.field}: ").rsplit(ALLOWED, 1)[0]
    return said.removesuffix(error.asks)


def _said(status: int, detail: str) -> dict[str, Any]:
    return {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": detail}


def mistake() -> Refusal:
    """Of a mistake of ours it is told only that it is one: its words may hold what is nobody's business."""
    return Refusal(500, _said(500, "This is a mistake of the service; its log says more."), {})
