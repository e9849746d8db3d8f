"""The past of a problem, or of one of its units, as a page shows it: plain values that JSON can hold.

    points    decisions, evenly thinned, the newest always among them
    worth     what denoising was worth where true contexts came: errors of noisy and denoised ones
    rewards   means in stretches of decisions, with intervals; `shares` of the arms in the same stretches
    shadow    what other agents would have earned, by inverse propensity: live/joined.py; "" is the one obeyed
    tracks    how beliefs went: live/tracks.py

A reward is what was learnt of it: several are combined as the terms say, and while they are waited for there
is none. Everything is in the caller's units. None is what is not known.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from unfog.channel.channel import Units
from unfog.live import estimates
from unfog.live.joined import ARM, LOWEST, PROBABILITY, REWARD, TIME, UNIT
from unfog.live.ring import Kept
from unfog.live.tracks import Track
from unfog.maths.arrays import Array, Ints

MOST_STRETCHES, LEAST_STRETCH = 60, 10  # in which rewards and shares are shown, and decisions in one

Values = list[Any]


class Asked(NamedTuple):
    """What is to be shown, and what is known of it besides its decisions."""

    problem: str
    unit: str | None  # None: all
    points: int
    coordinates: Sequence[str]
    arms: Sequence[str]
    shadows: Sequence[str]
    binary: bool  # rewards are 0 or 1
    decisions: int | None  # in all; None: as many as are kept
    track: Track
    units: Units


def plain(values: Array) -> Values:
    """Numbers as JSON has them."""
    return [None if x != x else x for x in values.tolist()]


def told(asked: Asked, kept: Kept) -> dict[str, Any]:
    """All of it."""
    chosen = _chosen(asked.unit, kept)
    numbers = kept.numbers[chosen]
    rewards, shares = _stretches(asked, kept, chosen)
    return {
        "problem": asked.problem,
        "unit": asked.unit,
        "coordinates": list(asked.coordinates),
        "arms": list(asked.arms),
        "decisions": len(chosen) if asked.decisions is None else asked.decisions,
        "kept": len(chosen),
        "first_number": int(numbers[0]) if len(chosen) else None,
        "last_number": int(numbers[-1]) if len(chosen) else None,
        "shadows": list(asked.shadows),
        "points": _points(asked, kept, chosen[thinned(len(chosen), asked.points)]),
        "worth": _worth(asked, kept, chosen),
        "rewards": rewards,
        "shares": shares,
        "shadow": _shadows(asked, kept, chosen),
        "tracks": _tracks(asked),
    }


def _chosen(unit: str | None, kept: Kept) -> Ints:
    """The places of decisions that are asked for."""
    if unit is None:
        return np.arange(len(kept.numbers))
    if unit not in kept.units:
        return np.arange(0)
    return np.flatnonzero(kept.data[UNIT] == kept.units.index(unit))


def thinned(number: int, most: int) -> Ints:
    """So many places at most, as even as can be; the last is among them."""
    if number <= most:
        return np.arange(number)
    if most == 1:
        return np.array([number - 1])
    return np.arange(most) * (number - 1) // (most - 1)


def _points(asked: Asked, kept: Kept, places: Ints) -> dict[str, Any]:
    data, layout = kept.data[:, places], kept.layout
    units = [kept.units[int(x)] or None for x in data[UNIT]]
    found: dict[str, Any] = {"number": kept.numbers[places].tolist(), "time": plain(data[TIME])}
    found["unit"] = units
    found |= {"arm": data[ARM].astype(int).tolist(), "probability": plain(data[PROBABILITY])}
    found |= {"lowest": plain(data[LOWEST]), "reward": plain(data[REWARD])}
    for part, name in enumerate(("noisy", "denoised", "sd", "true")):
        found[name] = _by_name(asked.coordinates, data[layout.of(part)])
    return found


def _by_name(names: Sequence[str], values: Array) -> dict[str, Values]:
    """Of each coordinate, from (d, n)."""
    return {name: plain(row) for name, row in zip(names, values, strict=True)}


def _worth(asked: Asked, kept: Kept, places: Ints) -> dict[str, Any]:
    """Root mean squared errors of noisy and denoised contexts, where the truth is known, nothing lost."""
    noisy, denoised, _, true = (kept.data[kept.layout.of(part)] for part in range(4))
    found = {}
    for i, name in enumerate(asked.coordinates):
        wrong, left = noisy[i, places] - true[i, places], denoised[i, places] - true[i, places]
        there = ~np.isnan(wrong)
        number = int(there.sum())
        before, after = (float(np.sqrt((x[there] ** 2).mean())) if number else None for x in (wrong, left))
        ratio = after / before if before and after is not None else None
        found[name] = {"revealed": number, "rmse_noisy": before, "rmse_denoised": after, "ratio": ratio}
    return found


def _stretches(asked: Asked, kept: Kept, places: Ints) -> tuple[dict[str, Any], dict[str, Any]]:
    """Rewards and shares of arms in stretches of as many decisions each."""
    number = min(max(len(places) // LEAST_STRETCH, 1), MOST_STRETCHES)
    parts = np.array_split(places, number) if len(places) else []
    middles = np.array([part[len(part) // 2] for part in parts], dtype=np.intp)
    where = {"number": kept.numbers[middles].tolist(), "time": kept.data[TIME, middles].tolist()}
    paid = [kept.data[REWARD, part] for part in parts]
    means = [estimates.mean(one[~np.isnan(one)], binary=asked.binary) for one in paid]
    rewards = {name: [one[name] for one in means] for name in estimates.FIELDS}
    counts = [_counts(kept.data[ARM, part], len(asked.arms)) / len(part) for part in parts]
    shares = {arm: [float(one[i]) for one in counts] for i, arm in enumerate(asked.arms)}
    return {**where, **rewards}, {**where, "arms": shares}


def _counts(arms: Array, number: int) -> Array:
    """How often each arm was chosen; those that came with a decision have no place."""
    return np.bincount(arms[arms >= 0].astype(np.intp), minlength=number).astype(np.float64)


def _shadows(asked: Asked, kept: Kept, places: Ints) -> dict[str, Any]:
    """The agent that is obeyed, and what others would have done."""
    rewards = kept.data[REWARD, places]
    own = estimates.mean(rewards[~np.isnan(rewards)], binary=asked.binary)
    agrees = 1.0 if len(places) else None
    found = {"": {"agreement": agrees, **own, "effective": float(own["count"])}}
    for name in asked.shadows:
        if name not in kept.shadows:
            same, weights = np.empty(0), np.full_like(rewards, np.nan)
        else:
            column = kept.layout.agrees(kept.shadows[name])
            same, weights = kept.data[column, places], kept.data[column + 1, places]
        same, judged = same[~np.isnan(same)], ~np.isnan(weights) & ~np.isnan(rewards)
        agreement = float(same.mean()) if len(same) else None
        found[name] = {"agreement": agreement, **estimates.weighted(rewards[judged], weights[judged])}
    return found


def _tracks(asked: Asked) -> dict[str, Any]:
    """Beliefs over time, in the caller's units."""
    track, units, names = asked.track, asked.units, asked.coordinates
    found: dict[str, Any] = {"number": track.number.astype(int).tolist(), "time": track.time.tolist()}
    found["bias"] = _by_name(names, (units.bias + track.bias * units.scale).T)
    found["bias_sd"] = _by_name(names, (track.bias_sd * units.scale).T)
    for name, values in (("z_square", track.z_square), ("e_value", track.e_value)):
        found[name] = None if values is None else _by_name(names, values.T)
    every = track.e_value_of_all
    return found | {"e_value_of_all": None if every is None else plain(every)}
