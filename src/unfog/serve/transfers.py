"""Logs out and in, copies, and replays: what takes long, and is done beside the writer of a store."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from io import StringIO
from itertools import islice
from typing import Any

from unfog.live.errors import Conflict, StoreError, reason
from unfog.live.schema import LAST
from unfog.live.spreadsheet import from_table
from unfog.serve.bodies import Backup, Replay, Table
from unfog.serve.calls import Call
from unfog.serve.changes import refuse_name
from unfog.serve.refusals import Refused
from unfog.validation import InputError

LINES = 500  # of a log that are read at a time


def events(call: Call) -> Iterator[bytes]:
    """The log after an event, as NDJSON."""
    since = call.number("since", 0, LAST, 0)
    limit = call.number("limit", 0, LAST, LAST) if "limit" in call.query else None
    lines = (json.dumps(event, allow_nan=False) + "\n" for event in call.store.events(call.name, since))
    return _chunks(islice(lines, limit))


def _chunks(lines: Iterator[str]) -> Iterator[bytes]:
    while chunk := "".join(islice(lines, LINES)):
        yield chunk.encode()


def take_in(call: Call) -> dict[str, Any]:
    """Take in a log that was exported, under the name in the address; what is there is passed over."""
    name, text = refuse_name("name", call.name), call.body
    new = call.store.take_in(text.splitlines(), name, modules=call.settings.modules)
    return {"problem": name, "events": new}


def take_in_table(call: Call) -> dict[str, Any]:
    """Take in decisions that were made elsewhere, from a table; where a row is refused, so are all."""
    body: Table = call.body
    return {"problem": call.name, "decisions": from_table(call.problem, StringIO(body.table, newline=""))}


def backup(call: Call) -> dict[str, Any]:
    """Copy the store into the operator's folder for copies, while it goes on."""
    body: Backup = call.body
    folder = call.settings.backups
    if folder is None:
        raise Refused(409, "No folder for copies was set: start the service with --backups FOLDER.")
    name = body.name or f"{call.store.path.stem}-{_now()}.unfog"
    target = folder / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        call.store.log.backup(target)
        size = target.stat().st_size
    except Conflict:
        raise Conflict("name", repr(name), "a name that no copy has yet") from None
    except (OSError, InputError) as error:
        raise StoreError(f"there is no copy at {target}: {reason(error)}") from error
    return {"name": name, "bytes": size}


def _now() -> str:
    """So fine that two copies of one second have names of their own; they sort by time."""
    return datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")


def replay(call: Call) -> dict[str, Any]:
    """Read the log of a problem from its beginning, and hold what is remembered against it."""
    body: Replay = call.body
    found = call.store.replay(verify=body.verify, problem=call.name)
    return {"problem": call.name, **found[call.name]._asdict()}
