"""What is not told is found from readings, from pairs with true contexts, and from several devices."""

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from tests.adapters.denoising.channels import (
    BIAS_COV,
    CONTEXT_COV,
    DIM,
    MEAN,
    NOISE_COV,
    TOLD,
    readings,
    with_gaps,
)
from unfog.adapters.denoising.fit import regular, without
from unfog.adapters.sklearn import Denoiser
from unfog.channel.calibration import calibrate
from unfog.maths.arrays import Array, diagonal_matrix

UNBIASED = {name: value for name, value in TOLD.items() if name == "noise_cov"}


def skewed_sizes(rows: int) -> Array:
    return diagonal_matrix(np.random.default_rng(3).gamma(0.5, 2.0, size=(rows, DIM)) * [0.5, 1.0, 20.0])


@pytest.mark.parametrize("gaps", [0.0, 0.3])
def test_told_nothing_it_changes_nothing(gaps: float) -> None:
    """Gaps get the conditional mean: what least squares on the law that was fitted says."""
    noisy = with_gaps(readings(200, seed=1).noisy, gaps, 2)
    found = Denoiser(output="mean+sd").fit(noisy)
    out = found.transform(noisy)
    seen = ~np.isnan(noisy)
    np.testing.assert_array_equal(out[:, :DIM][seen], noisy[seen])
    assert (out[:, DIM:][seen] == 0).all()
    mean, cov = found.context_mean_, found.context_cov_
    for row, there, filled in zip(noisy, seen, out, strict=True):
        slopes = np.linalg.pinv(cov[np.ix_(there, there)]) @ cov[np.ix_(there, ~there)]
        np.testing.assert_allclose(
            filled[:DIM][~there], mean[~there] + (row - mean)[there] @ slopes, rtol=1e-9
        )
    for told in ({"groups": np.arange(200) % 3}, {}):
        np.testing.assert_array_equal(Denoiser().fit_transform(noisy, **told)[seen], noisy[seen])


def test_moments_are_the_sample_moments_less_the_noise() -> None:
    noisy = readings(400, seed=3).noisy
    found = Denoiser(noise_cov=NOISE_COV).fit(noisy)
    np.testing.assert_allclose(found.context_mean_, noisy.mean(0), rtol=1e-12)
    np.testing.assert_allclose(found.context_cov_, np.cov(noisy.T) - NOISE_COV, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("noise", [NOISE_COV, skewed_sizes(40_000)], ids=["one noise", "a noise a row"])
@pytest.mark.parametrize("gaps", [0.0, 0.3])
def test_moments_are_those_of_contexts(gaps: float, noise: Array) -> None:
    """40,000 rows; 9 entries within 4.5 standard errors, by chance broken once in 10,000."""
    rows = 40_000
    drawn = readings(rows, seed=5, noise=noise)
    found = Denoiser().fit(with_gaps(drawn.noisy - drawn.bias, gaps, 6), noise_cov=noise)
    noises = np.broadcast_to(noise, (rows, DIM, DIM))
    variance = np.linalg.diagonal(CONTEXT_COV + noises)
    seen = rows * (1 - gaps) ** 2
    # Products of two Gaussians: with noises that differ, the mean over rows of their variances.
    spread = (variance[:, :, None] * variance[:, None, :] + (CONTEXT_COV + noises) ** 2).mean(0)
    assert (np.abs(found.context_cov_ - CONTEXT_COV) < 4.5 * np.sqrt(spread / seen)).all()
    assert (np.abs(found.context_mean_ - MEAN) < 4.5 * np.sqrt(variance.mean(0) / (rows * (1 - gaps)))).all()
    np.testing.assert_allclose(found.noise_cov_, noises.mean(0), rtol=0.05, atol=1e-9)


@pytest.mark.parametrize("gaps", [0.0, 0.3])
def test_in_pieces_as_at_once(gaps: float) -> None:
    """Where nothing of the bias is told, the law of contexts is learnt on; else the bias is."""
    noisy, noise = with_gaps(readings(90, seed=7).noisy, gaps, 8), skewed_sizes(90)
    for told in (UNBIASED, TOLD):
        at_once = Denoiser(**told).fit(noisy, noise_cov=noise)
        pieces = Denoiser(**told)
        for part in (slice(10), slice(10, 11), slice(11, 90)):
            pieces.partial_fit(noisy[part], noise_cov=noise[part])
        for name in ("context_mean_", "context_cov_", "bias_", "bias_cov_"):
            np.testing.assert_allclose(vars_of(pieces, name), vars_of(at_once, name), rtol=1e-9, atol=1e-12)


def vars_of(found: Denoiser, name: str) -> Array:
    value: Array = getattr(found, name)
    return value


def test_noise_beyond_what_is_seen_leaves_a_covariance() -> None:
    noisy = readings(30, seed=9).noisy
    found = Denoiser(noise_cov=50 * NOISE_COV).fit(noisy)
    assert np.linalg.eigvalsh(found.context_cov_)[0] > 0
    away = found.transform(noisy) - noisy.mean(0)
    assert np.abs(away).max() < 0.1 * np.abs(noisy - noisy.mean(0)).max()


def test_what_noise_leaves_is_floored_where_it_must_be_alone() -> None:
    root = np.linalg.cholesky(CONTEXT_COV)
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(DIM, DIM)))[0]
    shares = np.array([0.3, 1.7, 0.999])
    noise = root @ turn @ np.diag(shares) @ turn.T @ root.T
    expected = root @ turn @ np.diag([0.7, 0.01, 0.01]) @ turn.T @ root.T
    np.testing.assert_allclose(without(CONTEXT_COV, noise, 0.01), expected, rtol=1e-9, atol=1e-10)
    flat = np.outer([1.0, 2.0, 0.0], [1.0, 2.0, 0.0])
    np.testing.assert_allclose(regular(flat), flat, atol=1e-9)
    assert np.linalg.eigvalsh(regular(flat))[0] > 0


