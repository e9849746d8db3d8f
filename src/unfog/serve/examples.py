"""An example of each operation, in an order in which they work one after another on an empty store.

`ID` stands for the id of the decision that was made last, `LOG` for the log as it was exported.
"""

from typing import Any, NamedTuple

ID = "0-1a2b3c4d"
NAME = "walks"
LOG = "(the lines that GET /v1/problems/walks/events has answered)\n"


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
