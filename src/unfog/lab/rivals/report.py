"""The ratios as tables, for a terminal and for a page: where ours does not win comes first."""

import textwrap
from collections.abc import Sequence
from itertools import groupby

import numpy as np

from unfog.lab.rivals import timing
from unfog.lab.rivals.problems import PLACES, TOLD_BIAS
from unfog.lab.rivals.table import Comparison, Outcome, Ratio, Row
from unfog.lab.terminal import NOTHING, WIDTH, columns

MARKS = {"more": "+", "less": "-"}
HEAD = (
    "Regret of each as a ratio to ours on the same trials, with 95 % intervals (delta method, paired): above"
    " 1 ours is better. +: it is told more than ours. -: ours is shown true contexts, and it makes no use of"
    " them."
)
TUNED = (
    "One setting each chosen on other seeds, from six or seven values, the published one among them; an agent"
    " without such a setting stays as it is."
)
TIMES = (
    f"Time is the mean over the first {timing.ROUNDS} rounds (or all, where there are fewer), of"
    f" {timing.TRIALS} trials side by side: later rounds of an agent that goes over past rounds take longer."
)
EXCEPTIONS = "Where ours does not win beyond doubt against one that is told no more"


def text(found: Comparison) -> str:
    """All of it, in 80 columns."""
    parts = [textwrap.fill(HEAD, WIDTH), exceptions(found), *_tables(found, False)]
    if any(one.tuned for one in found.outcomes):
        parts += [textwrap.fill(TUNED, WIDTH), exceptions(found, tuned=True), *_tables(found, True)]
    parts += [times(found), _left_out(found)]
    return "\n\n".join(filter(None, parts))


def exceptions(found: Comparison, *, tuned: bool = False) -> str:
    """A line for each, the worst for ours first."""
    lines = [
        f"  {one.problem}: {row.agent} {cell(row)} of {row.against}" for one, row in found.exceptions(tuned)
    ]
    return "\n".join([f"{EXCEPTIONS}:", *(lines or ["  nowhere"])])


def grouped(found: Comparison) -> list[tuple[str, list[Outcome]]]:
    """The outcomes in groups of problems, in their order."""
    groups = groupby(found.outcomes, key=lambda one: PLACES[one.problem].group)
    return [(name, list(some)) for name, some in groups]


def grid(outcomes: Sequence[Outcome], tuned: bool = False) -> tuple[list[str], list[list[str]]]:
    """The names of rows, and a cell for each of them on each problem."""
    tables = [{label(row): row for row in (one.tuned if tuned else one.rows)} for one in outcomes]
    names = list(dict.fromkeys(name for ours in (False, True) for one in tables for name in _some(one, ours)))
    cells = [[cell(one[name]) if name in one else NOTHING for one in tables] for name in names]
    return names, cells


def _some(table: dict[str, Row], ours: bool) -> list[str]:
    """The rows of others, or of ours."""
    return [name for name, row in table.items() if (row.told == "ours") is ours]


def label(row: Row) -> str:
    """What a row is called: who is held against an agent of its own footing says so."""
    if row.told == "ours":
        return f"(ours) {row.agent}"
    return f"{row.agent} / {TOLD_BIAS}" if row.against == TOLD_BIAS else row.agent


def cell(row: Row) -> str:
    """The ratio with its mark, its interval and what was chosen."""
    chosen = "" if row.setting in ("", "as published") else f" {row.setting}"
    return f"{interval(row.ratio, MARKS.get(row.told, ''))}{chosen}"


def interval(found: Ratio, mark: str = "") -> str:
    """A ratio and its ends."""
    if np.isnan(found.value):
        return NOTHING
    if np.isnan(found.low):
        return f"{number(found.value)}{mark}"
    return f"{number(found.value)}{mark} [{number(found.low)}, {number(found.high)}]"


def number(value: float) -> str:
    """Three digits, at least the whole ones."""
    places = 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:,.{places}f}"


def of_ours(one: Outcome) -> str:
    """Whose regret ratios are to, and how large it is."""
    found = ", ".join(f"{name} {number(value)}" for name, value in one.ours.items())
    trials = sorted({row.trials for row in one.rows})
    span = str(trials[0]) if len(trials) < 2 else f"{trials[0]} to {trials[-1]}"
    return f"{one.problem}: {one.title}; {one.rounds} rounds, {span} trials; {found}"


def _tables(found: Comparison, tuned: bool) -> list[str]:
    parts = list[str]()
    for _, outcomes in grouped(found):
        names, cells = grid(outcomes, tuned)
        if not names:
            continue
        titles = [one.problem for one in outcomes]
        below = [f"Regret {yardstick(outcomes)}; after the last round:", *map(of_ours, outcomes)]
        said = "\n".join(textwrap.fill(line, WIDTH, subsequent_indent="  ") for line in below)
        parts += [columns("agent", names, titles, cells), *([] if tuned else [said])]
    return parts


def yardstick(outcomes: Sequence[Outcome]) -> str:
    """What the regret of these problems is against."""
    return "; ".join(dict.fromkeys(one.yardstick for one in outcomes))


def spans(found: Comparison) -> dict[str, tuple[float, float]]:
    """Microseconds of a trial's round, from the quickest problem to the slowest."""
    names = dict.fromkeys(name for one in found.outcomes for name in one.seconds)
    every = {
        name: [1e6 * one.seconds[name] for one in found.outcomes if name in one.seconds] for name in names
    }
    return {name: (min(values), max(values)) for name, values in every.items()}


def times(found: Comparison) -> str:
    """How long a round takes, and over which rounds that is a mean."""
    rows = [[f"{number(low)} to {number(high)}"] for low, high in spans(found).values()]
    if not rows:
        return ""
    table = columns("agent", list(spans(found)), ["microseconds of a trial's round, in batch"], rows)
    return f"{table}\n{textwrap.fill(TIMES, WIDTH)}"


def _left_out(found: Comparison) -> str:
    """Who could not play what, and which problems were not played."""
    lines = [f"{name} was not played: {why}" for name, why in found.left_out.items()]
    for one in found.outcomes:
        reasons = dict[str, list[str]]()
        for name, why in one.left_out.items():
            reasons.setdefault(why, []).append(name)
        lines += [f"{one.problem} without {', '.join(names)}: {why}" for why, names in reasons.items()]
    return "\n".join(textwrap.fill(line, WIDTH, subsequent_indent="  ") for line in lines)


def markdown(outcomes: Sequence[Outcome], tuned: bool = False) -> str:
    """A table for a page; bold where ours does not win beyond doubt against one that is told no more."""
    names, cells = grid(outcomes, tuned)
    bold = {
        (label(row), one.problem)
        for one in outcomes
        for row in (one.tuned if tuned else one.rows)
        if row.exception
    }
    head = ["agent", *(one.problem for one in outcomes)]
    lines = [head, ["---"] + ["---:"] * len(outcomes)]
    for name, row in zip(names, cells, strict=True):
        shown = [
            f"**{text}**" if (name, one.problem) in bold else text
            for text, one in zip(row, outcomes, strict=True)
        ]
        lines.append([_code(name), *shown])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _code(name: str) -> str:
    """A row's name with its agents in code quotes."""
    ours, _, bare = name.rpartition("(ours) ")
    return f"{'(ours) ' * bool(ours or name.startswith('(ours)'))}" + " / ".join(
        f"`{part}`" for part in bare.split(" / ")
    )
