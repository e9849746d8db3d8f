"""What the suite found: ratios of regret with intervals, and times; as a table, a page and a figure.

Regret is given as a ratio to ours on the same trials, with the interval

    r exp(± t se(r) / r)

r and its standard error are those of maths/statistics.py, and that of ln r is se(r) / r: the interval is
symmetric around ln r, since ratios are, and t is Student's quantile with n - 1 degrees of freedom. Where ours
does not win comes first in the tables.
"""

import textwrap
import time
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unfog.agents.agent import Agent
from unfog.evaluation.intervals import student_reach
from unfog.lab.baselines.problems import PLACES, TOLD_BIAS
from unfog.lab.tables import NOTHING, columns, fill
from unfog.maths.arrays import Array, Ints
from unfog.maths.statistics import estimate, quotient
from unfog.plotting import COLOURS, add_title, new_figure, title_panel
from unfog.simulation.job import Nature, emitted, truth_draws
from unfog.simulation.player import Player
from unfog.worlds.problem import Problem

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

TRIALS = 100  # that are timed, side by side
ROUNDS = 50  # of each

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
    f"Time is the mean over the first {ROUNDS} rounds (or all, where there are fewer), of"
    f" {TRIALS} trials side by side: later rounds of an agent that goes over past rounds take longer."
)
EXCEPTIONS = "Where ours does not win beyond doubt against one that is told no more"

BLUE, ORANGE, BLACK, GREEN, RED = (COLOURS[i] for i in (0, 1, 2, 3, 6))
ACROSS = 5  # panels beside each other
SIDES = {"same": (BLUE, "o"), "less": (BLUE, "o"), "more": (ORANGE, "s"), "ours": (GREEN, "D")}
TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 1000)


class Ratio(NamedTuple):
    """Of two means over the same trials, with the ends of its 95 % interval; NaN where there is none."""

    value: float
    low: float
    high: float

    @property
    def wins(self) -> bool:
        """Whether ours loses less, beyond doubt."""
        return self.low > 1

    @property
    def loses(self) -> bool:
        """Whether ours loses more, beyond doubt."""
        return self.high < 1


class Row(NamedTuple):
    """An agent on a problem, held against one of ours."""

    agent: str
    against: str
    told: str  # beside it: same, more, less; or "ours" where it is one of ours
    ratio: Ratio
    regret: float
    regret_se: float
    trials: int
    setting: str = ""  # chosen on other seeds; empty as published

    @property
    def exception(self) -> bool:
        """Whether it is told no more than ours, and ours does not win beyond doubt."""
        return self.told in ("same", "less") and not self.ratio.wins


class Outcome(NamedTuple):
    """All agents on one problem."""

    problem: str
    title: str
    rounds: int
    seed: int
    yardstick: str
    rows: tuple[Row, ...]
    tuned: tuple[Row, ...]
    ours: dict[str, float]  # regret of those of ours that others are held against
    left_out: dict[str, str]  # agent: why it cannot play
    seconds: dict[str, float]  # a trial's round, in a batch


class Comparison(NamedTuple):
    """All agents on all problems."""

    outcomes: tuple[Outcome, ...]
    left_out: dict[str, str]  # problem: why it was not played

    def exceptions(self, tuned: bool = False) -> list[tuple[Outcome, Row]]:
        """Where ours does not win beyond doubt against a rival that is told no more; the worst first."""
        found = [
            (one, row) for one in self.outcomes for row in (one.tuned if tuned else one.rows) if row.exception
        ]
        return sorted(found, key=lambda pair: np.nan_to_num(pair[1].ratio.value, nan=1.0))

    def __str__(self) -> str:
        """The table, for people."""
        return text(self)


def ratio(other: Array, ours: Array) -> Ratio:
    """Of the regrets (trials,) of another to ours; above 1 where ours is better."""
    value, error = quotient(other, ours)
    if not value > 0:  # rewards of 0 or 1: an oracle that is no maximiser may be beaten
        return Ratio(np.nan, np.nan, np.nan)
    if len(ours) < 2:
        return Ratio(value, np.nan, np.nan)
    width = student_reach(len(ours) - 1) * error / value
    return Ratio(value, value * float(np.exp(-width)), value * float(np.exp(width)))


def held(agent: str, against: str, told: str, regrets: dict[str, Array], setting: str = "") -> Row:
    """A row, from the regrets (trials,) of both; where one has fewer trials, on those that both have."""
    n = min(len(regrets[agent]), len(regrets[against]))
    own = regrets[agent][:n]
    mean, se = estimate(own)
    return Row(agent, against, told, ratio(own, regrets[against][:n]), mean, se, n, setting)