def test_pairs_calibrate_the_channel() -> None:
    drawn = readings(300, seed=10)
    found, pairs = Denoiser().fit(drawn.noisy, true=drawn.true), calibrate(drawn.noisy, drawn.true)
    np.testing.assert_allclose(found.noise_cov_, pairs.noise_cov, rtol=1e-12)
    np.testing.assert_allclose(found.context_mean_, pairs.context_mean, rtol=1e-10)
    np.testing.assert_allclose(found.context_cov_, pairs.context_cov, rtol=1e-9)
    np.testing.assert_allclose(found.bias_, pairs.bias, rtol=1e-9)
    # The mean of 300 errors whose covariance is estimated too: the variance of Student's law.
    np.testing.assert_allclose(found.bias_cov_, pairs.noise_cov / 300 * 299 / 297, rtol=1e-8, atol=1e-12)


def test_few_true_contexts_do_for_many_readings() -> None:
    """40 pairs among 20,000 rows: 9 numbers within 4.5 standard errors, by chance broken once in 10,000."""
    drawn = readings(20_000, seed=11)
    true = drawn.true.copy()
    true[40:] = np.nan
    found = Denoiser().fit(drawn.noisy, true=true)
    error = np.sqrt(np.diag(NOISE_COV) / 40)
    assert (np.abs(found.bias_ - drawn.bias[0]) < 4.5 * error).all()
    assert (np.abs(found.context_mean_ - MEAN) < 4.5 * error).all()
    scale = np.diag(NOISE_COV) * np.sqrt(2 / 39) + np.diag(CONTEXT_COV) * np.sqrt(2 / 20_000)
    assert (np.abs(np.diag(found.context_cov_ - CONTEXT_COV)) < 4.5 * scale).all()
    rest = slice(40, None)
    errors = [
        np.mean((x[rest] - drawn.true[rest]) ** 2, axis=0)
        for x in (found.transform(drawn.noisy), drawn.noisy)
    ]
    assert (errors[0] < 0.8 * errors[1]).all()


@pytest.mark.parametrize("pairs", [False, True])
def test_devices_have_biases_of_their_own(pairs: bool) -> None:
    """50 devices of 200 rows, a fifth with true contexts or none: beliefs about each are as sure as said.

    150 squared distances in units of what is believed have the mean 1; 4.5 standard errors are 0.52. The mean
    of all biases, which readings alone hardly tell from the mean of contexts, is taken off, and with it its
    part of what is believed.
    """
    drawn, of = readings(10_000, seed=12, devices=50), np.arange(10_000) % 50
    true = np.where(np.arange(10_000)[:, None] < 2000, drawn.true, np.nan)
    told: dict[str, Any] = {"true": true} if pairs else {"noise_cov": NOISE_COV}
    found = Denoiser().fit(drawn.noisy, groups=of, **told)
    beliefs = [found.bias_of(device) for device in range(50)]
    away = np.stack([belief.mean for belief in beliefs]) - drawn.bias
    away -= away.mean(0)
    common: Any = found.fitted_.biases.mean_cov
    units = [a @ np.linalg.solve(belief.cov - common, a) for a, belief in zip(away, beliefs, strict=True)]
    assert 0.48 < np.mean(units) / DIM < 1.52
    new = found.bias_of("never seen")
    # The variance of 50 biases is seen within a factor of 1 +- 4.5 sqrt(2 / 49).
    assert (np.abs(np.diag(new.cov) / np.diag(BIAS_COV) - 1) < 4.5 * np.sqrt(2 / 49)).all()
    whose, anybody = (found.transform(drawn.noisy, groups=groups) - drawn.true for groups in (of, None))
    assert ((whose**2).mean(0) < (anybody**2).mean(0)).all()


