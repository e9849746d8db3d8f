"""The bank of channels against the joint Gaussian of each of its hypotheses, written out, and Bayes' rule."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chi2, multivariate_normal, multivariate_t

from tests.agents.denoise.test_drift import beliefs, by_conditioning
from tests.problems import random_knowledge
from unfog.agents.denoise import Adaptive, Drift
from unfog.agents.denoise.adaptive import Hypothesis, State
from unfog.channel.deconvolution import kernel_law
from unfog.channel.knowledge import Knowledge
from unfog.maths.arrays import Array
from unfog.validation import InputError

D, T = 3, 6
SMALL: Any = {"sizes": 3, "spacing": 4.0, "steps": 2, "fastest": 0.4, "slowdown": 5.0} | {
    "distrust": 0.6,
    "unrest": 0.6,
}


def walked(denoiser: Any, known: Knowledge, noisy: Array, contexts: Array | None = None) -> State:
    """The state after all rounds: (..., rounds, d)."""
    parameters = denoiser.setup(known, None)
    state: State = denoiser.start(parameters)
    for t in range(noisy.shape[-2]):
        context = None if contexts is None else contexts[..., t, :]
        state = denoiser.update(parameters, state, noisy[..., t, :], context)
    return state


def law(known: Knowledge, truth: Hypothesis, rounds: int, pairs: bool) -> Array:
    """The covariance of all readings of the bias, (rounds d, rounds d), from what each is made of."""
    since = np.minimum.outer(np.arange(rounds), np.arange(rounds))  # steps that two rounds share
    shared = np.kron(np.ones((rounds, rounds)) + truth.step * since, known.bias_cov)
    own = truth.size * known.noise_cov + (0.0 if pairs else known.context_cov)
    return shared + np.kron(np.eye(rounds), own)


def weights_by_density(
    denoiser: Adaptive, known: Knowledge, noisy: Array, contexts: Array | None
) -> tuple[Array, Array]:
    """The posterior of the hypotheses, and their prior, with what was lost left out."""
    prior = denoiser.setup(known, None).prior
    values = (noisy - (known.context_mean if contexts is None else contexts)).ravel()
    there, logs = ~np.isnan(values), []
    for truth in denoiser.hypotheses():
        cov = law(known, truth, len(noisy), contexts is not None)[np.ix_(there, there)]
        logs.append(multivariate_normal(np.zeros(there.sum()), cov).logpdf(values[there]))
    raised = prior * np.exp(np.asarray(logs) - max(logs))
    return raised / raised.sum(), prior


@pytest.fixture
def story(rng: np.random.Generator, known: Knowledge) -> tuple[Array, Array]:
    contexts = rng.multivariate_normal(known.context_mean, known.context_cov, T)
    return contexts + rng.normal(0.5, 1.3, (T, D)), contexts


def test_weights_are_those_of_bayes_rule(known: Knowledge, story: tuple[Array, Array]) -> None:
    for pairs in [False, True]:
        for lost in [False, True]:
            check_weights_are_those_of_bayes_rule(pairs, lost, known, story)


def check_weights_are_those_of_bayes_rule(
    pairs: bool, lost: bool, known: Knowledge, story: tuple[Array, Array]
) -> None:
    noisy, contexts = story
    if lost:
        noisy = np.where(np.arange(T * D).reshape(T, D) % 4 == 1, np.nan, noisy)
        noisy[3] = np.nan
    denoiser = Adaptive(**SMALL, tails=0.0, switch=0.0, pairs=pairs)
    shown = contexts if pairs else None
    found = denoiser.probabilities(walked(denoiser, known, noisy, shown))
    right, prior = weights_by_density(denoiser, known, noisy, shown)
    np.testing.assert_allclose(found, right, rtol=1e-9, atol=1e-12)
    assert np.abs(right - prior).max() > 0.05


def test_a_context_is_the_mixture_of_the_joint_posteriors(
    known: Knowledge, story: tuple[Array, Array]
) -> None:
    """Each hypothesis' posterior by one conditioning of everything; their weights by their densities."""
    for pairs in [False, True]:
        check_a_context_is_the_mixture_of_the_joint_posteriors(pairs, known, story)