def seconds(
    agent: Agent, problem: Problem, *, rounds: int = ROUNDS, trials: int = TRIALS, seed: int = 0
) -> float:
    """Seconds of a round of one trial, in a batch of so many, the mean over the first so many rounds.

    It counts deciding, learning and being shown what is shown; of what the world does, paying rewards alone.
    """
    every = range(trials)
    truth = problem.truth(truth_draws(seed, every, problem.truth_draws()))
    player, nature = Player(agent, problem, truth, seed, every), Nature(problem, seed, every)
    spent = 0.0
    for t in range(rounds):
        normals, uniforms = nature.next(1)
        emission = emitted(problem, truth, normals[:, 0], uniforms[:, 0], np.asarray(t))
        draws = player.runner.normals.next(1)[:, 0]

        def pay(arm: Ints, context: Array = emission.context, drawn: Array = normals[:, 0]) -> Array:
            score = np.vecdot(truth.features.at(context).row(arm), truth.theta)
            return problem.reward(score, drawn)

        began = time.perf_counter()
        player.reveal(player.round(emission, draws, pay), emission)
        spent += time.perf_counter() - began
    return spent / (rounds * trials)


def plain(found: Comparison) -> dict[str, Any]:
    """As numbers, words and lists alone, for JSON: what is no number is null."""
    outcomes = [
        {**one._asdict(), "rows": [_row(r) for r in one.rows], "tuned": [_row(r) for r in one.tuned]}
        for one in found.outcomes
    ]
    return {"outcomes": outcomes, "left_out": found.left_out}


def _row(row: Row) -> dict[str, Any]:
    numbers = {**row.ratio._asdict(), "regret": row.regret, "regret_se": row.regret_se}
    said = {"agent": row.agent, "against": row.against, "told": row.told, "setting": row.setting}
    return {
        **said,
        **{name: None if np.isnan(value) else float(value) for name, value in numbers.items()},
        "trials": row.trials,
    }


def from_plain(data: dict[str, Any]) -> Comparison:
    """What `plain` made of it, read again."""
    outcomes = [
        Outcome(**one | {kind: tuple(map(_read, one[kind])) for kind in ("rows", "tuned")})
        for one in data["outcomes"]
    ]
    return Comparison(tuple(outcomes), data["left_out"])


def _read(row: dict[str, Any]) -> Row:
    told: dict[str, Any] = {name: np.nan if value is None else value for name, value in row.items()}
    found = Ratio(*(told.pop(name) for name in Ratio._fields))
    return Row(ratio=found, **told)


def text(found: Comparison) -> str:
    """The whole report in 80 columns."""
    parts = [fill(HEAD), exceptions(found), *_tables(found, False)]
    if any(one.tuned for one in found.outcomes):
        parts += [fill(TUNED), exceptions(found, tuned=True), *_tables(found, True)]
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


def _tables(found: Comparison, tuned: bool) -> list[str]:
    parts = list[str]()
    for _, outcomes in grouped(found):
        names, cells = grid(outcomes, tuned)
        if not names:
            continue
        titles = [one.problem for one in outcomes]
        below = [f"Regret {yardstick(outcomes)}; after the last round:", *map(of_ours, outcomes)]
        said = "\n".join(fill(line, "  ") for line in below)
        parts += [columns("agent", names, titles, cells), *([] if tuned else [said])]
    return parts


def yardstick(outcomes: Sequence[Outcome]) -> str:
    """What the regret of these problems is against."""
    return "; ".join(dict.fromkeys(one.yardstick for one in outcomes))


def of_ours(one: Outcome) -> str:
    """Whose regret ratios are to, and how large it is."""
    found = ", ".join(f"{name} {number(value)}" for name, value in one.ours.items())
    trials = sorted({row.trials for row in one.rows})
    span = str(trials[0]) if len(trials) < 2 else f"{trials[0]} to {trials[-1]}"
    return f"{one.problem}: {one.title}; {one.rounds} rounds, {span} trials; {found}"


def times(found: Comparison) -> str:
    """How long a round takes, and over which rounds that is a mean."""
    rows = [[f"{number(low)} to {number(high)}"] for low, high in spans(found).values()]
    if not rows:
        return ""
    table = columns("agent", list(spans(found)), ["microseconds of a trial's round, in batch"], rows)
    return f"{table}\n{fill(TIMES)}"


def spans(found: Comparison) -> dict[str, tuple[float, float]]:
    """Microseconds of a trial's round, from the quickest problem to the slowest."""
    names = dict.fromkeys(name for one in found.outcomes for name in one.seconds)
    every = {
        name: [1e6 * one.seconds[name] for one in found.outcomes if name in one.seconds] for name in names
    }
    return {name: (min(values), max(values)) for name, values in every.items()}


