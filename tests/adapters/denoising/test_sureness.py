"""What is said of a bias is as sure as it says: intervals of many studies cover it as often as they say.

Each design is repeated 200 times. An interval of 95 % covers 600 coordinates; coordinates of one study go
together, so the standard error is taken as that of 200: 0.0154. Four of them below 95 % is 0.888. Squared
distances in units of what is said have the mean 1 with a standard error of at most sqrt(2 / 200) = 0.1.
"""

from typing import NamedTuple

import numpy as np
from sklearn.linear_model import LinearRegression

from tests.adapters.denoising.channels import DIM, NOISE_COV, readings
from tests.each import each
from unfog.adapters.sklearn import Denoiser
from unfog.channel.studies import calibrate_subset
from unfog.maths.arrays import Array

REPEATS = 200


class Study(NamedTuple):
    rows: int
    pairs: int
    devices: int = 1
    noise: Array | None = None
    chosen: bool = False  # truths of the highest readings, not of the first


STUDIES = {
    "few truths among many": Study(2000, 20),
    "all paired": Study(50, 50),
    "truths of high readings": Study(1000, 60, chosen=True),
    "three truths, noise told": Study(500, 3, noise=NOISE_COV),
    "devices with few truths": Study(600, 60, devices=12),
    "devices all paired": Study(120, 120, devices=12),
    "devices without truths": Study(600, 0, devices=12, noise=NOISE_COV),
}


def study(kind: Study, seed: int) -> tuple[Array, Array]:
    """How far off the bias of the first device is, and the covariance that is said of it."""
    drawn, of = readings(kind.rows, seed=seed, devices=kind.devices), np.arange(kind.rows) % kind.devices
    order = np.argsort(-drawn.noisy[:, 1]) if kind.chosen else np.arange(kind.rows)
    true = drawn.true.copy()
    true[order[kind.pairs :]] = np.nan
    found = Denoiser(kind.noise)
    found.fit(drawn.noisy, true=true if kind.pairs else None, groups=of if kind.devices > 1 else None)
    belief = found.bias_of(0 if kind.devices > 1 else None)
    return belief.mean - drawn.bias[0], belief.cov


@each("name", STUDIES)
def test_biases_are_as_sure_as_said(name: str) -> None:
    away, covs = (
        np.stack(part) for part in zip(*(study(STUDIES[name], i) for i in range(REPEATS)), strict=True)
    )
    sizes = np.sqrt(np.linalg.diagonal(covs))
    assert (np.abs(away) < 1.96 * sizes).mean() > 0.888
    units = (away[:, None] @ np.linalg.inv(covs) @ away[..., None]).mean() / away.shape[1]
    assert 0.6 < units < 1.6


def test_truths_chosen_by_readings_say_what_the_subset_design_says() -> None:
    """The same estimate by other code: 40 truths of the highest among 1,000 readings."""
    drawn = readings(1000, seed=31)
    known = np.argsort(-drawn.noisy[:, 0])[:40]
    true = np.full_like(drawn.true, np.nan)
    true[known] = drawn.true[known]
    found, expected = Denoiser().fit(drawn.noisy, true=true), calibrate_subset(drawn.noisy, true)
    np.testing.assert_allclose(found.bias_, expected.bias, rtol=1e-9)
    np.testing.assert_allclose(found.noise_cov_, expected.noise_cov, rtol=1e-9)
    np.testing.assert_allclose(found.context_cov_, expected.context_cov, rtol=1e-9)
    np.testing.assert_allclose(found.context_mean_, expected.context_mean, rtol=1e-9)
    # bias = (I - B) (mean of all - mean of the pairs) + mean error of the pairs: the errors of each part.
    pairs, truth = drawn.noisy[known], drawn.true[known]
    line = LinearRegression().fit(pairs, truth)
    rest = (truth - line.predict(pairs)).T @ (truth - line.predict(pairs)) / 39
    left, away = np.eye(DIM) - line.coef_, drawn.noisy.mean(0) - pairs.mean(0)
    far = away @ np.linalg.solve(np.cov(pairs.T), away)
    sure = rest * (1 / 40 + far / 39) + left @ np.cov(drawn.noisy.T) @ left.T / 1000
    np.testing.assert_allclose(found.bias_cov_, sure * 39 / (39 - DIM * 0.96 - 2), rtol=1e-7)


def test_later_truths_move_the_bias() -> None:
    """1,000 truths after 20 among 2,000 readings: three coordinates within 4.5 standard errors."""
    drawn = readings(3000, seed=32)
    true = drawn.true.copy()
    true[20:2000] = np.nan
    found = Denoiser().fit(drawn.noisy[:2000], true=true[:2000])
    before = np.sqrt(np.diag(found.bias_cov_))
    found.partial_fit(drawn.noisy[2000:], true=true[2000:])
    after = np.sqrt(np.diag(found.bias_cov_))
    assert (after < before / 5).all()
    assert (np.abs(found.bias_ - drawn.bias[0]) < 4.5 * after).all()
