"""What holds for several denoisers alike: no noise, and endless noise."""

import numpy as np

from tests.agents.denoise.stories import D, Story, same
from unfog.agents.base import Denoiser, Privilege
from unfog.agents.denoise import Exact, KnownBias, PlugIn
from unfog.channel.knowledge import Knowledge


def test_without_noise_pairs_show_the_bias_that_is_taken_off(known: Knowledge) -> None:
    denoisers: list[Denoiser] = [PlugIn(pairs=True), Exact(pairs=True)]
    for denoiser in denoisers:
        check_without_noise_pairs_show_the_bias_that_is_taken_off(denoiser, known)


def check_without_noise_pairs_show_the_bias_that_is_taken_off(denoiser: Denoiser, known: Knowledge) -> None:
    story = Story(known._replace(noise_cov=1e-10 * known.noise_cov), 4)
    for t, belief in enumerate(story.beliefs(denoiser)[1:], 1):
        mean = (story.noisy[:t] - story.contexts[:t]).mean(0)
        same(belief, story.noisy[t] - mean, np.zeros((D, D)), 1e-8)


def test_endless_noise_leaves_the_prior(known: Knowledge) -> None:
    denoisers: list[Denoiser] = [PlugIn(), PlugIn(pairs=True), Exact(), Exact(pairs=True), KnownBias()]
    for denoiser in denoisers:
        check_endless_noise_leaves_the_prior(denoiser, known)


def check_endless_noise_leaves_the_prior(denoiser: Denoiser, known: Knowledge) -> None:
    story = Story(known, 4)
    story.known = known._replace(noise_cov=1e9 * known.noise_cov)
    privilege = Privilege(story.bias) if denoiser == KnownBias() else None
    for belief in story.beliefs(denoiser, privilege):
        same(belief, known.context_mean, known.context_cov, 1e-7)
