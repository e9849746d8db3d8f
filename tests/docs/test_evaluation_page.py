"""What docs/guide/evaluation.md says was measured is what was measured."""

import json

from benchmarks.evaluation_page import FOUND, PAGE, PARTS, refreshed


def test_measured_parts_are_those_of_the_results() -> None:
    page, found = PAGE.read_text("utf-8"), json.loads(FOUND.read_text("utf-8"))
    assert [name for name in PARTS if f"<!-- measured: {name} -->" not in page] == []
    assert refreshed(page, found) == page, "python benchmarks/evaluation_page.py"
    found["noise"]["truth"] += 1.0
    assert refreshed(page, found) != page
    assert found["quick"] is False
