"""The table of operations, and an example of each.

Routes, scopes and the OpenAPI document are made from these rows. The examples work one after another, in this
order, on an empty store: `ID` stands for the id of the last decision, `LOG` for the exported log.
"""

from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple

from unfog.serve import handlers, schemas
from unfog.serve.responses import Call

PROBLEM = "/v1/problems/{name}"
DECISION = PROBLEM + "/decisions/{id}"
ONCE = ("decide", "reward", "reveal", "void")  # that take the header Idempotency-Key
FEW = 100  # arms that come with a decision, as names or as vectors: more of them take long
ID = "0-1a2b3c4d"
NAME = "walks"
LOG = "(the lines that GET /v1/problems/walks/events has answered)\n"


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
    body: type[schemas.Body] | None = None
    done: Done = Done.WRITER
    query: tuple[str, ...] = ()
    lines: bool = False  # NDJSON in or out
    empty: bool = False  # whether the body may be left out
    names: bool = False  # whether the body names the problem
    bulk: bool = False  # whether it may be as large as a log
    alone: bool = False  # whether one at a time is enough for the machine

    def short(self, body: Any) -> bool:
        """Whether it takes less than some milliseconds, in a problem in which others do."""
        if isinstance(body, schemas.Ask):
            return not isinstance(body.arms, list | dict) or len(body.arms) <= FEW
        return isinstance(body, schemas.Reward | schemas.Reveal | schemas.Void)

    @property
    def large(self) -> bool:
        """Whether its body may be as large as a log."""
        return self.bulk or (self.lines and self.method == "POST")

    @property
    def summary(self) -> str:
        """In a sentence."""
        return (self.work.__doc__ or "").split("\n")[0]


OPERATIONS = (
    Operation("decide", "POST", f"{PROBLEM}/decide", "decide", handlers.decide, schemas.Ask),
    Operation("reward", "POST", f"{DECISION}/reward", "report", handlers.reward, schemas.Reward),
    Operation("reveal", "POST", f"{DECISION}/reveal", "report", handlers.reveal, schemas.Reveal),
    Operation("void", "POST", f"{DECISION}/void", "report", handlers.void, schemas.Void, empty=True),
    Operation("rewards", "POST", f"{PROBLEM}/rewards", "report", handlers.reward_many, schemas.Rewards),
    Operation("about", "GET", PROBLEM, "read", handlers.about),
    Operation("pending", "GET", f"{PROBLEM}/pending", "read", handlers.pending),
    Operation("fingerprint", "GET", f"{PROBLEM}/fingerprint", "read", handlers.fingerprint),
    Operation("belief", "GET", f"{PROBLEM}/belief", "read", handlers.belief, query=("unit",)),
    Operation(
        "expected",
        "GET",
        f"{PROBLEM}/expected",
        "read",
        handlers.expected,
        query=("context", "unit", "arms", "at", "noise"),
    ),
    Operation(
        "history",
        "GET",
        f"{PROBLEM}/history",
        "read",
        handlers.history,
        done=Done.BESIDE,
        query=("unit", "points"),
    ),
    Operation("diagnostics", "GET", f"{PROBLEM}/diagnostics", "read", handlers.diagnostics),
    Operation(
        "events",
        "GET",
        f"{PROBLEM}/events",
        "read",
        handlers.events,
        done=Done.BESIDE,
        query=("since", "limit"),
        lines=True,
    ),
    Operation(
        "take_in", "POST", f"{PROBLEM}/events", "admin", handlers.take_in, done=Done.BESIDE, lines=True
    ),
    Operation("make", "POST", "/v1/problems", "admin", handlers.make, schemas.Terms, names=True),
    Operation(
        "take_in_table",
        "POST",
        f"{PROBLEM}/table",
        "admin",
        handlers.take_in_table,
        schemas.Table,
        done=Done.BESIDE,
        bulk=True,
    ),
    Operation("arms", "POST", f"{PROBLEM}/arms", "admin", handlers.arms, schemas.Change),
    Operation("freeze", "POST", f"{PROBLEM}/freeze", "admin", handlers.freeze, schemas.Freeze),
    Operation("shadow", "POST", f"{PROBLEM}/shadow", "admin", handlers.shadow, schemas.Shadow),
    Operation(
        "replay",
        "POST",
        f"{PROBLEM}/replay",
        "admin",
        handlers.replay,
        schemas.Replay,
        done=Done.BESIDE,
        empty=True,
        alone=True,
    ),
    Operation("erase", "POST", "/v1/erase", "admin", handlers.erase, schemas.Erase),
    Operation(
        "backup", "POST", "/v1/backup", "admin", handlers.backup, schemas.Backup, done=Done.BESIDE, empty=True
    ),
)


class Example(NamedTuple):
    """What is asked with."""

    body: Any = None
    query: dict[str, str] = {}  # noqa: RUF012


EXAMPLES: dict[str, Example] = {
    "make": Example(
        {
            "name": NAME,
            "context": ["steps", "sleep"],
            "arms": ["send", "wait"],
            "channel": {
                "context_mean": [6000, 7],
                "context_cov": [4e6, 1],
                "noise_cov": [1e6, 0.25],
                "bias_cov": [4e6, 0.1],
            },
            "wait": "1h",
        }
    ),
    "decide": Example({"context": {"steps": 1648, "sleep": None}, "unit": "ann", "key": "ann-monday"}),
    "pending": Example(),
    "reward": Example({"value": 1.5}),
    "rewards": Example({"rewards": {ID: 1.5}}),
    "reveal": Example({"context": {"steps": 2100}}),
    "about": Example(),
    "belief": Example(query={"unit": "ann"}),
    "expected": Example(query={"context": '{"steps": 3000, "sleep": 6.5}', "unit": "ann"}),
    "diagnostics": Example(),
    "history": Example(query={"points": "500"}),
    "fingerprint": Example(),
    "events": Example(query={"since": "0", "limit": "100"}),
    "take_in": Example(LOG),
    "take_in_table": Example({"table": "steps,sleep,arm,probability,reward\n5200,7.5,send,0.5,1\n"}),
    "arms": Example({"add": ["call"], "retire": ["wait"]}),
    "freeze": Example({"arm": "send"}),
    "shadow": Example({"agent": "naive"}),
    "replay": Example({"verify": True}),
    "void": Example({}),
    "erase": Example({"unit": "ann"}),
    "backup": Example({"name": "monday.unfog"}),
}
