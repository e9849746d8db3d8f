"""Reads and writes the feedback dictionary of Open Bandit Pipeline (obp), without obp.

Its fields are n_rounds, n_actions, action, position, reward, pscore, context and action_context; from version
0.5 on also pi_b, the probabilities of all arms, (n, K, 1). Slates have positions: they are refused.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from unfog._table import array, first, number_rows
from unfog.evaluation import log as logs
from unfog.evaluation.log import DecisionLog
from unfog.evaluation.readers.table import even_probabilities
from unfog.maths.arrays import Array
from unfog.validation import InputError, count

MARKS = frozenset({"n_rounds", "n_actions", "action", "reward"})
NUMBERS = "an array of numbers"


def read(
    feedback: Mapping[str, Any],
    arms: Sequence[str] | None,
    coordinates: Sequence[str] | None,
    probability: float | None,
) -> DecisionLog:
    """The log of a dictionary; unless names are given, arms are 0, 1, …, coordinates x0, x1, …."""
    number = count("n_actions", feedback["n_actions"])
    arms = [str(i) for i in range(number)] if arms is None else list(arms)
    if len(arms) != number:
        raise InputError("arms", ", ".join(arms), f"{number} names: n_actions")
    action = _read_action(feedback["action"])
    context = array("context", feedback.get("context"), NUMBERS)
    _check_no_slates(feedback, len(action))
    _check_row_counts(feedback, len(action))
    if context.ndim != 2:
        allowed = f"({len(action)}, d): a row for each round, a column for each coordinate"
        raise InputError("context", f"the shape {context.shape}", allowed)
    names = [f"x{j}" for j in range(context.shape[-1])] if coordinates is None else coordinates
    probabilities = (
        even_probabilities(probability, len(action), len(arms))
        if probability is not None
        else _read_probabilities(feedback)
    )
    log = DecisionLog(
        tuple(names),
        tuple(arms),
        context,
        action.astype(np.intp),
        array("reward", feedback["reward"], NUMBERS),
        _read_probability(feedback, probability, len(action)),
        probabilities,
        source="feedback of obp",
    )
    return logs.check_log(log, number_rows(log.rounds), {"probability": "pscore"})


def _read_action(value: Any) -> Array:
    """The arms that were drawn, by number."""
    action = array("action", value, NUMBERS)
    if action.ndim != 1:
        raise InputError("action", f"the shape {action.shape}", "a number for each round")
    at = first(action != np.round(action))
    if at is not None:
        raise InputError(f"row {at + 1}, action", f"{action[at]:g}", "a whole number: which arm was drawn")
    return action


def _check_no_slates(feedback: Mapping[str, Any], rounds: int) -> None:
    position = feedback.get("position")
    if position is None:
        return
    allowed = "None or 0: slates of several positions are not read"
    if np.shape(position) not in ((), (rounds,)):
        raise InputError("position", f"the shape {np.shape(position)}", f"{allowed}; one for each round")
    positions = np.broadcast_to(np.asarray(position), (rounds,))
    at = first(positions != 0)
    if at is not None:
        raise InputError(f"row {at + 1}, position", f"{positions[at]}", allowed)


def _check_row_counts(feedback: Mapping[str, Any], rounds: int) -> None:
    for name in ("reward", "pscore", "context", "pi_b"):
        value = feedback.get(name)
        rows = rounds if value is None else len(value) if np.ndim(value) else 1
        if rows != rounds:
            raise InputError(name, f"{rows} rows", f"{rounds}, as many as action has")
    if feedback["n_rounds"] != rounds:
        raise InputError("n_rounds", feedback["n_rounds"], f"{rounds}, as many as action has")


def _read_probability(feedback: Mapping[str, Any], probability: float | None, rounds: int) -> Array:
    if feedback.get("pscore") is not None:
        return array("pscore", feedback["pscore"], NUMBERS)
    if probability is None:
        raise InputError("pscore", "nothing", logs.WITHOUT)
    return np.full(rounds, probability)


def _read_probabilities(feedback: Mapping[str, Any]) -> Array | None:
    values = feedback.get("pi_b")
    return None if values is None else array("pi_b", values, NUMBERS).reshape(len(values), -1)


def to_obp(log: DecisionLog) -> dict[str, Any]:
    """The dictionary of a log; what it has no field for (times, units, true contexts) is left behind."""
    extra = {} if log.probabilities is None else {"pi_b": log.probabilities[:, :, None]}
    return {
        "n_rounds": log.rounds,
        "n_actions": len(log.arms),
        "context": log.noisy,
        "action_context": np.eye(len(log.arms), dtype=int),
        "action": log.arm,
        "position": None,
        "reward": log.reward,
        "pscore": log.probability,
        **extra,
    }
