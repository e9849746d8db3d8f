"""Bounds against the paper's formulas typed in once more, and each step of the corrected ones on its own."""

from collections.abc import Callable
from inspect import signature
from itertools import product
from math import log, pi, sqrt
from typing import Any

import numpy as np
import pytest

from tests.each import each
from tests.problems import inverse, random_knowledge, within
from tests.theory.test_information import excess
from unfog.channel.knowledge import Knowledge
from unfog.features.linear import matrix
from unfog.maths.arrays import Array
from unfog.simulation import play
from unfog.theory import bounds, information
from unfog.theory.bounds import Bound, _distances, _spread_sum
from unfog.theory.conditions import Case, linear_case
from unfog.validation import InputError
from unfog.worlds.synthetic import GaussianProblem

D, K = 3, 7
SC, SN, SG, NOISE = 0.4, 0.9, 1.3, 1.7
NAMES = ("lemma_1", "lemma_2", "lemma_2_linear", "theorem_1", "lemma_3", "lemma_4", "theorem_2")
EVERY: dict[str, Callable[..., Bound]] = {name: getattr(bounds, name) for name in NAMES}


def scaled(known: Knowledge, seed: int = 0, arms: int = K) -> tuple[Case, Array]:
    """A case whose features have a root mean square of 1, and its matrices."""
    d = len(known.context_mean)
    matrices = np.random.default_rng(seed).normal(size=(arms, d, d))
    matrices /= linear_case(known, matrices).feature_norm
    return linear_case(known, matrices), matrices


def isotropic_case(prior_var: float = 0.01) -> tuple[Case, Array]:
    eye, zero = np.eye(D), np.zeros(D)
    return scaled(Knowledge(zero, SC * eye, SN * eye, SG * eye, zero, prior_var * eye, np.asarray(NOISE)))


def correlated_case(seed: int, prior_var: float = 0.001) -> tuple[Case, Array]:
    known = random_knowledge(seed, D, D)
    return scaled(known._replace(prior_mean=np.zeros(D), prior_cov=prior_var * np.eye(D)), seed)


def learning(t: float, variance: float) -> float:
    """U(m, lambda), m = d."""
    return sqrt(2 * t * D * NOISE * min(D, 2 + 2 * log(K)) * log(1 + t * variance / (D * NOISE)))


def printed(t: int, delta: float, matrices: Array) -> dict[str, float]:
    """Lemmas 1 to 4 and Theorems 1 and 2, as the paper prints them for T > 1."""
    f, lam, logs = SC + SN, 0.01, log(t - 1)
    nu = NOISE * SC / f * max(np.trace(G.T @ G) for G in matrices)
    L = D * K * nu * (SN + SC * SG / (t * f) + SC * logs / t)
    both = SG / f + logs
    first = learning(t, D * NOISE / t)
    rest = sqrt(D * NOISE * (2 * t * log(K) + D * t / 2)) + sqrt(D**2 * t * NOISE / 2)
    pairs = D / 2 * log(1 + (t - 1) * SG / SN)
    rounds = [0.5 * D * log(1 + SC * SG / (n * SG * SN + f * SN)) for n in range(t)]
    tail = 4 * delta**2 * sqrt(D * D * NOISE * t / (2 * pi))
    delayed_tail = 2 * t * delta**2 * sqrt(2 * D * lam / pi)
    return {
        "lemma_1": first + rest,
        "lemma_2": tail + 2 * sqrt(4 * D * D * NOISE * log(2 * D / delta) * sum(rounds)),
        "lemma_2_linear": 2 * sqrt(2 * L * D * SC / (2 * SN) * both),
        "theorem_1": first + rest + 2 * sqrt(2 * L * D * SC / SN * both),
        "lemma_3": learning(t, lam),
        "lemma_4": 4 * sqrt(D * lam * t * log(2 * D / delta) * pairs) + delayed_tail,
        "theorem_2": learning(t, lam)
        + delayed_tail
        + 2 * sqrt(2 * lam * D * t * D * log(1 + (t - 1) * SG / SN) * log(2 * D / delta)),
    }


