"""The plug-in against its definition and the paper's text, and how it differs from the exact denoiser."""

import numpy as np
import pytest
from numpy.linalg import inv

from tests.agents.denoise.stories import D, Story, same
from unfog.agents.base import Denoiser
from unfog.agents.denoise import Exact, PlugIn
from unfog.channel.knowledge import Knowledge
from unfog.maths.arrays import Array


@pytest.fixture
def story(known: Knowledge) -> Story:
    return Story(known, 7)


def plugin_by_definition(story: Story, t: int, pairs: bool) -> tuple[Array, Array]:
    """E over P(gamma | history) of N(A(gamma), M^-1), A affine in gamma."""
    known = story.known
    noise, context = inv(known.noise_cov), inv(known.context_cov)
    spread = inv(context + noise)

    def posterior_mean(bias: Array) -> Array:
        mean: Array = spread @ (context @ known.context_mean + noise @ (story.noisy[t] - bias))
        return mean

    mean, cov = story.bias_posterior(t, pairs)
    slope = np.stack([posterior_mean(unit) - posterior_mean(0 * unit) for unit in np.eye(D)], 1)
    return posterior_mean(mean), spread + slope @ cov @ slope.T


def test_plugin_is_its_definition(story: Story) -> None:
    for denoiser, pairs in [(PlugIn(), False), (PlugIn(pairs=True), True)]:
        check_plugin_is_its_definition(denoiser, pairs, story)


def check_plugin_is_its_definition(denoiser: Denoiser, pairs: bool, story: Story) -> None:
    for t, belief in enumerate(story.beliefs(denoiser)):
        same(belief, *plugin_by_definition(story, t, pairs))


def printed_unobserved(story: Story, t: int) -> tuple[Array, Array]:
    """V_t and R_t^-1 with H_t and L_t, as in the main text of the paper; t counts from 1."""
    known, now = story.known, story.noisy[t - 1]
    c, n, g, mu = inv(known.context_cov), inv(known.noise_cov), inv(known.bias_cov), known.context_mean
    M = c + n
    H = (t - 1) * n - (t - 2) * n @ inv(M) @ n + g
    R = M - n @ inv(H).T @ n
    past = story.noisy[: t - 1].sum(0)
    L = n @ inv(M) @ (c @ mu + n @ now) + (n - n @ inv(M) @ n) @ past - (t - 1) * n @ inv(M) @ c @ mu
    return inv(R).T @ (c @ mu + n @ now - n @ inv(H).T @ L), inv(R)


def printed_delayed(story: Story, t: int, first: int, second: int) -> tuple[Array, Array]:
    """V~_t and R~_t^-1 of the main text; `first` and `second` are the two signs: printed +1 and -1."""
    known, now = story.known, story.noisy[t - 1]
    c, n, g, mu = inv(known.context_cov), inv(known.noise_cov), inv(known.bias_cov), known.context_mean
    M = c + n
    H = n @ inv(M) @ n + (t - 1) * n + g
    R = M - n @ inv(H) @ n
    past = (story.noisy[: t - 1] - story.contexts[: t - 1]).sum(0)
    pull = first * n @ inv(H) @ n @ past - n @ inv(H) @ n @ inv(M) @ (c @ mu + second * n @ now)
    return inv(R) @ (c @ mu + n @ now + pull), inv(R)


def appendix_delayed(story: Story, t: int) -> tuple[Array, Array]:
    """V~_t and R~_t^-1 of the appendix, with its D, E_t, W_t and Y_t."""
    known, now = story.known, story.noisy[t - 1]
    c, n, g, mu = inv(known.context_cov), inv(known.noise_cov), inv(known.bias_cov), known.context_mean
    M = c + n
    W = (t - 1) * n + g
    Y = inv(W).T @ n @ (story.noisy[: t - 1] - story.contexts[: t - 1]).sum(0)
    D_, E = inv(M).T @ c @ mu, inv(M).T @ n @ now
    H = n @ inv(M).T @ n + W
    R = M - n @ inv(H).T @ n
    return inv(R).T @ (M @ (D_ + E) - n @ inv(H).T @ (n @ (D_ + E) + W @ Y)), inv(R)


@pytest.mark.parametrize("t", [1, 2, 7])
def test_the_papers_unobserved_predictive_is_the_plugin(t: int, story: Story) -> None:
    same(story.beliefs(PlugIn())[t - 1], *printed_unobserved(story, t))


@pytest.mark.parametrize("t", [1, 2, 7])
def test_the_appendix_delayed_predictive_is_the_plugin(t: int, story: Story) -> None:
    same(story.beliefs(PlugIn(pairs=True))[t - 1], *appendix_delayed(story, t))


@pytest.mark.parametrize("t", [1, 2, 7])
def test_the_delayed_mean_as_printed_is_wrong_and_two_signs_mend_it(t: int, story: Story) -> None:
    belief = story.beliefs(PlugIn(pairs=True))[t - 1]
    printed, cov = printed_delayed(story, t, +1, -1)
    deviations = np.abs(printed - belief.mean) / np.sqrt(np.diag(cov))
    assert deviations.max() > 0.2
    same(belief, *printed_delayed(story, t, -1, +1))


@pytest.mark.parametrize("t", [2, 7])
def test_one_sign_alone_does_not_mend_it(t: int, story: Story) -> None:
    belief = story.beliefs(PlugIn(pairs=True))[t - 1]
    for signs in [(+1, +1), (-1, -1)]:
        mean, cov = printed_delayed(story, t, *signs)
        assert (np.abs(mean - belief.mean) / np.sqrt(np.diag(cov))).max() > 0.02


def test_exact_and_plugin_differ_at_first_and_agree_in_the_end(known: Knowledge) -> None:
    for pairs in [False, True]:
        check_exact_and_plugin_differ_at_first_and_agree_in_the_end(pairs, known)


def check_exact_and_plugin_differ_at_first_and_agree_in_the_end(pairs: bool, known: Knowledge) -> None:
    story = Story(known, 2001)
    both = zip(story.beliefs(Exact(pairs=pairs)), story.beliefs(PlugIn(pairs=pairs)), strict=True)
    gaps = [(np.abs(a.mean - b.mean).max(), np.abs(a.cov - b.cov).max()) for a, b in both]
    assert min(gaps[0]) > 0.1
    assert max(gaps[2000]) < 2e-3
    # The gap in covariance is of second order in S, that is of 1 / n^2.
    assert gaps[2000][1] == pytest.approx(gaps[1000][1] / 4, rel=0.02)


def test_plugin_is_wider_than_exact_to_begin_with(known: Knowledge) -> None:
    story = Story(known, 1)
    wide, narrow = story.beliefs(PlugIn())[0].cov, story.beliefs(Exact())[0].cov
    assert np.linalg.eigvalsh(wide - narrow).min() > 0


def test_without_noise_plugin_from_noisy_takes_the_bias_mean_off(known: Knowledge) -> None:
    story = Story(known._replace(noise_cov=1e-10 * known.noise_cov), 4)
    for t, belief in enumerate(story.beliefs(PlugIn())):
        mean, cov = story.bias_posterior(t, pairs=False)
        same(belief, story.noisy[t] - mean, cov, 1e-7)
