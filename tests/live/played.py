"""Everything that can happen to a live problem, at random, the same again from the same numbers."""

import copy
import json
import random
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import unfog
from unfog.channel.knowledge import Knowledge
from unfog.live.problem import Problem
from unfog.live.store import Store
from unfog.validation import InputError

SKEW, NOISE = [[1.0, 0.3], [0.3, 1.0]], [[0.9, -0.3], [-0.3, 0.7]]
NAMES = ["steps", "sleep"]
VECTORS = {"send": [1.0, 0.5], "wait": [-0.5, 1.0], "ask": [0.2, -1.0]}
VERBS = {"decide": 45, "reward": 28, "reveal": 15, "cancel": 4, "arms": 6, "pin": 2}


def channel(agent: str, rewards: str = "numeric") -> Knowledge:
    """What this agent has to be told of contexts and readings."""
    row = unfog.AGENTS.get(agent.partition(":")[0])
    needs = {*row.denoiser.needs_knowledge} if row is not None else set()
    if "dynamics" in needs:
        return unfog.TemporalProblem(dim=2, actions=3, features="per_arm").knowledge()
    more = (
        {"prior_contexts": 40}
        if "sample" in needs
        else {"prior_noisy_contexts": 60}
        if "mixture" in needs
        else {}
    )
    made = unfog.GaussianProblem if rewards == "numeric" else unfog.LogisticProblem
    told: dict[str, Any] = {"dim": 2, "actions": 3, "features": "per_arm", **more}
    return made(**told, context_cov=SKEW, noise_cov=NOISE, bias_cov=[0.4, 1.2]).knowledge()


def terms(agent: str, rewards: str = "numeric", **more: Any) -> dict[str, Any]:
    """Those of a problem in which much can happen."""
    told: dict[str, Any] = {"context": NAMES, "arms": [*VECTORS], "rewards": rewards, "agent": agent}
    told |= {"channel": channel(agent, rewards), "seed": 5, "reward_window": 40, "context_window": 120}
    return told | more


class Player:
    """Calls on a problem at random times; of a store that was copied, the same calls again."""

    def __init__(self, seed: int, units: bool = True, grows: bool = False) -> None:
        """Before the first call."""
        self.chance, self.units, self.grows = random.Random(seed), units, grows
        self.time, self.made, self.answers = 1000.0, list[str](), list[Any]()
        self.done = Counter[str]()

    def again(self) -> "Player":
        """One that will do the same from here on."""
        return copy.deepcopy(self)

    def open(self, path: Path) -> Store:
        """A store whose clock is the player's."""
        return unfog.live.open(path, sync="normal", clock=lambda: self.time)

    def play(self, problem: Problem, calls: int) -> None:
        """So many calls; what is refused is an answer, too."""
        for _ in range(calls):
            self.time += self.chance.choice([0.0, 0.5, 1.0, 6.0])
            verb, given = self.next(problem)
            try:
                answer = getattr(problem, verb)(**given)
            except InputError as error:
                self.answers.append(str(error))
                continue
            if verb == "decide":
                self.made.append(answer.id)
            self.done[verb] += 1
            self.answers.append(json.dumps(answer))

    def next(self, problem: Problem) -> tuple[str, dict[str, Any]]:
        """The next call."""
        chance = self.chance
        verb = chance.choices([*VERBS], [*VERBS.values()])[0]
        if verb == "arms":
            return self._arms(problem)
        if verb == "pin":
            return chance.choice([("pin_arm", {"arm": "ask"}), ("unpin_arm", {}), ("unpin_arm", {})])
        if verb == "decide" or not self.made:
            return "decide", self._asked(problem)
        given: dict[str, Any] = {"decision": chance.choice(self.made[-12:])}
        if verb == "reward":
            numeric = problem.terms.rewards == "numeric"
            given["value"] = chance.gauss(0, 1) if numeric else float(chance.randrange(2))
        if verb == "reveal":
            true = {name: chance.gauss(0, 1) for name in NAMES}
            given["context"] = dict(chance.sample([*true.items()], chance.choice([1, 2])))
        return verb, given

    def _asked(self, problem: Problem) -> dict[str, Any]:
        chance, known = self.chance, problem.terms.channel is not None
        gaps = [chance.random() < 0.15 and known for _ in NAMES]
        given: dict[str, Any] = {"context": [None if gap else chance.gauss(0.3, 1.4) for gap in gaps]}
        if self.units:
            given["unit"] = chance.choice(["ann", "bob", "cy"])
        if chance.random() < 0.1:
            given["arms"] = chance.sample([*VECTORS], 2)
        if chance.random() < 0.1:
            given |= {"logged_arm": chance.choice([*VECTORS]), "probability": 0.5}
        if chance.random() < 0.2:
            given["noise_cov"] = [[0.5, 0.1], [0.1, 0.8]]
        return given | {"measured_at": self.time - chance.choice([0.0, 0.0, 3.0])}

    def _arms(self, problem: Problem) -> tuple[str, dict[str, Any]]:
        verb = self.chance.choice(["retire_arm", "retire_arm", "restore_arm", *["add_arm"] * self.grows])
        if verb != "add_arm":
            return verb, {"arm": self.chance.choice(["send", "wait"])}
        given: dict[str, Any] = {"arm": f"arm {self.chance.randrange(1000)}"}
        if problem.terms.features != "per_arm":
            given["vector"] = [self.chance.gauss(0, 1) for _ in NAMES]
        return verb, given


def copied(store: Store, to: Path) -> Path:
    """The files as they are, the store being open.

    By a process of its own: whoever opens and closes a file loses the locks that its process has on it.
    """
    to.mkdir()
    subprocess.run(["cp", "-r", f"{store.path.parent}/.", str(to)], check=True)
    return to / store.path.name
