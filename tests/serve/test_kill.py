"""SIGKILL of the service under 32 clients: nothing acknowledged is lost, doubled or changed."""

import random
from pathlib import Path

import pytest

from tests.serve.kills import killed


@pytest.mark.slow
def test_three_kills(tmp_path: Path) -> None:
    clients, counted = killed(tmp_path / "walks.unfog", 3, 32, random.Random(3))
    assert [client.wrong for client in clients if client.wrong] == []
    assert {*counted} >= {"decide", "reward", "reveal", "cancel", "arms", "pin", "shadow"}
    assert counted["decide"] > 100
    assert sum(client.lost for client in clients) > 32
