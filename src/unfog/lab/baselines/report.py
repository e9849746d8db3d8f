"""The results of the suite: ratios of regret with intervals, and times; as a table, a page and a figure.

Regret is given as a ratio to ours on the same trials, with the interval

    r exp(± t se(r) / r)

r and its standard error are those of maths/statistics.py, and that of ln r is se(r) / r: the interval is
symmetric around ln r, and t is Student's quantile with n - 1 degrees of freedom. The comparisons that our
agent does not win come first in the report.
"""

import textwrap
import time
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unfog.agents.agent import Agent
from unfog.evaluation.intervals import student_reach
from unfog.lab.baselines.problems import BENCHMARKS, KNOWN_BIAS
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

TRIALS = 100  # trials that are timed, side by side
ROUNDS = 50  # rounds that are timed

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
    """The ratio of two means over the same trials and its 95 % interval; NaN where there is none."""

    value: float
    low: float
    high: float

    @property
    def wins(self) -> bool:
        """Whether our regret is lower: the whole interval is above 1."""
        return self.low > 1

    @property
    def loses(self) -> bool:
        """Whether our regret is higher: the whole interval is below 1."""
        return self.high < 1


class Row(NamedTuple):
    """An agent on a problem, compared with one of ours."""

    agent: str
    reference: str
    information: str  # what it is told compared with ours: same, more, less; or "ours" for one of ours
    ratio: Ratio
    regret: float
    regret_se: float
    trials: int
    setting: str = ""  # chosen on other seeds; empty as published

    @property
    def exception(self) -> bool:
        """Whether ours does not clearly win although the agent is told no more."""
        return self.information in ("same", "less") and not self.ratio.wins


class Outcome(NamedTuple):
    """All agents on one problem."""

    problem: str
    title: str
    rounds: int
    seed: int
    yardstick: str
    rows: tuple[Row, ...]
    tuned: tuple[Row, ...]
    ours: dict[str, float]  # regret of our agents that others are compared with
    left_out: dict[str, str]  # agent: why it cannot play
    seconds: dict[str, float]  # a trial's round, in a batch


class Comparison(NamedTuple):
    """All agents on all problems."""

    outcomes: tuple[Outcome, ...]
    left_out: dict[str, str]  # problem: why it was not played

    def exceptions(self, tuned: bool = False) -> list[tuple[Outcome, Row]]:
        """Where ours does not clearly win against an agent that is told no more; the worst first."""
        pairs = [
            (outcome, row)
            for outcome in self.outcomes
            for row in (outcome.tuned if tuned else outcome.rows)
            if row.exception
        ]
        return sorted(pairs, key=lambda pair: np.nan_to_num(pair[1].ratio.value, nan=1.0))

    def __str__(self) -> str:
        """The table, for people."""
        return text(self)


def ratio(other: Array, ours: Array) -> Ratio:
    """The ratio of the regrets (trials,) of another agent to ours; above 1 where ours is better."""
    value, error = quotient(other, ours)
    if not value > 0:  # with rewards of 0 or 1 the oracle is not a maximiser, and may be beaten
        return Ratio(np.nan, np.nan, np.nan)
    if len(ours) < 2:
        return Ratio(value, np.nan, np.nan)
    width = student_reach(len(ours) - 1) * error / value
    return Ratio(value, value * float(np.exp(-width)), value * float(np.exp(width)))


def held(agent: str, reference: str, information: str, regrets: dict[str, Array], setting: str = "") -> Row:
    """A row from the regrets (trials,) of two agents, over the trials that both have."""
    n = min(len(regrets[agent]), len(regrets[reference]))
    agent_regrets = regrets[agent][:n]
    mean, se = estimate(agent_regrets)
    return Row(
        agent, reference, information, ratio(agent_regrets, regrets[reference][:n]), mean, se, n, setting
    )


