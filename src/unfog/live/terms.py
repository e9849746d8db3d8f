"""What a live problem is: everything a caller says of it when it is made, checked and written down.

The terms are the first event of a problem's log, as JSON. They are read back from there whenever the problem
is opened, so that what was written is what is used.
"""

import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from unfog import validation
from unfog.agents.agent import Agent
from unfog.agents.catalogue import EVERY
from unfog.channel import channel as channels
from unfog.channel.channel import Channel
from unfog.features.link import KINDS
from unfog.live import durations
from unfog.live.reference import fingerprint, path_of
from unfog.validation import LARGEST, InputError

COMBINE = ("last", "first", "sum", "mean", "max", "min")
LEARN = ("at_once", "after_wait")
LARGEST_SEED = 2**63 - 1


class Terms(NamedTuple):
    """The terms, as they are used."""

    context: tuple[str, ...]  # names of the coordinates
    arms: dict[str, Any]  # name -> vector, or None where arms have none
    arm_size: int | None  # how many numbers an arm has, where arms come with each decision
    features: str
    rewards: str
    reward_var: float | None
    reward_range: tuple[float, float] | None
    prior_mean: Any
    prior_cov: Any
    channel: Channel | None
    standardise: bool
    agent: str
    seed: int
    floor: float
    wait: float | None  # seconds
    default_reward: float | None
    learn: str
    combine: str
    reveal_within: float | None  # seconds
    fingerprints: dict[str, str]
    uid: str  # of this problem, for ids of its decisions

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> "Terms":
        """From JSON."""
        told = {name: body[name] for name in cls._fields}
        told["context"] = tuple(told["context"])
        if told["reward_range"] is not None:
            told["reward_range"] = tuple(told["reward_range"])
        if told["channel"] is not None:
            told["channel"] = channels.channel(told["channel"], told["context"])
        return cls(**told)

    def check_reward(self, field: str, value: object) -> float:
        """A reward that may be paid."""
        return paid(field, value, self.rewards, self.reward_range)


def paid(field: str, value: object, rewards: str, reward_range: Sequence[float] | None) -> float:
    """A reward that may be paid."""
    allowed = "0 or 1" if rewards == "bernoulli" else "a number"
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise InputError(field, validation.shown(value), allowed)
    low, high = reward_range or (-LARGEST, LARGEST)
    try:
        found = float(value)
    except OverflowError:
        raise InputError(field, value, allowed) from None
    if not low <= found <= high or (rewards == "bernoulli" and found not in (0.0, 1.0)):
        validation.check_reward(field, np.asarray(found), rewards, low, high)
    return found


def _numbers(field: str, value: Any, told: Mapping[str, Any]) -> Any:  # noqa: ARG001
    """Checked once the size of theta is known: live/made.py."""
    return validation.numbers(field, value, "a number, a list or a matrix of numbers").tolist()


def _range(field: str, value: Any, told: Mapping[str, Any]) -> list[float] | None:
    if value is None:
        return None
    allowed = "None, or two numbers: the least and the largest reward"
    if told["rewards"] == "bernoulli":
        raise InputError(field, value, "None: rewards are 0 or 1")
    found = validation.numbers(field, value, allowed)
    if found.shape != (2,) or not found[0] < found[1]:
        raise InputError(field, value, allowed)
    return [float(x) for x in found]


def _reward_var(field: str, value: Any, told: Mapping[str, Any]) -> float | None:
    if told["rewards"] == "bernoulli":
        if value is not None:
            raise InputError(field, value, "None: rewards of 0 or 1 have no variance of their own")
        return None
    return validation.positive(field, 1.0 if value is None else value)


def _channel(field: str, value: Any, told: Mapping[str, Any]) -> dict[str, Any] | None:  # noqa: ARG001
    return None if value is None else channels.channel(value, told["context"]).written()


def _agent(field: str, value: Any, told: Mapping[str, Any]) -> str:  # noqa: ARG001
    return value.name if isinstance(value, Agent) and is_row(value) else path_of(field, value)


def _features(field: str, value: Any, told: Mapping[str, Any]) -> str:  # noqa: ARG001
    return "product" if isinstance(value, str) and value == "linear" else path_of(field, value)


def _seed(field: str, value: Any, told: Mapping[str, Any]) -> int:  # noqa: ARG001
    return secrets.randbits(32) if value is None else validation.count(field, value, 0, LARGEST_SEED)


def _share(field: str, value: Any, told: Mapping[str, Any]) -> float:  # noqa: ARG001
    if validation.not_negative(field, value) > 1:
        raise InputError(field, value, "a number from 0 to 1")
    return float(value)


