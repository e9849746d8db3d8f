"""What the logger earned, by a log that has the probability of the drawn arm alone."""

import numpy as np
import pytest

import unfog
from tests.walks import COLUMNS, walks
from unfog.evaluation.scene import Scene
from unfog.lab.evaluate import read_log


@pytest.mark.parametrize("intervals", ["adaptive", "plain"])
def test_it_is_what_was_earned(intervals: str) -> None:
    """The other probabilities are not known; to guess them from the draw would be a bias of its own.

    Doubly robust leaves out the first rounds, where its model knows nothing yet.
    """
    days = walks(600)
    spoken = Scene(read_log(days.table(), columns=COLUMNS)).forward.fitted > 0
    assert 0.5 < spoken.mean() < 1
    found = unfog.evaluate(days.table(), "logger", columns=COLUMNS, intervals=intervals)
    for name in ("dr", "snips", "ips"):
        one = found.sel(policy="logger", estimator=name)
        earned = days.reward[spoken if (name, intervals) == ("dr", "adaptive") else slice(None)].mean()
        np.testing.assert_allclose(one["value"], earned, rtol=1e-12)
        np.testing.assert_allclose(one["gain"], earned - days.reward.mean(), atol=1e-12)
    assert found["effective"].item() == 600
    assert found["largest_weight"].item() == 1
