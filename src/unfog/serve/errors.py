"""Errors over HTTP: exceptions to problem JSON (RFC 9457) and back, and what is logged of them.

    400 it is no JSON      401 no key          403 not with this key       404 there is no such thing
    405 not this method    408 too slow        409 a conflict              410 closed for this
    413 too large          415 not such a body 422 a field is wrong        429 too fast
    503 not now: retry

`type` is "about:blank", so that `title` is the phrase of the status; `detail` is a sentence. If a field is
wrong, `field`, `value` and `allowed` say which, what it was, and what it may be; `suggestion` what was
probably meant. `refusal` makes this from an
exception; in the client `raised` makes from it the exception that a local store would have raised.

Messages of a store are sent without folders: where files are concerns only the operator, and the log of the
service has the full message. None in Python is null in JSON, and None again for a caller in Python.

An internal error is logged with its type and place (`described`), and with its message only if that cannot
hold values. Messages may contain a context, a unit or a key, which are private. Messages of a store name only
files, problems and rows, and so do those of the disk and the database.

Service and client both take the content types and the JSON encoder from here.
"""

import json
import re
import sqlite3
import traceback
from collections.abc import Iterable, Iterator, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple

from unfog.live.errors import (
    ConflictError,
    DecisionClosedError,
    NotFoundError,
    ReplayMismatchError,
    StoreError,
)
from unfog.live.sqlite_file import reason
from unfog.validation import InputError

JSON = "application/json"
LINES = "application/x-ndjson"
PROBLEM = "application/problem+json"
encode = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode
SOON = 1  # seconds after which to retry
ALLOWED = "; allowed: "  # in the message of an InputError, after its value
NAMED = "a name without a slash, and neither . nor ..: it is part of an address"
FOLDERS = re.compile(r"(?<![^\s'\"(])/(?:[^\s/'\"]+/)+")  # of a path: all that precedes its last part
NONE, NULL = (re.compile(rf"^{word}\b|(?<=, or ){word}\b|(?<=; ){word}\b") for word in ("None", "null"))
FRAMES = 4  # of a traceback, the innermost
OF_A_FIELD: dict[int, type[InputError]] = {
    404: NotFoundError,
    409: ConflictError,
    410: DecisionClosedError,
    422: InputError,
}
HOW_TO_TELL = "Tell a key of this service in the environment variable UNFOG_KEY."


class ServiceError(Exception):
    """A refusal with an HTTP status: nothing was done.

    >>> import unfog
    >>> error = unfog.serve.ServiceError(429, "too many requests")
    >>> error.status, str(error)
    (429, 'too many requests')
    """

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        """The status, the message, and headers of the answer."""
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, dict(headers or {})


class InvalidJSONError(ValueError):
    """The body is not valid JSON, or exceeds a limit; the message is one sentence."""


class Refusal(NamedTuple):
    """An error as it is sent: status, problem JSON and headers."""

    status: int
    body: dict[str, Any]
    headers: dict[str, str]


def busy(detail: str, seconds: int = SOON) -> ServiceError:
    """A refusal with status 503: nothing was done, and the caller may retry."""
    return ServiceError(503, detail, {"Retry-After": str(seconds)})


def refusal(error: Exception, folders: Iterable[Path] | None = None) -> Refusal | None:
    """The answer to an exception; None for an internal error. `folders` are left out of the message."""
    if isinstance(error, ServiceError):
        return Refusal(error.status, _make_body(error.status, error.detail), error.headers)
    if isinstance(error, InvalidJSONError):
        return Refusal(400, _make_body(400, f"The body cannot be read: {error}."), {})
    if isinstance(error, InputError):
        status = _choose_status(error)
        before, mark, allowed = str(error).rpartition(ALLOWED)
        fields: dict[str, Any] = {
            "field": error.field,
            "value": _short_value(error),
            "allowed": as_json(error.allowed),
        }
        fields |= {} if error.near == "" else {"suggestion": error.near}
        return Refusal(status, _make_body(status, before + mark + as_json(allowed)) | fields, {})
    if isinstance(error, StoreError):
        detail = str(error) if folders is None else without_folders(str(error), folders)
        return Refusal(503, _make_body(503, detail), {"Retry-After": str(SOON)})
    return None


