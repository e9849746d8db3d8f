"""A live problem in words: a text from what `describe` returns, and from nothing else.

So the client of a service prints the text that a store prints, and what it says can be computed with.
"""

from collections.abc import Iterator, Mapping
from math import floor, log10
from typing import Any

OFFSETS = {  # whose a unit's offset is, by the name of a candidate
    "read": "left as they are",
    "device": "the devices'",
    "person": "the persons'",
    "both": "half the devices', half the persons'",
}
LEAST_SHARE = 0.01  # of candidates that are named
MOST_NAMES = 12  # arms, coordinates, effects of an arm
SUSPECT = 1e-4  # probability of so many rewards outside by chance: people look again and again
FAR = 0.02  # and how far off their share then is, at least
NOISE_IS_CUT = (
    "a noise of {noise} was stated, but readings of one unit do not spread that far: less is assumed"
)


def in_words(description: Mapping[str, Any]) -> str:
    """The text, without a line break at its end."""
    learnt = description["learnt"]
    blocks = [
        [_counts(description)],
        _lottery(learnt),
        list(_coordinates(learnt)),
        _offsets(learnt["candidates"]),
        list(_arms(description)),
        [*_rewards(learnt["rewards"]), *_exploration(description)],
        list(_doubts(description)),
    ]
    return "\n".join(line for block in blocks for line in block)


def _counts(description: Mapping[str, Any]) -> str:
    """How much came, and of what."""
    learnt, units = description["learnt"], description["units_total"]
    for_units = f" for {_count(units, 'unit')}" if units else ""
    parts = [
        f"{_count(description['decisions'], 'decision')}{for_units}",
        f"{_count(description['rewards'], 'reward')} learnt",
    ]
    nouns = {
        "pending": ("decision", "waiting for a reward"),
        "revealed": ("true context", "shown"),
        "late": ("reward", "came too late"),
        "expired": ("decision", "without a reward in time"),
        "cancelled": ("decision", "cancelled"),
        "late_contexts": ("true context", "came too late"),
        "dropped": ("reward", "lost, for want of a true context"),
    }
    numbers = {**learnt, "pending": description["pending"]}
    for name, (noun, what) in nouns.items():
        parts += [f"{_count(numbers[name], noun)} {what}"] if numbers[name] else []
    pinned = f"; pinned to {description['pinned']!r}" if description["pinned"] else ""
    return f"{description['name']} (agent {description['agent']}): {', '.join(parts)}{pinned}"


def _lottery(learnt: Mapping[str, Any]) -> list[str]:
    wanted = learnt["wanted"]
    if wanted is None:
        return []
    until = (
        f"{_count(wanted, 'more reward')} {'has' if wanted == 1 else 'have'} come"
        if wanted
        else "the next estimate"
    )
    return [f"provisional: arms are drawn by lot until {until}"]


def _coordinates(learnt: Mapping[str, Any]) -> Iterator[str]:
    """What is believed of the sensor."""
    rows = learnt["context"]
    if rows:
        yield "readings"
    for name, about in [*rows.items()][:MOST_NAMES]:
        yield f"  {name}: {'; '.join(_coordinate(about))}"
    yield from _more(rows)


def _coordinate(about: Mapping[str, Any]) -> Iterator[str]:
    yield from ["exact"] if about["exact"] else []
    if about["kind"] == "category":
        levels = sorted(about["levels"].items(), key=lambda pair: -(pair[1] or 0))
        if levels and about["missing"] != 1:
            yield ", ".join(f"{level} {_percent(share or 0)}" for level, share in levels[:MOST_NAMES])
    elif about["kind"] == "cycle":
        yield f"a cycle of {_write_stated(about['period'])}"
    else:
        yield from _number(about)
    if about["missing"] is not None and round(about["missing"], 2) > 0 and about["missing"] < 1:
        yield f"missing in {_percent(about['missing'])}"


def _number(about: Mapping[str, Any]) -> Iterator[str]:
    mean, sd, noise = (about.get(name) for name in ("mean", "sd", "noise_sd"))
    if about["missing"] == 1 and not about["stated"]:
        yield f"noise {_write_stated(noise)}, no reading so far" if noise else "no reading so far"
        return
    if mean is not None and sd is not None and about["stated"]:
        yield f"stated to be usually {_write_stated(mean)}, with a spread of {_write_stated(sd)}"
    elif mean is not None:
        yield f"usually {write(mean, sd)}"
        yield f"differs from time to time by {write(sd)}"
    if about.get("between_sd"):
        yield f"people differ by {write(about['between_sd'])}"
    if noise and not about["exact"]:
        yield f"noise {_write_stated(noise)}"
    if not about["exact"]:
        yield from _devices(about)


def _devices(about: Mapping[str, Any]) -> Iterator[str]:
    """How far off devices are."""
    bias, spread, paired = about.get("bias"), about.get("bias_sd"), about.get("units_revealed")
    if bias is not None:
        side = f"{write(abs(bias), spread)} too {'high' if bias > 0 else 'low'}"
        basis = f", by the truths of {_count(int(paired), 'unit')}" if paired else ""
        yield f"devices read {side} on average{basis}" if spread is not None else f"the device reads {side}"
    if spread:
        yield f"devices differ by {write(spread)}"


