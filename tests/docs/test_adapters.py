"""The table of docs/notebook/adapters.md is what was measured."""

import json
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_table_is_that_of_the_results() -> None:
    page = (ROOT / "docs/notebook/adapters.md").read_text("utf-8")
    found = json.loads((ROOT / "benchmarks/results/wrapped.json").read_text("utf-8"))
    assert len(found["rows"]) == 30
    for row in found["rows"]:
        alone, wrapped = ("{:.0f} ± {:.0f}".format(*row[part]) for part in ("alone", "wrapped"))
        less, half = (100 * part for part in row["less"])
        start = f"| {row['title']} | {row['library']} | {alone} | {wrapped} | {less:.1f} ± {half:.1f} |"
        assert start in page, start
    assert f"{found['trials']} trials of {found['rounds']:,} rounds" in page
