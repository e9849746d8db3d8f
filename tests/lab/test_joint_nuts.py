"""The joint learner against NUTS on the model as it is: theta, gamma and all contexts sampled, none averaged.

The learner takes the variances of past rewards as they were thought to be at the time, while the model has
sigma^2 + theta'Cov(phi)theta. That is the error measured here. Mostly theta's mean is off by 0.1 to 0.3 of a
posterior standard deviation; where the scatter of the rewards itself says how large theta is, which no
conjugate form can see, by 1.1 (story 2: a grid over theta with the variance as it is comes within 0.02, and
one with the best variances that do not hang on theta stays 0.96 off). So there is little to gain by weighing
all past rounds anew with the final belief, which maps that are not linear in the context would not allow at
bounded cost: it gave 0.09, 0.98 and 0.10 for stories 1, 2 and 3, where weights of their day give 0.22, 1.12
and 0.16. The bias comes within 0.2, and the context within 0.1, in all of them.
"""

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import blackjax
import jax
import numpy as np
import pytest
from blackjax.adaptation.base import get_filter_adapt_info_fn
from blackjax.diagnostics import effective_sample_size, potential_scale_reduction

from tests.problems import inverse, random_knowledge
from unfog.agents import round as rounds
from unfog.agents.catalogue import AGENTS
from unfog.agents.learn import Hetero, Joint, Smoothing
from unfog.agents.learn.hindsight import mixture, moments
from unfog.agents.round import Observation
from unfog.channel.knowledge import Knowledge
from unfog.features.linear import product
from unfog.maths.arrays import Array
from unfog.maths.gaussian import Gaussian

pytestmark = pytest.mark.slow

D, ROUNDS, CHAINS, WARMUP, DRAWS = 2, 25, 4, 300, 1000


class Story(NamedTuple):
    """What happened; correlated, anisotropic, not centred."""

    known: Knowledge
    actions: Array  # (K, d)
    noisy: Array  # (n + 1, d)  of the last round there is no reward yet
    arms: Any  # (n,)
    rewards: Array  # (n,)


def story(seed: int) -> Story:
    known, rng = random_knowledge(seed, D, D), np.random.default_rng(seed)
    actions = np.random.default_rng(100 + seed).normal(size=(5, D))
    theta = rng.multivariate_normal(known.prior_mean, known.prior_cov)
    bias = rng.multivariate_normal(np.zeros(D), known.bias_cov)
    contexts = rng.multivariate_normal(known.context_mean, known.context_cov, ROUNDS + 1)
    noisy = contexts + bias + rng.multivariate_normal(np.zeros(D), known.noise_cov, ROUNDS + 1)
    arms, variance = rng.integers(0, 5, ROUNDS), np.asarray(known.reward_var, np.float64)
    noise = np.sqrt(variance) * rng.standard_normal(ROUNDS)
    return Story(known, actions, noisy, arms, (actions[arms] * contexts[:-1]) @ theta + noise)


class Standing(NamedTuple):
    """What a learner believes at the last decision."""

    theta: tuple[Array, Array]  # mean and standard deviations, as the others
    context: tuple[Array, Array]
    bias: tuple[Array, Array]


def standing(told: Story, learner: Any) -> Standing:
    """After all rounds, with the arms as they were."""
    agent, features = replace(AGENTS["alg1-exact"], learner=learner), product(told.actions)
    denoiser: Any = agent.denoiser
    setup, memory = rounds.start(agent, told.known)
    for noisy, arm, reward in zip(told.noisy, told.arms, told.rewards, strict=False):
        observation, normals = Observation(noisy), np.zeros(told.known.prior_mean.shape)
        decision = rounds.decide(agent, setup, memory, features, observation, normals)
        forced = decision._replace(evidence=decision.evidence._replace(arm=arm))
        memory = rounds.observe(agent, setup, memory, observation)
        memory, _ = rounds.reward(agent, setup, memory, forced, reward)
    view = rounds.view(agent, setup, memory, features, Observation(told.noisy[-1]))
    assert isinstance(view.belief, Gaussian)
    hindsight = denoiser.hindsight(setup.denoiser, memory.denoiser, told.noisy[-1])
    bias = hindsight.mean, hindsight.cov
    if isinstance(learner, Joint):
        mixed = mixture(setup.learner, memory.learner, features, hindsight)
        bias = moments(mixed.weights, mixed.bias)
    found = (view.belief.mean, view.belief.root @ view.belief.root.T), view.context, bias
    return Standing(*((mean, np.sqrt(np.diag(cov))) for mean, cov in found))


class Model(NamedTuple):
    """The same as matrices, so that a density is made of products alone."""

    means: Array  # (w,)  of theta, gamma and all contexts, end to end
    roots: Array  # (w, w)  of their prior covariance
    measure: Array  # (d (n + 1), w)  what adds up to the measurements, whitened
    noisy: Array  # (d (n + 1),)  the measurements, whitened
    actions: Array  # (n, d)  chosen
    rewards: Array  # (n,)
    reward_var: Array  # ()


