"""Denoising from records with gaps and late truths, against one dense joint Gaussian conditioned by hand."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.problems import given, inverse, random_knowledge
from unfog.agents.denoise import Exact, Incomplete
from unfog.agents.denoise.incomplete import State
from unfog.channel.knowledge import Knowledge
from unfog.features import Context
from unfog.maths.arrays import Array

D, N = 3, 6
HIDDEN = np.full(D, np.nan)
DENOISER = Incomplete()


class Story:
    """Rounds with gaps in chat and in what is known of c; conditioning is right for any values."""

    def __init__(self, known: Knowledge, seed: int, rounds: int = N) -> None:
        rng = np.random.default_rng(seed)
        self.known, self.rounds = known, rounds
        bias = rng.multivariate_normal(np.zeros(D), known.bias_cov)
        self.contexts = rng.multivariate_normal(known.context_mean, known.context_cov, rounds)
        noise = rng.multivariate_normal(np.zeros(D), known.noise_cov, rounds)
        measured = rng.random((rounds, D)) < 0.7
        measured[-1] = [True, False, True]
        self.noisy = np.where(measured, self.contexts + bias + noise, np.nan)
        self.truths = np.where(rng.random((rounds, D)) < 0.4, self.contexts, np.nan)
        self.truths[-1], self.truths[0] = HIDDEN, self.contexts[0]

    def joint(self) -> tuple[Array, Array]:
        """N over (gamma, c_1 .. c_n, chat_1 .. chat_n), from the model's own equations."""
        known, n = self.known, self.rounds
        parts = [known.bias_cov, *[known.context_cov] * n, *[known.noise_cov] * n]
        cov = np.zeros((D * len(parts),) * 2)
        for i, part in enumerate(parts):
            cov[i * D : i * D + D, i * D : i * D + D] = part
        shape = np.eye(len(cov)).reshape(len(parts), D, -1)
        rows = np.concatenate([*shape[: n + 1], *(shape[0] + shape[1 : n + 1] + shape[n + 1 :])])
        mean = np.concatenate([np.zeros(D), *[known.context_mean] * n, np.zeros(D * n)])
        return rows @ mean, rows @ cov @ rows.T

    def truth(self, truths: Array, rounds: range | None = None) -> tuple[Array, Array]:
        """Mean and covariance of (gamma, c_1 .. c_n) given all that is a number in some rounds."""
        mean, cov = self.joint()
        noisy = self.noisy.copy()
        if rounds is not None:
            noisy[[t for t in range(self.rounds) if t not in rounds]] = np.nan
        values = np.concatenate([HIDDEN, truths.ravel(), noisy.ravel()])
        seen = ~np.isnan(values)
        mean, cov = given(mean, cov, np.eye(len(values))[seen], values[seen])
        wide = D * (self.rounds + 1)
        return mean[:wide], cov[:wide, :wide]

    def state(self, truths: Array) -> State:
        """All rounds, in the order they came."""
        parameters = DENOISER.setup(self.known, None)
        state = DENOISER.start(parameters)
        for noisy, truth in zip(self.noisy, truths, strict=True):
            state = DENOISER.update(parameters, state, noisy, truth)
        return state


