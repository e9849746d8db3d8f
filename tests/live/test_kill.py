"""SIGKILL at any moment: every row that was acknowledged is there, once, and no number is missing.

A kill does not test fsync: what the system was given survives the process. For that see test_power.
"""

import random
from pathlib import Path

import pytest

from tests.live.kills import killed_again_and_again


@pytest.mark.slow
def test_ten_kills(tmp_path: Path) -> None:
    assert killed_again_and_again(tmp_path / "walks.unfog", 10, random.Random(1)) > 100
