"""What docs/science/rivals.md says was measured is what was measured, and it names every rival."""

import json
import re
from typing import Any

import pytest
from benchmarks.rivals_page import FOUND, PAGE, PARTS, refreshed

from unfog.agents.rivals.rows import RIVALS
from unfog.lab.rivals.problems import ORACLE
from unfog.lab.rivals.table import Comparison, Outcome, Ratio, Row, plain


def test_the_page_has_a_place_for_every_part() -> None:
    page = PAGE.read_text("utf-8")
    assert re.findall(r"<!-- measured: (\w+) -->", page) == list(PARTS)


def test_measured_parts_are_those_of_the_results() -> None:
    if not FOUND.exists():
        pytest.skip("not measured yet: python benchmarks/rivals.py")
    page, found = PAGE.read_text("utf-8"), json.loads(FOUND.read_text("utf-8"))
    assert refreshed(page, found) == page, "python benchmarks/rivals_page.py"
    assert found["quick"] is False


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


def test_every_rival_says_what_it_is_told(found: dict[str, Any]) -> None:
    lines = PARTS["told"](found).splitlines()[2:]
    assert [line.split("`")[1] for line in lines] == list(RIVALS)
    for line in lines:
        assert all(cell.strip() for cell in line.strip("|").split(" | ")), line