def _default_reward(field: str, value: Any, told: Mapping[str, Any]) -> float | None:
    if value is None:
        return None
    if told["wait"] is None:
        raise InputError(field, value, "None without a wait after which it would be learnt")
    return paid(field, value, told["rewards"], told["reward_range"])


def _learn(field: str, value: Any, told: Mapping[str, Any]) -> str:
    if value is None:
        return "at_once" if told["default_reward"] is None else "after_wait"
    if validation.one_of(field, value, LEARN) == "after_wait" and told["wait"] is None:
        raise InputError(field, repr(value), "'at_once' without a wait")
    if value == "at_once" and told["default_reward"] is not None:
        raise InputError(field, repr(value), "'after_wait' where a default reward is set")
    return str(value)


def _combine(field: str, value: Any, told: Mapping[str, Any]) -> str:
    if validation.one_of(field, value, COMBINE) not in ("last", "first") and told["learn"] == "at_once":
        raise InputError(field, repr(value), "'last' or 'first', unless learn is 'after_wait'")
    if value in ("sum", "mean") and told["rewards"] == "bernoulli":
        raise InputError(field, repr(value), "one of which rewards of 0 or 1 come: last, first, max, min")
    return str(value)


FIELDS: dict[str, Callable[[str, Any, Mapping[str, Any]], Any]] = {
    "context": lambda field, value, _: validation.check_coordinates(field, value),
    "arms": lambda field, value, told: validation.check_arms(field, value, told),
    "arm_size": lambda field, value, _: None if value is None else validation.count(field, value, 1, 10_000),
    "features": _features,
    "rewards": lambda field, value, _: validation.one_of(field, value, KINDS),
    "reward_var": _reward_var,
    "reward_range": _range,
    "prior_mean": _numbers,
    "prior_cov": _numbers,
    "channel": _channel,
    "standardise": lambda field, value, _: validation.flag(field, value),
    "agent": _agent,
    "seed": _seed,
    "floor": _share,
    "wait": lambda field, value, _: durations.seconds(field, value),
    "default_reward": _default_reward,
    "learn": _learn,
    "combine": _combine,
    "reveal_within": lambda field, value, _: durations.seconds(field, value),
}
UNLESS_TOLD: dict[str, Any] = {
    **dict.fromkeys(("arms", "arm_size", "reward_var", "reward_range", "channel", "seed", "wait")),
    **dict.fromkeys(("default_reward", "learn")),
    "features": "per_arm",
    "rewards": "gaussian",
    "prior_mean": 0.0,
    "prior_cov": 1.0,
    "standardise": True,
    "agent": "unfog",
    "floor": 0.05,
    "combine": "last",
    "reveal_within": "7d",
}


def written(given: Mapping[str, Any]) -> dict[str, Any]:
    """The terms as JSON, from what a caller gives: every field checked, and what is left out filled in."""
    refuse_unknown(given)
    if "context" not in given:
        raise InputError("context", "not given", "a list of names, one for each coordinate")
    told: dict[str, Any] = {}
    for name, rule in FIELDS.items():
        told[name] = rule(name, given.get(name, UNLESS_TOLD.get(name)), told)
    return {**told, "fingerprints": _fingerprints(told), "uid": secrets.token_hex(8)}


def refuse_unknown(given: Mapping[str, Any]) -> None:
    """Name the first field that there is not."""
    for name in given:
        if name not in FIELDS:
            raise InputError(str(name), "no such field", ", ".join(FIELDS))


def refuse_other(body: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Complain of what is given and is not as the problem was made."""
    refuse_unknown(given)
    for name, value in given.items():
        if value is None and name in ("seed", "learn", "reward_var"):
            continue  # as it was drawn, or followed from the rest
        now = FIELDS[name](name, value, body)
        was = body[name]
        if name == "channel" and isinstance(now, dict) and isinstance(was, dict):
            now = {part: now.get(part) for part in was}
        if now != was or (name == "arms" and list(now) != list(was)):
            raise InputError(name, value, f"as it was when the problem was made: {_shown(was)}")
    prints = _fingerprints(body)
    for name, was in body["fingerprints"].items():
        if prints.get(name) != was:
            raise InputError(name, f"{body[name]} has changed", "the code with which the problem was made")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _fingerprints(told: Mapping[str, Any]) -> dict[str, str]:
    """Of what is the caller's own."""
    found = {name: fingerprint(name, told[name]) for name in ("features", "agent") if ":" in told[name]}
    return {name: value for name, value in found.items() if value is not None}


def is_row(agent: Agent) -> bool:
    """Whether it is the row of the catalogue that has its name."""
    return EVERY.get(agent.name) == agent
