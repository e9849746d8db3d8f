"""What denoisers say they believe of the bias and of hypotheses, against joint Gaussians written out."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from tests.agents.denoise.stories import D, Joint, Story
from tests.problems import given, inverse, random_knowledge, spd
from unfog.agents.agent import Agent
from unfog.agents.base import KnowsBias, Moment, Privilege, WeighsHypotheses
from unfog.agents.choose import Thompson
from unfog.agents.denoise import (
    Adaptive,
    Drift,
    Empirical,
    Exact,
    Identity,
    Incomplete,
    KnownBias,
    KnownBiasAtoms,
    Mixture,
    PlugIn,
    PriorOnly,
    Robust,
    Temporal,
    TemporalBank,
    UnknownNoise,
    unknown_noise,
)
from unfog.agents.learn import Conjugate
from unfog.channel import deconvolution
from unfog.channel.dynamics import Dynamics, Moving
from unfog.channel.knowledge import Knowledge
from unfog.maths import mixture
from unfog.maths.arrays import Array

ROUNDS = 7
KNOWN = random_knowledge(seed=11)
RNG = np.random.default_rng(12)
SAMPLE = RNG.normal(size=(15, D)) @ np.array([[1.0, 0.4, 0], [0, 0.8, -0.5], [0, 0, 1.5]]) + [1.0, -2.0, 0.5]
LAW = mixture.Mixture(
    np.array([0.2, 0.5, 0.3]), SAMPLE[:3], np.stack([spd(RNG, D, 0.1, 0.8) for _ in range(3)])
)
TOLD = KNOWN._replace(sample=SAMPLE, mixture=LAW, contexts=SAMPLE)


def kron(one: Any, other: Any) -> Array:
    found: Array = np.kron(np.asarray(one, dtype=float), other)
    return found


class Belief(NamedTuple):
    mean: Array
    cov: Array


def after(denoiser: Any, story: Story, known: Knowledge = TOLD, context: bool = True) -> Any:
    """Parameters and state after all rounds of a story."""
    parameters = denoiser.setup(known, None)
    state = denoiser.start(parameters)
    for noisy, true in zip(story.noisy, story.contexts, strict=True):
        state = denoiser.update(parameters, state, noisy, true if context else None)
    return parameters, state


def check(found: Any, mean: Array, cov: Array, tolerance: float = 1e-10) -> None:
    assert found[0].shape == mean.shape
    assert found[1].shape == cov.shape
    np.testing.assert_allclose(found[0], mean, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(found[1], cov, rtol=tolerance, atol=tolerance)


def test_it_is_the_posterior_of_the_bias() -> None:
    for make in [Exact, PlugIn, Incomplete]:
        for pairs in [False, True]:
            check_it_is_the_posterior_of_the_bias(make, pairs)


def check_it_is_the_posterior_of_the_bias(make: Any, pairs: bool) -> None:
    denoiser, story = make(pairs=pairs), Story(KNOWN, ROUNDS)
    parameters, state = after(denoiser, story, context=pairs)
    check(denoiser.bias(parameters, state), *story.bias_posterior(ROUNDS, pairs))
    check(denoiser.bias(parameters, denoiser.start(parameters)), np.zeros(D), KNOWN.bias_cov)


def test_incomplete_knows_it_from_what_was_not_lost() -> None:
    """Some readings lost a coordinate, and of some contexts a part became known."""
    denoiser, story, joint = Incomplete(pairs=True), Story(KNOWN, ROUNDS), Joint(KNOWN, ROUNDS)
    parameters = denoiser.setup(KNOWN, None)
    state, rows, values = denoiser.start(parameters), [], []
    rng = np.random.default_rng(5)
    for t in range(ROUNDS):
        there, told = rng.random(D) < 0.7, rng.random(D) < 0.4
        noisy, context = np.where(there, story.noisy[t], np.nan), np.where(told, story.contexts[t], np.nan)
        state = denoiser.update(parameters, state, noisy, context)
        rows += [joint.noisy[t][there], joint.contexts[t][told]]
        values += [story.noisy[t][there], story.contexts[t][told]]
    check(denoiser.bias(parameters, state), *joint.posterior(joint.bias, rows, values))


def walked(known: Knowledge, story: Story, step: float, pairs: bool, size: float = 1.0) -> Any:
    """The bias of the round to come where it walks, and the log density of what was seen."""
    rounds, told = len(story.noisy), np.arange(len(story.noisy) + 1)
    walks = kron(1 + step * np.minimum.outer(told, told), known.bias_cov)
    noise = size * known.noise_cov + (0 if pairs else 1) * known.context_cov
    cov = walks.copy()
    cov[: rounds * D, : rounds * D] += kron(np.eye(rounds), noise)
    values = (story.noisy - (story.contexts if pairs else known.context_mean)).ravel()
    rows = np.eye(len(cov))[: rounds * D]
    mean, left = given(np.zeros(len(cov)), cov, rows, values)
    density = multivariate_normal(np.zeros(len(values)), cov[: len(values), : len(values)]).logpdf(values)
    return Belief(mean[-D:], left[-D:, -D:]), density


@pytest.mark.parametrize("pairs", [False, True])
def test_drift_follows_it(pairs: bool) -> None:
    story, denoiser = Story(KNOWN, ROUNDS), Drift(step=0.3, pairs=pairs)
    parameters, state = after(denoiser, story)
    check(denoiser.bias(parameters, state), *walked(KNOWN, story, 0.3, pairs)[0])


def mixed(beliefs: list[Belief], logs: list[float]) -> Belief:
    """The moments of a mixture."""
    weights = np.exp(np.array(logs) - max(logs))
    weights /= weights.sum()
    mean = sum(w * b.mean for w, b in zip(weights, beliefs, strict=True))
    spreads = [b.cov + np.outer(b.mean - mean, b.mean - mean) for b in beliefs]
    return Belief(np.asarray(mean), np.asarray(sum(w * s for w, s in zip(weights, spreads, strict=True))))


@pytest.mark.parametrize("pairs", [False, True])
def test_adaptive_mixes_what_its_hypotheses_say(pairs: bool) -> None:
    """Gaussian hypotheses that never switch: Bayes' rule with every joint Gaussian written out."""
    story = Story(KNOWN, ROUNDS)
    denoiser = Adaptive(sizes=3, steps=2, tails=0.0, switch=0.0, pairs=pairs)
    parameters, state = after(denoiser, story, KNOWN)
    every, labels = denoiser.hypotheses(), denoiser.labels(parameters)
    assert [(h.size, h.step) for h in every] == [(one["size"], one["step"]) for one in labels]
    found = [walked(KNOWN, story, one["step"], pairs, one["size"]) for one in labels]
    logs = [density + np.log(p) for (_, density), p in zip(found, parameters.prior, strict=True)]
    check(denoiser.bias(parameters, state), *mixed([belief for belief, _ in found], logs), tolerance=1e-8)
    right = np.exp(logs - np.logaddexp.reduce(logs))
    np.testing.assert_allclose(denoiser.weights(parameters, state), right, rtol=1e-8)
    assert right.max() < 0.99


