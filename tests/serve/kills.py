"""Clients that ask a service for all it does while it is killed again and again; and what they hold it to.

A client asks with a key until it has an answer, however often that takes. What it was answered is compared
with the log: it is there once, with the content that was acknowledged. Nobody is ever told otherwise.
"""

import http.client
import random
import threading
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from tests.live.decider import TERMS
from tests.serve.process import Asker, Process, Told

PROBLEMS = {"walks": "unfog", "naps & more": "late"}
ASKED = ("context", "unit", "value", "key", "arm")
KEPT = ("arm", "probability", "denoised", "sd", "number")
VERBS = ("decide", "batch", "reward", "reveal", "cancel", "arms", "pin", "shadow", "look")
SHARES = (34, 6, 25, 15, 4, 3, 2, 3, 8)
LOOKS = ("belief", "diagnostics", "events?since=0&limit=50", "")


class Said(NamedTuple):
    """What was asked for and acknowledged."""

    problem: str
    verb: str
    asked: dict[str, Any]
    answer: dict[str, Any]


class Client(threading.Thread):
    """One of many. `lost` counts answers that never came, after which it asked again."""

    def __init__(self, port: int, number: int, over: threading.Event) -> None:
        super().__init__(daemon=True)
        self.said: list[Said] = []
        self.lost, self.refused, self.wrong = 0, Counter[int](), ""
        self._asker, self._number, self._over = Asker(port), number, over
        self._chance = random.Random(number)
        self._made: dict[str, list[str]] = {name: [] for name in PROBLEMS}
        self._asked = 0

    def run(self) -> None:
        try:
            while not self._over.is_set():
                self._one()
        except Exception as error:  # noqa: BLE001
            self.wrong = repr(error)
        finally:
            self._asker.close()

    def _one(self) -> None:
        chance = self._chance
        problem, verb = chance.choice([*PROBLEMS]), chance.choices(VERBS, SHARES)[0]
        if verb == "look":
            self._until_answered("GET", f"{at(problem)}/{chance.choice(LOOKS)}".rstrip("/"))
            return
        self._asked += 1
        path, asked = self._request(problem, verb, f"{self._number}-{self._asked}")
        found = self._until_answered("POST", path, asked, again=verb not in ("arms", "pin", "shadow"))
        if found is None:
            return
        if found.status != 200:  # nobody asks for a decision that was never made
            assert found.status in (409, 410, 422) or (verb, found.status) == ("shadow", 404), (asked, found)
            return
        self._note(problem, "decide" if "decide" in path else verb, asked, found.body)

    def _note(self, problem: str, verb: str, asked: dict[str, Any], answer: dict[str, Any]) -> None:
        answers = answer["decisions"] if "requests" in asked else [answer]
        for one, told in zip(asked.get("requests", [asked]), answers, strict=True):
            self.said.append(Said(problem, verb, one, told))
            if verb == "decide":
                self._made[problem].append(told["id"])

    def _request(self, problem: str, verb: str, key: str) -> tuple[str, dict[str, Any]]:
        chance, made = self._chance, self._made[problem][-20:]
        if verb in ("arms", "pin", "shadow"):
            return f"{at(problem)}/{verb}", change(verb, chance)
        if verb == "batch":
            many = [{**context(chance), "key": f"{key}-{i}"} for i in range(chance.randint(1, 8))]
            return f"{at(problem)}/decide", {"requests": many}
        if verb == "decide" or not made:
            return f"{at(problem)}/decide", {**context(chance), "key": key}
        body: dict[str, Any] = {"key": key}
        if verb == "reward":
            body["value"] = chance.gauss(0, 1)
        if verb == "reveal":
            body["context"] = chance.choice([{"steps": 2500.0}, {"steps": 2500.0, "sleep": 6.5}])
        return f"{at(problem)}/decisions/{chance.choice(made)}/{verb}", body

    def _until_answered(self, method: str, path: str, body: Any = None, again: bool = True) -> Told | None:
        """Ask until there is an answer; None where the end came first, or where it is not asked again."""
        while not self._over.is_set():
            try:
                found = self._asker.ask(method, path, body)
            except (OSError, http.client.HTTPException):
                self.lost += 1
                time.sleep(0.1)
            else:
                self.refused[found.status] += 1
                if found.status != 503:
                    return found
                time.sleep(0.05)
            if not again:
                return None
        return None


def at(problem: str) -> str:
    return f"/v1/problems/{quote(problem)}"


