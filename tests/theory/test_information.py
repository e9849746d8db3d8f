"""Informations against determinants of the dense joint covariance, simulation and plain sums."""

from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.each import each
from tests.problems import covariance_error, inverse, random_knowledge, spd, within
from unfog.channel.knowledge import Knowledge
from unfog.maths.arrays import Array
from unfog.theory import information
from unfog.validation import InputError

DRAWS = 200_000
BOTH = [(setting, denoiser) for setting in information.SETTINGS for denoiser in information.DENOISERS]


def excess(known: Knowledge, number: Any, setting: str = "unobserved") -> Array:
    """E KL(exact || plug-in) of a round: what the plug-in's number has too much."""
    plugin, exact = (
        information.round_information(known, number, setting, name) for name in ("plugin", "exact")
    )
    return plugin - exact


class Joint(NamedTuple):
    """The covariance of (gamma, c_1 .. c_t, chat_1 .. chat_t), and where each of them stands in it."""

    cov: Array
    bias: list[int]
    contexts: list[list[int]]
    noisy: list[list[int]]


def joint(known: Knowledge, rounds: int) -> Joint:
    """Built from independent gamma, contexts and noises, each measurement being their sum."""
    d = len(known.context_mean)
    parts = [known.bias_cov, *[known.context_cov] * rounds, *[known.noise_cov] * rounds]
    cov = np.zeros((d * len(parts),) * 2)
    for i, part in enumerate(parts):
        cov[i * d : (i + 1) * d, i * d : (i + 1) * d] = part
    mixing = np.eye(len(cov))
    for t in range(rounds):
        rows = slice((1 + rounds + t) * d, (2 + rounds + t) * d)
        mixing[rows, :d] = np.eye(d)
        mixing[rows, (1 + t) * d : (2 + t) * d] = np.eye(d)
    places = [list(range(i * d, (i + 1) * d)) for i in range(len(parts))]
    return Joint(mixing @ cov @ mixing.T, places[0], places[1 : rounds + 1], places[rounds + 1 :])


def mutual(cov: Array, one: list[int], other: list[int], given: list[int]) -> float:
    """I(one; other | given) of Gaussians, by four determinants."""

    def volume(places: list[int]) -> float:
        return float(np.linalg.slogdet(cov[np.ix_(places, places)])[1]) if places else 0.0

    both = volume(one + given) + volume(other + given) - volume(one + other + given) - volume(given)
    return both / 2


def past(model: Joint, rounds: int, setting: str) -> list[int]:
    """Where the first rounds of what the agent has seen stand."""
    seen = model.noisy[:rounds] + (model.contexts[:rounds] if setting == "delayed" else [])
    return [place for places in seen for place in places]


