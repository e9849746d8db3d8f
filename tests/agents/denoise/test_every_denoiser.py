"""What holds for several denoisers alike: no noise, endless noise, trials side by side."""

import numpy as np

from tests.agents.denoise.stories import D, Story, same
from tests.problems import random_knowledge
from unfog.agents.base import Denoiser, Privilege
from unfog.agents.denoise import Exact, Identity, KnownBias, PlugIn, PriorOnly
from unfog.channel.knowledge import Knowledge
from unfog.features import Context


def test_without_noise_pairs_show_the_bias_that_is_taken_off(known: Knowledge) -> None:
    for denoiser in [PlugIn(pairs=True), Exact(pairs=True)]:
        check_without_noise_pairs_show_the_bias_that_is_taken_off(denoiser, known)


def check_without_noise_pairs_show_the_bias_that_is_taken_off(denoiser: Denoiser, known: Knowledge) -> None:
    story = Story(known._replace(noise_cov=1e-10 * known.noise_cov), 4)
    for t, belief in enumerate(story.beliefs(denoiser)[1:], 1):
        mean = (story.noisy[:t] - story.contexts[:t]).mean(0)
        same(belief, story.noisy[t] - mean, np.zeros((D, D)), 1e-8)


def test_endless_noise_leaves_the_prior(known: Knowledge) -> None:
    for denoiser in [PlugIn(), PlugIn(pairs=True), Exact(), Exact(pairs=True), KnownBias()]:
        check_endless_noise_leaves_the_prior(denoiser, known)


def check_endless_noise_leaves_the_prior(denoiser: Denoiser, known: Knowledge) -> None:
    story = Story(known, 4)
    story.known = known._replace(noise_cov=1e9 * known.noise_cov)
    privilege = Privilege(story.bias) if denoiser == KnownBias() else None
    for belief in story.beliefs(denoiser, privilege):
        same(belief, known.context_mean, known.context_cov, 1e-7)


def test_a_batch_of_trials_is_its_trials() -> None:
    for denoiser in [PlugIn(pairs=True), Exact(pairs=True), Exact(), PriorOnly(), Identity()]:
        check_a_batch_of_trials_is_its_trials(denoiser)


def check_a_batch_of_trials_is_its_trials(denoiser: Denoiser) -> None:
    known = random_knowledge(seed=9)
    stories = [Story(known, 5, seed) for seed in range(4)]
    batch = Story(known, 5)
    batch.noisy = np.stack([story.noisy for story in stories], 1)
    batch.contexts = np.stack([story.contexts for story in stories], 1)
    for t, belief in enumerate(batch.beliefs(denoiser)):
        assert belief.mean.shape == (4, D)
        for i, story in enumerate(stories):
            same(Context(belief.mean[i], belief.cov), *story.beliefs(denoiser)[t], 1e-12)
