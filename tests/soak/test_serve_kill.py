"""A service that is killed two hundred times, under 32 clients that ask for all it does."""

import random
from pathlib import Path

import pytest

from tests.serve.kills import killed


@pytest.mark.soak
@pytest.mark.parametrize("part", range(10))
def test_two_hundred_kills(tmp_path: Path, part: int) -> None:
    """A file that starts anew now and then, so that most of the time goes into kills."""
    clients, counted = killed(tmp_path / "walks.unfog", 20, 32, random.Random(part))
    assert [client.wrong for client in clients if client.wrong] == []
    assert counted["decide"] > 500
    assert sum(client.lost for client in clients) > 32