def seconds(
    agent: Agent, problem: Problem, *, rounds: int = ROUNDS, trials: int = TRIALS, seed: int = 0
) -> float:
    """Seconds per round and trial in a batch of `trials`, as a mean over the first `rounds` rounds.

    It counts deciding, learning and seeing true contexts; of the world's work, only drawing the rewards.
    """
    all_trials = range(trials)
    truth = problem.truth(truth_draws(seed, all_trials, problem.truth_draws()))
    player, nature = Player(agent, problem, truth, seed, all_trials), Nature(problem, seed, all_trials)
    spent = 0.0
    for t in range(rounds):
        normals, uniforms = nature.next(1)
        emission = emitted(problem, truth, normals[:, 0], uniforms[:, 0], np.asarray(t))
        draws = player.runner.normals.next(1)[:, 0]

        def pay(arm: Ints, context: Array = emission.context, normal: Array = normals[:, 0]) -> Array:
            score = np.vecdot(truth.features.at(context).row(arm), truth.theta)
            return problem.reward(score, normal)

        began = time.perf_counter()
        player.reveal(player.round(emission, draws, pay), emission)
        spent += time.perf_counter() - began
    return spent / (rounds * trials)


def plain(comparison: Comparison) -> dict[str, Any]:
    """The comparison as plain data for JSON; NaN becomes null."""
    outcomes = [
        {
            **outcome._asdict(),
            "rows": [_plain_row(r) for r in outcome.rows],
            "tuned": [_plain_row(r) for r in outcome.tuned],
        }
        for outcome in comparison.outcomes
    ]
    return {"outcomes": outcomes, "left_out": comparison.left_out}


def _plain_row(row: Row) -> dict[str, Any]:
    numbers = {**row.ratio._asdict(), "regret": row.regret, "regret_se": row.regret_se}
    words = {
        "agent": row.agent,
        "reference": row.reference,
        "information": row.information,
        "setting": row.setting,
    }
    return {
        **words,
        **{name: None if np.isnan(value) else float(value) for name, value in numbers.items()},
        "trials": row.trials,
    }


def from_plain(data: dict[str, Any]) -> Comparison:
    """The comparison from what `plain` returned."""
    outcomes = [
        Outcome(**outcome | {kind: tuple(map(_read_row, outcome[kind])) for kind in ("rows", "tuned")})
        for outcome in data["outcomes"]
    ]
    return Comparison(tuple(outcomes), data["left_out"])


def _read_row(row: dict[str, Any]) -> Row:
    fields: dict[str, Any] = {name: np.nan if value is None else value for name, value in row.items()}
    return Row(ratio=Ratio(*(fields.pop(name) for name in Ratio._fields)), **fields)


def text(comparison: Comparison) -> str:
    """The whole report in 80 columns."""
    parts = [fill(HEAD), exceptions(comparison), *_format_tables(comparison, False)]
    if any(outcome.tuned for outcome in comparison.outcomes):
        parts += [fill(TUNED), exceptions(comparison, tuned=True), *_format_tables(comparison, True)]
    parts += [times(comparison), _list_left_out(comparison)]
    return "\n\n".join(filter(None, parts))


def exceptions(comparison: Comparison, *, tuned: bool = False) -> str:
    """A line for each exception, the worst for ours first."""
    lines = [
        f"  {outcome.problem}: {row.agent} {cell(row)} of {row.reference}"
        for outcome, row in comparison.exceptions(tuned)
    ]
    return "\n".join([f"{EXCEPTIONS}:", *(lines or ["  nowhere"])])


def grouped(comparison: Comparison) -> list[tuple[str, list[Outcome]]]:
    """The outcomes in groups of problems, in their order."""
    groups = groupby(comparison.outcomes, key=lambda outcome: BENCHMARKS[outcome.problem].group)
    return [(name, list(members)) for name, members in groups]


def grid(outcomes: Sequence[Outcome], tuned: bool = False) -> tuple[list[str], list[list[str]]]:
    """The names of rows, and a cell for each of them on each problem."""
    tables = [{label(row): row for row in (x.tuned if tuned else x.rows)} for x in outcomes]
    names = list(
        dict.fromkeys(
            name for ours in (False, True) for table in tables for name in _select_names(table, ours)
        )
    )
    cells = [[cell(table[name]) if name in table else NOTHING for table in tables] for name in names]
    return names, cells


def _select_names(table: dict[str, Row], ours: bool) -> list[str]:
    """The names of the rows of ours, or of the others."""
    return [name for name, row in table.items() if (row.information == "ours") is ours]


def label(row: Row) -> str:
    """The name of a row; one compared with the agent that is told the bias says so."""
    if row.information == "ours":
        return f"(ours) {row.agent}"
    return f"{row.agent} / {KNOWN_BIAS}" if row.reference == KNOWN_BIAS else row.agent


