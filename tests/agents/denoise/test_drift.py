"""The filter of a bias that walks against the joint Gaussian of all its values, contexts and measurements."""

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.problems import given, random_knowledge
from unfog.agents.denoise import Drift, Exact
from unfog.channel.knowledge import Knowledge
from unfog.features import Context
from unfog.maths.arrays import Array
from unfog.validation import InputError

D = 3


def beliefs(denoiser: Any, known: Knowledge, noisy: Array, contexts: Array) -> list[Context]:
    """What the denoiser believes in each round: (..., rounds, d) measurements and contexts."""
    parameters = denoiser.setup(known, None)
    state, found = denoiser.start(parameters), []
    for t in range(noisy.shape[-2]):
        found.append(denoiser.predict(parameters, state, noisy[..., t, :]))
        state = denoiser.update(parameters, state, noisy[..., t, :], contexts[..., t, :])
    return found


def by_conditioning(
    known: Knowledge, step: float, noisy: Array, contexts: Array | None
) -> tuple[Array, Array]:
    """c_t given chat_1 .. chat_t, and c_1 .. c_{t-1} where they are shown: one conditioning of all at once.

    The walk is written out: gamma_s = gamma_1 + the steps up to s, each step a variable of its own.
    """
    rounds = len(noisy)
    blocks = [known.bias_cov, *[step * known.bias_cov] * (rounds - 1)]
    blocks += [known.context_cov] * rounds + [known.noise_cov] * rounds
    size = D * len(blocks)
    cov = np.zeros((size, size))
    for i, block in enumerate(blocks):
        cov[i * D : i * D + D, i * D : i * D + D] = block
    mean = np.concatenate([np.zeros(D * rounds), *[known.context_mean] * rounds, np.zeros(D * rounds)])
    unit = np.eye(size).reshape(len(blocks), D, size)
    bias, context, noise = unit[:rounds].cumsum(0), unit[rounds : 2 * rounds], unit[2 * rounds :]
    seen, values = [*(bias + context + noise)], [*noisy]
    if contexts is not None:
        seen, values = [*seen, *context[:-1]], [*values, *contexts[: rounds - 1]]
    posterior, spread = given(mean, cov, np.concatenate(seen), np.concatenate(values))
    return context[-1] @ posterior, context[-1] @ spread @ context[-1].T


@pytest.fixture
def story(rng: np.random.Generator, known: Knowledge) -> tuple[Array, Array]:
    """Any values do: conditioning holds for all of them."""
    contexts = rng.multivariate_normal(known.context_mean, known.context_cov, 6)
    return contexts + rng.normal(1, 2, (6, D)), contexts


def test_it_is_the_joint_posterior(known: Knowledge, story: tuple[Array, Array]) -> None:
    for step in [1e-3, 0.3, 5.0]:
        for pairs in [False, True]:
            check_it_is_the_joint_posterior(pairs, step, known, story)


