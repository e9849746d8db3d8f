"""Denoisers against the joint Gaussian of bias, contexts and measurements, and against the paper's text."""

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.linalg import inv

from tests.problems import given, random_knowledge
from unfog.agents.denoise import exact, identity, known_bias, plugin, prior_only
from unfog.agents.parts import Denoiser, Privilege
from unfog.features import Context
from unfog.maths.arrays import Array
from unfog.model.knowledge import Knowledge

D = 3


class Joint:
    """N over (gamma, c_1 .. c_t, n_1 .. n_t), from which anything seen is a linear map."""

    def __init__(self, known: Knowledge, rounds: int) -> None:
        blocks = [known.bias_cov, *[known.context_cov] * rounds, *[known.noise_cov] * rounds]
        size = D * len(blocks)
        self.mean = np.concatenate([np.zeros(D), *[known.context_mean] * rounds, np.zeros(D * rounds)])
        self.cov = np.zeros((size, size))
        for i, block in enumerate(blocks):
            self.cov[i * D : i * D + D, i * D : i * D + D] = block
        unit = np.eye(size).reshape(len(blocks), D, size)
        self.bias, self.contexts = unit[0], unit[1 : rounds + 1]
        self.noisy = self.bias + self.contexts + unit[rounds + 1 :]

    def posterior(self, wanted: Array, seen: Sequence[Array], values: Sequence[Array]) -> tuple[Array, Array]:
        """Mean and covariance of the rows `wanted` given the rows `seen`."""
        mean, cov = self.mean, self.cov
        if seen:
            mean, cov = given(mean, cov, np.concatenate(seen), np.concatenate(values))
        return wanted @ mean, wanted @ cov @ wanted.T


class Story:
    """What happened in some rounds: any values do, conditioning holds for all of them."""

    def __init__(self, known: Knowledge, rounds: int, seed: int = 3) -> None:
        rng = np.random.default_rng(seed)
        draw = rng.multivariate_normal
        self.known, self.bias = known, draw(np.zeros(D), known.bias_cov)
        self.contexts = draw(known.context_mean, known.context_cov, rounds)
        self.noisy = self.contexts + self.bias + draw(np.zeros(D), known.noise_cov, rounds)

    def beliefs(self, denoiser: Denoiser, privilege: Privilege | None = None) -> list[Context]:
        """What the denoiser believes in each round."""
        parameters = denoiser.setup(self.known, privilege)
        state, found = denoiser.start(parameters), []
        for noisy, context in zip(self.noisy, self.contexts, strict=True):
            found.append(denoiser.predict(parameters, state, noisy))
            state = denoiser.update(parameters, state, noisy, context)
        return found

    def bias_posterior(self, t: int, pairs: bool) -> tuple[Array, Array]:
        """P(gamma | history before round t), brute force; rounds count from 0."""
        joint = Joint(self.known, t + 1)
        seen, values = [*joint.noisy[:t]], [*self.noisy[:t]]
        if pairs:
            seen, values = [*seen, *joint.contexts[:t]], [*values, *self.contexts[:t]]
        return joint.posterior(joint.bias, seen, values)