def cell(row: Row) -> str:
    """The ratio with its mark and interval, and the setting that was chosen."""
    setting = "" if row.setting in ("", "as published") else f" {row.setting}"
    return f"{interval(row.ratio, MARKS.get(row.information, ''))}{setting}"


def interval(ratio: Ratio, mark: str = "") -> str:
    """A ratio and its interval as text."""
    if np.isnan(ratio.value):
        return NOTHING
    if np.isnan(ratio.low):
        return f"{number(ratio.value)}{mark}"
    return f"{number(ratio.value)}{mark} [{number(ratio.low)}, {number(ratio.high)}]"


def number(value: float) -> str:
    """A number with about three digits."""
    places = 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:,.{places}f}"


def _format_tables(comparison: Comparison, tuned: bool) -> list[str]:
    parts = list[str]()
    for _, outcomes in grouped(comparison):
        names, cells = grid(outcomes, tuned)
        if not names:
            continue
        titles = [outcome.problem for outcome in outcomes]
        remarks = [f"Regret {yardstick(outcomes)}; after the last round:", *map(of_ours, outcomes)]
        footnotes = "\n".join(fill(line, "  ") for line in remarks)
        parts += [columns("agent", names, titles, cells), *([] if tuned else [footnotes])]
    return parts


def yardstick(outcomes: Sequence[Outcome]) -> str:
    """What the regret of these problems is measured against."""
    return "; ".join(dict.fromkeys(one.yardstick for one in outcomes))


def of_ours(outcome: Outcome) -> str:
    """The agents of ours that others are divided by, with their regrets."""
    regrets = ", ".join(f"{name} {number(value)}" for name, value in outcome.ours.items())
    trials = sorted({row.trials for row in outcome.rows})
    span = str(trials[0]) if len(trials) < 2 else f"{trials[0]} to {trials[-1]}"
    return f"{outcome.problem}: {outcome.title}; {outcome.rounds} rounds, {span} trials; {regrets}"


def times(comparison: Comparison) -> str:
    """A table of how long a round takes."""
    rows = [[f"{number(low)} to {number(high)}"] for low, high in spans(comparison).values()]
    if not rows:
        return ""
    table = columns("agent", list(spans(comparison)), ["microseconds of a trial's round, in batch"], rows)
    return f"{table}\n{fill(TIMES)}"


def spans(comparison: Comparison) -> dict[str, tuple[float, float]]:
    """Microseconds per round and trial, on the quickest problem and the slowest."""
    names = dict.fromkeys(name for outcome in comparison.outcomes for name in outcome.seconds)
    microseconds = {
        name: [1e6 * outcome.seconds[name] for outcome in comparison.outcomes if name in outcome.seconds]
        for name in names
    }
    return {name: (min(values), max(values)) for name, values in microseconds.items()}


def _list_left_out(comparison: Comparison) -> str:
    """The problems that were not played, and the agents that could not play one."""
    lines = [f"{name} was not played: {why}" for name, why in comparison.left_out.items()]
    for outcome in comparison.outcomes:
        reasons = dict[str, list[str]]()
        for name, why in outcome.left_out.items():
            reasons.setdefault(why, []).append(name)
        lines += [f"{outcome.problem} without {', '.join(names)}: {why}" for why, names in reasons.items()]
    return "\n".join(fill(line, "  ") for line in lines)


def markdown(outcomes: Sequence[Outcome], tuned: bool = False) -> str:
    """A table for a page; bold where ours does not clearly win against an agent that is told no more."""
    names, cells = grid(outcomes, tuned)
    bold = {
        (label(row), outcome.problem)
        for outcome in outcomes
        for row in (outcome.tuned if tuned else outcome.rows)
        if row.exception
    }
    head = ["agent", *(outcome.problem for outcome in outcomes)]
    lines = [head, ["---"] + ["---:"] * len(outcomes)]
    for name, row in zip(names, cells, strict=True):
        texts = [
            f"**{text}**" if (name, outcome.problem) in bold else text
            for text, outcome in zip(row, outcomes, strict=True)
        ]
        lines.append([_quote_names(name), *texts])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _quote_names(name: str) -> str:
    """A row's name with its agents in code quotes."""
    ours, _, bare = name.rpartition("(ours) ")
    return f"{'(ours) ' * bool(ours or name.startswith('(ours)'))}" + " / ".join(
        f"`{part}`" for part in bare.split(" / ")
    )