def check_it_is_the_joint_posterior(
    pairs: bool, step: float, known: Knowledge, story: tuple[Array, Array]
) -> None:
    noisy, contexts = story
    for t, found in enumerate(beliefs(Drift(step=step, pairs=pairs), known, noisy, contexts), 1):
        mean, cov = by_conditioning(known, step, noisy[:t], contexts[:t] if pairs else None)
        np.testing.assert_allclose(found.mean, mean, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(found.cov, cov, rtol=1e-10, atol=1e-10)


def test_a_bias_that_stays_is_the_exact_denoisers(known: Knowledge, rng: np.random.Generator) -> None:
    for pairs in [False, True]:
        check_a_bias_that_stays_is_the_exact_denoisers(pairs, known, rng)


def check_a_bias_that_stays_is_the_exact_denoisers(
    pairs: bool, known: Knowledge, rng: np.random.Generator
) -> None:
    noisy, contexts = rng.normal(1, 2, (2, 4, 300, D))
    right = beliefs(Exact(pairs=pairs), known, noisy, contexts)
    for found, truth in zip(
        beliefs(Drift(step=0.0, pairs=pairs), known, noisy, contexts), right, strict=True
    ):
        np.testing.assert_allclose(found.mean, truth.mean, atol=1e-12)
        np.testing.assert_allclose(found.cov, truth.cov, atol=1e-12)


def test_its_covariance_settles_where_riccatis_equation_says(known: Knowledge) -> None:
    step, denoiser = 0.02, Drift(step=0.02)
    parameters = denoiser.setup(known, None)
    state = denoiser.start(parameters)
    for _ in range(400):
        state = denoiser.update(parameters, state, known.context_mean, known.context_mean)
    before = parameters.sight.basis * state.variance @ parameters.sight.basis.T
    noise = known.context_cov + known.noise_cov
    after = before - before @ np.linalg.solve(before + noise, before) + step * known.bias_cov
    np.testing.assert_allclose(after, before, rtol=1e-9, atol=1e-12)


@pytest.mark.slow
def test_trials_share_the_covariance_and_both_engines_agree(
    known: Knowledge, rng: np.random.Generator
) -> None:
    denoiser, noisy, contexts = Drift(pairs=True), *rng.normal(1, 2, (2, 5, D))
    parameters = denoiser.setup(known, None)
    state = denoiser.update(parameters, denoiser.start(parameters), noisy, contexts)
    found = denoiser.predict(parameters, state, noisy)
    assert (found.mean.shape, found.cov.shape, state.variance.shape) == ((5, D), (D, D), (D,))

    def two(known: Any, noisy: Any, contexts: Any) -> Any:
        parameters = denoiser.setup(known, None)
        state = denoiser.update(parameters, denoiser.start(parameters), noisy, contexts)
        return denoiser.predict(parameters, state, noisy)

    compiled = jax.jit(two)(*jax.tree.map(jnp.asarray, (known, noisy, contexts)))
    np.testing.assert_allclose(compiled.mean, found.mean, atol=1e-12)
    np.testing.assert_allclose(compiled.cov, found.cov, atol=1e-12)


def test_errors_have_the_size_it_says_when_the_bias_walks_as_it_thinks() -> None:
    known, step, trials, rounds = random_knowledge(seed=9), 0.05, 3000, 12
    rng = np.random.default_rng(1)
    draw = rng.multivariate_normal
    walk = (
        draw(np.zeros(D), known.bias_cov, (trials, rounds)) * np.sqrt([1.0] + [step] * (rounds - 1))[:, None]
    )
    contexts = draw(known.context_mean, known.context_cov, (trials, rounds))
    noisy = contexts + walk.cumsum(1) + draw(np.zeros(D), known.noise_cov, (trials, rounds))
    for denoiser, right in ((Drift(step=step), True), (Drift(step=0.0), False)):
        last = beliefs(denoiser, known, noisy, contexts)[-1]
        error = np.linalg.solve(np.linalg.cholesky(last.cov), (last.mean - contexts[:, -1]).T)
        size = (error**2).sum(0)
        # Chi-squared with 3 degrees of freedom: 5 standard errors fail 6e-7 of the time.
        assert (abs(size.mean() - D) < 5 * np.sqrt(2 * D / trials)) == right


def test_a_bad_step_is_refused_by_name() -> None:
    for step in (-1e-9, float("nan"), float("inf")):
        with pytest.raises(InputError, match=r"^step: .*allowed: zero or a positive number"):
            Drift(step=step)


def test_other_settings_are_refused_and_equal_ones_are_equal() -> None:
    with pytest.raises(InputError, match=re.escape("pairs: 1; allowed: True or False")):
        Drift(pairs=1)  # type: ignore[arg-type]
    assert Drift() == Drift(pairs=False, step=1e-3) != Drift(pairs=True) == Drift(pairs=True, step=1e-3)
    assert hash(Drift()) == hash(Drift(pairs=False, step=1e-3))