@pytest.mark.parametrize("name", NAMES)
def test_printed_bounds_are_the_papers(name: str) -> None:
    case, matrices = isotropic_case()
    settings: dict[str, Any] = {"delta": 0.05} if name in ("lemma_2", "lemma_4", "theorem_2") else {}
    for t in (3, 10, 400):
        found = EVERY[name](case, t, "printed", **settings)
        assert found.total == pytest.approx(printed(t, 0.05, matrices)[name], rel=1e-10), f"T = {t}"


def corrected(t: int, case: Case, matrices: Array) -> dict[str, float]:
    """What can be proved, with sums over rounds as sums, delta = 1/T, for any covariances."""
    known, lam = case.known, case.prior_var
    s2, delta, ratio = case.reward_var, 1 / t, min(D, 2 + 2 * log(K))
    c, n, p = (inverse(cov) for cov in (known.context_cov, known.noise_cov, known.bias_cov))
    seen, told = inverse(known.context_cov + known.noise_cov), inverse(c + n)
    plugin, spread = 0.0, 0.0
    for past in range(t):
        S = inverse(p + past * seen)
        R = told + told @ n @ S @ n @ told
        plugin += 0.5 * np.linalg.slogdet(R @ (c + n))[1]
        spread += D * s2 / t * sum(np.trace(G @ R @ G.T) for G in matrices)
    pairs = 0.5 * np.linalg.slogdet(np.eye(D) + t * known.bias_cov @ n)[1]
    summed = ratio * D * t / 4
    lemma_1 = sqrt(2 * t * D * s2 * ratio * log(1 + 1.0)) + sqrt(2 * D * s2 * summed)
    lemma_1 += sqrt(2 * D * s2 * (t * log(K) + summed))
    tails = [4 * t * delta * sqrt(D * v / (2 * pi)) for v in (D * s2 / t, lam)]
    linear_2 = 2 * sqrt(2 * spread * plugin)
    lemma_3 = sqrt(2 * t * D * s2 * ratio * log(1 + t * lam / (D * s2)))
    lemma_4 = tails[1] + 4 * sqrt(D * lam * t * log(2 * D / delta) * pairs)
    return {
        "lemma_1": lemma_1,
        "lemma_2": tails[0] + 2 * sqrt(4 * D * D * s2 * log(2 * D / delta) * plugin),
        "lemma_2_linear": linear_2,
        "theorem_1": lemma_1 + linear_2,
        "lemma_3": lemma_3,
        "lemma_4": lemma_4,
        "theorem_2": lemma_3 + lemma_4,
    }


@pytest.mark.parametrize("name", NAMES)
def test_corrected_bounds_by_plain_sums(name: str) -> None:
    case, matrices = correlated_case(4)
    settings = {"denoiser": "exact"} if name in ("lemma_3", "theorem_2") else {}
    for t in (3, 10, 200):
        found = EVERY[name](case, t, **settings)
        assert found.total == pytest.approx(corrected(t, case, matrices)[name], rel=1e-9), f"T = {t}"


@each("version", ["printed", "corrected"])
@pytest.mark.parametrize("name", NAMES)
def test_many_horizons_at_once_are_one_by_one(name: str, version: str) -> None:
    case, _ = isotropic_case()
    horizon = np.array([[3, 4, 50], [200, 1000, 10**6]])
    found = EVERY[name](case, horizon, version, strict=False)
    assert found.total.shape == horizon.shape
    for i in np.ndindex(horizon.shape):
        single = EVERY[name](case, horizon[i], version, strict=False)
        assert found.parts.keys() == single.parts.keys()
        for part, value in single.parts.items():
            assert found.parts[part][i] == pytest.approx(value, rel=1e-12)
        assert found.holds[i] == single.holds
    np.testing.assert_allclose(found.total, sum(found.parts.values()))