def figure(comparison: Comparison, title: str = "") -> "Figure":
    """Draw the ratios with their intervals; tuned ones as small crosses below."""
    names = _row_names(comparison.outcomes)
    across = min(ACROSS, max(1, len(comparison.outcomes)))
    down = max(1, -(-len(comparison.outcomes) // across))
    wide = 1.8 + 1.55 * across  # inches: two columns of print for three panels, a page on its side for five
    with new_figure(wide, 0.9 + down * (0.6 + 0.13 * len(names))) as chart:
        panels = chart.subplots(down, across, squeeze=False, sharey=True).ravel()
        for axes, outcome in zip(panels, comparison.outcomes, strict=False):
            _draw_panel(axes, outcome, names)
        for axes in panels[len(comparison.outcomes) :]:
            axes.axis("off")
        panels[0].set_ylim(len(names) - 0.4, -0.6)
        handles = _legend_entries(any(outcome.tuned for outcome in comparison.outcomes))
        ncols = 3 if across == ACROSS else 2
        chart.legend(handles=handles, loc="outside lower center", ncols=ncols, fontsize=7.5)
        heading = title or "Regret as a ratio to ours on the same trials: right of the line ours is better"
        add_title(chart, heading, 10)
    return chart


def _row_names(outcomes: Sequence[Outcome]) -> list[str]:
    """The names of the rows: baselines in their order, then others of ours."""
    rows = [row for outcome in outcomes for row in outcome.rows]
    return list(dict.fromkeys(label(row) for ours in (False, True) for row in rows if _is_ours(row) is ours))


def _is_ours(row: Row) -> bool:
    return row.information == "ours"


def _draw_panel(axes: "Axes", outcome: Outcome, names: Sequence[str]) -> None:
    """Draw the ratios on one problem as dots with bars; an agent that does not play has none."""
    axes.axvline(1, color="0.35", linewidth=0.9)
    for row in outcome.rows:
        colour, mark = SIDES[row.information]
        _draw_ratio(axes, row, names.index(label(row)), colour, mark)
    for row in outcome.tuned:
        _draw_ratio(axes, row, names.index(label(row)) + 0.3, RED if not _is_ours(row) else GREEN, "x")
    axes.set_xscale("log")
    _set_ticks(axes)
    axes.set_yticks(range(len(names)), names, fontsize=7, parse_math=False)
    ours = textwrap.fill(f"to {', '.join(outcome.ours)}", 24)
    title_panel(axes, f"{outcome.problem}\n{ours}", 7)
    axes.grid(axis="y", color="0.93", linewidth=0.7)
    axes.set_axisbelow(True)


def _draw_ratio(axes: "Axes", row: Row, y: float, colour: str, mark: str) -> None:
    value, low, high = row.ratio
    if np.isnan(value):
        return
    ends = None if np.isnan(low) else [[value - low], [high - value]]
    hollow = "white" if row.information == "less" else colour
    size = 3.5 if mark != "x" else 3
    axes.errorbar(
        [value], [y], xerr=ends, fmt=mark, color=colour, mfc=hollow, markersize=size, elinewidth=0.9
    )


def _set_ticks(axes: "Axes") -> None:
    """A few ticks, labelled with plain numbers."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    low, high = axes.get_xlim()
    low, high = min(low, 0.8), max(high, 1.25)
    axes.set_xlim(low, high)
    inside = [tick for tick in TICKS if low <= tick <= high]
    axes.set_xticks(inside if len(inside) < 6 else [t for t in inside if t not in (0.2, 2, 5, 20, 50)])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.tick_params(axis="x", labelsize=7)


def _legend_entries(tuned: bool) -> "list[Line2D]":
    from matplotlib.lines import Line2D

    def entry(colour: str, mark: str, text: str, face: str | None = None) -> "Line2D":
        return Line2D([], [], color=colour, marker=mark, linestyle="", mfc=face or colour, label=text)

    entries = [
        entry(BLUE, "o", "told no more than ours"),
        entry(BLUE, "o", "ours is shown true contexts, it makes no use of them", "white"),
        entry(ORANGE, "s", "told more"),
        entry(GREEN, "D", "others of ours"),
    ]
    return [*entries, entry(RED, "x", "tuned, both")] if tuned else entries