def test_adaptive_with_a_sample_expects_what_its_bias_says() -> None:
    """What it expects of a reading is the mean of contexts, under each hypothesis its own, and the bias."""
    denoiser = Adaptive()
    parameters, state = after(denoiser, Story(KNOWN, ROUNDS), context=False)
    labels, weights = denoiser.labels(parameters), denoiser.weights(parameters, state)
    assert weights.shape == (len(labels),)
    np.testing.assert_allclose(weights.sum(), 1.0)
    assert [one["sample"] for one in labels][-2:] == [0.0, 1.0]
    assert {one["tails"] for one in labels} == {3.0, np.inf}
    law = deconvolution.kernel_law(SAMPLE, 1000, 0.5)
    shared = (1 - weights[-1]) * KNOWN.context_mean + weights[-1] * law.mean
    mean, cov = denoiser.bias(parameters, state)
    np.testing.assert_allclose(denoiser.predict_reading(parameters, state)[0] - mean, shared)
    assert np.linalg.eigvalsh(cov).min() > 0
    assert 1e-3 < weights[-1] < 1


def components(known: Knowledge, denoiser: Any) -> list[tuple[float, Array, Array]]:
    """Probability, mean and covariance of the Gaussians that contexts come from."""
    if isinstance(denoiser, Mixture):
        return list(zip(LAW.weights, LAW.means, LAW.covs, strict=True))
    law = deconvolution.kernel_law(SAMPLE, denoiser.atoms, denoiser.bandwidth)
    return [(p, u, law.kernel) for p, u in zip(law.weights, law.atoms, strict=True)]


