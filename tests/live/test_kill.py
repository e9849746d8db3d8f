"""SIGKILL at any moment: every row that was acknowledged is there, once, and no number is missing.

A kill does not test fsync: what the system was given survives the process. For that see test_power.
"""

import random
from pathlib import Path

import pytest

from tests.live.kills import deciders_killed, killed_again_and_again


@pytest.mark.slow
def test_ten_kills(tmp_path: Path) -> None:
    assert killed_again_and_again(tmp_path / "walks.unfog", 10, random.Random(1)) > 100


@pytest.mark.slow
def test_six_kills_of_a_store(tmp_path: Path) -> None:
    """What was answered is in the log, once, and what is believed after each kill is what the log says."""
    found = deciders_killed(tmp_path / "walks.unfog", 6, random.Random(2))
    assert {*found} >= {"decide", "reward", "reveal", "cancel", "retire_arm"}
    assert found["decide"] > 100
    assert found["from a snapshot"] > 6
