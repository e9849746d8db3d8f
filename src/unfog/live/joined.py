"""A decision as a row of numbers, and what an event says of one.

What another agent would have earned is estimated by r q / p: r the reward of a decision, p and q the
probabilities with which its arm was taken, and would have been by the other. The mean of that is what the
other would have earned if p is above zero wherever q is. So a decision has no weight q / p where the other
might have taken an arm that could not be taken: one arm was frozen, or without a floor the agent was sure.
An arm that somebody else has forced has the probability that was told, or else no weight.
"""

from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from math import nan
from typing import Any, NamedTuple

TIME, UNIT, ARM, PROBABILITY, LOWEST, REWARD, FIRST = range(7)
"""Columns: seconds, places of unit and arm, probability of the arm, the smallest one, what was learnt."""


class Layout(NamedTuple):
    """Where things stand in a row: after the first columns, of each coordinate and of each shadow."""

    dim: int

    def of(self, part: int) -> slice:
        """The columns of the noisy (0), denoised (1) context, its deviation (2) and the truth (3)."""
        start = FIRST + part * self.dim
        return slice(start, start + self.dim)

    @property
    def width(self) -> int:
        """Of a row without shadows."""
        return FIRST + 4 * self.dim

    def agrees(self, shadow: int) -> int:
        """The column that says whether a shadow took the same arm; the next has its weight."""
        return self.width + 2 * shadow


class Around(NamedTuple):
    """What is known of a problem that its decisions do not say."""

    number: int  # of the next decision
    coordinates: tuple[str, ...]
    floor: float
    places: Mapping[str, int]  # of arms
    eras: Sequence[tuple[int, tuple[str, ...]]]  # arms that might be chosen, each from a decision on

    def choice(self, body: Mapping[str, Any]) -> Collection[str]:
        """The arms that might be chosen."""
        return body.get("arms") or self.eras[bisect_right(self.eras, body["number"], key=_first) - 1][1]


def _first(era: tuple[int, tuple[str, ...]]) -> int:
    return era[0]


def row(
    around: Around, time: float, unit: int, body: Mapping[str, Any], shadows: Collection[str] = ()
) -> list[float]:
    """The row of a decision, with what these shadows did; of one that was erased there is nothing."""
    names = around.coordinates
    if body.get("erased"):
        return [nan] * (FIRST + 4 * len(names) + 2 * len(shadows))
    noisy, mean, sd, others = body["context"], body["denoised"], body["sd"], body.get("shadow", {})
    chance = body["probability"]
    return [
        time,
        unit,
        around.places.get(body["arm"], -1),
        nan if chance is None else chance,
        _lowest(around, body),
        nan,
        *[nan if noisy[name] is None else noisy[name] for name in names],
        *[mean[name] for name in names],
        *[sd[name] for name in names],
        *[nan] * len(names),
        *[x for name in shadows for x in _shadow(around, body, others.get(name))],
    ]


def _shadow(around: Around, body: Mapping[str, Any], shadow: Mapping[str, Any] | None) -> tuple[float, float]:
    return (nan, nan) if shadow is None else (agreement(body, shadow), weight(around, body, shadow))


def _lowest(around: Around, body: Mapping[str, Any]) -> float:
    """The smallest probability of an arm that might be chosen; not a number where somebody else chose."""
    if "forced" in body:
        return nan
    shares, arms = body["shares"], len(around.choice(body))
    floor = 0.0 if body.get("frozen") else around.floor
    least = min(shares.values()) if len(shares) == arms else 0.0
    return float(floor / arms + (1 - floor) * least)


def agreement(body: Mapping[str, Any], shadow: Mapping[str, Any]) -> float:
    """Whether a shadow took the same arm, 0 or 1; not a number where the agent did not choose freely."""
    free = "forced" not in body and not body.get("frozen")
    return float(shadow["arm"] == body["arm"]) if free else nan


def weight(around: Around, body: Mapping[str, Any], shadow: Mapping[str, Any]) -> float:
    """How much a decision counts for a shadow, q / p; not a number where it would mislead."""
    chance, arm, shares = body["probability"], body["arm"], shadow["shares"]
    choice = around.choice(body)
    if not chance:
        return nan
    if "forced" not in body:
        floor = 0.0 if body.get("frozen") else around.floor
        might = shares if around.floor == 0 else choice
        if not floor and any(body["shares"].get(name, 0.0) <= 0 for name in might):
            return nan
    if arm not in choice:
        return 0.0
    return float((around.floor / len(choice) + (1 - around.floor) * shares.get(arm, 0.0)) / chance)


def number_of(decision: str) -> int:
    """Of a decision, from its id."""
    return int(decision.partition("-")[0])


def reward(kind: str, body: Mapping[str, Any]) -> float | None:
    """What an event makes the reward of its decision, not a number where it has none; None: nothing."""
    if kind == "void":
        return nan if body["outcome"] == "void" else None
    if kind == "expire":
        return body.get("value") if body["what"] == "reward" else None
    return body["value"] if body["outcome"] in ("learnt", "waits") else None