@each("name", NAMES)
def test_a_million_rounds_are_finite(name: str) -> None:
    case, _ = isotropic_case(prior_var=1e-6)
    for version in information.VERSIONS:
        assert np.isfinite(EVERY[name](case, 10**6, version).total), version


def test_so_are_a_million_horizons() -> None:
    """A sum over rounds for each of them would never end."""
    case, _ = isotropic_case(prior_var=1e-6)
    horizon = np.arange(1, 10**6 + 1)
    found = bounds.lemma_2(case, horizon, strict=False)
    assert found.total.shape == (10**6,)
    assert found.holds[2:].all()
    assert (np.diff(found.total[2:]) > 0).all()


def test_theorems_are_sums_of_lemmas_by_name() -> None:
    case, _ = isotropic_case()
    first = bounds.theorem_1(case, 50)
    assert list(first.parts) == ["learning", "mismatch", "mismatch of the best", "estimation"]
    assert first.total == pytest.approx(
        bounds.lemma_1(case, 50).total + bounds.lemma_2_linear(case, 50).total
    )
    second = bounds.theorem_2(case, 50)
    assert list(second.parts) == ["learning", "tail", "estimation"]
    assert second.total == pytest.approx(bounds.lemma_3(case, 50).total + bounds.lemma_4(case, 50).total)


@each("name", NAMES)
def test_bounds_have_the_unit_of_rewards(name: str) -> None:
    """Rewards ten times as large, theta ten times as large: ten times the regret, and of every part of it."""
    case, _ = isotropic_case()
    known = case.known
    larger = case._replace(
        known=known._replace(prior_cov=100 * known.prior_cov, reward_var=np.asarray(100 * NOISE))
    )
    for version in ("printed", "corrected"):
        before, after = (EVERY[name](c, 40, version).parts for c in (case, larger))
        for part, value in before.items():
            assert after[part] == pytest.approx(10 * value, rel=1e-12)


def test_a_known_mismatch_takes_the_place_of_its_bound() -> None:
    case, _ = isotropic_case()
    worst = bounds.lemma_1(case, 40, mismatch=bounds.mismatch_sum(case, 40))
    assert worst.total == bounds.lemma_1(case, 40).total
    none = bounds.lemma_1(case, 40, mismatch=0.0)
    assert none.parts["mismatch"] == 0
    assert none.parts["mismatch of the best"] == pytest.approx(sqrt(2 * D * NOISE * 40 * log(K)))
    assert bounds.theorem_1(case, 40, mismatch=0.0).total < bounds.theorem_1(case, 40).total


ODD: list[Any] = [-0.1, np.nan, np.inf, "0.5", True, [0.5, 0.5, 0.5], [[0.5, 0.5]], [[0.5], [0.5, 0.5]], {}]


def test_odd_settings_are_refused() -> None:
    """`delta` and `mismatch` are not checked by `validation`: a grid for each, in one of the bounds."""
    case = isotropic_case()[0]
    for delta in (*ODD, 0.0, 1.0, 2.0, [0.5, 1.0]):
        with pytest.raises(InputError, match=r"^delta: .*between 0 and 1"):
            bounds.lemma_2(case, [10, 20], delta=delta)
    for mismatch in ODD:
        with pytest.raises(InputError, match=r"^mismatch: .*zero or a positive number"):
            bounds.lemma_1(case, [10, 20], mismatch=mismatch)
    for horizon in ([[10, 20], [30]], "10", [True], 1.5):
        with pytest.raises(InputError, match=r"^horizon: "):
            bounds.lemma_1(case, horizon)


@pytest.mark.parametrize("name", NAMES)
def test_each_bound_checks_its_settings(name: str) -> None:
    bound, case = EVERY[name], isotropic_case()[0]
    odd: dict[str, Any] = {
        "delta": 2.0,
        "mismatch": -0.1,
        "denoiser": "exct",
        "horizon": 1.5,
        "version": "both",
    }
    for field, value in odd.items():
        if field in signature(bound).parameters:
            with pytest.raises(InputError, match=rf"^{field}: "):
                bound(**{"case": case, "horizon": 10, "strict": False, field: value})
    with pytest.raises(TypeError, match="positional"):
        bound(case, 10, "corrected", 0.5)


