"""What docs/notebook/evaluation.md says was measured is what was measured; so is what the guide repeats."""

import json

from benchmarks.evaluation_page import FOUND, GUIDE, PAGE, PARTS, refreshed


def test_measured_parts_are_those_of_the_results() -> None:
    page, found = PAGE.read_text("utf-8"), json.loads(FOUND.read_text("utf-8"))
    assert [name for name in PARTS if f"<!-- measured: {name} -->" not in page] == []
    assert refreshed(page, found) == page, "python benchmarks/evaluation_page.py"
    found["noise"]["truth"] += 1.0
    assert refreshed(page, found) != page
    assert found["quick"] is False


def test_the_guide_repeats_numbers_of_the_results() -> None:
    guide, found = " ".join(GUIDE.read_text("utf-8").split()), json.loads(FOUND.read_text("utf-8"))
    fixed, learning = (found["estimates"][kind] for kind in ("fixed", "learning"))
    one, other = (kind["adaptive"]["dr"] for kind in (fixed, learning))
    speed = found["speed"]
    for said in (
        f"{fixed['logs']:,} logs of 4,000 rounds",
        f"The value is {fixed['truth']:.3f}, and `dr` was off by {one['rmse']:.3f} and {other['rmse']:.3f}",
        f"held in {100 * one['coverage']:.1f} % and {100 * other['coverage']:.1f} % of the logs",
        f"{speed['rounds']:,} rounds and {speed['policies']} policies takes {speed['s']:.1f} s",
    ):
        assert said in guide
