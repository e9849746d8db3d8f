"""Kill a process of eight threads at random moments, and hold the file against what it acknowledged."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.live import decider
from tests.live.rows import WRITER, contents
from unfog.live import snapshot
from unfog.live.store import Store

DECIDER = Path(decider.__file__)


def killed_again_and_again(path: Path, kills: int, chance: random.Random) -> int:
    """How many rows were acknowledged, all of which were found, once, under their numbers."""
    acknowledged: dict[int, str] = {}
    for kill in range(kills):
        command = [str(WRITER), str(path), "threads", str(kill)]
        for line in lines_until_killed(command, chance.uniform(0.0, 0.25)):
            seq, key = line.split()
            assert int(seq) not in acknowledged
            acknowledged[int(seq)] = key
        rows = contents(path)
        assert [row.seq for row in rows] == list(range(1, len(rows) + 1))
        assert len({(row.problem, row.key) for row in rows}) == len(rows)
        keys = {row.seq: row.key for row in rows}
        assert {seq: keys.get(seq) for seq in acknowledged} == acknowledged
    return len(acknowledged)


def lines_until_killed(command: list[str], after: float) -> list[str]:
    """What a process said until it was killed, some seconds after its first acknowledgement."""
    with subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        time.sleep(after)
        os.kill(process.pid, signal.SIGKILL)
        return (first + process.stdout.read()).decode().splitlines()


def deciders_killed(path: Path, kills: int, chance: random.Random) -> dict[str, int]:
    """How many calls were acknowledged, by verb, all of which were found; and how many starts were quick."""
    acknowledged: list[list[Any]] = []
    quick = 0
    for kill in range(kills):
        command = [str(DECIDER), str(path), str(kill)]
        said = [json.loads(line) for line in lines_until_killed(command, chance.uniform(0.0, 0.5))]
        acknowledged += said
        with decider.opened(path, lambda: 0.0) as store:
            whole = {name: len([*store.events(name)]) for name in store.names()}
            quick += sum(
                snapshot.restore_state(store.processor.log, name, store.processor.made(name))[1] < whole[name]
                for name in whole
            )
            check_events(store, acknowledged)
            for name, found in store.replay(verify=True).items():
                assert found.same, name
                assert found.verified == found.decisions
            check_again(store, chance.sample(said, min(40, len(said))))
    verbs = [verb for _, verb, _, _ in acknowledged]
    return {verb: verbs.count(verb) for verb in verbs} | {"from a snapshot": quick}


def check_events(store: Store, acknowledged: list[list[Any]]) -> None:
    """Every acknowledged call is one event, with what it answered; no event is there twice."""
    events = {name: [*store.events(name)] for name in store.names()}
    everything = [event for found in events.values() for event in found]
    assert sorted(event["seq"] for event in everything) == [*range(1, len(everything) + 1)]
    for name, found in events.items():
        keys = [event["key"] for event in found if event["key"] is not None]
        assert len(set(keys)) == len(keys)
        decided = [event["decision"] for event in found if event["kind"] == "decide"]
        assert len(set(decided)) == len(decided)
        expired = [
            event["decision"] for event in found if event["kind"] == "expire" and event["expired"] == "reward"
        ]
        assert len(set(expired)) == len(expired)
        by_seq = {event["seq"]: event for event in found}
        by_key = {event["key"]: event for event in found}
        for problem, verb, given, answer in acknowledged:
            if problem == name:
                event = by_key.get(given["key"]) if "key" in given else by_seq.get(answer[0])
                check_answer(event, verb, given, answer)


def check_answer(event: dict[str, Any] | None, verb: str, given: dict[str, Any], answer: list[Any]) -> None:
    """The event of a call says what was asked, and what was answered."""
    assert event is not None, (verb, given, answer)
    asked = {
        name: given.get(name) for name in ("context", "unit", "value", "decision", "key") if name in given
    }
    assert {name: event.get(name) for name in asked} == asked
    if verb == "decide":
        kept = [event[name] for name in ("decision", "arm", "probability", "denoised", "sd", "number")]
        assert kept == [*answer[:3], *answer[4:7]]
    else:
        assert event["kind"] == ("arms" if verb.endswith("_arm") else verb)
        assert [event["seq"], event["outcome"]] == answer[:2]


def check_again(store: Store, calls: list[list[Any]]) -> None:
    """Calls that are repeated with their keys have the answers they had, and write nothing."""
    last = store.processor.log.last
    for name, verb, given, answer in calls:
        if "key" in given:
            assert decider.called(store.problem(name), verb, given) == answer
    assert store.processor.log.last == last