def _left_out(found: Comparison) -> str:
    """Who could not play what, and which problems were not played."""
    lines = [f"{name} was not played: {why}" for name, why in found.left_out.items()]
    for one in found.outcomes:
        reasons = dict[str, list[str]]()
        for name, why in one.left_out.items():
            reasons.setdefault(why, []).append(name)
        lines += [f"{one.problem} without {', '.join(names)}: {why}" for why, names in reasons.items()]
    return "\n".join(fill(line, "  ") for line in lines)


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


def figure(found: Comparison, title: str = "") -> "Figure":
    """Ratios with their intervals, as published; tuned ones as small crosses below."""
    names = _names(found.outcomes)
    across = min(ACROSS, max(1, len(found.outcomes)))
    down = max(1, -(-len(found.outcomes) // across))
    wide = 1.8 + 1.55 * across  # inches: two columns of print for three panels, a page on its side for five
    with new_figure(wide, 0.9 + down * (0.6 + 0.13 * len(names))) as chart:
        panels = chart.subplots(down, across, squeeze=False, sharey=True).ravel()
        for axes, one in zip(panels, found.outcomes, strict=False):
            _panel(axes, one, names)
        for axes in panels[len(found.outcomes) :]:
            axes.axis("off")
        panels[0].set_ylim(len(names) - 0.4, -0.6)
        handles = _legend(any(one.tuned for one in found.outcomes))
        beside = 3 if across == ACROSS else 2
        chart.legend(handles=handles, loc="outside lower center", ncols=beside, fontsize=7.5)
        said = title or "Regret as a ratio to ours on the same trials: right of the line ours is better"
        add_title(chart, said, 10)
    return chart


def _names(outcomes: Sequence[Outcome]) -> list[str]:
    """The rows: rivals in their order, then others of ours."""
    rows = [row for one in outcomes for row in one.rows]
    return list(dict.fromkeys(label(row) for mine in (False, True) for row in rows if _mine(row) is mine))


def _mine(row: Row) -> bool:
    return row.told == "ours"


def _panel(axes: "Axes", one: Outcome, names: Sequence[str]) -> None:
    """Draw one problem: dots with bars; where an agent does not play there is nothing."""
    axes.axvline(1, color="0.35", linewidth=0.9)
    for row in one.rows:
        colour, mark = SIDES[row.told]
        _dot(axes, row, names.index(label(row)), colour, mark)
    for row in one.tuned:
        _dot(axes, row, names.index(label(row)) + 0.3, RED if not _mine(row) else GREEN, "x")
    axes.set_xscale("log")
    _ticks(axes)
    axes.set_yticks(range(len(names)), names, fontsize=7, parse_math=False)
    ours = textwrap.fill(f"to {', '.join(one.ours)}", 24)
    title_panel(axes, f"{one.problem}\n{ours}", 7)
    axes.grid(axis="y", color="0.93", linewidth=0.7)
    axes.set_axisbelow(True)


def _dot(axes: "Axes", row: Row, place: float, colour: str, mark: str) -> None:
    value, low, high = row.ratio
    if np.isnan(value):
        return
    ends = None if np.isnan(low) else [[value - low], [high - value]]
    hollow = "white" if row.told == "less" else colour
    size = 3.5 if mark != "x" else 3
    axes.errorbar(
        [value], [place], xerr=ends, fmt=mark, color=colour, mfc=hollow, markersize=size, elinewidth=0.9
    )


def _ticks(axes: "Axes") -> None:
    """Plain numbers, a few of them."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    low, high = axes.get_xlim()
    low, high = min(low, 0.8), max(high, 1.25)
    axes.set_xlim(low, high)
    inside = [tick for tick in TICKS if low <= tick <= high]
    axes.set_xticks(inside if len(inside) < 6 else [t for t in inside if t not in (0.2, 2, 5, 20, 50)])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.tick_params(axis="x", labelsize=7)


def _legend(tuned: bool) -> "list[Line2D]":
    from matplotlib.lines import Line2D

    def entry(colour: str, mark: str, text: str, face: str | None = None) -> "Line2D":
        return Line2D([], [], color=colour, marker=mark, linestyle="", mfc=face or colour, label=text)

    found = [
        entry(BLUE, "o", "told no more than ours"),
        entry(BLUE, "o", "ours is shown true contexts, it makes no use of them", "white"),
        entry(ORANGE, "s", "told more"),
        entry(GREEN, "D", "others of ours"),
    ]
    return [*found, entry(RED, "x", "tuned, both")] if tuned else found
