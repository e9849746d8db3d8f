"""A store whose holder is killed hundreds of times, under eight threads."""

import random
from pathlib import Path

import pytest

from tests.live.kills import deciders_killed


@pytest.mark.soak
@pytest.mark.parametrize("part", range(20))
def test_five_hundred_kills(tmp_path: Path, part: int) -> None:
    """A file that starts anew now and then, so that most of the time goes into kills."""
    found = deciders_killed(tmp_path / "walks.unfog", 25, random.Random(part))
    assert found["decide"] > 500
