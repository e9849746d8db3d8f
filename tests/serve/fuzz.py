"""Requests drawn at random, good ones with something in them that may not belong there."""

import http.client
import json
import random
from collections import Counter
from typing import Any
from urllib.parse import quote

from tests.serve.running import Running
from unfog.live import Store

STATUSES = {200, 201, 400, 404, 405, 409, 410, 413, 415, 422}
RAW = (
    *("NaN", "1e999", "-Infinity", "1e308", "5e-324", "1" + "0" * 400, "-1", "0.5", "true", "null", '""'),
    *('" "', '"1"', '"a"', '"\\u0000"', '"\\ud800"', '"\\u202e"', '"é"', "[]", "{}", "[[]]", "[null]", "[1]"),
    *('[1, "2"]', "[[1, 2], [2, 1]]", '{"steps": 1}', '{"steps": 1, "sleep": {}}', '{"a": 1, "a": 2}', "1e"),
    *('{"send": [1, 2]}', '["send"]', '["send", "send"]', '"send"', '"naive"', '"os:system"', "2", "1e15"),
    *('"' + "k" * 5000 + '"', "[" * 50 + "]" * 50, "[" * 5000, "-0.0", "0", '"ann"', '"7d"', '"nan"'),
    *("9007199254740993", "[1, 2]", "{", "]"),
)
BODIES: dict[str, dict[str, str]] = {
    "decide": {
        "context": '{"steps": 1, "sleep": 2}',
        "unit": '"ann"',
        "key": '"k"',
        "arms": '["send", "wait"]',
    },
    "rewards": {"rewards": "{}"},
    "decisions/ID/reward": {"value": "1", "key": '"r"'},
    "decisions/ID/reveal": {"context": '{"steps": 1}', "key": '"s"'},
    "decisions/ID/cancel": {"key": '"v"'},
    "arms": {"add": '["new"]', "retire": "[]", "restore": "[]"},
    "pin": {"arm": "null"},
    "shadow": {"agent": '"naive"', "remove": "false"},
    "replay": {"verify": "false"},
}
MORE = ("measured_at", "noise_sd", "noise_cov", "logged_arm", "probability", "requests", "what", "name", "")
LOOKS = ("belief", "predict_rewards", "diagnostics", "events", "history", "")
QUERIES = ("unit", "context", "since", "limit", "arms", "measured_at", "points", "noise_sd", "noise_cov", "x")


def made(dice: random.Random, ids: list[str]) -> tuple[str, str, str]:
    """Method, path and body."""
    name = dice.choice(["walks"] * 9 + ["nobody", "%00", "..", "%E2%80%AE", "a%2Fb"])
    if dice.random() < 0.2:
        query = "&".join(
            f"{dice.choice(QUERIES)}={quote(dice.choice(RAW)[:200])}" for _ in range(dice.randrange(3))
        )
        return (
            "GET",
            f"/v1/problems/{name}/{dice.choice(LOOKS)}".rstrip("/") + ("?" + query) * bool(query),
            "",
        )
    verb = dice.choice([*BODIES])
    fields = dict(BODIES[verb]) if dice.random() < 0.9 else {}
    for _ in range(dice.choice([0, 1, 1, 1, 2])):
        fields[dice.choice([*fields, dice.choice(MORE)])] = dice.choice(RAW)
    if "key" in fields and dice.random() < 0.7:
        fields["key"] = json.dumps(f"k{dice.randrange(10**6)}")
    path = verb.replace("ID", dice.choice([*ids, "nobody"]))
    body = "{" + ", ".join(f"{json.dumps(name)}: {value}" for name, value in fields.items()) + "}"
    method = dice.choice(["POST"] * 30 + ["PUT", "GET", "DELETE"])
    return (
        method,
        f"/v1/problems/{name}/{path}",
        body if dice.random() < 0.97 else body[: dice.randrange(len(body))],
    )


def thrown(found: Running, port: int, number: int, dice: random.Random) -> Counter[int]:
    """So many requests; how often each status came. What is refused changes nothing."""
    (store,) = found.service.open_stores.stores()
    live = store.problem("walks")
    ids = [found.http.post("/v1/problems/walks/decide", json=one).json()["id"] for one in _good()]
    connection, told = http.client.HTTPConnection("127.0.0.1", port, timeout=30), Counter[int]()
    before, last = live.state_hash(), store.processor.log.last
    for i in range(number):
        method, path, body = made(dice, ids)
        connection.request(method, path, body.encode("utf-8", "surrogatepass"), _headers(dice))
        answer = connection.getresponse()
        said = answer.read()
        told[answer.status] += 1
        assert answer.status in STATUSES, (method, path, body, answer.status, said)
        if answer.status < 300:
            _unpin(live)
            before, last = "", store.processor.log.last
            continue
        problem: dict[str, Any] = json.loads(said)
        assert problem["status"] == answer.status, (method, path, body)
        assert store.processor.log.last == last, (method, path, body)
        if i % 10 == 0:  # the log is as it was, and what is remembered is what was, or what the log says
            before = before or _replayed(store)
            assert live.state_hash() == before, (method, path, body)
    connection.close()
    assert store.replay(verify=True)["walks"].same
    return told


def _replayed(store: Store) -> str:
    """A hash of what the log says."""
    assert store.replay()["walks"].same
    return store.problem("walks").state_hash()


def _good() -> list[dict[str, Any]]:
    return [{"context": {"steps": i / 4, "sleep": -1.0}, "unit": "ann"} for i in range(6)]


def _headers(dice: random.Random) -> dict[str, str]:
    kind = dice.choice(["application/json"] * 30 + ["text/plain", "application/x-ndjson"])
    return {"Content-Type": kind} | (
        {"Idempotency-Key": dice.choice(["k", "é", "k" * 300])} if dice.random() < 0.03 else {}
    )


def _unpin(live: Any) -> None:
    """All arms may be chosen again, and nobody watches: so that most requests stay good."""
    state = live.processor.cache.get(live.name)
    for arm, active in state.arms.active.copy().items():
        if not active:
            live.restore_arm(arm)
    if state.arms.pinned is not None:
        live.unpin_arm()
