"""The measured parts of docs/science/baselines.md, its record in docs/notebook and its picture.

    python benchmarks/baselines_page.py    # writes what stands between markers of the pages, and the picture

All of it is from benchmarks/results/baselines.json alone. A part stands between `<!-- measured: NAME -->` and
`<!-- end -->`; what is around it is written by hand. `benchmarks/baselines.py` measures.
"""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.wording import RESULTS, ROOT, Row, item, said, short, table
from unfog.agents.baselines import BASELINES
from unfog.lab.baselines.report import (
    Comparison,
    Outcome,
    figure,
    from_plain,
    grouped,
    markdown,
    number,
    of_ours,
    spans,
    yardstick,
)
from unfog.lab.baselines.report import Row as SuiteRow

PAGE = ROOT / "docs" / "science" / "baselines.md"
RECORD = ROOT / "docs" / "notebook" / "baselines.md"
FOUND = RESULTS / "baselines.json"
PICTURE = ROOT / "docs" / "images" / "baselines.png"
GROUPS = {
    "paper": "The paper's experiments, and correlated noise",
    "air": "Air Quality",
    "trouble": "Outliers, a bias that walks, lost coordinates",
}
REGRETS = {
    "regret": "Bayesian oracle",
    "regret_true_context": "true context",
    "regret_plug_in": "noisy context",
}
LIMIT = 3.0  # times that a batched round may take of a plain step


def overview(found: Row) -> str:
    """One line a baseline: what it must be told, and its ratios to one of ours that is told the same."""
    every = from_plain(found)
    rows = [
        [f"`{name}`", baseline.needs, *_spread(_fair(every, name, False)), *_spread(_fair(every, name, True))]
        for name, baseline in BASELINES.items()
        if _fair(every, name, False)
    ]
    fair = [row for name in BASELINES for row in _fair(every, name, False) if row.information == "same"]
    head = ["agent", "must be told", "ratio, as published", "ours wins", "ratio, tuned", "ours wins"]
    below = said(f"""The ratio is the median over the problems of the comparison, and in brackets the least
        and the most of them. "Ours wins" counts the problems in which it does beyond doubt; with constants as
        published that is {sum(row.ratio.wins for row in fair)} of {len(fair)} in all. A problem that shows
        true contexts to ours counts for a baseline that is shown them, too. A + marks one that is told more
        than any of ours that it could be held against: the bias, besides true contexts.""")
    return f"{table(head, rows, left=2)}\n\n{below}"


def _fair(every: Comparison, name: str, tuned: bool) -> list[SuiteRow]:
    """A baseline beside one of ours that is told the same, or less if there is none."""
    rows = [row for one in every.outcomes for row in _rows(one, tuned) if row.agent == name]
    return [row for row in rows if row.information == "same"] or [
        row for row in rows if row.information == "more"
    ]


def _spread(rows: list[SuiteRow]) -> list[str]:
    """The median of ratios, the least and the most, and how many of them ours wins."""
    values = sorted(row.ratio.value for row in rows)
    if not values:
        return ["–", "–"]
    more = "+" * any(row.information == "more" for row in rows)
    middle = f"{number(median(values))}{more} ({number(values[0])} to {number(values[-1])})"
    return [middle, f"{sum(row.ratio.wins for row in rows)} of {len(rows)}"]


def exceptions(found: Row) -> str:
    """Where ours does not win beyond doubt against one that is told no more; the worst first."""
    every = from_plain(found)
    parts = list[str]()
    for tuned, name in ((False, "Constants as published"), (True, "Tuned, theirs and ours")):
        rows = every.exceptions(tuned)
        total = sum(
            row.information in ("same", "less") for one in every.outcomes for row in _rows(one, tuned)
        )
        lost = sum(row.ratio.loses for _, row in rows)
        count = f"{len(rows)} of {total} comparisons, in {lost} of which ours loses beyond doubt"
        parts.append(f"**{name}**: {count if rows else f'none of {total} comparisons'}.")
        if rows:
            parts.append("\n".join(_exception(one, row) for one, row in rows))
    return "\n\n".join(parts)


def _rows(one: Outcome, tuned: bool) -> tuple[SuiteRow, ...]:
    return one.tuned if tuned else one.rows