def context(chance: random.Random) -> dict[str, Any]:
    steps, sleep = chance.gauss(3000, 1500), chance.choice([None, chance.gauss(7, 1)])
    unit = chance.choice([None, "ann", "bob", "cy"])
    return {"context": {"steps": steps, "sleep": sleep}} | ({} if unit is None else {"unit": unit})


def change(verb: str, chance: random.Random) -> dict[str, Any]:
    if verb == "pin":
        return {"arm": chance.choice(["send", None, None])}
    if verb == "shadow":
        return {"agent": "naive", "remove": chance.choice([True, False])}
    return {chance.choice(["retire", "restore"]): ["ask"]}


def killed(path: Path, kills: int, clients: int, chance: random.Random) -> tuple[list[Client], Counter[str]]:
    """Clients at work while the service is killed so often; all of it is checked. How often each verb was
    acknowledged.
    """
    process, over = Process(path, delay=0.01), threading.Event()
    process.start()
    make(process)
    working = [Client(process.port, number, over) for number in range(clients)]
    for client in working:
        client.start()
    try:
        for _ in range(kills):
            time.sleep(chance.uniform(0.1, 0.8))
            process.kill()
            process.start()
            replayed(process, verify=False)
        time.sleep(0.3)
        over.set()
        for client in working:
            client.join()
        said = [one for client in working for one in client.said]
        replayed(process, verify=True)
        check(process, said, chance)
        assert process.stop() == 0
    finally:
        over.set()
        process.end()
    return working, Counter(one.verb for one in said)


def make(process: Process) -> None:
    with closing(Asker(process.port)) as asker:
        for name, agent in PROBLEMS.items():
            terms = {**TERMS, "name": name, "agent": agent, "reward_window": "2s", "context_window": "4s"}
            assert asker.ask("POST", "/v1/problems", terms).status == 201


def replayed(process: Process, verify: bool) -> None:
    """What is remembered is what the log says, to the bit."""
    with closing(Asker(process.port)) as asker:
        for name in PROBLEMS:
            found = asker.ask("POST", f"{at(name)}/replay", {"verify": verify})
            assert found.status == 200, found
            assert found.body["same"], found
            assert not verify or found.body["verified"] == found.body["decisions"], found


def check(process: Process, said: list[Said], chance: random.Random) -> None:
    """All that was acknowledged is in the log, once, as it was; and is answered again as it was."""
    with closing(Asker(process.port)) as asker:
        logs = {name: asker.ask("GET", f"{at(name)}/events").body for name in PROBLEMS}
        for name, events in logs.items():
            check_log(events, [one for one in said if one.problem == name])
        # Rewards go on expiring while logs are read: each log is whole up to the end of the one read first.
        first = max(event["seq"] for event in logs[next(iter(logs))])
        seqs = sorted(event["seq"] for events in logs.values() for event in events)
        assert seqs[:first] == [*range(1, first + 1)]
        for one in chance.sample(said, min(100, len(said))):
            again(asker, one)


def check_log(events: list[dict[str, Any]], said: list[Said]) -> None:
    """Each acknowledged call of a problem has its one event; no key and no decision comes twice."""
    keys = [event["key"] for event in events if event["key"] is not None]
    assert len({*keys}) == len(keys)
    decided = [event["decision"] for event in events if event["kind"] == "decide"]
    assert len({*decided}) == len(decided)
    by_key = {event["key"]: event for event in events}
    by_seq = {event["seq"]: event for event in events}
    for one in said:
        key, seq = one.asked.get("key"), one.answer.get("seq")
        check_one(by_seq.get(seq) if key is None else by_key.get(key), one)
    seqs = [one.answer["seq"] for one in said if "seq" in one.answer]
    assert len({*seqs}) == len(seqs)


def check_one(event: dict[str, Any] | None, one: Said) -> None:
    """The event of a call says what was asked, and what was answered."""
    assert event is not None, one
    asked = {name: one.asked[name] for name in ASKED if name in one.asked}
    assert {name: event.get(name) for name in asked} == asked, (event, one)
    assert event["kind"] == one.verb, (event, one)
    if one.verb == "decide":
        kept = {name: event[name] for name in KEPT}
        assert kept == {name: one.answer[name] for name in KEPT}, (event, one)
        assert event["decision"] == one.answer["id"]
    else:
        assert [event["seq"], event["outcome"]] == [one.answer["seq"], one.answer["outcome"]], (event, one)


def again(asker: Asker, one: Said) -> None:
    """With the same key the same answer."""
    if "key" not in one.asked or one.verb != "decide":
        return
    found = asker.ask("POST", f"{at(one.problem)}/decide", one.asked)
    assert (found.status, found.body) == (200, one.answer), (found, one)
