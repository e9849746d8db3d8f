"""The exact denoiser against the joint Gaussian of bias, contexts and measurements."""

import pytest

from tests.agents.denoise.stories import Joint, Story, same
from unfog.agents.denoise import Exact
from unfog.channel.knowledge import Knowledge


@pytest.fixture
def story(known: Knowledge) -> Story:
    return Story(known, 7)


def test_exact_from_noisy_is_the_joint_posterior(story: Story) -> None:
    for t, belief in enumerate(story.beliefs(Exact())):
        joint = Joint(story.known, t + 1)
        same(belief, *joint.posterior(joint.contexts[t], [*joint.noisy], [*story.noisy[: t + 1]]))


def test_exact_from_pairs_is_the_joint_posterior(story: Story) -> None:
    for t, belief in enumerate(story.beliefs(Exact(pairs=True))):
        joint = Joint(story.known, t + 1)
        seen = [*joint.noisy, *joint.contexts[:t]]
        same(belief, *joint.posterior(joint.contexts[t], seen, [*story.noisy[: t + 1], *story.contexts[:t]]))
