"""What the logger earned."""

import numpy as np
import pytest

import unfog
from tests.walks import COLUMNS, walks


@pytest.mark.parametrize("intervals", ["adaptive", "plain"])
def test_it_is_what_was_earned(intervals: str) -> None:
    """The other probabilities are not known; to guess them from the draw would be a bias of its own."""
    days = walks(600)
    found = unfog.evaluate(days.table(), "logger", columns=COLUMNS, intervals=intervals)
    for name in ("dr", "snips", "ips"):
        one = found.sel(policy="logger", estimator=name)
        np.testing.assert_allclose(one["value"], days.reward.mean(), rtol=1e-12)
        np.testing.assert_allclose([one["gain"], one["gain_low"], one["gain_high"]], 0.0, atol=1e-12)
    assert found["effective"].item() == 600
    assert found["largest_weight"].item() == 1
