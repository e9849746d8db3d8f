"""What goes when a unit is erased, and what stays.

Erasing a unit, for instance a person, removes from the log its name, its contexts, noisy and true, what was
computed from them, and the keys that may name it. Arms, probabilities and rewards stay, but nothing says
whose they are. What was learnt from its contexts goes as well: beliefs are rebuilt from the rest of the log,
and an event records that this was done, and when. Past decisions stay as they were made. They cannot be
recomputed for comparison, since their inputs are gone.
"""

import json
from typing import TYPE_CHECKING, Any

from unfog import validation
from unfog.live.backend import Row
from unfog.live.errors import NotFoundError
from unfog.validation import Identifier

if TYPE_CHECKING:
    from unfog.live.processor import Processor

RETAINED_FIELDS = (  # of an erased decision
    "number",
    "arm",
    "probability",
    "agent_probabilities",
    "pinned",
    "logged_probability",
    "outcome",
)


def erase_unit(processor: "Processor", unit: Identifier, only: str | None = None) -> dict[str, int]:
    """Erase a unit in all problems of a store, or in one; the number of its decisions in each."""
    log, cache = processor.log, processor.cache
    with processor.lock, cache.saving:  # no snapshot that still contains the unit may be written afterwards
        log.commit(log.last, log.epoch)
        cache.clear()
        try:
            return _erase(processor, unit, only)
        finally:
            cache.clear()


def _erase(processor: "Processor", unit: Identifier, only: str | None) -> dict[str, int]:
    name, problems = validation.check_identifier("unit", unit), processor.log.names()
    if only is not None:
        processor.made(only)  # raises NotFoundError if there is no such problem
        problems = [only]
    counts: dict[str, int] = {}
    rows: list[Row] = []
    for problem in problems:
        processor.cache.check_not_reserved(problem)
        changed = _without_unit(processor, problem, name)
        if changed:
            rows += changed
            counts[problem] = sum(row.kind == "decide" for row in changed)
    if not counts:
        raise NotFoundError("unit", repr(name), "a unit that decisions were made for")
    rows.sort(key=lambda row: row.seq)
    last = processor.log.last
    for number, (problem, decisions) in enumerate(counts.items(), 1):
        body = json.dumps({"decisions": decisions, "outcome": "done"})
        rows.append(Row(last + number, problem, "erase", None, None, processor.now(problem), body))
    for problem in counts:
        processor.log.discard(problem)
    processor.log.rewrite(rows)
    return counts


def _without_unit(processor: "Processor", problem: str, unit: str) -> list[Row]:
    """The rows of a unit's events, without what is erased."""
    decisions, rows = set[str | None](), []
    for row in processor.log.read(problem):
        body: dict[str, Any] = json.loads(row.body)
        if row.kind == "decide" and body.get("unit") == unit:
            decisions.add(row.decision)
        elif row.decision is None or row.decision not in decisions or row.kind != "reveal":
            if row.decision in decisions and row.key is not None:
                rows.append(row._replace(key=None))
            continue
        retained = {name: body[name] for name in RETAINED_FIELDS if name in body} | {"erased": True}
        rows.append(row._replace(key=None, body=json.dumps(retained)))
    return rows