def same(found: Context, truth: tuple[Array, Array], t: int, tolerance: float = 1e-10) -> None:
    at = slice(D * (t + 1), D * (t + 2))
    np.testing.assert_allclose(found.mean, truth[0][at], rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(found.cov, truth[1][at, at], rtol=tolerance, atol=tolerance)


def bias_of(state: State) -> tuple[Array, Array]:
    cov = inverse(state.precision)
    return cov @ state.natural_mean, cov


def test_the_bias_is_the_joint_posterior() -> None:
    for seed in range(8):
        check_the_bias_is_the_joint_posterior(seed)


def check_the_bias_is_the_joint_posterior(seed: int) -> None:
    story = Story(random_knowledge(seed), seed)
    mean, cov = story.truth(story.truths)
    found = bias_of(story.state(story.truths))
    np.testing.assert_allclose(found[0], mean[:D], rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(found[1], cov[:D, :D], rtol=1e-10, atol=1e-10)


def test_predictions_are_the_joint_posterior() -> None:
    for seed in range(8):
        check_predictions_are_the_joint_posterior(seed)


def check_predictions_are_the_joint_posterior(seed: int) -> None:
    story = Story(random_knowledge(seed), seed)
    parameters = DENOISER.setup(story.known, None)
    state = DENOISER.start(parameters)
    for t in range(N):
        truths = story.truths.copy()
        truths[t:] = np.nan
        same(DENOISER.predict(parameters, state, story.noisy[t]), story.truth(truths, range(t + 1)), t)
        state = DENOISER.update(parameters, state, story.noisy[t], story.truths[t])


def test_a_corrected_context_is_the_joint_posterior() -> None:
    """Of every round in turn, from nothing known of it to a part to all."""
    for seed in range(8):
        check_a_corrected_context_is_the_joint_posterior(seed)


def check_a_corrected_context_is_the_joint_posterior(seed: int) -> None:
    story = Story(random_knowledge(seed), seed)
    parameters = DENOISER.setup(story.known, None)
    for t in range(N):
        story.truths[t] = [np.nan, story.contexts[t, 1], np.nan]
        before, after = story.truths.copy(), story.truths.copy()
        before[t], after[t] = np.nan, story.contexts[t]
        partly, context = DENOISER.correct(
            parameters, story.state(before), story.noisy[t], before[t], story.truths[t]
        )
        same(context, story.truth(story.truths), t)
        wholly, context = DENOISER.correct(parameters, partly, story.noisy[t], story.truths[t], after[t])
        np.testing.assert_array_equal(context.mean, story.contexts[t])
        np.testing.assert_array_equal(context.cov, np.zeros((D, D)))
        for found, truth in zip(bias_of(wholly), story.truth(after), strict=True):
            np.testing.assert_allclose(found, truth[(slice(D),) * found.ndim], rtol=1e-10, atol=1e-10)


def corrections(rng: np.random.Generator, contexts: Array, count: int) -> Iterator[tuple[int, Array]]:
    """Any round, any coordinates, any time: also hidden again, or corrected, or said twice."""
    for _ in range(count):
        t = int(rng.integers(len(contexts)))
        moved = contexts[t] + rng.normal(size=D) * (rng.random() < 0.3)
        yield t, np.where(rng.random(D) < 0.6, moved, np.nan)


def test_hundreds_of_corrections_are_a_recompute(rng: np.random.Generator) -> None:
    for seed in [1, 2]:
        check_hundreds_of_corrections_are_a_recompute(seed, rng)


def check_hundreds_of_corrections_are_a_recompute(seed: int, rng: np.random.Generator) -> None:
    story = Story(random_knowledge(seed), seed, rounds=20)
    parameters = DENOISER.setup(story.known, None)
    truths = np.full((20, D), np.nan)
    state = story.state(truths)
    for t, after in corrections(rng, story.contexts, 600):
        state, _ = DENOISER.correct(parameters, state, story.noisy[t], truths[t], after)
        truths[t] = after
    for found, right in zip(state, story.state(truths), strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-10, atol=1e-10 * np.abs(right).max())
    for found, right in zip(bias_of(state), story.truth(truths), strict=True):
        np.testing.assert_allclose(found, right[(slice(D),) * found.ndim], rtol=1e-10, atol=1e-10)


def test_the_order_does_not_matter(known: Knowledge, rng: np.random.Generator) -> None:
    story = Story(known, 3, rounds=12)
    parameters = DENOISER.setup(known, None)
    found = []
    for _ in range(5):
        state = DENOISER.start(parameters)
        for t in rng.permutation(12):
            state = DENOISER.update(parameters, state, story.noisy[t], None)
        for t in rng.permutation(12):
            state, _ = DENOISER.correct(parameters, state, story.noisy[t], HIDDEN, story.truths[t])
        found.append(state)
    for state in found[1:]:
        for one, other in zip(state, found[0], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_what_says_nothing_new_changes_no_bit(known: Knowledge) -> None:
    story = Story(known, 4)
    state = story.state(story.truths)
    for noisy, truth in zip(story.noisy, story.truths, strict=True):
        again, _ = DENOISER.correct(DENOISER.setup(known, None), state, noisy, truth, truth)
        assert all(np.array_equal(one, other) for one, other in zip(again, state, strict=True))


def test_with_no_gaps_it_is_exact(known: Knowledge) -> None:
    for pairs in [False, True]:
        check_with_no_gaps_it_is_exact(pairs, known)


def check_with_no_gaps_it_is_exact(pairs: bool, known: Knowledge) -> None:
    story, other = Story(known, 5, rounds=30), Exact(pairs=pairs)
    noisy = np.where(np.isnan(story.noisy), story.contexts + 1.0, story.noisy)
    ours, theirs = DENOISER.setup(known, None), other.setup(known, None)
    state, tally = DENOISER.start(ours), other.start(theirs)
    for t in range(30):
        found, right = DENOISER.predict(ours, state, noisy[t]), other.predict(theirs, tally, noisy[t])
        np.testing.assert_allclose(found.mean, right.mean, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(found.cov, right.cov, rtol=1e-12, atol=1e-12)
        state = DENOISER.update(ours, state, noisy[t], story.contexts[t] if pairs else None)
        tally = other.update(theirs, tally, noisy[t], story.contexts[t])


def test_a_round_that_measured_nothing_says_nothing(known: Knowledge) -> None:
    parameters = DENOISER.setup(known, None)
    state = Story(known, 6).state(np.full((N, D), np.nan))
    context = DENOISER.predict(parameters, state, HIDDEN)
    np.testing.assert_array_equal(context.mean, known.context_mean)
    np.testing.assert_array_equal(context.cov, known.context_cov)
    for one, other in zip(DENOISER.update(parameters, state, HIDDEN, None), state, strict=True):
        np.testing.assert_array_equal(one, other)


def walk(known: Knowledge, noisy: Array, truths: Array) -> tuple[State, list[Context]]:
    """A run over rounds: noisy (n, ..., d), with every truth told after the last round."""
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
    stories = [Story(known, seed, rounds=2) for seed in range(4)]
    noisy, truths = (np.stack([getattr(s, name) for s in stories], 1) for name in ("noisy", "truths"))
    right = jax.tree.leaves(walk(known, noisy, truths))
    compiled = jax.jit(walk)(*jax.tree.map(jnp.asarray, (known, noisy, truths)))
    for ours, theirs in zip(jax.tree.leaves(compiled), right, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-11)
    for i, story in enumerate(stories):
        for one, batch in zip(jax.tree.leaves(walk(known, story.noisy, story.truths)), right, strict=True):
            np.testing.assert_allclose(one, batch[i], rtol=1e-12, atol=1e-12)
