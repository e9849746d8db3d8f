"""What does not concern a log is refused, not passed over."""

from pathlib import Path
from typing import Any

import pytest

from tests.evaluation.readers import logs
from tests.live.ground import opened, problem
from unfog.evaluation.readers import Columns, read, to_obp
from unfog.live import open as live_open
from unfog.validation import InputError

SAID: dict[str, Any] = {
    "columns": Columns(arm="arm"),
    "problem": "test",
    "arms": list(logs.ARMS),
    "coordinates": list(logs.COORDINATES),
    "probability": 0.25,
}
TAKES = {
    "log": (),
    "obp": ("arms", "coordinates"),
    "table": ("columns", "arms", "coordinates"),
    "csv": ("columns", "arms", "coordinates"),
    "dsjson": ("arms", "coordinates"),
    "store": ("problem", "arms"),
    "problem": ("problem", "arms"),
    "ndjson": ("problem", "arms"),
    "unfog": ("problem", "arms"),
}
WHY = {
    "columns": "only tables have columns",
    "problem": "only live logs have problems",
    "arms": "it lists its arms itself",
    "coordinates": "it names its coordinates itself",
    "probability": "it has its own probabilities",
}
EVEN = ("obp", "table", "csv", "dsjson")  # whose law may be told by a number


@pytest.mark.parametrize("kind", TAKES)
def test_each_option_is_used_or_refused(kind: str, tmp_path: Path) -> None:
    log = logs.simulated(12)
    with opened(tmp_path) as store:
        walks = problem(store, "test")
        walks.reward(walks.decide([0.5, 1.0]).id, 1.0)
        (tmp_path / "log.ndjson").write_text("".join(store.export("test")), "utf-8")
        sources: dict[str, Any] = {
            "log": log,
            "obp": to_obp(log),
            "table": logs.table(log),
            "csv": logs.written(tmp_path / "log.csv", logs.table(log)),
            "dsjson": logs.lines(tmp_path / "log.json", logs.dsjson(log)),
            "store": store,
            "problem": walks,
            "ndjson": tmp_path / "log.ndjson",
        }
        if kind != "unfog":
            held_against(sources[kind], kind)
    if kind == "unfog":
        held_against(tmp_path / "test.unfog", kind)


def held_against(source: Any, kind: str) -> None:
    live = "problem" in TAKES[kind]
    for name, value in SAID.items():
        told: dict[str, Any] = {name: ["a", "b", "c"] if name == "arms" and live else value}
        if name in TAKES[kind]:
            read(source, **told, opener=live_open)
        elif name != "probability" or kind not in EVEN:
            with pytest.raises(InputError) as error:
                read(source, **told, opener=live_open)
            said = str(error.value)
            assert said.startswith("coordinates of the context: " if name == "coordinates" else f"{name}: ")
            assert said.endswith(WHY[name])
            assert "; allowed: nothing, for " in said


def test_another_problem_than_the_one_that_is_given(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        walks = problem(store, "test")
        walks.reward(walks.decide([0.5, 1.0]).id, 1.0)
        with pytest.raises(InputError, match=r"^problem: no such problem; allowed: the name of one"):
            read(walks, problem="other")