def test_delta_and_mismatch_may_differ_by_horizon() -> None:
    case, _ = isotropic_case()
    both = bounds.lemma_4(case, [10, 20], delta=[0.1, 0.2]).total
    assert both.tolist() == [bounds.lemma_4(case, t, delta=x).total for t, x in ((10, 0.1), (20, 0.2))]
    both = bounds.lemma_1(case, [10, 20], mismatch=[0, 3]).total
    assert both.tolist() == [bounds.lemma_1(case, t, mismatch=x).total for t, x in ((10, 0), (20, 3))]


def test_the_printed_theorem_1_takes_the_logarithm_of_zero_for_zero() -> None:
    case, _ = isotropic_case()
    assert np.isfinite(bounds.theorem_1(case, 1, "printed", strict=False).total)
    assert information.log_sum(1, "printed") == 0


def test_the_largest_square_of_normals_is_within_its_limit(rng: np.random.Generator) -> None:
    """E max Z_a^2 <= min(m, 2 + 2 ln K) for K standard normals in m dimensions, independent or not.

    Sixteen means within 5 standard errors: a right limit fails 5e-6 of the time.
    """
    for arms, rank in product([1, 2, 10, 40], [1, 2, 5, 40]):
        rows = rng.normal(size=(arms, rank))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        largest = ((rng.normal(size=(20_000, rank)) @ rows.T) ** 2).max(1)
        error = largest.std() / np.sqrt(len(largest))
        assert largest.mean() <= bounds.ratio_limit(rank, arms) + 5 * error, (arms, rank)