def test_devices_count_by_how_sure_they_are_for_the_mean_and_apart_for_the_spread() -> None:
    """Five devices that read now often, now seldom; about means of their own, all show one spread."""
    sizes = np.array([30, 6, 8, 11, 5])
    noisy, of = readings(60, seed=15).noisy, np.repeat(np.arange(5), sizes)
    noisy += (np.random.default_rng(4).normal(size=(5, DIM)) * [9.0, 20.0, 70.0])[of]
    found = Denoiser(0.1 * NOISE_COV).fit(noisy, groups=of)
    means = np.stack([noisy[of == i].mean(0) for i in range(5)])
    whole = (noisy - means[of]).T @ (noisy - means[of]) / 55
    np.testing.assert_allclose(found.context_cov_, whole - 0.1 * NOISE_COV, rtol=1e-9)
    # As a variance of five numbers is an estimate itself, it is widened: (5 + 1) / (5 - 1).
    spread = (np.cov(means.T) - whole * (1 / sizes).mean()) * 6 / 4
    np.testing.assert_allclose(found.bias_of("new").cov, spread, rtol=1e-9)
    weights = np.linalg.inv(spread + whole / sizes[:, None, None])
    mean = np.linalg.solve(weights.sum(0), np.einsum("gij,gj->i", weights, means))
    np.testing.assert_allclose(found.context_mean_, mean, rtol=1e-9)


def test_known_contexts_need_no_device() -> None:
    """Their mean and their spread are those of contexts, however devices differ."""
    drawn, of = readings(400, seed=16, devices=4), np.arange(400) % 4
    contexts = drawn.true + 10.0 * of[:, None]
    found = Denoiser().fit(drawn.noisy + 10.0 * of[:, None], true=contexts, groups=of)
    np.testing.assert_allclose(found.context_mean_, contexts.mean(0), rtol=1e-10)
    np.testing.assert_allclose(found.context_cov_, np.cov(contexts.T), rtol=1e-9)


def test_a_bias_that_all_share_is_part_of_a_mean_that_is_not_told() -> None:
    noisy = readings(50, seed=13).noisy
    with_bias, without_bias = Denoiser(NOISE_COV, BIAS_COV).fit(noisy), Denoiser(NOISE_COV).fit(noisy)
    np.testing.assert_array_equal(with_bias.transform(noisy), without_bias.transform(noisy))
    assert not with_bias.bias_.any()


def test_slopes_are_recovered_where_noise_attenuates_them() -> None:
    """Regression calibration: 20,000 rows, slopes within 4.5 standard errors (3 of them, once in 50,000)."""
    drawn = readings(20_000, seed=14)
    slopes = np.array([1.0, -0.5, 0.2])
    rewards = 7 + drawn.true @ slopes + 0.1 * np.random.default_rng(1).normal(size=20_000)
    contexts = Denoiser(NOISE_COV).fit_transform(drawn.noisy)
    fitted = LinearRegression().fit(contexts, rewards)
    left = rewards - fitted.predict(contexts)
    error = np.sqrt(np.diag(np.linalg.inv(20_000 * np.cov(contexts.T))) * left.var())
    assert (np.abs(fitted.coef_ - slopes) < 4.5 * error).all()
    assert (np.abs(LinearRegression().fit(drawn.noisy, rewards).coef_ - slopes) > 20 * error).any()


def test_draws_average_what_a_model_of_true_contexts_says() -> None:
    """E[c_1 c_2 | x], within 4.5 standard errors of 20,000 rows; slopes fitted to draws stay flat."""
    drawn = readings(20_000, seed=17)
    found = Denoiser(NOISE_COV, context_mean=MEAN, context_cov=CONTEXT_COV, output="draws", random_state=1)
    noisy = drawn.noisy - drawn.bias
    draws = found.fit(noisy).transform(noisy).reshape(20_000, 5, DIM)
    products, (mean, cov) = (draws[..., 0] * draws[..., 1]).mean(1), found.context(noisy)
    away = products - mean[:, 0] * mean[:, 1] - cov[:, 0, 1]
    assert abs(away.mean()) < 4.5 * away.std() / np.sqrt(20_000)
    away = products - drawn.true[:, 0] * drawn.true[:, 1]
    assert abs(away.mean()) < 4.5 * away.std() / np.sqrt(20_000)
    slopes = np.array([1.0, -0.5, 0.2])
    flat = LinearRegression().fit(draws[:, 0], drawn.true @ slopes).coef_
    gain = CONTEXT_COV @ np.linalg.inv(CONTEXT_COV + NOISE_COV)
    np.testing.assert_allclose(flat, gain.T @ slopes, atol=0.03)