@pytest.mark.parametrize("denoiser", [Mixture(), Empirical()], ids=lambda x: x.name)
def test_one_round_of_other_laws_is_exact(denoiser: Any) -> None:
    noisy = np.array([0.7, -1.9, 2.2])
    parameters = denoiser.setup(TOLD, None)
    state = denoiser.update(parameters, denoiser.start(parameters), noisy, None)
    beliefs, logs = [], []
    for share, mean, cov in components(TOLD, denoiser):
        whole = KNOWN.bias_cov + cov + KNOWN.noise_cov
        gain = KNOWN.bias_cov @ inverse(whole)
        beliefs.append(Belief(gain @ (noisy - mean), KNOWN.bias_cov - gain @ KNOWN.bias_cov))
        logs.append(np.log(share) + multivariate_normal(mean, whole).logpdf(noisy))
    check(denoiser.bias(parameters, state), *mixed(beliefs, logs))


@pytest.mark.parametrize("denoiser", [Mixture(pairs=True), Empirical(pairs=True)], ids=lambda x: x.name)
def test_with_pairs_the_law_of_contexts_does_not_matter(denoiser: Any) -> None:
    story = Story(KNOWN, ROUNDS)
    check(denoiser.bias(*after(denoiser, story)), *story.bias_posterior(ROUNDS, pairs=True))


@pytest.mark.parametrize("pairs", [False, True])
def test_one_round_of_heavy_tails_is_what_draws_say(pairs: bool) -> None:
    """Importance sampling, 400,000 draws of the precision and closed forms given it: six standard errors."""
    denoiser, known = Robust(nu=3.0, pairs=pairs), KNOWN
    noisy, context = np.array([2.5, -1.0, 4.0]), known.context_mean + 0.3
    parameters = denoiser.setup(known, None)
    state = denoiser.update(parameters, denoiser.start(parameters), noisy, context)
    precisions = np.random.default_rng(3).gamma(1.5, 1 / 1.5, 400_000)
    hidden = known.bias_cov + (0 if pairs else 1) * known.context_cov
    away = noisy - (context if pairs else known.context_mean)
    totals = hidden + known.noise_cov / precisions[:, None, None]
    gains = known.bias_cov @ np.linalg.inv(totals)
    means = gains @ away
    squares = known.bias_cov - gains @ known.bias_cov + means[:, :, None] * means[:, None, :]
    logs = -0.5 * (np.linalg.slogdet(totals)[1] + np.linalg.solve(totals, away[:, None])[..., 0] @ away)
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    mean, square = np.einsum("n,ni->i", weights, means), np.einsum("n,nij->ij", weights, squares)
    found = denoiser.bias(parameters, state)
    for said, right, each in (
        (found[0], mean, means),
        (found[1] + np.outer(*[found[0]] * 2), square, squares),
    ):
        error = np.sqrt(np.einsum("n,n...->...", weights**2, (each - right) ** 2))
        assert np.all(np.abs(said - right) <= 6 * error + 2e-3 * np.abs(right))  # the grid's own error


def test_what_is_expected_of_a_reading_has_the_bias_in_it() -> None:
    """Mean and variance before it, less those of contexts and noise as the denoiser knows them."""
    for denoiser in [Exact(), Drift(step=0.1), Robust(nu=4.0, step=0.1), Mixture(), Empirical()]:
        check_what_is_expected_of_a_reading_has_the_bias_in_it(denoiser)


def check_what_is_expected_of_a_reading_has_the_bias_in_it(denoiser: Any) -> None:
    parameters, state = after(denoiser, Story(KNOWN, ROUNDS), context=False)
    first = denoiser.start(parameters)
    (mean, variance), (before, prior) = (denoiser.predict_reading(parameters, x) for x in (state, first))
    found = denoiser.bias(parameters, state)
    np.testing.assert_allclose(found[0], mean - before, atol=1e-12)
    np.testing.assert_allclose(np.diagonal(found[1]), variance - prior + np.diagonal(KNOWN.bias_cov))


