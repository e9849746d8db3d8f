"""What answers look like, as JSON Schema: one an operation, of few parts."""

from typing import Any, TypeAlias

from unfog.live.answers import WORDS

Schema: TypeAlias = dict[str, Any]

TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
WHOLE: Schema = {"type": "integer"}
TRUTH: Schema = {"type": "boolean"}


def or_null(kind: Schema) -> Schema:
    """It, or nothing."""
    return {"anyOf": [kind, {"type": "null"}]}


def listed(kind: Schema) -> Schema:
    """Several."""
    return {"type": "array", "items": kind}


def by_name(kind: Schema) -> Schema:
    """One for each name."""
    return {"type": "object", "additionalProperties": kind}


def whole(more: bool = False, **fields: Schema) -> Schema:
    """An object with all of these fields; with others as well, where there may be more."""
    return {
        "type": "object",
        "properties": fields,
        "required": list(fields),
        "additionalProperties": more,
    }


def ref(name: str) -> Schema:
    """One of the components."""
    return {"$ref": f"#/components/schemas/{name}"}


_DECISION = whole(
    id=TEXT,
    arm=TEXT,
    probability=or_null(NUMBER),
    probabilities=by_name(NUMBER),
    denoised=by_name(NUMBER),
    sd=by_name(NUMBER),
    number=WHOLE,
)
_DECISION["properties"]["shadow"] = {"type": "object", "description": "What shadows would have done."}
_ABOUT = {
    "name": TEXT,
    "agent": TEXT,
    "context": listed(TEXT),
    "arms": listed(TEXT),
    "retired": listed(TEXT),
    "frozen": or_null(TEXT),
    "shadows": listed(TEXT),
    "units": listed(TEXT),
    "units_total": WHOLE,
    "note": or_null(TEXT),
    "decisions": WHOLE,
    "decisions_today": WHOLE,
    "rewards": WHOLE,
    "pending": WHOLE,
    "alarm": listed(TEXT),
}
_GLANCE = whole(
    name=TEXT,
    agent=or_null(TEXT),
    decisions=or_null(WHOLE),
    decisions_today=or_null(WHOLE),
    pending=or_null(WHOLE),
    alarm=listed(TEXT),
    error=or_null(TEXT),
)
_PROBLEM = whole(type=TEXT, title=TEXT, status=WHOLE, detail=TEXT)
_PROBLEM["properties"] |= {
    "field": {"type": "string", "description": "Which field is wrong."},
    "value": {"type": "string", "description": "What it was."},
    "allowed": {"type": "string", "description": "What it may be."},
}

COMPONENTS: dict[str, Schema] = {
    "Decision": _DECISION,
    "Receipt": whole(seq=WHOLE, outcome={"enum": list(WORDS)}, words=TEXT),
    "About": whole(more=True, **_ABOUT),
    "Glance": _GLANCE,
    "DataSet": whole(more=True, dims=by_name(listed(TEXT)), coordinates={"type": "object"})
    | {"description": "Variables by name, each by the names along its `dims`; null for not a number."},
    "Problem": _PROBLEM | {"description": "Why nothing was done: problem JSON, RFC 9457."},
}

ANSWERS: dict[str, Schema] = {
    "decide": {"anyOf": [ref("Decision"), whole(decisions=listed(ref("Decision")))]},
    "reward": ref("Receipt"),
    "reveal": ref("Receipt"),
    "void": ref("Receipt"),
    "rewards": whole(receipts=by_name(ref("Receipt"))),
    "about": ref("About"),
    "pending": whole(pending=listed(TEXT)),
    "fingerprint": whole(fingerprint=TEXT),
    "belief": ref("DataSet"),
    "expected": ref("DataSet"),
    "diagnostics": ref("DataSet"),
    "history": whole(
        more=True,
        problem=TEXT,
        unit=or_null(TEXT),
        coordinates=listed(TEXT),
        arms=listed(TEXT),
        decisions=WHOLE,
        kept=WHOLE,
        points=by_name({}),
        worth=by_name({}),
        rewards=by_name({}),
        shares=by_name({}),
        shadow=by_name({}),
        tracks=by_name({}),
    ),
    "take_in": whole(problem=TEXT, events=WHOLE),
    "take_in_table": whole(problem=TEXT, decisions=WHOLE),
    "make": whole(more=True, made=TRUTH, **_ABOUT),
    "arms": ref("Receipt"),
    "freeze": ref("Receipt"),
    "shadow": ref("Receipt"),
    "replay": whole(problem=TEXT, events=WHOLE, decisions=WHOLE, verified=WHOLE, same=TRUTH),
    "erase": whole(decisions=by_name(WHOLE)),
    "backup": whole(name=TEXT, bytes=WHOLE),
    "problems": whole(problems=listed(ref("Glance"))),
    "health": whole(status={"const": "ok"}),
    "readiness": whole(status={"const": "ready"}, broken=WHOLE),
    "description": {"type": "object"},
}
