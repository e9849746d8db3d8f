"""A loop of one's own over an environment, as a user writes it."""

from typing import Any

import numpy as np

from unfog.adapters.simulation import Choice, Decider
from unfog.maths.arrays import Array


def played(env: Any, decider: Decider, noisy: Array, info: dict[str, Any]) -> tuple[list[int], Array]:
    """The arms of an episode, and cumulative regret."""
    made, arms, regret, over = dict[int, Choice](), list[int](), list[float](), False
    while not over:
        whose, when = info.get("unit", ""), info.get("time")
        choice = decider.decide(noisy, measured=info.get("measured"), unit=whose, time=when)
        made[info["round"]] = choice
        noisy, reward, _, over, info = env.step(choice.arm)
        decider.learn(choice, reward)
        arms.append(choice.arm)
        regret.append(info["regret"])
        if "revealed" in info:
            decider.reveal(made[info["revealed"]["round"]], info["revealed"]["context"])
    return arms, np.cumsum(regret)
