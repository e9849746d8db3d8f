"""Denoising with the bias told, against the joint Gaussian."""

import numpy as np
import pytest

from tests.agents.denoise.stories import D, Joint, Story, same
from unfog.agents.base import Privilege
from unfog.agents.denoise import KnownBias
from unfog.channel.knowledge import Knowledge


@pytest.fixture
def story(known: Knowledge) -> Story:
    return Story(known, 7)


def test_known_bias_is_the_joint_posterior(story: Story) -> None:
    for t, belief in enumerate(story.beliefs(KnownBias(), Privilege(story.bias))):
        joint = Joint(story.known, t + 1)
        seen = [joint.bias, *joint.noisy]
        same(belief, *joint.posterior(joint.contexts[t], seen, [story.bias, *story.noisy[: t + 1]]))


def test_without_noise_a_known_bias_is_taken_off(known: Knowledge) -> None:
    story = Story(known._replace(noise_cov=1e-10 * known.noise_cov), 4)
    for noisy, belief in zip(story.noisy, story.beliefs(KnownBias(), Privilege(story.bias)), strict=True):
        same(belief, noisy - story.bias, np.zeros((D, D)), 1e-8)


def test_known_bias_refuses_to_go_without(known: Knowledge) -> None:
    with pytest.raises(ValueError, match="known_bias needs a privilege"):
        KnownBias().setup(known, None)
