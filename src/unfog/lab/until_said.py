"""What is said of a run whose number of trials is found: before, on the way, and of its result."""

import json
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from unfog.lab.field_words import labelled
from unfog.lab.prepare import Plan
from unfog.lab.spec import RunSpec
from unfog.lab.until import Look

WIDTH = 80
GLUE = "\N{NO-BREAK SPACE}"  # lines are not broken within a ratio
UNITS = {"s": 1, "min": 60, "h": 3600}


def before(plan: Plan, checkpoints: Sequence[int]) -> str:
    """What the first look costs, as the engine estimates it."""
    work, first = plan.work, checkpoints[0]
    seconds = sum(work.engine.seconds(job, first, work.executor.workers) for job in work.jobs)
    most = f"; {checkpoints[-1]:,} trials at most" if len(checkpoints) > 1 else ", all there may be"
    return f"first {first:,} trials of {plan.spec.run.rounds} rounds: {duration(seconds)}{most}"


def first(now: Look, until: float, needed: int, expected: int, rounds: int, left: float | None) -> str:
    """What it will cost in all, by the first look."""
    hardest = f"the hardest: {labelled(now.hardest)}, now {now.worst:.3g}"
    time = "" if left is None else f"; {duration(left)}"
    if needed > expected:
        would = f"about {rough(needed)} trials of {rounds} rounds would be needed for every standard error"
        reach = now.worst * (now.trials / expected) ** 0.5
        return f"{would} below {until:g} ({hardest}); the budget is {expected:,}, for about {reach:.2g}{time}"
    told = f"about {rough(expected)} trials of {rounds} rounds for every standard error below {until:g}"
    return f"{told} ({hardest}){time}"


def again(now: Look, needed: int, expected: int, left: float | None) -> str:
    """Likewise in short, after later looks."""
    most = ", the budget" if needed > expected else ""
    time = "" if left is None else f"; {duration(left)} left"
    worst = f"{labelled(now.hardest)} {now.worst:.3g}"
    return f"{now.trials:,} trials: {worst}; about {rough(expected)} in all{most}{time}"


def ended(now: Look, until: float) -> str:
    """How it came out."""
    largest = f"the largest standard error is {now.worst:.3g} ({labelled(now.hardest)})"
    if now.worst <= until:
        return f"{now.trials:,} trials: {largest}"
    return f"the budget of {now.trials:,} trials was reached; {largest}"


def rough(number: int) -> str:
    """A number of which two digits are known."""
    unit = max(1, 10 ** (len(str(number)) - 2))
    return f"{round(number / unit) * unit:,}"


def duration(seconds: float) -> str:
    """A time of which little is known."""
    if seconds < 1:
        return "less than a second"
    unit, length = next((u, n) for u, n in UNITS.items() if seconds < 90 * n or u == "h")
    return f"about {seconds / length:.{int(length > 1 and seconds < 10 * length)}f} {unit}"


def attributes(now: Look, run: RunSpec) -> dict[str, Any]:
    """What the result says of it: the number of trials, and as JSON what was asked for and what came out."""
    asked = {"se": run.until, "against": run.against, "budget": run.trials}
    ratios = {name: one._asdict() for name, one in now.ratios.items()}
    return {"trials_found": now.trials, "until": json.dumps({**asked, "ratios": ratios})}


def facts(attrs: Mapping[str, Any]) -> dict[str, Any]:
    """For the summary; nothing where the number of trials was told."""
    if "until" not in attrs:
        return {}
    return {"trials_found": int(attrs["trials_found"]), "until": json.loads(attrs["until"])}


def found(facts: Mapping[str, Any]) -> list[str]:
    """The line of a table that says how the number of trials was found."""
    if "until" not in facts:
        return []
    told, trials = facts["until"], f"{facts['trials_found']:,}"
    worst = max(told["ratios"], key=lambda name: told["ratios"][name]["se"])
    largest = told["ratios"][worst]["se"]
    if largest <= told["se"]:
        line = f"{trials} found for a standard error of {told['se']:g} of each ratio to {told['against']}"
    else:
        short = f"the largest standard error of a ratio to {told['against']} is {largest:.3g}"
        short += f" ({labelled(worst)})"
        line = f"{trials}, the budget; {short}, above {told['se']:g}"
    return textwrap.wrap(f"trials: {line}", WIDTH, break_on_hyphens=False)


def ratios(facts: Mapping[str, Any], width: float) -> list[str]:
    """All ratios with `width` standard errors, for below a table."""
    if "until" not in facts:
        return []
    told = facts["until"]
    each = [
        f"{labelled(name)} {one['value']:.3f} ± {width * one['se']:.3f}"
        for name, one in told["ratios"].items()
    ]
    text = f"ratio to {told['against']}: {', '.join(one.replace(' ', GLUE) for one in each)}"
    lines = textwrap.wrap(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False)
    return [line.replace(GLUE, " ") for line in lines]