def test_unknown_noise_has_it_given_the_noise_that_fits() -> None:
    denoiser, story = UnknownNoise(trust=3.0), Story(KNOWN, 2 * ROUNDS)
    parameters = denoiser.setup(KNOWN, None)
    state = denoiser.start(parameters)
    for t in range(2 * ROUNDS):
        state = denoiser.update(parameters, state, story.noisy[t], story.contexts[t] if t % 2 else None)
    noise = unknown_noise.channel(parameters, state).noise_cov
    assert np.abs(noise - KNOWN.noise_cov).max() > 0.05
    paired, alone = inverse(noise), inverse(noise + KNOWN.context_cov)
    cov = inverse(inverse(KNOWN.bias_cov) + ROUNDS * (paired + alone))
    z = (story.noisy - story.contexts)[1::2].sum(0)
    y = (story.noisy - KNOWN.context_mean)[::2].sum(0)
    check(denoiser.bias(parameters, state), cov @ (paired @ z + alone @ y), cov, tolerance=1e-8)


def test_unknown_noise_that_is_trusted_is_known() -> None:
    denoiser, story = UnknownNoise(trust=1e10), Story(KNOWN, ROUNDS)
    check(denoiser.bias(*after(denoiser, story)), *story.bias_posterior(ROUNDS, True), tolerance=1e-6)


@pytest.mark.parametrize("denoiser", [KnownBias(), KnownBiasAtoms()], ids=lambda x: x.name)
def test_who_is_told_it_is_certain(denoiser: Any) -> None:
    bias = np.arange(2.0 * D).reshape(2, D)
    parameters = denoiser.setup(TOLD, Privilege(bias))
    check(denoiser.bias(parameters, ()), bias, np.zeros((2, D, D)))


# In time.

TIMES = np.array([0.0, 0.4, 2.0, 2.1, 5.0, 9.0])
SLOW = Moving(spd(RNG, D, 0.2, 1.0), 6.0)
TEMPOS = {
    "walks": Dynamics(
        Moving(KNOWN.context_cov, 1.5),
        Moving(KNOWN.bias_cov, np.inf, spd(RNG, D, 0.02, 0.1)),
        KNOWN.noise_cov,
        error=SLOW,
    ),
    "stays, errors move": Dynamics(
        Moving(KNOWN.context_cov, 1.5), Moving(KNOWN.bias_cov, np.inf), KNOWN.noise_cov, error=SLOW
    ),
    "moves, errors stay": Dynamics(
        Moving(KNOWN.context_cov, 0.0),
        Moving(KNOWN.bias_cov, 4.0),
        KNOWN.noise_cov,
        error=Moving(SLOW.cov, np.inf),
    ),
}


def between(part: Moving | None, times: Array) -> Array:
    """Covariance of a part between all times, (n d, n d)."""
    if part is None:
        return np.zeros((len(times) * D,) * 2)
    apart = np.abs(np.subtract.outer(times, times))
    if part.time == 0:
        return kron(apart == 0, part.cov)
    if part.time < np.inf:
        return kron(np.exp(-apart / part.time), part.cov)
    walk = np.zeros((D, D)) if part.walk is None else part.walk
    since = np.minimum.outer(times, times) - times[0]
    return kron(np.ones_like(apart), part.cov) + kron(since, walk)


def in_time(dynamics: Dynamics, noisy: Array, known: Any) -> tuple[Belief, float]:
    """The bias at the last time given readings and some true contexts, and their log density."""
    n, contexts = len(TIMES) * D, between(dynamics.fast, TIMES)
    bias = between(dynamics.bias, TIMES)
    whole = kron(np.eye(len(TIMES)), dynamics.white)
    whole = whole + between(dynamics.error, TIMES) + bias + contexts
    cross = np.concatenate([bias[:, -D:], np.zeros((n, D))])
    cov = np.block([[whole, contexts], [contexts, contexts]])
    cov = np.block([[cov, cross], [cross.T, bias[-D:, -D:]]])
    mean = np.concatenate([np.tile(KNOWN.context_mean, 2 * len(TIMES)), np.zeros(D)])
    places = [*range(n), *(n + t * D + i for t in known for i in range(D))]
    values = np.concatenate([noisy.ravel(), *known.values()])
    after_mean, after_cov = given(mean, cov, np.eye(len(mean))[places], values)
    density = multivariate_normal(mean[places], cov[np.ix_(places, places)]).logpdf(values)
    return Belief(after_mean[-D:], after_cov[-D:, -D:]), density


