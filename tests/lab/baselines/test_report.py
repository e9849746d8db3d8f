"""Tables and the picture of ratios that are known."""

import numpy as np
import pytest

from unfog.lab.baselines.problems import BENCHMARKS
from unfog.lab.baselines.report import (
    Comparison,
    Outcome,
    Ratio,
    Row,
    cell,
    figure,
    label,
    markdown,
    number,
    text,
)

NOTHING = Ratio(np.nan, np.nan, np.nan)


def outcome(problem: str, *rows: Row, tuned: tuple[Row, ...] = ()) -> Outcome:
    place = BENCHMARKS[problem]
    took = {row.agent: 2e-6 for row in rows}
    about = problem, place.title, 1000, 0, place.yardstick
    return Outcome(*about, rows, tuned, {"unfog": 274.25}, {"meb": "it sees"}, took)


def row(agent: str, *found: float, told: str = "same", reference: str = "unfog", setting: str = "") -> Row:
    return Row(agent, reference, told, Ratio(*found), 300.0, 2.0, 400, setting)


@pytest.fixture
def comparison() -> Comparison:
    first = outcome(
        "fig1-gaussian",
        row("linucb", 1.51, 1.42, 1.6),
        row("oful", 0.97, 0.95, 0.99),
        row("park", 0.9, 0.8, 1.1, told="more"),
        row("park", 1.3, 1.2, 1.4, reference="unfog-oracle"),
        row("unfog-delayed", 0.8, 0.7, 0.9, told="ours"),
        tuned=(row("linucb", 1.02, 0.99, 1.05, setting="alpha=0.1"),),
    )
    air = outcome("airquality-some", row("linucb", 1.2, 1.1, 1.3, told="less", reference="late"))
    return Comparison((first, air), {"drift": "no file"})


def test_exceptions_come_first(comparison: Comparison) -> None:
    lines = str(comparison).splitlines()
    start = lines.index("Where ours does not win beyond doubt against one that is told no more:")
    assert lines[start + 1] == "  fig1-gaussian: oful 0.97 [0.95, 0.99] of unfog"
    assert lines[start + 2] == ""
    assert start < next(i for i, line in enumerate(lines) if line.startswith("agent"))
    assert "  fig1-gaussian: linucb 1.02 [0.99, 1.05] alpha=0.1 of unfog" in lines


def test_all_is_said_in_eighty_columns(comparison: Comparison) -> None:
    said = text(comparison)
    assert max(map(len, said.splitlines())) <= 80
    words = " ".join(said.split())
    assert "park 0.90+ [0.80, 1.10]" in words
    assert "park / unfog-oracle 1.30 [1.20, 1.40]" in words
    assert "(ours) unfog-delayed 0.80 [0.70, 0.90]" in words
    assert "linucb 1.20- [1.10, 1.30]" in words
    assert "Regret against the best action for the true context" in words
    assert "(Bayesian oracle)" in words
    assert "1000 rounds, 400 trials; unfog 274" in words
    assert "fig1-gaussian without meb: it sees" in words
    assert "drift was not played: no file" in words
    assert "Time is the mean over the first 50 rounds" in words
    assert "from six or seven values, the published one among them" in words


def test_nowhere_is_said_too() -> None:
    found = Comparison((outcome("drift", row("linucb", 1.5, 1.4, 1.6)),), {})
    assert "  nowhere" in text(found).splitlines()
    assert "One setting each" not in text(found)


def test_numbers_have_three_digits() -> None:
    assert [number(x) for x in (0.123, 9.876, 12.34, 1234.5)] == ["0.12", "9.88", "12.3", "1,234"]
    assert cell(row("linucb", *NOTHING)) == "–"
    assert cell(row("linucb", 1.5, np.nan, np.nan, told="more")) == "1.50+"


def test_a_page_has_the_same_in_bold(comparison: Comparison) -> None:
    lines = markdown(comparison.outcomes[:1]).splitlines()
    assert lines[0] == "| agent | fig1-gaussian |"
    assert "| `linucb` | 1.51 [1.42, 1.60] |" in lines
    assert "| `oful` | **0.97 [0.95, 0.99]** |" in lines
    assert "| `park` | 0.90+ [0.80, 1.10] |" in lines
    assert "| `park` / `unfog-oracle` | 1.30 [1.20, 1.40] |" in lines
    assert "| (ours) `unfog-delayed` | 0.80 [0.70, 0.90] |" in lines
    assert "alpha=0.1" in markdown(comparison.outcomes[:1], tuned=True)


def test_the_picture_shows_every_ratio(comparison: Comparison) -> None:
    chart = figure(comparison)
    first, air = chart.axes[:2]
    names = [tick.get_text() for tick in first.get_yticklabels()]
    assert names == ["linucb", "oful", "park", "park / unfog-oracle", "(ours) unfog-delayed"]
    drawn = {(c.lines[0].get_xdata()[0], c.lines[0].get_ydata()[0]) for c in first.containers}  # type: ignore[attr-defined]
    one = comparison.outcomes[0]
    wanted = {(r.ratio.value, names.index(label(r))) for r in one.rows} | {(1.02, 0.3)}
    assert drawn == wanted
    assert [axes.get_xscale() for axes in (first, air)] == ["log", "log"]
    assert air.get_title(loc="left").startswith("airquality-some")
    assert len(chart.legends[0].get_texts()) == 5
