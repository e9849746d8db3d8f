"""What the service does, a row an operation. Routes, scopes and the description are made of these rows."""

from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple

from unfog.serve import bodies, changes, looks, transfers, verbs
from unfog.serve.calls import Call

PROBLEM = "/v1/problems/{name}"
DECISION = PROBLEM + "/decisions/{id}"
ONCE = ("decide", "reward", "reveal", "void")  # that take the header Idempotency-Key
FEW = 100  # arms that come with a decision, as names or as vectors: more of them take long


class Done(Enum):
    """Where an operation is done."""

    WRITER = "by the writer of the store, in turn"
    BESIDE = "in a thread beside it: it takes long"


class Operation(NamedTuple):
    """One row."""

    id: str
    method: str
    path: str
    scope: str  # which a key must have: decide, report, read, admin
    work: Callable[[Call], Any]
    body: type[bodies.Body] | None = None
    done: Done = Done.WRITER
    query: tuple[str, ...] = ()
    lines: bool = False  # NDJSON in or out
    empty: bool = False  # whether the body may be left out
    names: bool = False  # whether the body names the problem
    bulk: bool = False  # whether it may be as large as a log
    alone: bool = False  # whether one at a time is enough for the machine

    def short(self, body: Any) -> bool:
        """Whether it takes less than some milliseconds, in a problem in which others do."""
        if isinstance(body, bodies.Ask):
            return not isinstance(body.arms, list | dict) or len(body.arms) <= FEW
        return isinstance(body, bodies.Reward | bodies.Reveal | bodies.Void)

    @property
    def large(self) -> bool:
        """Whether its body may be as large as a log."""
        return self.bulk or (self.lines and self.method == "POST")

    @property
    def summary(self) -> str:
        """In a sentence."""
        return (self.work.__doc__ or "").split("\n")[0]


OPERATIONS = (
    Operation("decide", "POST", f"{PROBLEM}/decide", "decide", verbs.decide, bodies.Ask),
    Operation("reward", "POST", f"{DECISION}/reward", "report", verbs.reward, bodies.Reward),
    Operation("reveal", "POST", f"{DECISION}/reveal", "report", verbs.reveal, bodies.Reveal),
    Operation("void", "POST", f"{DECISION}/void", "report", verbs.void, bodies.Void, empty=True),
    Operation("rewards", "POST", f"{PROBLEM}/rewards", "report", verbs.reward_many, bodies.Rewards),
    Operation("about", "GET", PROBLEM, "read", looks.about),
    Operation("pending", "GET", f"{PROBLEM}/pending", "read", looks.pending),
    Operation("fingerprint", "GET", f"{PROBLEM}/fingerprint", "read", looks.fingerprint),
    Operation("belief", "GET", f"{PROBLEM}/belief", "read", looks.belief, query=("unit",)),
    Operation(
        "expected",
        "GET",
        f"{PROBLEM}/expected",
        "read",
        looks.expected,
        query=("context", "unit", "arms", "at", "noise"),
    ),
    Operation(
        "history",
        "GET",
        f"{PROBLEM}/history",
        "read",
        looks.history,
        done=Done.BESIDE,
        query=("unit", "points"),
    ),
    Operation("diagnostics", "GET", f"{PROBLEM}/diagnostics", "read", looks.diagnostics),
    Operation(
        "events",
        "GET",
        f"{PROBLEM}/events",
        "read",
        transfers.events,
        done=Done.BESIDE,
        query=("since", "limit"),
        lines=True,
    ),
    Operation(
        "take_in", "POST", f"{PROBLEM}/events", "admin", transfers.take_in, done=Done.BESIDE, lines=True
    ),
    Operation("make", "POST", "/v1/problems", "admin", changes.make, bodies.Terms, names=True),
    Operation(
        "take_in_table",
        "POST",
        f"{PROBLEM}/table",
        "admin",
        transfers.take_in_table,
        bodies.Table,
        done=Done.BESIDE,
        bulk=True,
    ),
    Operation("arms", "POST", f"{PROBLEM}/arms", "admin", changes.arms, bodies.Change),
    Operation("freeze", "POST", f"{PROBLEM}/freeze", "admin", changes.freeze, bodies.Freeze),
    Operation("shadow", "POST", f"{PROBLEM}/shadow", "admin", changes.shadow, bodies.Shadow),
    Operation(
        "replay",
        "POST",
        f"{PROBLEM}/replay",
        "admin",
        transfers.replay,
        bodies.Replay,
        done=Done.BESIDE,
        empty=True,
        alone=True,
    ),
    Operation("erase", "POST", "/v1/erase", "admin", changes.erase, bodies.Erase),
    Operation(
        "backup", "POST", "/v1/backup", "admin", transfers.backup, bodies.Backup, done=Done.BESIDE, empty=True
    ),
)