def same(found: Context, mean: Array, cov: Array, tolerance: float = 1e-10) -> None:
    np.testing.assert_allclose(found.mean, mean, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(found.cov, cov, rtol=tolerance, atol=tolerance)


@pytest.fixture
def story(known: Knowledge) -> Story:
    return Story(known, 7)


def test_exact_from_noisy_is_the_joint_posterior(story: Story) -> None:
    for t, belief in enumerate(story.beliefs(exact.from_noisy)):
        joint = Joint(story.known, t + 1)
        same(belief, *joint.posterior(joint.contexts[t], [*joint.noisy], [*story.noisy[: t + 1]]))


def test_exact_from_pairs_is_the_joint_posterior(story: Story) -> None:
    for t, belief in enumerate(story.beliefs(exact.from_pairs)):
        joint = Joint(story.known, t + 1)
        seen = [*joint.noisy, *joint.contexts[:t]]
        same(belief, *joint.posterior(joint.contexts[t], seen, [*story.noisy[: t + 1], *story.contexts[:t]]))


def test_known_bias_is_the_joint_posterior(story: Story) -> None:
    for t, belief in enumerate(story.beliefs(known_bias, Privilege(story.bias))):
        joint = Joint(story.known, t + 1)
        seen = [joint.bias, *joint.noisy]
        same(belief, *joint.posterior(joint.contexts[t], seen, [story.bias, *story.noisy[: t + 1]]))


def test_prior_only_is_the_marginal(story: Story) -> None:
    joint = Joint(story.known, 1)
    for belief in story.beliefs(prior_only):
        same(belief, *joint.posterior(joint.contexts[0], [], []))


def test_identity_believes_the_measurement(story: Story) -> None:
    for noisy, belief in zip(story.noisy, story.beliefs(identity), strict=True):
        assert np.array_equal(belief.mean, noisy)
        assert np.array_equal(belief.cov, np.zeros((D, D)))


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


@pytest.mark.parametrize(
    ("denoiser", "pairs"), [(plugin.from_noisy, False), (plugin.from_pairs, True)], ids=["noisy", "pairs"]
)
def test_plugin_is_its_definition(denoiser: Denoiser, pairs: bool, story: Story) -> None:
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
    same(story.beliefs(plugin.from_noisy)[t - 1], *printed_unobserved(story, t))


@pytest.mark.parametrize("t", [1, 2, 7])
def test_the_appendix_delayed_predictive_is_the_plugin(t: int, story: Story) -> None:
    same(story.beliefs(plugin.from_pairs)[t - 1], *appendix_delayed(story, t))


@pytest.mark.parametrize("t", [1, 2, 7])
def test_the_delayed_mean_as_printed_is_wrong_and_two_signs_mend_it(t: int, story: Story) -> None:
    belief = story.beliefs(plugin.from_pairs)[t - 1]
    printed, cov = printed_delayed(story, t, +1, -1)
    deviations = np.abs(printed - belief.mean) / np.sqrt(np.diag(cov))
    assert deviations.max() > 0.2
    same(belief, *printed_delayed(story, t, -1, +1))


@pytest.mark.parametrize("t", [2, 7])
def test_one_sign_alone_does_not_mend_it(t: int, story: Story) -> None:
    belief = story.beliefs(plugin.from_pairs)[t - 1]
    for signs in [(+1, +1), (-1, -1)]:
        mean, cov = printed_delayed(story, t, *signs)
        assert (np.abs(mean - belief.mean) / np.sqrt(np.diag(cov))).max() > 0.02


@pytest.mark.parametrize("source", ["from_noisy", "from_pairs"])
def test_exact_and_plugin_differ_at_first_and_agree_in_the_end(source: str, known: Knowledge) -> None:
    story = Story(known, 2001)
    pairs = zip(story.beliefs(getattr(exact, source)), story.beliefs(getattr(plugin, source)), strict=True)
    gaps = [(np.abs(a.mean - b.mean).max(), np.abs(a.cov - b.cov).max()) for a, b in pairs]
    assert min(gaps[0]) > 0.1
    assert max(gaps[2000]) < 2e-3
    # The gap in covariance is of second order in S, that is of 1 / n^2.
    assert gaps[2000][1] == pytest.approx(gaps[1000][1] / 4, rel=0.02)


def test_plugin_is_wider_than_exact_to_begin_with(known: Knowledge) -> None:
    story = Story(known, 1)
    wide, narrow = story.beliefs(plugin.from_noisy)[0].cov, story.beliefs(exact.from_noisy)[0].cov
    assert np.linalg.eigvalsh(wide - narrow).min() > 0


def test_without_noise_plugin_from_noisy_takes_the_bias_mean_off(known: Knowledge) -> None:
    story = Story(known._replace(noise_cov=1e-10 * known.noise_cov), 4)
    for t, belief in enumerate(story.beliefs(plugin.from_noisy)):
        mean, cov = story.bias_posterior(t, pairs=False)
        same(belief, story.noisy[t] - mean, cov, 1e-7)


@pytest.mark.parametrize("denoiser", [plugin.from_pairs, exact.from_pairs], ids=["plug-in", "exact"])
def test_without_noise_pairs_show_the_bias_that_is_taken_off(denoiser: Denoiser, known: Knowledge) -> None:
    story = Story(known._replace(noise_cov=1e-10 * known.noise_cov), 4)
    for t, belief in enumerate(story.beliefs(denoiser)[1:], 1):
        mean = (story.noisy[:t] - story.contexts[:t]).mean(0)
        same(belief, story.noisy[t] - mean, np.zeros((D, D)), 1e-8)


def test_without_noise_a_known_bias_is_taken_off(known: Knowledge) -> None:
    story = Story(known._replace(noise_cov=1e-10 * known.noise_cov), 4)
    for noisy, belief in zip(story.noisy, story.beliefs(known_bias, Privilege(story.bias)), strict=True):
        same(belief, noisy - story.bias, np.zeros((D, D)), 1e-8)


@pytest.mark.parametrize(
    "denoiser", [plugin.from_noisy, plugin.from_pairs, exact.from_noisy, exact.from_pairs, known_bias]
)
def test_endless_noise_leaves_the_prior(denoiser: Denoiser, known: Knowledge) -> None:
    story = Story(known, 4)
    story.known = known._replace(noise_cov=1e9 * known.noise_cov)
    privilege = Privilege(story.bias) if denoiser is known_bias else None
    for belief in story.beliefs(denoiser, privilege):
        same(belief, known.context_mean, known.context_cov, 1e-7)


@pytest.mark.parametrize(
    "denoiser", [plugin.from_pairs, exact.from_pairs, exact.from_noisy, prior_only, identity]
)
def test_a_batch_of_trials_is_its_trials(denoiser: Denoiser) -> None:
    known = random_knowledge(seed=9)
    stories = [Story(known, 5, seed) for seed in range(4)]
    batch = Story(known, 5)
    batch.noisy = np.stack([story.noisy for story in stories], 1)
    batch.contexts = np.stack([story.contexts for story in stories], 1)
    for t, belief in enumerate(batch.beliefs(denoiser)):
        assert belief.mean.shape == (4, D)
        for i, story in enumerate(stories):
            same(Context(belief.mean[i], belief.cov), *story.beliefs(denoiser)[t], 1e-12)


def test_known_bias_refuses_to_go_without(known: Knowledge) -> None:
    with pytest.raises(ValueError, match="known_bias needs a privilege"):
        known_bias.setup(known, None)