def _offsets(candidates: Mapping[str, float]) -> list[str]:
    """Whose the offsets of units are."""
    named = sorted(
        ((share, name) for name, share in candidates.items() if share >= LEAST_SHARE), reverse=True
    )
    if not named:
        return []
    if len({round(share, 6) for share in candidates.values()}) == 1 and len(candidates) > 1:
        return ["offsets of units: nothing is known so far of whose they are"]
    is_clear = named[0][0] > 0.5
    shares = "; ".join(f"{OFFSETS.get(name, name)}: {_percent(share)}" for share, name in named)
    return [f"offsets of units are {shares}" if is_clear else f"offsets of units, not clear so far: {shares}"]


def _arms(description: Mapping[str, Any]) -> Iterator[str]:
    """What each arm brings."""
    arms = description["learnt"]["arms"]
    if not arms:
        return
    is_average = any(about["at_average"] for about in arms.values())
    what = "in an average context" if is_average else "on average of its own rewards"
    yield f"an arm brings, {what} (90 % intervals)"
    for name, about in [*arms.items()][:MOST_NAMES]:
        mean, low, high = (about[part] for part in ("mean", "low", "high"))
        size = None if low is None else high - low
        interval = "" if low is None else f" ({write(low, size)} to {write(high, size)})"
        parts = [f"{write(mean, size)}{interval}", f"chosen {_times(about['chosen'])}"]
        yield f"  {name}: {'; '.join([*parts, *_effects(about['effects'], description)])}"
    yield from _more(arms)


def _effects(effects: Mapping[str, Any], description: Mapping[str, Any]) -> Iterator[str]:
    """Effects whose intervals do not hold zero."""
    kinds = {name: about["kind"] for name, about in description["learnt"]["context"].items()}
    clear = [
        (name, one)
        for name, one in effects.items()
        if one["low"] is not None and one["low"] * one["high"] > 0
    ]
    for name, one in sorted(clear, key=lambda pair: -abs(pair[1]["mean"]))[:MOST_NAMES]:
        size = write(abs(one["mean"]), one["high"] - one["low"])
        sign = "+" if one["mean"] > 0 else "-"
        if "highest" in one:
            yield f"up to {size} more at {name} {write(one['highest'])}"
        elif kinds.get(name) == "number":
            yield f"{sign}{size} for one sd of {name}"
        else:
            yield f"{sign}{size} where {name}"


def _rewards(rewards: Mapping[str, Any]) -> list[str]:
    mean, sd, noise = rewards["mean"], rewards["sd"], rewards["noise_sd"]
    if mean is None or sd is None:
        return []
    after = f", with a noise of {write(noise)} once context and arm are known" if noise is not None else ""
    return [f"rewards are about {write(mean, sd)}, and spread by {write(sd)}{after}"]


def _exploration(description: Mapping[str, Any]) -> list[str]:
    epsilon, about = description["epsilon"], description["learnt"]["exploration"]
    if not epsilon or description["pinned"] or description["learnt"]["wanted"] is not None:
        return []
    cost = "" if about["cost"] is None else f", which costs about {write(about['cost'])} a decision"
    return [f"exploration: {_percent(epsilon)} of decisions are drawn by lot{cost}"]


def _doubts(description: Mapping[str, Any]) -> Iterator[str]:
    """What does not look right."""
    doubts, learnt = [*description["alarm"]], description["learnt"]
    coverage = learnt["coverage"]
    if coverage is not None and coverage["p_value"] < SUSPECT:
        share = coverage["inside"] / coverage["rewards"]
        if abs(share - coverage["level"]) > FAR:
            level, number = _percent(coverage["level"]), f"{coverage['rewards']:,}"
            doubts.append(f"{level} intervals of rewards held {_percent(share)} of {number}")
    for name, about in learnt["context"].items():
        if about.get("noise_is_cut"):
            doubts.append(f"{name}: {NOISE_IS_CUT.format(noise=write(about['noise_sd']))}")
    if doubts:
        yield "what does not look right"
        yield from (f"  {doubt}" for doubt in doubts)
    if description["note"]:
        yield f"note: {description['note']}"


def write(value: float | None, size: float | None = None) -> str:
    """A number in three digits; in more, where it is large beside a `size` that counts, such as its error."""
    if value is None:
        return "unknown"
    if not value or not 1e-4 < abs(value) < 1e12:
        return f"{value:.3g}"
    digits = 2 - floor(log10(abs(value)))
    if size:
        digits = max(digits, min(1 - floor(log10(size)), 6)) if size < abs(value) else digits
    return f"{round(value, digits):,.{max(digits, 0)}f}"


def _write_stated(value: float) -> str:
    """A number that somebody stated, without zeros at its end."""
    text = write(value, abs(value) / 100 or None)
    return text.rstrip("0").rstrip(".") if "." in text else text


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.01 or not share else f"{100 * share:.2g} %"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number:,} times"


def _more(rows: Mapping[str, Any]) -> list[str]:
    left = len(rows) - MOST_NAMES
    return [f"  and {left:,} more"] if left > 0 else []
