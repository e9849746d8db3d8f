"""A process whose eight threads decide and report on one store, to be killed: decider.py PATH number.

Each call is acknowledged by one line of JSON on the standard output, once it has returned.
"""

import itertools
import json
import os
import random
import sys
import threading
from pathlib import Path
from typing import Any

import unfog
from unfog.live import Store, cache
from unfog.live.problem import Problem
from unfog.validation import InputError

AGENTS = {"walks": "unfog", "naps": "late"}
TERMS: dict[str, Any] = {
    "context": ["steps", "sleep"],
    "arms": ["send", "wait", "ask"],
    "channel": {
        "context_mean": [3000.0, 7.0],
        "context_cov": [[1e6, 300.0], [300.0, 1.0]],
        "noise_cov": [[5e5, 0.0], [0.0, 0.5]],
        "bias_cov": [[2e5, 0.0], [0.0, 0.2]],
    },
    "seed": 7,
    "reward_window": 300,
    "default_reward": 0.0,
    "reward_aggregation": "sum",
    "context_window": 900,
}


def opened(path: Path, clock: Any) -> Store:
    """The store of these tests, with its two problems."""
    store = unfog.live.open(path, clock=clock)
    for name, agent in AGENTS.items():
        store.problem(name, agent=agent, **TERMS)
    return store


def called(problem: Problem, verb: str, given: dict[str, Any]) -> list[Any]:
    """The answer of one call, as JSON has it."""
    return json.loads(json.dumps([*getattr(problem, verb)(**given)]))


def asked(chance: random.Random, open_: list[str], key: str) -> tuple[str, dict[str, Any]]:
    """Any call, with this key where it takes one; decisions it is about are those of the thread."""
    verb = chance.choices(["decide", "reward", "reveal", "cancel", "arms"], [40, 30, 20, 5, 5])[0]
    if verb == "arms":
        verb = chance.choices(["retire_arm", "restore_arm", "add_arm"], [5, 5, 1])[0]
        return verb, {"arm": f"arm {key}" if verb == "add_arm" else "ask"}
    if verb == "decide" or not open_:
        context = {"steps": chance.gauss(3000, 1500), "sleep": chance.choice([None, chance.gauss(7, 1)])}
        unit = chance.choice([None, "ann", "bob", "cy"])
        return "decide", {"context": context, "unit": unit, "key": key}
    about: dict[str, Any] = {"decision": chance.choice(open_[-20:]), "key": key}
    if verb == "reward":
        about["value"] = chance.gauss(0, 1)
    if verb == "reveal":
        about["context"] = chance.choice([{"steps": 2500.0}, {"sleep": 6.5}, {"steps": 2500.0, "sleep": 6.5}])
    return verb, about


def work(store: Store, number: int, thread: int) -> None:
    chance = random.Random(1000 * number + thread)
    made: dict[str, list[str]] = {name: [] for name in AGENTS}
    for i in itertools.count():
        name = chance.choice([*AGENTS])
        verb, given = asked(chance, made[name], f"{number}-{thread}-{i}")
        try:
            answer = called(store.problem(name), verb, given)
        except InputError:
            continue  # a cancelled decision, or an arm that is gone already
        if verb == "decide":
            made[name].append(answer[0])
        # One short write to a pipe is never torn.
        os.write(1, (json.dumps([name, verb, given, answer]) + "\n").encode())


def main(path: Path, number: int) -> None:
    cache.SNAPSHOT_EVERY = 60
    ticks = itertools.count(1e5 * number)
    store = opened(path, lambda: next(ticks))
    for thread in range(8):
        threading.Thread(target=work, args=(store, number, thread)).start()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
