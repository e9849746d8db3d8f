"""From an answer that says no to the exception that a store would have raised: refusals.py backwards."""

import json
from typing import Any

from unfog.live.errors import Conflict, Gone, StoreError, Unknown
from unfog.serve import wording
from unfog.serve.refusals import Refused
from unfog.validation import InputError

OF_A_FIELD: dict[int, type[InputError]] = {404: Unknown, 409: Conflict, 410: Gone, 422: InputError}
HOW_TO_TELL = "Tell a key of this service in the environment variable UNFOG_KEY."


def raised(status: int, body: bytes) -> Exception:
    """What to raise."""
    told = _problem(body)
    kind = OF_A_FIELD.get(status)
    if kind is not None and all(isinstance(told.get(part), str) for part in ("field", "value", "allowed")):
        return kind(told["field"], told["value"], wording.as_python(told["allowed"]))
    said = str(told.get("detail") or f"The service answered with status {status}.")
    if status == 429 or status >= 500:
        return StoreError(said)
    return Refused(status, f"{said} {HOW_TO_TELL}" if status == 401 else said)


def _problem(body: bytes) -> dict[str, Any]:
    """Problem JSON; whatever stands between us and the service may answer in its own way."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
