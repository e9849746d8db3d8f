"""A hundred thousand live decisions against the probabilities logged."""

from pathlib import Path

import pytest

from tests.live.test_probabilities import check


@pytest.mark.soak
@pytest.mark.parametrize("agent", ["unfog", "unfog-thompson", "unfog-epsilon"])
def test_arms_are_taken_as_often_as_logged(tmp_path: Path, agent: str) -> None:
    check(tmp_path, agent, 100_000)