def test_the_lifted_information_ratio_is_within_the_same_limit() -> None:
    """(E max_a z_a - E mean of the best arm)^2 <= E var of the best arm times the limit."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        rows, mean = rng.normal(size=(8, 4)), rng.normal(size=4)
        draws = rng.multivariate_normal(mean, np.eye(4), 50_000)
        scores = draws @ rows.T
        best = scores.argmax(1)
        gain = scores.max(1).mean() - (rows @ mean)[best].mean()
        variance = (rows**2).sum(1)[best].mean()
        assert 0 < gain**2 / variance < bounds.ratio_limit(4, 8), f"seed {seed}"


def test_the_sum_of_spreads_is_a_sum() -> None:
    for seed in range(4):
        case, matrices = correlated_case(seed)
        known = case.known
        c, n, p = (inverse(cov) for cov in (known.context_cov, known.noise_cov, known.bias_cov))
        seen, told = inverse(known.context_cov + known.noise_cov), inverse(c + n)
        for t in (1, 2, 30):
            covs = [told + told @ n @ inverse(p + k * seen) @ n @ told for k in range(t)]
            truth = sum(np.trace(G @ cov @ G.T) for G in matrices for cov in covs) * D * case.reward_var / t
            assert _spread_sum(case, np.asarray(float(t))) == pytest.approx(truth, rel=1e-10), (seed, t)


def test_the_distance_of_plugin_and_exact_falls_as_claimed() -> None:
    """sqrt(KL_t / 2) <= 1/2 sqrt(|N| |F|) / (n + l), norms of Frobenius, all relative to Sigma_n^-1."""
    for seed in range(40):
        dim = 1 + seed % 4
        case, _ = scaled(random_knowledge(seed, dim, dim))
        horizon = np.arange(1, 60)
        steps = np.sqrt(np.maximum(excess(case.known, horizon, "delayed"), 0) / 2)
        claimed = _distances(case._replace(linear=None), horizon.astype(np.float64))
        assert (steps <= np.diff(claimed, prepend=0.0) * (1 + 1e-9)).all(), f"seed {seed}"
        assert (np.cumsum(steps) <= claimed * (1 + 1e-9)).all(), f"seed {seed}"


def test_so_does_the_gap_between_their_means() -> None:
    """With e_t = plug-in's mean - exact mean, E|e_t|^2 = Tr B S (F^-1 + S)^-1 S B'."""
    for seed in range(40):
        dim = 1 + seed % 4
        case, matrices = scaled(random_knowledge(seed, dim, dim))
        known = case.known
        both, norm = known.context_cov + known.noise_cov, max(np.linalg.norm(G, 2) ** 2 for G in matrices)
        gain, parts = known.context_cov @ inverse(both), []
        for past in range(60):
            S = inverse(inverse(known.bias_cov) + past * inverse(known.noise_cov))
            square = norm * np.trace(gain @ S @ inverse(both + S) @ S @ gain.T)
            parts.append(2 * sqrt(square) + square)
        claimed = _distances(case, np.arange(1.0, 61))
        assert (np.array(parts) <= np.diff(claimed, prepend=0.0) * (1 + 1e-9)).all(), f"seed {seed}"


def test_the_gap_between_the_means_by_simulation(rng: np.random.Generator) -> None:
    known, draws = random_knowledge(3), 200_000
    S, both = known.bias_cov, known.context_cov + known.noise_cov
    away = rng.multivariate_normal(np.zeros(3), both + S, draws)
    gap = away @ (known.context_cov @ (inverse(both) - inverse(both + S))).T
    gain = known.context_cov @ inverse(both)
    truth = np.trace(gain @ S @ inverse(both + S) @ S @ gain.T)
    squares = (gap**2).sum(-1)
    assert within(squares.mean(), truth, squares.std() / np.sqrt(draws))


def test_the_plugin_pays_for_its_distance_and_the_exact_denoiser_does_not() -> None:
    case, _ = correlated_case(2)
    exact, plugin = (bounds.lemma_3(case, 500, denoiser=name).total for name in information.DENOISERS[::-1])
    assert exact == bounds.lemma_3(case, 500, "printed").total
    assert exact < plugin < 1.5 * exact


def test_choosing_at_random_obeys_its_bound(rng: np.random.Generator) -> None:
    for seed in range(3):
        case, matrices = correlated_case(seed)
        known, n = case.known, 20_000
        theta = rng.normal(0, sqrt(case.prior_var), (n, D))
        cov = known.context_cov @ inverse(known.context_cov + known.noise_cov) @ known.context_cov
        told = rng.multivariate_normal(known.context_mean, cov, n)
        scores = np.einsum("ni,kij,nj->nk", theta, matrices, told)
        regret = scores.max(1) - scores.mean(1)
        assert regret.mean() + 5 * regret.std() / sqrt(n) <= bounds.at_random(case, 1).total, f"seed {seed}"


@pytest.mark.slow
def test_the_plugins_ee1_and_the_exact_denoisers_ee2_cost_nothing() -> None:
    """The plug-in's mean is A plus independent noise: its best arm looks better than it is, so EE1 <= 0.

    In setting 2 the exact mean is that of A given all that was seen: EE2 is zero, and EE1 >= 0.
    """
    rng = np.random.default_rng(8)
    known = random_knowledge(8, D, D)
    case, matrices = scaled(known._replace(prior_mean=np.zeros(D), prior_cov=0.7 * np.eye(D)), 8)
    problem = GaussianProblem(
        dim=D,
        actions=matrices,
        features=matrix,
        context_mean=known.context_mean,
        context_cov=known.context_cov,
        noise_cov=known.noise_cov,
        bias_cov=known.bias_cov,
        prior_cov=case.prior_var,
        reward_var=case.reward_var,
    )
    agents = ["alg1", "alg2", "alg2-exact"]
    found = play(problem, agents, rounds=30, trials=4000, seed=int(rng.integers(99))).values
    for name, agent, sign in [("ee1", 0, -1), ("ee1", 1, -1), ("ee1", 2, 1), ("ee2", 2, 0)]:
        values = found[name][agent, :, -1]
        error = values.std() / np.sqrt(len(values))
        if sign:
            assert sign * values.mean() > 5 * error
        else:
            assert abs(values.mean()) < 5 * error