def model(told: Story) -> Model:
    known, n = told.known, ROUNDS + 1
    means = np.concat([known.prior_mean, np.zeros(D), np.tile(known.context_mean, n)])
    covs = [known.prior_cov, known.bias_cov, *[known.context_cov] * n]
    roots = np.zeros((len(means), len(means)))
    for i, cov in enumerate(covs):
        roots[D * i : D * i + D, D * i : D * i + D] = np.linalg.cholesky(cov)
    white = inverse(np.asarray(np.linalg.cholesky(known.noise_cov), np.float64))
    ones = np.hstack([np.zeros((n, 1)), np.ones((n, 1)), np.eye(n)])  # chat = gamma + c + noise
    return Model(
        means,
        roots,
        np.asarray(np.kron(ones, white), np.float64),
        (told.noisy @ white.T).reshape(-1),
        told.actions[told.arms],
        told.rewards,
        np.asarray(known.reward_var, np.float64),
    )


def log_density(model: Model, x: Any) -> Any:
    """Of everything at once, x being what the prior makes it from: prior, measurements, rewards."""
    all_ = model.means + model.roots @ x
    theta, contexts = all_[:D], all_[2 * D : -D].reshape(ROUNDS, D)
    measured = ((model.noisy - model.measure @ all_) ** 2).sum()
    paid = ((model.rewards - (model.actions * contexts) @ theta) ** 2).sum() / model.reward_var
    return -0.5 * (x @ x + measured + paid)


def chain(model: Model, key: Any) -> Any:
    """Positions (draws, w) after a warm-up, and whether the way to each diverged."""
    density = partial(log_density, model)
    warming, walking, first = jax.random.split(key, 3)
    adapt = blackjax.window_adaptation(blackjax.nuts, density, adaptation_info_fn=get_filter_adapt_info_fn())
    start = jax.random.normal(first, model.means.shape)
    (state, parameters), _ = adapt.run(warming, start, WARMUP)
    kernel = blackjax.nuts(density, **parameters)

    def step(state: Any, key: Any) -> Any:
        state, info = kernel.step(key, state)
        return state, (state.position, info.is_divergent)

    return jax.lax.scan(step, state, jax.random.split(walking, DRAWS))[1]


chains = jax.jit(jax.vmap(chain, in_axes=(None, 0)))


def nuts(told: Story, seed: int) -> Standing:
    """Moments of all chains, which must agree."""
    made = model(told)
    keys = jax.random.split(jax.random.key(seed), CHAINS)
    draws, divergent = jax.tree.map(np.asarray, chains(made, keys))
    all_ = made.means + draws @ made.roots.T
    kept = all_[..., :D], all_[..., -D:], all_[..., D : 2 * D]
    assert not divergent.any()
    assert max(potential_scale_reduction(x).max() for x in kept) < 1.02
    assert min(effective_sample_size(x).min() for x in kept) > 400  # means to 0.05 standard deviations
    return Standing(*((x.mean((0, 1)), x.std((0, 1))) for x in kept))


def gaps(found: Standing, truth: Standing) -> dict[str, tuple[float, float]]:
    """The largest shift in posterior standard deviations, and the largest relative error of these."""
    return {
        name: (
            float(np.abs((ours[0] - theirs[0]) / theirs[1]).max()),
            float(np.abs(ours[1] / theirs[1] - 1).max()),
        )
        for name, ours, theirs in zip(Standing._fields, found, truth, strict=True)
    }


@pytest.mark.soak
def test_the_joint_posterior_where_rewards_say_much_of_the_bias() -> None:
    told = story(3)
    truth = nuts(told, 1)
    found = gaps(standing(told, Joint(nodes=64)), truth)
    assert found["theta"][0] < 0.3
    assert found["theta"][1] < 0.15
    assert found["bias"][0] < 0.2
    assert found["bias"][1] < 0.15
    assert found["context"][0] < 0.1
    assert found["context"][1] < 0.05
    few = gaps(standing(told, Joint()), truth)
    assert few["theta"][0] < 0.4
    assert few["bias"][0] < 0.3
    # Without the rewards' say the bias is more than a deviation off, and with it all else.
    for learner in (Smoothing(), Hetero()):
        without = gaps(standing(told, learner), truth)
        assert without["bias"][0] > 1
        assert without["theta"][0] > 1
        assert without["context"][0] > 0.5


def test_the_joint_posterior_where_the_scatter_of_rewards_says_how_large_theta_is() -> None:
    told = story(2)
    truth = nuts(told, 2)
    found = gaps(standing(told, Joint(nodes=64)), truth)
    assert found["bias"][0] < 0.25
    assert found["bias"][1] < 0.1
    assert found["context"][0] < 0.1
    assert 0.7 < found["theta"][0] < 1.4  # the error of the weights; see above
    assert found["theta"][1] < 0.6
    without = gaps(standing(told, Smoothing()), truth)
    assert found["context"][0] < without["context"][0]
    assert found["bias"][0] < without["bias"][0]
    assert pytest.approx(without["theta"][0], abs=0.3) == found["theta"][0]
