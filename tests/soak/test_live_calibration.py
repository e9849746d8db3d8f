"""What live decisions say of themselves, in hundreds of worlds: intervals, the bias, the alarm."""

import numpy as np
import pytest

import unfog
from tests.channel.test_innovations import share
from tests.live.test_monitoring_tallies import anisotropic, watch
from tests.problems import spd
from unfog.live import monitoring
from unfog.validation import Numbers
from unfog.worlds.synthetic import Synthetic

pytestmark = pytest.mark.soak

_RNG = np.random.default_rng(11)
CHANNELS: list[tuple[Numbers, Numbers]] = [
    (1.0, 1.1),
    (spd(_RNG, 5), 1.1 * spd(_RNG, 5)),
    (spd(_RNG, 5, 0.5, 2.0), np.diag([0.6, 0.8, 1.1, 1.6, 2.2])),
]


@pytest.mark.parametrize("channel", range(len(CHANNELS)))
@pytest.mark.parametrize("agent", ["unfog", "late", "temporal", "robust"])
def test_noise_told_wrong_is_seen_within_300_rounds_and_noise_told_right_in_1000_is_not(
    agent: str, channel: int
) -> None:
    """400 worlds: a rate that is just what is promised has a standard error of 1.1 %.

    Noise of three times and a third of the covariance told, and of the standard deviation.
    """
    contexts, noise = CHANNELS[channel]
    for factor in (3.0, 1 / 3, 9.0, 1 / 9):
        found = share(agent, noise, factor * np.asarray(noise), 400, 300, context_cov=contexts)
        assert found >= 0.95, f"{factor:.2f}: {found}"
    assert share(agent, noise, 0.0, 400, 1000, context_cov=contexts) <= 0.05


@pytest.mark.parametrize(
    "problem", [unfog.GaussianProblem(), anisotropic(), unfog.GaussianProblem(dim=2, features="product")]
)
def test_intervals_of_rewards_and_sets_of_biases_cover_what_they_say(problem: Synthetic) -> None:
    """400 worlds of 300 rounds: standard errors of 0.1 % for rewards, and of 1.1 % for biases."""
    played = watch(problem, "unfog", 300, 400, 2)
    covered = monitoring.coverage(played.found)[monitoring.LEVELS.index(0.9)]
    assert 0.88 <= covered <= 0.92
    assert 0.93 <= played.in_bias_set <= 0.97
