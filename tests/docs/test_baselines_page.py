"""What docs/science/baselines.md and its record say was measured was measured; every baseline is named."""

import json
import re
from typing import Any

import pytest
from benchmarks.baselines_page import FOUND, PAGE, PARTS, RECORD, refreshed

from unfog.agents.baselines import BASELINES
from unfog.lab.baselines.problems import ORACLE
from unfog.lab.baselines.report import Comparison, Outcome, Ratio, Row, plain


def test_the_pages_have_a_place_for_every_part() -> None:
    text = PAGE.read_text("utf-8") + RECORD.read_text("utf-8")
    assert re.findall(r"<!-- measured: (\w+) -->", text) == list(PARTS)


def test_measured_parts_are_those_of_the_results() -> None:
    if not FOUND.exists():
        pytest.skip("not measured yet: python benchmarks/baselines.py")
    found = json.loads(FOUND.read_text("utf-8"))
    for page in (PAGE, RECORD):
        text = page.read_text("utf-8")
        assert refreshed(text, found) == text, f"{page}: python benchmarks/baselines_page.py"
    assert found["quick"] is False
    counts = re.findall(r"(\d+) of (\d+) comparisons, in (\d+) of which", PARTS["exceptions"](found))
    (all_, total, lost), (tuned, _, lost_tuned) = counts
    said = " ".join(PAGE.read_text("utf-8").split())
    assert f"In {lost} of {total} comparisons" in said
    assert f"in {lost_tuned} of {total} where all are tuned" in said
    assert f"In {int(all_) - int(lost)} and {int(tuned) - int(lost_tuned)} more" in said


@pytest.fixture
def found() -> dict[str, Any]:
    """A result of which everything is known."""
    rows = (
        Row("linucb", "unfog", "same", Ratio(1.5, 1.4, 1.6), 30.0, 1.0, 200),
        Row("oful", "unfog", "same", Ratio(0.9, 0.8, 0.95), 18.0, 1.0, 200),
        Row("meb", "unfog", "same", Ratio(1.05, 0.9, 1.2), 21.0, 1.0, 200, "p0=0.1"),
    )
    took = {"linucb": 2e-6, "oful": 3e-6, "meb": 4e-6}
    one = Outcome("drift", "A bias that walks", 1000, 0, ORACLE, rows, rows, {"unfog": 20.0}, {}, took)
    return {
        **plain(Comparison((one,), {})),
        "tuning": {"seed": 1000, "trials": {"quick": 20}, "dear_rounds": 4},
        "machine": {"cores": 2, "load": 0.1},
        "plain": {"linucb": {"plain_us": 50.0, "batch_us": 2.0, "ratio": 0.04}, "oful": {"error": "no"}},
    }


def test_the_overview_counts_fair_comparisons(found: dict[str, Any]) -> None:
    text = PARTS["overview"](found)
    assert "| `linucb` | nothing | 1.50 (1.50 to 1.50) | 1 of 1 | 1.50 (1.50 to 1.50) | 1 of 1 |" in text
    assert "| 0.90 (0.90 to 0.90) | 0 of 1 |" in text
    assert "that is 1 of 3 in all" in " ".join(text.split())
    rows = found["outcomes"][0]["rows"]
    rows += [
        {**rows[0], "value": 2.5, "low": 2.4, "high": 2.6},
        {**rows[0], "value": 9.0, "information": "more"},
    ]
    rows += [{**rows[0], "agent": "kk-observed", "information": "more"}]
    text = PARTS["overview"](found)
    assert "| 2.00 (1.50 to 2.50) | 2 of 2 |" in text  # that told more than ours is no fair one
    assert "| 1.50+ (1.50 to 1.50) | 1 of 1 | – | – |" in text


def test_exceptions_say_where_ours_loses(found: dict[str, Any]) -> None:
    text = PARTS["exceptions"](found)
    assert "2 of 3 comparisons, in 1 of which ours loses beyond doubt" in text
    assert text.index("drift: `oful` 0.90 [0.80, 0.95] of `unfog`") < text.index("`meb` (p0=0.1) 1.05")
    assert "`linucb`" not in text


def test_tables_name_the_regret_and_the_settings(found: dict[str, Any]) -> None:
    assert "(Bayesian oracle)" in PARTS["published"](found)
    assert "| `oful` | **0.90 [0.80, 0.95]** |" in PARTS["published"](found)
    assert "chosen on seed 1000" in PARTS["tuned"](found)
    assert "| `linucb` | 2.0 to 2.0 | 50.0 | 0.040 |" in PARTS["speed"](found)
    assert "None is more than 3 times as slow" in PARTS["speed"](found)
    found["plain"]["linucb"]["ratio"] = 4.0
    said = " ".join(PARTS["speed"](found).split())
    assert "More than 3 times as slow as their plain step: `linucb`." in said


def test_every_baseline_says_what_it_is_told(found: dict[str, Any]) -> None:
    lines = PARTS["told"](found).splitlines()[2:]
    assert [line.split("`")[1] for line in lines] == list(BASELINES)
    for line in lines:
        assert all(cell.strip() for cell in line.strip("|").split(" | ")), line
