"""What docs/reference/spec.md says of stopping is what was measured."""

import json
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_numbers_are_those_of_the_results() -> None:
    page = " ".join((ROOT / "docs/reference/spec.md").read_text("utf-8").split())
    found = json.loads((ROOT / "benchmarks/results/until.json").read_text("utf-8"))

    def shares(kind: str, way: str, ratios: slice) -> str:
        held = [100 * share for row in found[kind] for share in row[way]["held"][ratios]]
        return f"{min(held):.1f} to {max(held):.1f} %"

    asked = ", ".join(str(row["asked"]) for row in found["plain"])
    trials = ", ".join(f"{row['trials'][1]:,}" for row in found["plain"])
    for said in (
        f"{found['samples']:,} samples of a large run of `fig1-gaussian` ({found['rounds']} rounds)",
        f"for standard errors of {asked}, found after about {trials} trials",
        f"hold in {shares('plain', 'found', slice(None))} of the samples",
        f"in {shares('plain', 'told', slice(None))} where the same numbers of trials are told",
        f"its interval holds in {shares('rare', 'found', slice(1))} of the samples only",
        f"(told beforehand: {shares('rare', 'told', slice(1))})",
    ):
        assert said in page
