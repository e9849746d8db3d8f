"""What comes of each way to dose, and what the page says of it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.each import each
from tests.paper.people import made, played
from unfog.paper import warfarin, warfarin_study
from unfog.paper.warfarin import Errors
from unfog.validation import InputError


def test_outcomes_are_shares_of_patients() -> None:
    found = played(made(700), Errors())._replace(dose=np.tile([10.0, 30.0, 60.0, 60.0], (3, 100)))
    found = found._replace(paid=warfarin.rewards(found.dose))
    result = warfarin_study.outcome(found, np.tile([2, 1, 1, 0], (3, 100)))
    assert [part.tolist() for part in result[:3]] == [[0.75] * 3, [0.5] * 3, [-0.75] * 3]
    mean, half = warfarin_study.interval(np.array([1.0, 2.0, 3.0, 6.0]))
    assert (mean, round(half, 5)) == (3.0, round(1.959964 * np.sqrt(14 / 3) / 2, 5))


@each(
    "name, value",
    [("orders", 1), ("apart", 50), ("apart", 600), ("policies", ["best"]), ("reward", "sharp")],
)
def test_bad_comparisons_are_refused(name: str, value: Any) -> None:
    asked: dict[str, Any] = {"orders": 2, "apart": 300, "policies": ["medium"]}
    with pytest.raises(InputError, match=f"^{name}: "):
        warfarin_study.compare(made(600), **asked | {name: value})


@pytest.mark.slow
def test_gaps_are_worth_filling_and_errors_not(data: Path) -> None:
    """What the page says, of what needs no learning."""
    names = ["pharmacogenetic", "pharmacogenetic-denoised", "line-naive", "line-denoised"]
    asked: dict[str, Any] = {"orders": 6, "policies": names}
    lost = warfarin_study.compare(warfarin.patients(), Errors(lost=0.5), **asked)
    for one, other in (("pharmacogenetic", "pharmacogenetic-denoised"), ("line-naive", "line-denoised")):
        saved = warfarin_study.interval(lost[one].less(lost[other]).wrong)
        assert saved.mean > 1.5 * saved.half  # 3 standard errors; 5 or more are expected
    own = warfarin_study.compare(warfarin.patients(), **asked)
    assert abs(own["line-naive"].less(own["line-denoised"]).wrong.mean()) < 0.002


@pytest.mark.slow
def test_denoising_helps_an_agent_where_values_are_lost(data: Path) -> None:
    asked: dict[str, Any] = {
        "orders": 10,
        "apart": 2400,
        "policies": ["naive", "denoised"],
        "reward": "graded",
    }
    found = warfarin_study.compare(warfarin.patients(), Errors(lost=0.3), **asked)
    saved = found["denoised"].less(found["naive"]).reward
    # With 60 orders it was 10 standard errors, so about 4 with 10; asked for are 2 (2e-2 without any gain).
    assert saved.mean() > 2 * saved.std(ddof=1) / np.sqrt(len(saved))
