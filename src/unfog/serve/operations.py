"""The table of operations, and an example of each.

Routes, scopes and the OpenAPI document are generated from these rows. All that is special about an operation
is in its row: no other code depends on which one it is. The examples work one after another, in this order,
on an empty store: `ID` stands for the id of the last decision, `LOG` for the exported log.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from unfog.serve import handlers, schemas
from unfog.serve.errors import JSON, LINES
from unfog.serve.responses import Call

READING = ("context", "unit", "arms", "measured_at", "noise_sd", "noise_cov")
PROBLEM = "/v1/problems/{name}"
DECISION = PROBLEM + "/decisions/{id}"
FEW = 100  # arms in a request for a decision, as names or vectors: more of them take long
ID = "0-1a2b3c4d"
NAME = "walks"
LOG = "(the lines that GET /v1/problems/walks/events has answered)\n"


class Operation(NamedTuple):
    """A row of the table."""

    work: Callable[[Call], Any]
    path: str
    scope: str  # which a key must have: decide, report, read, admin
    body: type[schemas.Body] | None = None
    several: type[schemas.Body] | None = None  # the body of a batch, which may also be a list
    query: tuple[str, ...] = ()
    short: Callable[[Any], bool] = lambda _: False  # whether this body takes a few milliseconds at most
    beside: bool = False  # whether it takes long, and runs beside the writer of the store
    alone: bool = False  # whether only one may run at a time
    lines: bool = False  # NDJSON in or out
    large: bool = False  # whether the body may be as large as a log
    empty: bool = False  # whether the body may be left out
    once: bool = False  # whether it takes the header Idempotency-Key
    problem_field: str = ""  # the field of the body that names the problem, if the address does not
    everywhere: bool = False  # whether it applies to all problems if none is named
    may_create: bool = False  # whether the problem need not exist yet
    created_field: str = ""  # the field of the answer that says whether to use status 201
    refused: tuple[int, ...] = ()  # statuses besides those of its method, scope and address

    @property
    def id(self) -> str:
        """Its name in metrics and in the OpenAPI document."""
        return self.work.__name__

    @property
    def method(self) -> str:
        """GET for the scope read, otherwise POST."""
        return "GET" if self.scope == "read" else "POST"

    @property
    def kind(self) -> str:
        """The content type of a successful answer."""
        return LINES if self.lines and self.method == "GET" else JSON

    @property
    def summary(self) -> str:
        """One sentence on what it does."""
        return (self.work.__doc__ or "").split("\n")[0]

    def problem(self, name: str, body: Any) -> str:
        """The problem that the address or the body names, or ""."""
        return name or (self.problem_field and getattr(body, self.problem_field)) or ""

    def status(self, answer: Any) -> int:
        """The status of a successful answer."""
        return 201 if self.created_field and answer[self.created_field] else 200


def _few_arms(body: schemas.DecisionRequest | schemas.DecisionRequests) -> bool:
    if isinstance(body, schemas.DecisionRequests):
        return False
    return not isinstance(body.arms, list | dict) or len(body.arms) <= FEW


REPORT: dict[str, Any] = {"once": True, "short": lambda _: True}  # of operations that report on one decision

OPERATIONS = (
    Operation(
        handlers.decide,
        f"{PROBLEM}/decide",
        "decide",
        schemas.DecisionRequest,
        schemas.DecisionRequests,
        once=True,
        short=_few_arms,
    ),
    Operation(handlers.reward, f"{DECISION}/reward", "report", schemas.Reward, **REPORT),
    Operation(handlers.reveal, f"{DECISION}/reveal", "report", schemas.Reveal, **REPORT),
    Operation(handlers.cancel, f"{DECISION}/cancel", "report", schemas.Cancel, **REPORT, empty=True),
    Operation(handlers.rewards, f"{PROBLEM}/rewards", "report", schemas.Rewards),
    Operation(handlers.describe, PROBLEM, "read"),
    Operation(handlers.pending, f"{PROBLEM}/pending", "read"),
    Operation(handlers.state_hash, f"{PROBLEM}/state_hash", "read"),
    Operation(handlers.belief, f"{PROBLEM}/belief", "read", query=("unit",)),
    Operation(
        handlers.predict_rewards,
        f"{PROBLEM}/predict_rewards",
        "read",
        query=READING,
    ),
    Operation(handlers.history, f"{PROBLEM}/history", "read", beside=True, query=("unit", "points")),
    Operation(handlers.diagnostics, f"{PROBLEM}/diagnostics", "read"),
    Operation(
        handlers.events, f"{PROBLEM}/events", "read", beside=True, query=("since", "limit"), lines=True
    ),
    Operation(
        handlers.import_events,
        f"{PROBLEM}/events",
        "admin",
        beside=True,
        lines=True,
        large=True,
        may_create=True,
    ),
    Operation(
        handlers.create,
        "/v1/problems",
        "admin",
        schemas.CreateProblemBody,
        problem_field="name",
        may_create=True,
        created_field="created",
    ),
    Operation(
        handlers.import_decisions,
        f"{PROBLEM}/decisions/import",
        "admin",
        schemas.Table,
        beside=True,
        large=True,
        refused=(410,),
    ),
    Operation(handlers.arms, f"{PROBLEM}/arms", "admin", schemas.Change),
    Operation(handlers.pin, f"{PROBLEM}/pin", "admin", schemas.PinArm),
    Operation(handlers.shadow, f"{PROBLEM}/shadow", "admin", schemas.Shadow),
    Operation(
        handlers.replay, f"{PROBLEM}/replay", "admin", schemas.Replay, beside=True, empty=True, alone=True
    ),
    Operation(handlers.erase, "/v1/erase", "admin", schemas.Erase, problem_field="problem", everywhere=True),
    Operation(handlers.backup, "/v1/backup", "admin", schemas.Backup, beside=True, empty=True),
)


class Example(NamedTuple):
    """The body and the query of an example."""

    body: Any = None
    query: dict[str, str] = {}  # noqa: RUF012


EXAMPLES: dict[str, Example] = {
    "create": Example(
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
            "reward_window": "1h",
        }
    ),
    "decide": Example({"context": {"steps": 1648, "sleep": None}, "unit": "ann", "key": "ann-monday"}),
    "pending": Example(),
    "reward": Example({"value": 1.5}),
    "rewards": Example({"rewards": {ID: 1.5}}),
    "reveal": Example({"context": {"steps": 2100}}),
    "describe": Example(),
    "belief": Example(query={"unit": "ann"}),
    "predict_rewards": Example(query={"context": '{"steps": 3000, "sleep": 6.5}', "unit": "ann"}),
    "diagnostics": Example(),
    "history": Example(query={"points": "500"}),
    "state_hash": Example(),
    "events": Example(query={"since": "0", "limit": "100"}),
    "import_events": Example(LOG),
    "import_decisions": Example({"table": "steps,sleep,arm,probability,reward\n5200,7.5,send,0.5,1\n"}),
    "arms": Example({"add": ["call"], "retire": ["wait"]}),
    "pin": Example({"arm": "send"}),
    "shadow": Example({"agent": "naive"}),
    "replay": Example({"verify": True}),
    "cancel": Example({}),
    "erase": Example({"unit": "ann"}),
    "backup": Example({"name": "monday.unfog"}),
}