def _exception(one: Outcome, row: SuiteRow) -> str:
    ends = f"[{number(row.ratio.low)}, {number(row.ratio.high)}]"
    chosen = f" ({row.setting})" if row.setting not in ("", "as published") else ""
    return item(
        f"{one.problem}: `{row.agent}`{chosen} {number(row.ratio.value)} {ends} of `{row.reference}`,"
        f" {row.trials} trials"
    )


def published(found: Row) -> str:
    """A table for each group of problems."""
    return _tables(from_plain(found), False)


def tuned(found: Row) -> str:
    """Likewise, with one setting each chosen on other seeds."""
    how = found["tuning"]
    trials = ", ".join(f"{pace} agents on {n}" for pace, n in how["trials"].items())
    below = said(f"""Settings were chosen on seed {how["seed"]} by the least mean regret, {trials} trials;
        dear ones over one round in {how["dear_rounds"]}. The setting is named where it is not the published
        one.""")
    return f"{_tables(from_plain(found), True)}\n\n{below}"


def _tables(every: Comparison, tuned: bool) -> str:
    parts = list[str]()
    for group, outcomes in grouped(every):
        parts += [f"### {GROUPS[group]}{', tuned' * tuned}", markdown(outcomes, tuned)]
        parts.append(said(f"Regret {yardstick(outcomes)}. Of ours, after the last round:"))
        parts.append("\n".join(item(of_ours(one)) for one in outcomes))
    return "\n\n".join(parts)


def knowledge_table(_: Row) -> str:
    """What each must be told and sees, from the rows themselves."""
    rows = [
        [
            f"`{name}`",
            baseline.agent.reference or "–",
            baseline.needs,
            baseline.sees,
            REGRETS.get(baseline.regret, baseline.regret),
            f"`{baseline.home}`" if baseline.home else "–",
            baseline.sure,
        ]
        for name, baseline in BASELINES.items()
    ]
    head = ["agent", "paper", "must be told", "sees", "its paper's regret", "at home", "how sure we are"]
    return table(head, rows, left=len(head))


def speed(found: Row) -> str:
    """Microseconds of a round in batch, and against a plain step."""
    every, alone = spans(from_plain(found)), found["plain"]
    rows = []
    for name, (low, high) in every.items():
        one = alone.get(name, {})
        timed = "ratio" in one
        cells = [short(one["plain_us"]), short(one["ratio"], 2)] if timed else ["–", "–"]
        rows.append([f"`{name}`", f"{short(low, 2)} to {short(high, 2)}", *cells])
    slow = [f"`{name}`" for name, one in alone.items() if one.get("ratio", 0) > LIMIT]
    worst = max((one["ratio"] for one in alone.values() if "ratio" in one), default=0.0)
    verdict = (
        f"More than {LIMIT:g} times as slow as their plain step: {', '.join(slow)}."
        if slow
        else f"None is more than {LIMIT:g} times as slow as its plain step; the largest ratio is {worst:.2f}."
    )
    below = said(f"""Microseconds of one trial's round: in a batch of 100 trials, the first 50 rounds, from
        the quickest problem to the slowest; a plain NumPy step, one trial at a time with matrices and
        inverses as the formulas have them; and the batched round over the plain step, on the plain one's
        problem. {verdict} {found["machine"]["cores"]} cores, load average {found["machine"]["load"]:.1f}
        before the run.""")
    head = ["agent", "in batch, µs", "plain step, µs", "ratio"]
    return f"{table(head, rows)}\n\n{below}"


PARTS: dict[str, Callable[[Row], str]] = {
    "overview": overview,
    "told": knowledge_table,
    "exceptions": exceptions,
    "published": published,
    "tuned": tuned,
    "speed": speed,
}


def refreshed(text: str, found: Row) -> str:
    """A page with every measured part as the results have it."""

    def part(match: re.Match[str]) -> str:
        return f"{match[1]}\n\n{PARTS[match[2]](found)}\n\n{match[3]}"

    return re.sub(r"(<!-- measured: (\w+) -->)\n.*?\n(<!-- end -->)", part, text, flags=re.S)


def main() -> None:
    found = json.loads(Path(sys.argv[1] if len(sys.argv) > 1 else FOUND).read_text("utf-8"))
    figure(from_plain(found)).savefig(PICTURE)
    for page in (PAGE, RECORD):
        page.write_text(refreshed(page.read_text("utf-8"), found), "utf-8")


if __name__ == "__main__":
    main()
