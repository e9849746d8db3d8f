"""Ten thousand damages to run folders, suites and caches: none is read, and none stays in the way."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.lab.test_damage import _quick, caches, finished_folders, suite_folders, unfinished_folders

__all__ = ["_quick"]  # a fixture

TIMES = {finished_folders: 5_000, unfinished_folders: 2_500, suite_folders: 500, caches: 2_000}
PARTS = 5


@pytest.mark.soak
@pytest.mark.parametrize("part", range(1, 1 + PARTS))
@pytest.mark.parametrize("harm", TIMES, ids=lambda harm: harm.__name__)
def test_thousands_of_damages(tmp_path: Path, harm: Callable[..., Any], part: int) -> None:
    harm(tmp_path, TIMES[harm] // PARTS, seed=part)
