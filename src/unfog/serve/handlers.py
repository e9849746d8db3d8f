"""The handlers of the operations: each takes a `Call` and returns JSON values, or an iterator of bytes.

The first line of a handler's docstring is the summary of its operation in the OpenAPI document. Decisions,
reports, changes and most looks run in the writer of the store. History, logs, tables, copies and replays take
long and run beside it (serve/operations.py says which).
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from io import StringIO
from itertools import islice
from typing import Any

from unfog import validation
from unfog.live import Decision, Receipt
from unfog.live.backend import LAST
from unfog.live.decision_table import from_table
from unfog.live.errors import ConflictError, StoreError, reason
from unfog.live.history import MOST
from unfog.live.inspection import whole
from unfog.live.transfer import check_modules
from unfog.serve import errors, responses, schemas
from unfog.serve.errors import ServiceError
from unfog.serve.responses import Call
from unfog.serve.schemas import (
    Backup,
    Cancel,
    Change,
    DecisionRequest,
    DecisionRequests,
    Erase,
    PinArm,
    Replay,
    Reveal,
    Reward,
    Rewards,
    Shadow,
    Table,
)
from unfog.validation import InputError

POINTS = 2000  # decisions that a history lists one by one, by default
LINES = 500  # of a log in a chunk


def decide(call: Call) -> dict[str, Any]:
    """Choose an arm for a noisy context, or for several."""
    if isinstance(call.body, DecisionRequests):
        if call.key is not None:
            raise InputError("Idempotency-Key", repr(call.key), "a `key` in each decision of a batch")
        requests = [one.model_dump(exclude_unset=True) for one in call.body.requests]
        return {"decisions": [decision_to_json(one) for one in call.problem.decide_many(requests)]}
    ask: DecisionRequest = call.body
    decision = call.problem.decide(
        ask.context,
        unit=ask.unit,
        arms=ask.arms,
        key=call.once(ask.key),
        measured_at=ask.measured_at,
        noise_sd=ask.noise_sd,
        noise_cov=ask.noise_cov,
        logged_arm=ask.logged_arm,
        probability=ask.probability,
    )
    return decision_to_json(decision)


def reward(call: Call) -> dict[str, Any]:
    """Report what a decision earned."""
    body: Reward = call.body
    return receipt_to_json(call.problem.reward(call.decision, body.value, key=call.once(body.key)))


def rewards(call: Call) -> dict[str, Any]:
    """Report what several decisions earned, in one commit; if one report is refused, none is learnt."""
    body: Rewards = call.body
    receipts = call.problem.reward_many(body.rewards, keys=body.keys)
    return {"receipts": {decision: receipt_to_json(one) for decision, one in receipts.items()}}


def reveal(call: Call) -> dict[str, Any]:
    """Report the true context of a decision, complete or in part."""
    body: Reveal = call.body
    return receipt_to_json(call.problem.reveal(call.decision, body.context, key=call.once(body.key)))


def cancel(call: Call) -> dict[str, Any]:
    """Report that a decision was never carried out, so that nothing is learnt from it."""
    body: Cancel = call.body
    return receipt_to_json(call.problem.cancel(call.decision, key=call.once(body.key)))


def decision_to_json(decision: Decision) -> dict[str, Any]:
    """A decision as JSON; without the field `shadows` if there are none."""
    values = decision._asdict()
    return values if decision.shadows else {name: x for name, x in values.items() if name != "shadows"}


def receipt_to_json(receipt: Receipt) -> dict[str, Any]:
    """A receipt as JSON."""
    return receipt._asdict()


def create(call: Call) -> dict[str, Any]:
    """Create a problem. If it exists, any option you pass must match what it was created with."""
    terms = call.body.model_dump(exclude_unset=True)
    name = check_problem_name("name", terms.pop("name"))
    check_modules({"kind": "problem", **terms}, call.settings.allow_modules)
    exists = name in call.store.names()
    problem = call.store.problem(name, **terms)
    return {"created": not exists, **problem.describe()}


def arms(call: Call) -> dict[str, Any]:
    """Add, retire and restore arms. If one change is impossible, none is made."""
    body: Change = call.body
    vectors = {} if body.add is None else validation.check_arms("add", body.add)
    return receipt_to_json(call.problem.update_arms(add=vectors, retire=body.retire, restore=body.restore))


def pin(call: Call) -> dict[str, Any]:
    """Take one arm from now on, whatever the context; null lets the agent decide again."""
    body: PinArm = call.body
    return receipt_to_json(call.problem.unpin_arm() if body.arm is None else call.problem.pin_arm(body.arm))


def shadow(call: Call) -> dict[str, Any]:
    """Add a shadow, an agent that decides on the same readings without being carried out, or remove one."""
    body: Shadow = call.body
    if body.remove:
        return receipt_to_json(call.problem.remove_shadow(body.agent))
    check_modules({"kind": "shadow", "agent": body.agent}, call.settings.allow_modules)
    return receipt_to_json(call.problem.add_shadow(body.agent))


def erase(call: Call) -> dict[str, Any]:
    """Erase the contexts of a unit, and what was learnt from them, in one problem or in all."""
    body: Erase = call.body
    return {"decisions": call.store.erase(unit=body.unit, problem=body.problem)}


def check_problem_name(field: str, name: str) -> str:
    """Return the name; raise if it cannot be part of an address."""
    if not errors.is_addressable(name):
        raise InputError(field, repr(name), errors.NAMED)
    return validation.check_name(field, name)


def describe(call: Call) -> dict[str, Any]:
    """Describe a problem: its arms, units, shadows and counts."""
    return call.problem.describe()


def history(call: Call) -> Iterator[bytes]:
    """Decisions, rewards, shares of arms and beliefs over time, of all units or of one."""
    points = call.number("points", 1, MOST, POINTS)
    return responses.written(call.problem.history(call.query.get("unit"), points))


def pending(call: Call) -> dict[str, Any]:
    """Decisions whose reward may still come, oldest first."""
    return {"pending": call.problem.pending()}


def state_hash(call: Call) -> dict[str, Any]:
    """A hash of the state. Two services with the same hash will make the same decisions."""
    return {"state_hash": call.problem.state_hash()}


def belief(call: Call) -> dict[str, Any]:
    """The beliefs about the bias of a unit, about theta, and about what may be wrong with the channel."""
    return whole(call.problem.belief(call.query.get("unit")))


def predict_rewards(call: Call) -> dict[str, Any]:
    """The expected reward of each arm in a context. Nothing is decided or learnt."""
    args = {name: _parse_value(name, text) for name, text in call.query.items()}
    return whole(call.problem.predict_rewards(args.pop("context", None), **args))


def _parse_value(field: str, text: str) -> Any:
    """Parse a value of the query: a unit is plain text, the rest is JSON."""
    try:
        return text if field == "unit" else schemas.read(text.encode())
    except errors.InvalidJSONError as error:
        raise InputError(field, text, f"JSON ({error})") from None


def diagnostics(call: Call) -> dict[str, Any]:
    """Whether the problem works well: readings against the channel, rewards against predictions, arms."""
    return whole(call.problem.diagnostics())


def events(call: Call) -> Iterator[bytes]:
    """The events of the log after a given one, as NDJSON."""
    since = call.number("since", 0, LAST, 0)
    limit = call.number("limit", 0, LAST, LAST) if "limit" in call.query else None
    lines = (json.dumps(event, allow_nan=False) + "\n" for event in call.store.events(call.name, since))
    return _chunks(islice(lines, limit))


def _chunks(lines: Iterator[str]) -> Iterator[bytes]:
    while chunk := "".join(islice(lines, LINES)):
        yield chunk.encode()


def import_events(call: Call) -> dict[str, Any]:
    """Import an exported log under the name in the address; events that it has already are skipped."""
    name, text = check_problem_name("name", call.name), call.body
    count = call.store.import_events(text.splitlines(), name, allow_modules=call.settings.allow_modules)
    return {"problem": name, "events": count}


def import_decisions(call: Call) -> dict[str, Any]:
    """Import logged decisions from a table; if one row is refused, all are."""
    body: Table = call.body
    return {"problem": call.name, "decisions": from_table(call.problem, StringIO(body.table, newline=""))}


def backup(call: Call) -> dict[str, Any]:
    """Copy the store, while it is in use, into the folder that the operator chose for copies."""
    body: Backup = call.body
    folder = call.settings.backups
    if folder is None:
        raise ServiceError(409, "No folder for copies was set: start the service with --backups FOLDER.")
    name = body.name or f"{call.store.path.stem}-{_timestamp()}.unfog"
    target = folder / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        call.store.backup(target)
        size = target.stat().st_size
    except ConflictError:
        raise ConflictError("name", repr(name), "a name that no copy has yet") from None
    except (OSError, InputError) as error:
        raise StoreError(f"there is no copy at {target}: {reason(error)}") from error
    return {"name": name, "bytes": size}


def _timestamp() -> str:
    """The time to the microsecond, so that the names of copies differ and sort by time."""
    return datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")


def replay(call: Call) -> dict[str, Any]:
    """Replay the log of a problem from its beginning, and compare the result with the state."""
    body: Replay = call.body
    results = call.store.replay(verify=body.verify, problem=call.name)
    return {"problem": call.name, **results[call.name]._asdict()}