def _choose_status(error: InputError) -> int:
    if isinstance(error, ConflictError):
        return 409
    if isinstance(error, DecisionClosedError):
        return 410
    return 404 if isinstance(error, NotFoundError) else 422


def _short_value(error: InputError) -> str:
    """Cut the value out of the message `field: value; allowed: ...`, without a suggested name."""
    text = str(error).removeprefix(f"{error.field}: ").rsplit(ALLOWED, 1)[0]
    return text.removesuffix(error.asks)


def _make_body(status: int, detail: str) -> dict[str, Any]:
    return {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": detail}


def mistake() -> Refusal:
    """Report an internal error without its message, which may contain private data."""
    return Refusal(500, _make_body(500, "This is a mistake of the service; its log says more."), {})


def given_up() -> Refusal:
    """The answer to requests that the service no longer waits for when it stops."""
    detail = "The service stops; it is not known whether this was done."
    return Refusal(503, _make_body(503, detail), {"Retry-After": str(SOON), "Connection": "close"})


def discreet(error: Exception) -> Exception:
    """Leave out the names of other problems and units, for callers who may not know them."""
    if isinstance(error, NotFoundError) and error.field == "unit":
        return NotFoundError("unit", error.value, error.allowed, "")
    if isinstance(error, NotFoundError) and error.field == "name":
        return NotFoundError("name", error.value, "a problem that there is: GET /v1/problems lists them")
    return error


def words(error: Exception) -> str:
    """The message of an error, with folders; for an internal error only its type."""
    answer = refusal(error)
    return f"it failed with {type(error).__name__}" if answer is None else str(answer.body["detail"])


def is_addressable(name: str) -> bool:
    """Whether a name can be a part of an address."""
    return "/" not in name and name not in (".", "..")


def without_folders(text: str, folders: Iterable[Path] = ()) -> str:
    """Reduce paths to names of files; `folders` are known folders, whose names may have spaces."""
    for folder in sorted(map(str, folders), key=len, reverse=True):
        text = text.replace(f"{folder}/", "")
        text = re.sub(rf"{re.escape(folder)}(?![^\s'\":;,])", "its folder", text)
    return FOLDERS.sub("", text)


def as_json(allowed: str) -> str:
    """Replace None by null in a message, for callers who write JSON."""
    return NONE.sub("null", allowed)


def as_python(allowed: str) -> str:
    """Replace null by None in a message, for callers who write Python."""
    return NULL.sub("None", allowed)


def described(error: BaseException) -> str:
    """An error and its causes on one line, for the log."""
    return "; from ".join(map(_describe, _walk_causes(error)))


def _walk_causes(error: BaseException) -> Iterator[BaseException]:
    current: BaseException | None = error
    while current is not None:
        yield current
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)


def _describe(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)[-FRAMES:]
    where = ", ".join(f"{Path(one.filename).name}:{one.lineno}" for one in frames)
    message = _get_message(error)
    return f"{type(error).__name__}{f' ({message})' if message else ''} at {where or 'no place'}"


def _get_message(error: BaseException) -> str:
    if isinstance(error, OSError):
        return error.strerror or "no reason given"
    is_private = isinstance(error, ReplayMismatchError) or not isinstance(error, sqlite3.Error | StoreError)
    return "" if is_private else reason(error)


def raised(status: int, body: bytes) -> Exception:
    """Map an HTTP error to the exception that a local store would raise."""
    problem = _parse_problem(body)
    kind = OF_A_FIELD.get(status)
    if kind is not None and all(isinstance(problem.get(part), str) for part in ("field", "value", "allowed")):
        near = problem.get("suggestion", "")
        near = near if isinstance(near, str | float | int) else ""
        return kind(problem["field"], problem["value"], as_python(problem["allowed"]), near)
    detail = str(problem.get("detail") or f"The service answered with status {status}.")
    if status == 429 or status >= 500:
        return StoreError(detail)
    return ServiceError(status, f"{detail} {HOW_TO_TELL}" if status == 401 else detail)


def _parse_problem(body: bytes) -> dict[str, Any]:
    """Parse problem JSON; {} for any other body, such as that of a proxy."""
    try:
        problem = json.loads(body)
    except ValueError:
        return {}
    return problem if isinstance(problem, dict) else {}
