"""A channel whose noise is unknown too: against closed forms, Gibbs sampling, and the case of full trust."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.problems import inverse, random_knowledge, spd
from unfog.agents.denoise import Exact, Incomplete, UnknownNoise
from unfog.agents.denoise.unknown_noise import State, Tally, channel
from unfog.channel.knowledge import Knowledge
from unfog.features import Context
from unfog.maths.arrays import Array
from unfog.validation import InputError

D = 3
DENOISER = UnknownNoise()
SURE = UnknownNoise(trust=1e13)


class Story:
    """Rounds with another noise than is told; true contexts of some are shown."""

    def __init__(self, known: Knowledge, seed: int, rounds: int, shown: float = 0.5) -> None:
        rng = np.random.default_rng(seed)
        dim = len(known.context_mean)
        self.known, self.actual = known, spd(rng, dim, 0.1, 6.0)
        self.bias = rng.multivariate_normal(np.zeros(dim), known.bias_cov)
        self.contexts = rng.multivariate_normal(known.context_mean, known.context_cov, rounds)
        self.noisy = self.contexts + self.bias + rng.multivariate_normal(np.zeros(dim), self.actual, rounds)
        self.truths = np.where(rng.random((rounds, 1)) < shown, self.contexts, np.nan)

    def state(self, denoiser: UnknownNoise = DENOISER) -> State:
        parameters = denoiser.setup(self.known, None)
        state = denoiser.start(parameters)
        for noisy, truth in zip(self.noisy, self.truths, strict=True):
            state = denoiser.update(parameters, state, noisy, None if np.isnan(truth).any() else truth)
        return state


def equal(one: object, other: object, tolerance: float) -> None:
    for ours, theirs in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


def test_it_starts_from_what_is_told(known: Knowledge) -> None:
    parameters = DENOISER.setup(known, None)
    found = channel(parameters, DENOISER.start(parameters))
    equal(found, (known.noise_cov, np.zeros(D), known.bias_cov), 1e-12)


def test_from_pairs_with_the_bias_known_it_is_the_inverse_wishart(known: Knowledge) -> None:
    known = known._replace(bias_cov=1e-14 * np.eye(D))
    story = Story(known, 1, rounds=7, shown=1.0)
    gaps = story.noisy - story.contexts
    right = (2.0 * known.noise_cov + gaps.T @ gaps) / (2.0 + 7)
    equal(channel(DENOISER.setup(known, None), story.state()).noise_cov, right, 1e-9)


def roots(rng: np.random.Generator, freedom: float, chains: int, dim: int) -> Array:
    """Bartlett's factors A of standard Wishart matrices A A'."""
    found = np.zeros((chains, dim, dim))
    for i in range(dim):
        found[:, i, i] = np.sqrt(rng.chisquare(freedom - i, chains))
        found[:, i, :i] = rng.standard_normal((chains, i))
    return found


def gibbs(known: Knowledge, trust: float, pairs: Array, alone: Array) -> tuple[Array, ...]:
    """Draws of Sigma_n, and the mean and covariance of the bias given each, by Gibbs sampling.

    The noise of every measurement alone is drawn too, given Sigma_n and the bias; then Sigma_n, given all
    noises, from its inverse Wishart; then the bias given Sigma_n.
    """
    rng, chains, kept = np.random.default_rng(8), 600, []
    dim, context_cov = len(known.context_mean), known.context_cov
    noise_cov, bias = np.broadcast_to(known.noise_cov, (chains, dim, dim)), np.zeros((chains, dim))
    freedom = trust + dim + 1 + len(pairs) + len(alone)
    for step in range(150):
        gain = noise_cov @ np.linalg.inv(context_cov + noise_cov)
        mean = (alone - bias[:, None]) @ gain.mT
        root = np.linalg.cholesky(noise_cov - gain @ noise_cov)
        noises = mean + rng.standard_normal(mean.shape) @ root.mT
        every = np.concatenate([pairs - bias[:, None], noises], 1)
        scale = np.linalg.cholesky(np.linalg.inv(trust * known.noise_cov + every.mT @ every))
        half = scale @ roots(rng, freedom, chains, dim)
        noise_cov = inverse(half @ half.mT)
        inner, outer = np.linalg.inv(noise_cov), np.linalg.inv(context_cov + noise_cov)
        cov = np.linalg.inv(np.linalg.inv(known.bias_cov) + len(pairs) * inner + len(alone) * outer)
        centre = (cov @ (inner @ pairs.sum(0) + outer @ alone.sum(0))[..., None])[..., 0]
        bias = centre + (np.linalg.cholesky(cov) @ rng.standard_normal((chains, dim, 1)))[..., 0]
        if step >= 30:
            kept.append((noise_cov, centre, cov))
    return tuple(np.concatenate(part) for part in zip(*kept, strict=True))


def log_gap(found: Array, right: Array) -> float:
    return float(np.abs(np.log(np.diag(found) / np.diag(right))).max())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pairs", "alone", "noise_gap", "bias_gap"),
    [(2, 0, 0.15, 0.3), (10, 0, 0.05, 0.1), (10, 20, 0.15, 0.1), (60, 100, 0.05, 0.05), (0, 200, 0.15, 0.1)],
)
def test_it_is_near_the_posterior(pairs: int, alone: int, noise_gap: float, bias_gap: float) -> None:
    """Gibbs is right to 0.01 or so in these units; told alone, the covariance is off by 0.5 and more."""
    known = random_knowledge(7, dim=2)
    story = Story(known, 9, pairs + alone)
    story.truths = np.where(np.arange(pairs + alone)[:, None] < pairs, story.contexts, np.nan)
    differences = (story.noisy - story.contexts)[:pairs]
    noise_cov, centre, cov = gibbs(known, 2.0, differences, (story.noisy - known.context_mean)[pairs:])
    found = channel(DENOISER.setup(known, None), story.state())
    bias_cov = cov.mean(0) + np.cov(centre.T)
    assert log_gap(found.noise_cov, noise_cov.mean(0)) < noise_gap
    assert np.abs((found.bias_mean - centre.mean(0)) / np.sqrt(np.diag(bias_cov))).max() < bias_gap
    assert log_gap(found.bias_cov, bias_cov) < 2 * bias_gap
    assert log_gap(known.noise_cov, noise_cov.mean(0)) > 2 * noise_gap


@pytest.mark.parametrize("shown", [0.0, 0.3, 1.0])
def test_in_the_end_it_knows_the_noise(shown: float, known: Knowledge) -> None:
    """100 000 rounds, as sums: variances within 3 %, where standard errors are 1 % at most."""
    story, rng = Story(known, 4, 1), np.random.default_rng(5)
    contexts = rng.multivariate_normal(known.context_mean, known.context_cov, 100_000)
    noisy = contexts + story.bias + rng.multivariate_normal(np.zeros(D), story.actual, 100_000)
    cut = round(shown * 100_000)
    pairs, alone = (noisy - contexts)[:cut], (noisy - known.context_mean)[cut:]
    state = State(*(Tally(np.asarray(float(len(x))), x.sum(0), x.T @ x) for x in (pairs, alone)))
    found = channel(DENOISER.setup(known, None), state)
    ratios = np.linalg.eigvals(
        np.linalg.solve(story.actual + known.context_cov, found.noise_cov + known.context_cov)
    )
    assert np.abs(ratios - 1).max() < 0.03
    np.testing.assert_allclose(found.bias_mean, story.bias, atol=0.05)


@pytest.mark.parametrize("pairs", [False, True])
def test_trusted_it_is_exact(pairs: bool, known: Knowledge) -> None:
    story, other = Story(known, 2, 12, shown=float(pairs)), Exact(pairs=pairs)
    ours, theirs = SURE.setup(known, None), other.setup(known, None)
    state, tally = SURE.start(ours), other.start(theirs)
    for t in range(12):
        equal(SURE.predict(ours, state, story.noisy[t]), other.predict(theirs, tally, story.noisy[t]), 1e-9)
        state = SURE.update(ours, state, story.noisy[t], story.contexts[t] if pairs else None)
        tally = other.update(theirs, tally, story.noisy[t], story.contexts[t])


def test_trusted_it_corrects_as_incomplete_records_do(known: Knowledge) -> None:
    story, records = Story(known, 3, 6, shown=0.0), Incomplete(pairs=True)
    ours, theirs = SURE.setup(known, None), records.setup(known, None)
    state, other = story.state(SURE), records.start(theirs)
    hidden = np.full(D, np.nan)
    for noisy in story.noisy:
        other = records.update(theirs, other, noisy, None)
    for t, after in enumerate([hidden, np.array([np.nan, story.contexts[1, 1], np.nan]), story.contexts[2]]):
        _, found = SURE.correct(ours, state, story.noisy[t], hidden, after)
        _, right = records.correct(theirs, other, story.noisy[t], hidden, after)
        equal(found, right, 1e-9)


def test_the_order_does_not_matter_and_correcting_is_a_recompute(known: Knowledge) -> None:
    story, rng = Story(known, 6, 40), np.random.default_rng(1)
    parameters, hidden = DENOISER.setup(known, None), np.full(D, np.nan)
    state = DENOISER.start(parameters)
    for t in rng.permutation(40):
        state = DENOISER.update(parameters, state, story.noisy[t], None)
    now = np.full((40, D), np.nan)
    for _ in range(4):  # shown, hidden and corrected, in any order, and in the end what the story says
        for t in rng.permutation(40):
            after = story.contexts[t] + rng.normal(size=D) if rng.random() < 0.5 else hidden
            state, _ = DENOISER.correct(parameters, state, story.noisy[t], now[t], after)
            now[t] = after
    for t in rng.permutation(40):
        state, context = DENOISER.correct(parameters, state, story.noisy[t], now[t], story.truths[t])
        if not np.isnan(story.truths[t]).any():
            np.testing.assert_array_equal(context.mean, story.contexts[t])
            np.testing.assert_array_equal(context.cov, np.zeros((D, D)))
    equal(state, story.state(), 1e-10)
    equal(channel(parameters, state), channel(parameters, story.state()), 1e-10)


def walk(known: Knowledge, noisy: Array, truths: Array) -> tuple[State, list[Context]]:
    """Rounds (n, ..., d), the truths after the last."""
    parameters = DENOISER.setup(known, None)
    state, found = DENOISER.start(parameters), []
    for now in noisy:
        found.append(DENOISER.predict(parameters, state, now))
        state = DENOISER.update(parameters, state, now, None)
    for now, truth in zip(noisy, truths, strict=True):
        state, context = DENOISER.correct(parameters, state, now, now * np.nan, truth)
        found.append(context)
    return state, found


@pytest.mark.slow
def test_trials_and_engines_agree(known: Knowledge) -> None:
    stories = [Story(known, seed, 2) for seed in range(3)]
    noisy, truths = (np.stack([getattr(s, name) for s in stories], 1) for name in ("noisy", "truths"))
    right = jax.tree.leaves(walk(known, noisy, truths))
    found = jax.tree.leaves(jax.jit(walk)(*jax.tree.map(jnp.asarray, (known, noisy, truths))))
    for ours, theirs in zip(found, right, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-9)
    for i, story in enumerate(stories):
        for one, batch in zip(jax.tree.leaves(walk(known, story.noisy, story.truths)), right, strict=True):
            np.testing.assert_allclose(one, batch[i], rtol=1e-9, atol=1e-10)


def test_trust_must_be_positive() -> None:
    for trust in (0.0, -1.0, float("nan")):
        with pytest.raises(InputError, match="trust"):
            UnknownNoise(trust=trust)
