"""A hundred thousand requests at random: none is answered with a mistake of ours, and no refused one changes
anything.
"""

import random
from pathlib import Path

import pytest

from tests.serve import fuzz
from tests.serve.running import running


@pytest.mark.soak
@pytest.mark.parametrize("part", range(20))
def test_a_hundred_thousand_requests(tmp_path: Path, part: int) -> None:
    with running(tmp_path / "a.unfog") as found:
        found.make()
        told = fuzz.thrown(found, int(found.url.rsplit(":", 1)[1]), 5000, random.Random(100 + part))
    assert set(told) <= fuzz.STATUSES
    assert told[200] > 100