def played(denoiser: Any, dynamics: Dynamics, noisy: Array, known: dict[int, Array]) -> Any:
    """Parameters and state after readings, and true contexts right after them."""
    parameters = denoiser.setup(KNOWN._replace(dynamics=dynamics), None)
    state = denoiser.start(parameters)
    for t, at in enumerate(TIMES):
        ready = denoiser.before(parameters, state, Moment(np.asarray(t), np.asarray(at)))
        state = denoiser.update(parameters, ready, noisy[t], known.get(t))
    return parameters, state


NOISY = KNOWN.context_mean + np.random.default_rng(8).normal(0, 1.5, (len(TIMES), D))
SHOWN = {2: KNOWN.context_mean + 0.4, 4: KNOWN.context_mean - 0.7}


@pytest.mark.parametrize("name", TEMPOS)
def test_temporal_knows_the_bias_at_its_last_reading(name: str) -> None:
    denoiser, dynamics = Temporal(), TEMPOS[name]
    parameters, state = played(denoiser, dynamics, NOISY, SHOWN)
    check(denoiser.bias(parameters, state), *in_time(dynamics, NOISY, SHOWN)[0], tolerance=1e-6)


def test_its_bank_mixes_what_the_filters_say() -> None:
    """Every hypothesis by its joint Gaussian, and Bayes' rule."""
    dynamics, denoiser = TEMPOS["walks"], TemporalBank(switch=0.0)
    assert dynamics.error is not None
    assert dynamics.white is not None
    parameters, state = played(denoiser, dynamics, NOISY, SHOWN)
    found, logs = [], []
    for label, prior in zip(denoiser.labels(parameters), parameters.prior, strict=True):
        size, speed = label["size"], label["speed"]
        other = dynamics._replace(
            bias=dynamics.bias._replace(walk=speed * np.asarray(dynamics.bias.walk)),
            error=Moving(size * dynamics.error.cov, dynamics.error.time),
            white=size * dynamics.white,
        )
        belief, density = in_time(other, NOISY, SHOWN)
        found.append(belief)
        logs.append(density + np.log(prior))
    check(denoiser.bias(parameters, state), *mixed(found, logs), tolerance=1e-6)
    right = np.exp(logs - np.logaddexp.reduce(logs))
    np.testing.assert_allclose(denoiser.weights(parameters, state), right, rtol=1e-5, atol=1e-9)


# All of them.

LEARNING = Exact, PlugIn, Incomplete, Drift, Robust, Empirical, Mixture, Adaptive, UnknownNoise, Temporal
EVERY: list[Any] = [*(make() for make in LEARNING), TemporalBank()]


def test_trials_side_by_side_are_trials_alone() -> None:
    for denoiser in EVERY:
        check_trials_side_by_side_are_trials_alone(denoiser)


def check_trials_side_by_side_are_trials_alone(denoiser: Any) -> None:
    stories = [Story(KNOWN, 4, seed) for seed in (3, 4)]
    parameters = denoiser.setup(TOLD, None)
    states = [denoiser.start(parameters)] * 3
    for t in range(4):
        noisy = np.stack([story.noisy[t] for story in stories])
        both = denoiser.update(parameters, states[0], noisy, None if not denoiser.pairs else noisy - 0.5)
        alone = [
            denoiser.update(parameters, state, one, None if not denoiser.pairs else one - 0.5)
            for state, one in zip(states[1:], noisy, strict=True)
        ]
        states = [both, *alone]
    found = denoiser.bias(parameters, states[0])
    assert found[0].shape == (2, D)
    assert found[1].shape == (2, D, D)
    for i in range(2):
        check(denoiser.bias(parameters, states[1 + i]), found[0][i], found[1][i], tolerance=1e-8)


def test_abilities_are_declared() -> None:
    def agent(denoiser: Any) -> Agent:
        return Agent("mine", denoiser, Conjugate(), Thompson())

    for denoiser in EVERY:
        assert isinstance(denoiser, KnowsBias)
        assert agent(denoiser).can.estimate_bias is denoiser
        weighs = isinstance(denoiser, Adaptive | TemporalBank)
        assert (agent(denoiser).can.weigh_hypotheses is not None) == weighs
        assert isinstance(denoiser, WeighsHypotheses) == weighs
    for denoiser in (Identity(), PriorOnly()):
        assert agent(denoiser).can.estimate_bias is None
