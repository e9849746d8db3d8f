"""The denoiser that ignores its measurement, against the law of the context."""

from tests.agents.denoise.stories import Joint, Story, same
from unfog.agents.denoise import PriorOnly
from unfog.channel.knowledge import Knowledge


def test_prior_only_is_the_marginal(known: Knowledge) -> None:
    story = Story(known, 7)
    joint = Joint(story.known, 1)
    for belief in story.beliefs(PriorOnly()):
        same(belief, *joint.posterior(joint.contexts[0], [], []))
