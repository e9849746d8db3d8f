"""The denoiser that believes its measurement."""

import numpy as np

from tests.agents.denoise.stories import D, Story
from unfog.agents.denoise import Identity
from unfog.channel.knowledge import Knowledge


def test_identity_believes_the_measurement(known: Knowledge) -> None:
    story = Story(known, 7)
    for noisy, belief in zip(story.noisy, story.beliefs(Identity()), strict=True):
        assert np.array_equal(belief.mean, noisy)
        assert np.array_equal(belief.cov, np.zeros((D, D)))
