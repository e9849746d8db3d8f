"""A run's table for people: regret, its difference from one reference, and what else is asked for.

agent       regret  minus oracle
alg1    24.4 ± 6.0    +0.1 ± 1.4
oracle  24.3 ± 6.4             -

It fits in 80 columns. The reference is `oracle` where it plays, else the first agent, and always that of the
same setting: a row of a sweep is never compared with a row of another setting.
"""

import textwrap
from collections.abc import Sequence
from typing import Any, NamedTuple

from scipy.special import stdtrit

from unfog.lab import report_words, sweep_table, until_said
from unfog.lab.dataset import Flat
from unfog.lab.terminal import WIDTH, columns
from unfog.theory import regret as spread
from unfog.theory.regret import BAYES, PLAIN, REALISED, SPLIT

TITLES = {
    REALISED: "realised",
    BAYES: "bayes",
    PLAIN[1]: "true-context",
    PLAIN[2]: "plug-in",
    "linear_share": "linear",
}
LOSSES = (*SPLIT, REALISED, BAYES, *PLAIN[1:])  # in this order
SPREAD = {**dict.fromkeys(spread.QUANTILES, 1), "linear_share": 2}  # with so many digits
REFERENCE = "oracle"
UNNAMED = "minus reference"  # for a name that is too long to stand above a column
LONGEST = 28  # letters above a column


class Rows(NamedTuple):
    """Who stands in each row, and whom it is compared with, both by their keys in the summary."""

    names: list[str]
    against: list[str]
    reference: str  # what it is called in every setting; empty where it differs

    @property
    def compared(self) -> bool:
        """Whether anybody is compared with another."""
        return self.names != self.against

    @property
    def title(self) -> str:
        """Of the column of differences."""
        title = f"minus {self.reference}"
        return title if self.reference and len(title) <= LONGEST else UNNAMED


def text(
    found: Flat,
    facts: dict[str, Any],
    labels: Sequence[str],
    *,
    seconds: float | None,
    parts: bool,
    tails: bool,
) -> str:
    """The whole of it, from a run's summary; `labels` are what a sweep's settings are called."""
    swept = bool(found.settings[0])
    rows = _rows(found, [] if swept else labels)
    shown = [loss for loss in LOSSES if parts and loss in found.losses]
    spreads = [*SPREAD] if tails else []
    cells = _cells(facts, rows, shown, spreads, quantile(found.trials))
    titles = ["regret", *([rows.title] if rows.compared else [])]
    titles += [TITLES.get(name, name) for name in (*shown, *spreads)]
    if swept:
        lines = sweep_table.lines(found, titles, cells)
    else:
        lines = [columns("agent", found.agents, titles, cells)]
    ratios = until_said.ratios(facts, quantile(found.trials))
    reference = rows.reference if rows.compared and rows.title == UNNAMED else ""
    below = report_words.below(rows.compared, reference, shown if parts else None, tails)
    return "\n".join([*_head(facts, seconds), *lines, *ratios, *below])


def quantile(trials: int) -> float:
    """How many standard errors make half a 95 % interval: Student's t, since trials may be few."""
    return float(stdtrit(trials - 1, 0.975)) if trials > 1 else 0.0


def _head(facts: dict[str, Any], seconds: float | None) -> list[str]:
    """The lines above a table."""
    took = "" if seconds is None else f", {seconds:.1f} s"
    told = f"{facts['trials']} trials, {facts['rounds']} rounds, seed {facts['seed']}{took}"
    note = textwrap.wrap(f"note: {facts['note']}", WIDTH) if "note" in facts else []
    return [*textwrap.wrap(f"{facts['experiment']}: {told}", WIDTH), *until_said.found(facts), *note]


def _rows(found: Flat, labels: Sequence[str]) -> Rows:
    """The rows of all settings; one's reference is the usual one of its own setting, or the first.

    Folders of older versions have settings in the names of their agents: `labels` are how these end.
    """
    pairs = [(name, label) for label in found.labels for name in found.agents]
    if any(labels):
        ends = [next((x for x in labels if x and name.endswith(x)), "") for name, _ in pairs]
        pairs = [(name.removesuffix(end), end) for (name, _), end in zip(pairs, ends, strict=True)]
    first = {label: name for name, label in reversed(pairs)}
    whom = {label: REFERENCE if (REFERENCE, label) in pairs else name for label, name in first.items()}
    shared = {*whom.values()}
    names = [name + label for name, label in pairs]
    return Rows(names, [whom[label] + label for _, label in pairs], shared.pop() if len(shared) == 1 else "")


def _cells(
    facts: dict[str, Any], rows: Rows, shown: Sequence[str], spreads: Sequence[str], width: float
) -> list[list[str]]:
    """The numbers of each row."""
    cells = []
    for name, against in zip(rows.names, rows.against, strict=True):
        row = facts["agents"][name]
        gap = [_paired(facts["pairs"], name, against, width)] if rows.compared else []
        losses = [_pm(row.get(loss), row.get(f"{loss}_se"), width) for loss in shown]
        tails = [_spread(row[x], SPREAD[x]) for x in spreads]
        cells.append([_pm(row["regret"], row["se"], width), *gap, *losses, *tails])
    return cells


def _spread(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:z.{digits}f}"


def _paired(pairs: dict[str, Any], name: str, against: str, width: float) -> str:
    if name == against:
        return "-"
    flip = f"{name} - {against}" not in pairs
    pair = pairs[f"{against} - {name}" if flip else f"{name} - {against}"]
    return _pm(-pair["mean"] if flip else pair["mean"], pair["se"], width, "+")


def _pm(mean: float | None, se: float | None, width: float, sign: str = "") -> str:
    if mean is None:
        return "-"
    half = "" if se is None else f" ± {width * se:.1f}"
    return f"{mean:{sign}z.1f}{half}"
