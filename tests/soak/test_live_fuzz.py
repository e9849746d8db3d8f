"""A hundred thousand calls with nonsense on live problems, in a file and in memory: each works or is refused
by name.
"""

from pathlib import Path

import pytest

from tests.live.test_bad_input import KINDS, fuzz


@pytest.mark.soak
@pytest.mark.parametrize("place", ["file", "memory"])
@pytest.mark.parametrize("part", range(20))
@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_at_random(tmp_path: Path, kind: int, part: int, place: str) -> None:
    fuzz(tmp_path, kind, 1_250, seed=part, place=place)
