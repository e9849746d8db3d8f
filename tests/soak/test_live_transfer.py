"""Every field of every kind of event, with every value that it may not have."""

from pathlib import Path
from typing import Any

import pytest

from tests.live.test_transfer import tried


@pytest.mark.soak
@pytest.mark.parametrize(
    ("agent", "more"),
    [
        ("unfog", {}),
        ("alg2", {}),
        ("late", {"reward_window": 20, "default_reward": 0.5, "reward_aggregation": "mean"}),
    ],
)
def test_no_field_of_any_event_is_taken_on_trust(tmp_path: Path, agent: str, more: dict[str, Any]) -> None:
    tried(tmp_path, agent, 1, **more)
