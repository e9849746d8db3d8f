"""A service with something to see: the demo's clinic, and a sensor that is noisier than told."""

from collections.abc import Iterator

import numpy as np
import pytest

import unfog
from tests.serve.running import Running, running
from unfog.lab import demo

DECISIONS = 240


@pytest.fixture(scope="session")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The demo's clinic, and a sensor that is noisier than told, with an agent that weighs models."""
    path, now = tmp_path_factory.mktemp("page") / "clinic.unfog", demo.START + 5 * demo.DAY
    demo.played(path, decisions=DECISIONS)
    with unfog.live.open(path, sync="normal", clock=lambda: now) as store:
        _noisy_sensor(store)
    with running(path, clock=lambda: now) as found:
        yield found


def _noisy_sensor(store: unfog.live.Store) -> None:
    rng = np.random.default_rng(3)
    channel = {"context_mean": [20.0], "context_cov": [9.0], "noise_cov": [1.0], "bias_cov": [4.0]}
    air = store.problem(
        "air", context=["no2"], arms=["open", "shut"], channel=channel, agent="adaptive", rewards="binary"
    )
    for value in 20 + 9 * rng.standard_normal(60):
        made = air.decide([float(value)])
        if made.number % 4:
            air.reward(made.id, int(rng.random() < 0.5))