def check_a_context_is_the_mixture_of_the_joint_posteriors(
    pairs: bool, known: Knowledge, story: tuple[Array, Array]
) -> None:
    noisy, contexts = story
    denoiser = Adaptive(**SMALL, tails=0.0, switch=0.0, pairs=pairs)
    for t, found in enumerate(beliefs(denoiser, known, noisy, contexts), 1):
        prior = denoiser.setup(known, None).prior
        means, covs, logs = [], [], []
        for truth in denoiser.hypotheses():
            told = known._replace(noise_cov=truth.size * known.noise_cov)
            mean, cov = by_conditioning(told, truth.step, noisy[:t], contexts[:t] if pairs else None)
            means.append(mean)
            covs.append(cov)
            # The density of this round's reading, the context hidden, given what came before.
            logs.append(_last_density(told, truth, noisy[:t], contexts[:t] if pairs else None))
        weights = prior * np.exp(np.asarray(logs) - max(logs))
        weights /= weights.sum()
        centre = weights @ np.asarray(means)
        away = np.asarray(means) - centre
        spread = np.einsum("h,hij->ij", weights, np.asarray(covs) + away[:, :, None] * away[:, None, :])
        np.testing.assert_allclose(found.mean, centre, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(found.cov, spread, rtol=1e-8, atol=1e-9)


def _last_density(told: Knowledge, truth: Hypothesis, noisy: Array, contexts: Array | None) -> float:
    """The log density of all readings: the last context hidden, those before as they are shown."""
    rounds, paired = len(noisy), contexts is not None
    cov = law(told, truth._replace(size=1.0), rounds, paired)
    values = noisy - (told.context_mean if contexts is None else contexts)
    if paired:
        cov[-D:, -D:] += told.context_cov
        values = np.concatenate([values[:-1], noisy[-1:] - told.context_mean])
    return float(multivariate_normal(np.zeros(rounds * D), cov).logpdf(values.ravel()))


def test_alone_a_hypothesis_is_the_filter_of_its_channel(
    known: Knowledge, story: tuple[Array, Array]
) -> None:
    """With the told size and one step beside none, and distrust enough, the weights go with the filters."""
    noisy, contexts = story
    bank = Adaptive(sizes=1, steps=1, fastest=0.3, tails=0.0, unrest=1 - 1e-12, switch=0.0)
    pairs = zip(
        beliefs(bank, known, noisy, contexts), beliefs(Drift(step=0.3), known, noisy, contexts), strict=True
    )
    for found, right in pairs:
        np.testing.assert_allclose(found.mean, right.mean, atol=1e-8)
        np.testing.assert_allclose(found.cov, right.cov, atol=1e-8)


def test_heavy_tails_have_students_density(rng: np.random.Generator) -> None:
    """Pure noise, whatever its size: the density of the nodes is within 0.3 nats of Student's t."""
    known = random_knowledge(3, dim=2)
    tiny = known._replace(context_cov=1e-9 * np.eye(2), bias_cov=1e-9 * np.eye(2))
    denoiser = Adaptive(sizes=1, steps=0, tails=3.0, switch=0.0)
    parameters = denoiser.setup(tiny, None)
    away = np.linalg.cholesky(known.noise_cov) @ np.asarray([0.6, -0.8])
    for far in (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0):
        reading = known.context_mean + far * away
        state = denoiser.update(parameters, denoiser.start(parameters), reading, None)
        told, heavy = denoiser.probabilities(state) / parameters.prior
        normal = multivariate_normal(known.context_mean, known.noise_cov).logpdf(reading)
        student = multivariate_t(known.context_mean, known.noise_cov, df=3).logpdf(reading)
        assert np.log(heavy / told) == pytest.approx(student - normal, abs=0.3)


def test_an_outlier_moves_who_expects_them_less(known: Knowledge, rng: np.random.Generator) -> None:
    usual = rng.multivariate_normal(known.context_mean, known.context_cov + known.noise_cov, 40)
    odd = np.where(np.arange(40)[:, None] % 10 == 7, usual + 30.0, usual)
    denoiser = Adaptive(sizes=1, steps=0, switch=0.0)
    plain, heavy = walked(denoiser, known, odd).beliefs
    undisturbed = walked(denoiser, known, usual).beliefs[0].mean[0]
    least, most = (np.abs(b.mean[0] - undisturbed).max() for b in (heavy, plain))
    assert 3 * least < most
    assert denoiser.probabilities(walked(denoiser, known, odd))[1] > 0.999


@pytest.mark.parametrize("pairs", [False, True], ids=["noisy", "pairs"])
def test_the_true_hypothesis_has_the_stated_probability(pairs: bool, rng: np.random.Generator) -> None:
    """400 worlds drawn from the bank's own prior; five bins, each within four standard errors."""
    known, worlds, rounds = random_knowledge(8, dim=2), 400, 30
    denoiser = Adaptive(**SMALL, tails=0.0, switch=0.0, pairs=pairs)
    every, prior = denoiser.hypotheses(), denoiser.setup(known, None).prior
    truth = rng.choice(len(every), worlds, p=prior)
    contexts = rng.multivariate_normal(known.context_mean, known.context_cov, (worlds, rounds))
    noise = rng.multivariate_normal(np.zeros(2), known.noise_cov, (worlds, rounds))
    steps = rng.multivariate_normal(np.zeros(2), known.bias_cov, (worlds, rounds))
    size, step = (np.asarray([every[h][i] for h in truth])[:, None, None] for i in (0, 1))
    scales = np.concatenate([np.ones((worlds, 1, 1)), np.repeat(np.sqrt(step), rounds - 1, 1)], 1)
    noisy = contexts + np.sqrt(size) * noise + (scales * steps).cumsum(1)
    found = denoiser.probabilities(walked(denoiser, known, noisy, contexts if pairs else None))
    hit = truth[:, None] == np.arange(len(every))
    assert found[hit].mean() > 1.5 * (prior**2).sum()
    for low, high in ((0.0, 0.05), (0.05, 0.2), (0.2, 0.5), (0.5, 0.8), (0.8, 1.01)):
        inside = (low <= found) & (found < high)
        error = np.sqrt((found * (1 - found))[inside].sum()) / inside.sum()
        assert inside.sum() > 10
        assert abs(hit[inside].mean() - found[inside].mean()) <= 4 * error


@pytest.mark.parametrize("dim", [1, 2])
def test_the_whole_bank_has_the_stated_probabilities(dim: int, rng: np.random.Generator) -> None:
    """The default's hypotheses, heavy tails among them; 1,000 worlds, bins within four standard errors."""
    known, worlds, rounds = random_knowledge(8, dim=dim), 1000, 40
    denoiser = Adaptive(switch=0.0)
    every, prior = denoiser.hypotheses(), denoiser.setup(known, None).prior
    truth = rng.choice(len(every), worlds, p=prior)
    size, step = (np.asarray([every[h][i] for h in truth])[:, None, None] for i in (0, 1))
    heavy = np.asarray([every[h].tails is not None for h in truth])[:, None, None]
    contexts = rng.multivariate_normal(known.context_mean, known.context_cov, (worlds, rounds))
    noise = rng.multivariate_normal(np.zeros(dim), known.noise_cov, (worlds, rounds))
    noise = np.where(heavy, np.sqrt(3 / rng.chisquare(3, (worlds, rounds, 1))), 1.0) * np.sqrt(size) * noise
    steps = rng.multivariate_normal(np.zeros(dim), known.bias_cov, (worlds, rounds))
    scales = np.concatenate([np.ones((worlds, 1, 1)), np.repeat(np.sqrt(step), rounds - 1, 1)], 1)
    noisy = contexts + noise + (scales * steps).cumsum(1)
    found, hit = (
        denoiser.probabilities(walked(denoiser, known, noisy)),
        truth[:, None] == np.arange(len(every)),
    )
    for low, high in ((0.0, 0.02), (0.02, 0.05), (0.05, 0.1), (0.1, 0.2), (0.2, 1.0)):
        inside = (low <= found) & (found < high)
        error = np.sqrt((found * (1 - found))[inside].sum()) / inside.sum()
        assert inside.sum() > 30
        assert abs(hit[inside].mean() - found[inside].mean()) <= 4 * error
    among = np.asarray([h.tails is not None for h in every])
    share, true = found[:, among].sum(-1), hit[:, among].any(-1)
    assert abs(share.mean() - true.mean()) <= 4 * np.sqrt((share * (1 - share)).sum()) / worlds


def test_what_was_ruled_out_comes_back(known: Knowledge, rng: np.random.Generator) -> None:
    """Noise grows fivefold half-way: the switching bank follows within a few dozen rounds."""
    denoiser = Adaptive(steps=0, tails=0.0)
    contexts = rng.multivariate_normal(known.context_mean, known.context_cov, 400)
    noise = rng.multivariate_normal(np.zeros(D), known.noise_cov, 400)
    noisy = contexts + np.where(np.arange(400)[:, None] < 200, 1.0, np.sqrt(5.0)) * noise
    sizes = np.asarray([h.size for h in denoiser.hypotheses()])
    before, after = (denoiser.probabilities(walked(denoiser, known, noisy[:n])) for n in (200, 280))
    assert before[(sizes > 0.3) & (sizes < 2.5)].sum() > 0.95
    assert after[sizes > 2.0].sum() > 0.95
    assert after.sum() == pytest.approx(1.0, abs=1e-12)


def test_a_reading_is_expected_as_draws_say(known: Knowledge, story: tuple[Array, Array]) -> None:
    """Mean and variance of the next reading, by the joint Gaussian of all hypotheses."""
    noisy, _ = story
    denoiser = Adaptive(**SMALL, tails=0.0, switch=0.0)
    state = walked(denoiser, known, noisy)
    mean, variance = denoiser.predict_reading(denoiser.setup(known, None), state)
    weights, _ = weights_by_density(denoiser, known, noisy, None)
    centres, spreads = [], []
    for truth in denoiser.hypotheses():
        cov = law(known, truth, T + 1, False)
        gain = np.linalg.solve(cov[:-D, :-D], cov[:-D, -D:]).T
        centres.append(known.context_mean + gain @ (noisy - known.context_mean).ravel())
        spreads.append(np.diagonal(cov[-D:, -D:] - gain @ cov[:-D, -D:]))
    centre = weights @ np.asarray(centres)
    np.testing.assert_allclose(mean, centre, rtol=1e-9)
    right = weights @ (np.asarray(spreads) + (np.asarray(centres) - centre) ** 2)
    np.testing.assert_allclose(variance, right, rtol=1e-9)


def test_errors_have_the_size_it_says(rng: np.random.Generator) -> None:
    """Contexts of 300 worlds with five times the noise and a walking bias, after 100 rounds: chi-square."""
    known, worlds, rounds = random_knowledge(5), 300, 100
    contexts = rng.multivariate_normal(known.context_mean, known.context_cov, (worlds, rounds))
    noise = rng.multivariate_normal(np.zeros(D), 5 * known.noise_cov, (worlds, rounds))
    steps = rng.multivariate_normal(np.zeros(D), 0.05 * known.bias_cov, (worlds, rounds))
    noisy = contexts + noise + steps.cumsum(1)
    denoiser = Adaptive()
    parameters = denoiser.setup(known, None)
    found = denoiser.predict(parameters, walked(denoiser, known, noisy[:, :-1]), noisy[:, -1])
    away = contexts[:, -1] - found.mean
    square = (away * np.linalg.solve(found.cov, away[..., None])[..., 0]).sum(-1)
    low, high = chi2(worlds * D).ppf([1e-5, 1 - 1e-5])
    assert low < square.sum() < high


def test_trials_share_covariances_until_something_is_lost(known: Knowledge, rng: np.random.Generator) -> None:
    noisy = rng.normal(0.5, 1.5, (4, 5, D))
    denoiser = Adaptive()
    state = walked(denoiser, known, noisy)
    assert [b.cov.ndim for b in state.beliefs] == [3, 3]
    gappy = noisy.copy()
    gappy[1, 2, 0] = np.nan
    apart = walked(denoiser, known, gappy)
    assert [b.cov.ndim for b in apart.beliefs] == [4, 4]
    np.testing.assert_allclose(apart.weights[[0, 2, 3]], state.weights[[0, 2, 3]], rtol=1e-9)


@pytest.mark.slow
def test_both_libraries_agree(known: Knowledge, rng: np.random.Generator) -> None:
    """Where something is lost; where nothing is, the compiled engine plays it."""
    noisy = rng.normal(0.5, 1.5, (2, 5, D))
    noisy[1, 2, 0] = np.nan
    given = jax.tree.map(jnp.asarray, (known, noisy))
    one, other = walked(Adaptive(), known, noisy), jax.jit(lambda *told: walked(Adaptive(), *told))(*given)
    np.testing.assert_allclose(one.weights, other.weights, rtol=1e-9, atol=1e-9)
    for here, there in zip(one.beliefs, other.beliefs, strict=True):
        np.testing.assert_allclose(here.mean, there.mean, rtol=1e-8, atol=1e-9)


def test_its_hypotheses_are_its_settings() -> None:
    every = Adaptive(sizes=3, spacing=2.0, steps=1, fastest=0.1).hypotheses()
    sizes = [Hypothesis(size, step) for size in (0.5, 1.0, 2.0) for step in (0.0, 0.1)]
    assert every == [*sizes, Hypothesis(1.0, 0.0, 3.0)]
    alone = Adaptive(sizes=1, steps=0, tails=0.0)
    assert alone.hypotheses() == [Hypothesis(1.0, 0.0)]
    prior = Adaptive().setup(random_knowledge(1), None).prior
    assert prior.sum() == pytest.approx(1.0)
    every = Adaptive().hypotheses()
    walks, odd = (np.asarray([test(h) for h in every]) for test in (lambda h: h.step > 0, _is_odd))
    heavy = np.asarray([h.tails is not None for h in every])
    assert prior[odd].sum() == pytest.approx(0.5)
    assert prior[heavy].sum() == pytest.approx(0.5 / 7)
    for noise in (~odd, odd, heavy):
        assert prior[noise & walks].sum() / prior[noise].sum() == pytest.approx(0.3)


def _is_odd(hypothesis: Hypothesis) -> bool:
    return (hypothesis.size, hypothesis.tails) != (1.0, None)


@pytest.mark.filterwarnings("error")
def test_without_distrust_what_is_told_stays_believed(known: Knowledge, rng: np.random.Generator) -> None:
    """Whatever comes; and a bank of one hypothesis is no bank."""
    noisy = rng.normal(0, 9, (3, 20, D))
    found = Adaptive(distrust=0.0, unrest=0.0, switch=0.0)
    told = found.hypotheses().index(Hypothesis())
    np.testing.assert_allclose(found.probabilities(walked(found, known, noisy[:, :2]))[:, told], 1.0)
    alone = Adaptive(sizes=1, steps=0, tails=0.0)
    np.testing.assert_allclose(alone.probabilities(walked(alone, known, noisy)), 1.0)


@pytest.mark.parametrize("pairs", [False, True], ids=["noisy", "pairs"])
@pytest.mark.parametrize("dim", [1, 4])
def test_under_heavy_tails_the_bias_is_as_uncertain_as_it_is_said_to_be(
    pairs: bool, dim: int, rng: np.random.Generator
) -> None:
    """Student's t, 3 degrees of freedom, 40 rounds of 4,000 worlds: squared errors over stated variances."""
    known, worlds, rounds = random_knowledge(2, dim=dim), 4000, 40
    shape = worlds, rounds
    bias = rng.multivariate_normal(np.zeros(dim), known.bias_cov, worlds)
    contexts = rng.multivariate_normal(known.context_mean, known.context_cov, shape)
    wide = np.sqrt(3 / rng.chisquare(3, (*shape, 1)))
    noisy = contexts + bias[:, None] + wide * rng.multivariate_normal(np.zeros(dim), known.noise_cov, shape)
    denoiser = Adaptive(sizes=1, steps=0, pairs=pairs)
    heavy = walked(denoiser, known, noisy, contexts if pairs else None).beliefs[1]
    away = heavy.mean[:, 0] - bias
    square = np.einsum("ti,ij,tj->t", away, np.linalg.inv(heavy.cov[0]), away).mean() / dim
    assert square == pytest.approx(1.0, abs=0.07)


def test_bad_settings_are_refused_by_name() -> None:
    bad: dict[str, list[float]] = {
        "sizes": [0, 2, 17],
        "spacing": [1.0],
        "steps": [-1, 16],
        "fastest": [0.0],
        "slowdown": [1.0],
        "tails": [-3.0, 2.9, 10.1],
        "distrust": [-0.1, 1.0],
        "unrest": [-0.1, 1.0],
        "switch": [-0.1, 1.0],
    }
    for field, values in bad.items():
        for value in values:
            with pytest.raises(InputError, match=rf"^{field}: .*; allowed: "):
                Adaptive(**{field: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("lost", [[], [1], [0, 2]], ids=["whole", "one lost", "two lost"])
def test_a_sample_of_contexts_is_one_hypothesis_more(
    lost: list[int], known: Knowledge, rng: np.random.Generator
) -> None:
    """One round, written out: the density of the reading, and the moments of the context, under each."""
    told = known._replace(sample=rng.gamma(1.0, 1.5, (9, D)) - 1.0)
    denoiser = Adaptive(**SMALL, tails=0.0, switch=0.0)
    parameters = denoiser.setup(told, None)
    reading = known.context_mean + rng.normal(0, 1.5, D)
    reading[lost] = np.nan
    kept = [i for i in range(D) if i not in lost]
    law = kernel_law(np.asarray(told.sample), 1000, 0.5)
    laws = [(h.size, known.context_mean[None], known.context_cov) for h in denoiser.hypotheses()]
    densities, means, squares = [], [], []
    for size, atoms, cov in [*laws, (1.0, law.atoms, law.kernel)]:
        whole = cov + size * known.noise_cov + known.bias_cov
        gain = np.linalg.solve(whole[np.ix_(kept, kept)], cov[kept]).T
        each = [multivariate_normal(u[kept], whole[np.ix_(kept, kept)]).pdf(reading[kept]) for u in atoms]
        densities.append(np.mean(each))
        centres = atoms + (reading[kept] - atoms[:, kept]) @ gain.T
        share, left = np.asarray(each) / np.sum(each), cov - gain @ cov[kept]
        means.append(share @ centres)
        squares.append(left + np.einsum("i,ij,ik->jk", share, centres, centres))
    weights = parameters.prior * np.asarray(densities)
    weights /= weights.sum()
    state = denoiser.update(parameters, denoiser.start(parameters), reading, None)
    np.testing.assert_allclose(denoiser.probabilities(state), weights, rtol=1e-9)
    found = denoiser.predict(parameters, denoiser.start(parameters), reading)
    mean = weights @ np.asarray(means)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-9)
    right = np.einsum("h,hij->ij", weights, np.asarray(squares)) - np.outer(mean, mean)
    np.testing.assert_allclose(found.cov, right, rtol=1e-8, atol=1e-10)


def test_the_sample_is_believed_where_contexts_are_those(known: Knowledge, rng: np.random.Generator) -> None:
    """Two lumps of contexts, far apart for the noise there is; then Gaussian contexts of these moments."""
    lumps = rng.normal(0, 0.2, (400, D)) + 4.0 * rng.choice([-1.0, 1.0], (400, 1))
    told = known._replace(context_mean=lumps.mean(0), context_cov=np.cov(lumps.T), sample=lumps[:100])
    noise = rng.multivariate_normal(np.zeros(D), known.noise_cov, 60)
    denoiser = Adaptive()
    ours = denoiser.probabilities(walked(denoiser, told, lumps[100:160] + noise))
    plain = rng.multivariate_normal(told.context_mean, told.context_cov, 60)
    others = denoiser.probabilities(walked(denoiser, told, plain + noise))
    assert ours[-1] > 0.99
    assert others[-1] < 0.01
    assert denoiser.hypotheses(sample=True)[-1] == Hypothesis(sample=True)
    assert Adaptive(pairs=True).hypotheses(sample=True) == Adaptive().hypotheses()


def test_a_reading_is_expected_under_the_sample_too(known: Knowledge, rng: np.random.Generator) -> None:
    told = known._replace(sample=rng.gamma(1.0, 1.5, (9, D)) - 3.0)
    denoiser = Adaptive(sizes=1, steps=0, tails=0.0)
    parameters = denoiser.setup(told, None)
    mean, variance = denoiser.predict_reading(parameters, denoiser.start(parameters))
    sample = np.asarray(told.sample)
    np.testing.assert_allclose(mean, (known.context_mean + sample.mean(0)) / 2)
    shared = np.diagonal(known.noise_cov + known.bias_cov)
    within = (np.diagonal(known.context_cov) + sample.var(0)) / 2 + shared
    np.testing.assert_allclose(variance, within + ((known.context_mean - sample.mean(0)) / 2) ** 2)


def test_a_reading_with_heavy_tails_is_expected_to_spread_as_its_nodes_do(known: Knowledge) -> None:
    denoiser = Adaptive(sizes=1, steps=0)
    parameters = denoiser.setup(known, None)
    [_, heavy] = parameters.families
    factor = np.exp(heavy.chances[0]) @ heavy.factors[0]
    _, variance = denoiser.predict_reading(parameters, denoiser.start(parameters))
    share = float(parameters.prior[1])
    noise = np.diagonal(known.noise_cov) * (1 - share + share * factor)
    np.testing.assert_allclose(variance, noise + np.diagonal(known.context_cov + known.bias_cov))
    assert factor == pytest.approx(3.0, abs=0.5)  # of Student's t, nu / (nu - 2), its far tail cut off