@pytest.mark.parametrize("setting", information.SETTINGS)
@each("seed", [1, 2])
def test_what_the_history_says_of_the_bias_is_the_dense_mutual_information(setting: str, seed: int) -> None:
    known = random_knowledge(seed)
    model = joint(known, 4)
    for seen in range(5):
        truth = mutual(model.cov, model.bias, past(model, seen, setting), [])
        assert information.about_bias(known, seen, setting) == pytest.approx(truth, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("setting", information.SETTINGS)
@each("seed", [1, 2])
def test_the_exact_denoisers_number_is_the_dense_conditional_information(setting: str, seed: int) -> None:
    known = random_knowledge(seed)
    model = joint(known, 4)
    for t in range(1, 5):
        given = past(model, t - 1, setting) + model.noisy[t - 1]
        truth = mutual(model.cov, model.bias, model.contexts[t - 1], given)
        found = information.round_information(known, t, setting, "exact")
        assert found == pytest.approx(truth, rel=1e-9)


class Played(NamedTuple):
    """Draws of round t: contexts, their two beliefs and the one that knows the bias."""

    contexts: Array
    told: Array  # mean of P(c | chat, gamma)
    plugin: Array  # mean
    exact: Array  # mean
    told_cov: Array
    plugin_cov: Array
    exact_cov: Array


def played(known: Knowledge, t: int, setting: str, rng: np.random.Generator) -> Played:
    """Beliefs by textbook formulas: M, A, and Bayes' rule for the bias."""
    zero, d = np.zeros(len(known.context_mean)), len(known.context_mean)
    bias = rng.multivariate_normal(zero, known.bias_cov, DRAWS)
    shown = known.noise_cov + (known.context_cov if setting == "unobserved" else 0)
    S = inverse(inverse(known.bias_cov) + (t - 1) * inverse(shown))
    errors = rng.multivariate_normal(zero, shown * (t - 1), DRAWS) if t > 1 else np.zeros((DRAWS, d))
    g = ((t - 1) * bias + errors) @ inverse(shown) @ S
    contexts = rng.multivariate_normal(known.context_mean, known.context_cov, DRAWS)
    noisy = contexts + bias + rng.multivariate_normal(zero, known.noise_cov, DRAWS)
    c, n = inverse(known.context_cov), inverse(known.noise_cov)
    told_cov = inverse(c + n)
    prior = c @ known.context_mean
    told, plugin = ((prior + (noisy - b) @ n) @ told_cov for b in (bias, g))
    gain = known.context_cov @ inverse(known.context_cov + known.noise_cov + S)
    exact = known.context_mean + (noisy - known.context_mean - g) @ gain.T
    plugin_cov = told_cov + told_cov @ n @ S @ n @ told_cov
    return Played(
        contexts, told, plugin, exact, told_cov, plugin_cov, known.context_cov - gain @ known.context_cov
    )


def divergences(means: Array, cov: Array, other_means: Array, other_cov: Array) -> Array:
    """KL(N(mean, cov) || N(other mean, other cov)) of every draw."""
    ratio, away = np.linalg.solve(other_cov, cov), means - other_means
    shift = (away * np.linalg.solve(other_cov, away.T).T).sum(-1)
    found: Array = 0.5 * (np.trace(ratio) - len(cov) - np.linalg.slogdet(ratio)[1] + shift)
    return found


def mean_is(values: Array, truth: float) -> bool:
    """Within 5 standard errors: wrong 6e-7 of the time."""
    return within(values.mean(), np.asarray(truth), values.std() / np.sqrt(len(values)))


@pytest.mark.parametrize("setting", information.SETTINGS)
@each("t", [1, 2, 9])
def test_expected_divergences_are_those_of_simulated_rounds(
    t: int, setting: str, rng: np.random.Generator
) -> None:
    known = random_knowledge(4)
    p = played(known, t, setting, rng)
    from_plugin = divergences(p.told, p.told_cov, p.plugin, p.plugin_cov)
    from_exact = divergences(p.told, p.told_cov, p.exact, p.exact_cov)
    between = divergences(p.exact, p.exact_cov, p.plugin, p.plugin_cov)
    assert mean_is(from_plugin, float(information.round_information(known, t, setting, "plugin")))
    assert mean_is(from_exact, float(information.round_information(known, t, setting, "exact")))
    assert mean_is(between, float(excess(known, t, setting)))


@pytest.mark.parametrize("setting", information.SETTINGS)
def test_the_plugins_covariance_is_that_of_its_error(setting: str, rng: np.random.Generator) -> None:
    p = played(random_knowledge(4), 3, setting, rng)
    error = p.contexts - p.plugin
    assert within(error.mean(0), np.zeros(3), error.std(0) / np.sqrt(DRAWS))
    assert within(np.cov(error.T), p.plugin_cov, covariance_error(p.plugin_cov, DRAWS))


@each("seed", range(5))
def test_in_setting_1_the_exact_denoiser_is_one_round_ahead(seed: int) -> None:
    known, rounds = random_knowledge(seed), np.arange(1, 40)
    exact = information.round_information(known, rounds, "unobserved", "exact")
    np.testing.assert_allclose(exact, information.round_information(known, rounds + 1), rtol=1e-10)
    gained = information.total(known, 39) - information.total(known, 39, denoiser="exact")
    ends = information.round_information(known, 1) - information.round_information(known, 40)
    assert gained == pytest.approx(ends, rel=1e-9)
    assert excess(known, rounds).sum() == pytest.approx(ends, rel=1e-9)


@each("seed", range(5))
def test_in_setting_2_it_is_not(seed: int) -> None:
    known, rounds = random_knowledge(seed), np.arange(1, 40)
    exact = information.round_information(known, rounds, "delayed", "exact")
    assert (exact > information.round_information(known, rounds + 1, "delayed")).all()
    assert (exact < information.round_information(known, rounds, "delayed")).all()


@each("seed", range(5))
def test_neither_denoisers_sum_exceeds_what_the_pairs_say(seed: int) -> None:
    """Of T rounds, not T - 1: the first round's context already speaks."""
    known, horizon = random_knowledge(seed), np.array([1, 2, 5, 100, 10**6])
    whole = information.about_bias(known, horizon)
    for denoiser in information.DENOISERS:
        assert (information.total(known, horizon, "delayed", denoiser) < whole).all()


@pytest.mark.parametrize(("setting", "denoiser"), BOTH)
def test_sums_are_sums_of_rounds_up_to_a_million(setting: str, denoiser: str) -> None:
    known = random_knowledge(7)
    rounds = information.round_information(known, np.arange(1, 10**6 + 1), setting, denoiser)
    sums = np.cumsum(rounds.astype(np.longdouble)).astype(np.float64)
    horizon = np.array([1, 2, 3, 10, 1000, 10**6])
    found = information.total(known, horizon, setting, denoiser)
    np.testing.assert_allclose(found, sums[horizon - 1], rtol=1e-12)


SCALES = [(1e-6, 1, 1), (1, 1e-6, 1), (1, 1, 1e-6), (1, 1, 1e9), (1e8, 1, 1), (1, 1e6, 1), (1e10, 1e-4, 1e-8)]


@pytest.mark.parametrize(("setting", "denoiser"), BOTH)
@each("scales", SCALES)
def test_sums_of_extreme_covariances(scales: tuple[float, ...], setting: str, denoiser: str) -> None:
    plain = random_knowledge(3)
    context, noise, bias = (
        k * s for k, s in zip((plain.context_cov, plain.noise_cov, plain.bias_cov), scales, strict=True)
    )
    known = plain._replace(context_cov=context, noise_cov=noise, bias_cov=bias)
    seen, quiet = inverse(context + noise), inverse(noise)
    root = np.linalg.cholesky(quiet @ inverse(inverse(context) + quiet) @ quiet)
    unit, start = (seen, 0 * seen) if setting == "unobserved" else (quiet, 0 * seen)
    truth, horizon = [], np.arange(1, 51)
    for n in range(50):
        left = inverse(inverse(bias) + start + n * unit + (seen if denoiser == "exact" else 0))
        truth.append(0.5 * np.log1p(np.linalg.eigvalsh(root.T @ left @ root)).sum())
    found = information.total(known, horizon, setting, denoiser)
    np.testing.assert_allclose(found, np.cumsum(truth), rtol=1e-7, atol=1e-11)


@each("setting", information.SETTINGS)
@each("small", [1e-4, 1e-8, 1e-12])
@each("shape", ["a multiple of I", "any"])
def test_little_bias_leaves_the_plugin_a_little_above_the_exact_denoiser(
    shape: str, small: float, setting: str
) -> None:
    """To first order in S both are 1/2 Tr S N; to second order they differ by 1/2 Tr S N S F."""
    known = random_knowledge(2)
    bias = small * (known.bias_cov if shape == "any" else np.eye(3))
    known, horizon = known._replace(bias_cov=bias), np.array([1, 10, 100])
    seen = inverse(known.context_cov + known.noise_cov)
    first = bias @ (inverse(known.noise_cov) - seen)
    plugin, exact = (information.total(known, horizon, setting, name) for name in information.DENOISERS)
    np.testing.assert_allclose(plugin, horizon / 2 * np.trace(first), rtol=2000 * small)
    gained = horizon / 2 * np.trace(first @ bias @ seen)
    np.testing.assert_allclose(plugin - exact, gained, rtol=0.02 + 2000 * small)


@each("large", [1e50, 1e300])
def test_contexts_without_measure_make_every_round_the_first(large: float) -> None:
    """Nothing is learnt of the bias in setting 1: the number of a round is 1/2 ln det(I + G N^-1)."""
    known = random_knowledge(1)._replace(context_cov=large * np.eye(3))
    first = 0.5 * np.linalg.slogdet(np.eye(3) + known.bias_cov @ inverse(known.noise_cov))[1]
    for denoiser in information.DENOISERS:
        found = information.total(known, [1, 10], denoiser=denoiser)
        np.testing.assert_allclose(found, [first, 10 * first], rtol=1e-9)
        assert np.isfinite(information.total(known, 10**6, "delayed", denoiser))


@each("setting, denoiser", BOTH)
def test_many_horizons_close_together_are_those_far_apart(setting: str, denoiser: str) -> None:
    known, horizon = random_knowledge(5), np.arange(3000, 0, -1).reshape(2, 1500)
    found = information.total(known, horizon, setting, denoiser)
    assert found.shape == horizon.shape
    for place in np.ndindex(2, 3):
        alone = information.total(known, horizon[place], setting, denoiser)
        assert found[place] == pytest.approx(alone, rel=1e-12)


@each("horizon", [1, 2, 7, 500])
def test_multiples_of_i_are_d_times_one_dimension(horizon: int) -> None:
    d, context, noise, bias = 4, 0.8, 1.7, 2.3
    eye = np.eye(d)
    known = random_knowledge(1, d)._replace(
        context_cov=context * eye, noise_cov=noise * eye, bias_cov=bias * eye
    )
    n = np.arange(horizon)
    rounds = np.log1p(context * bias / (n * bias * noise + (context + noise) * noise))
    assert information.total(known, horizon) == pytest.approx(d / 2 * rounds.sum(), rel=1e-11)
    pairs = d / 2 * np.log1p(horizon * bias / noise)
    assert information.about_bias(known, horizon) == pytest.approx(pairs, rel=1e-12)
    assert information.total(known, horizon) <= information.isotropic(d, context, noise, bias, horizon)


def test_harmonic_sums() -> None:
    start, horizon = np.array([0.3, 1.0, 50.0]), np.array([1.0, 7.0, 1000.0])
    truth = [sum(1 / (n + s) for n in range(int(t))) for s, t in zip(start, horizon, strict=True)]
    np.testing.assert_allclose(information.harmonic(start, horizon), truth, rtol=1e-12)


@each("setting, denoiser", BOTH)
def test_many_horizons_at_once_are_one_by_one(setting: str, denoiser: str) -> None:
    known, horizon = random_knowledge(2), np.array([[1, 5], [30, 1_000_000]])
    for function in (information.round_information, information.total):
        found = function(known, horizon, setting, denoiser)
        assert found.shape == horizon.shape
        single = [function(known, t, setting, denoiser) for t in horizon.flat]
        np.testing.assert_allclose(found.ravel(), np.array(single), rtol=1e-14)


def test_more_noise_on_the_bias_tells_more_of_the_context(rng: np.random.Generator) -> None:
    """The less is known of the bias, the more there is to learn: totals grow with Sigma_gamma."""
    known = random_knowledge(9)
    more = known._replace(bias_cov=known.bias_cov + spd(rng, 3))
    for setting, denoiser in BOTH:
        before, after = (information.total(k, 20, setting, denoiser) for k in (known, more))
        assert before < after


@each("value", [0, -3, 2.5, np.inf, np.nan, "5", [1, 0], [], True, [[1, 2], [3]], None])
def test_odd_horizons_are_refused_by_name(value: object) -> None:
    with pytest.raises(InputError, match=r"^horizon: .*whole numbers from 1 on"):
        information.total(random_knowledge(1), value)


@each(
    "field, settings",
    [("setting", {"setting": "seen"}), ("denoiser", {"denoiser": "best"})],
)
def test_unknown_names_are_refused(field: str, settings: dict[str, str]) -> None:
    with pytest.raises(InputError, match=f"^{field}: "):
        information.total(random_knowledge(1), 5, **settings)
