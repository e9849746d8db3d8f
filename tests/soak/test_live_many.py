"""Ten thousand decisions of a live problem that are open at once."""

from pathlib import Path

import pytest

from tests.live.test_store_clock import many


@pytest.mark.soak
@pytest.mark.parametrize("agent", ["unfog", "late"])
def test_ten_thousand_open_decisions(tmp_path: Path, agent: str) -> None:
    many(tmp_path, agent, 10_000)
