"""Where the mean of contexts is not told, it is found together with the biases: as least squares do."""

import numpy as np
import pytest

from tests.adapters.denoising.channels import (
    BIAS_COV,
    CONTEXT_COV,
    DIM,
    MEAN,
    NOISE_COV,
    readings,
    with_gaps,
)
from unfog.adapters.sklearn import Denoiser
from unfog.maths.arrays import Array, Ints

ROWS = 24
FLAT = 1e-12  # precision of what nothing is known of


def brute(noisy: Array, true: Array, of: Ints, noises: Array) -> tuple[Array, Array]:
    """Mean and covariance of (mu, biases, context of the last row) given every number that is there.

    Each row has its context as an unknown of its own; everything is one system of equations.
    """
    count = int(of.max()) + 1
    size = DIM * (1 + count + len(noisy))
    precision, natural = FLAT * np.eye(size), np.zeros(size)

    def pick(block: int) -> Array:
        return np.eye(size)[block * DIM : (block + 1) * DIM]

    def seen(design: Array, value: Array, cov: Array) -> None:
        nonlocal precision, natural
        there = ~np.isnan(value)
        inverse = np.linalg.inv(cov[np.ix_(there, there)])
        precision = precision + design[there].T @ inverse @ design[there]
        natural = natural + design[there].T @ inverse @ value[there]

    for device in range(count):
        seen(pick(1 + device), np.zeros(DIM), BIAS_COV)
    for i, (reading, context, noise) in enumerate(zip(noisy, true, noises, strict=True)):
        own = pick(1 + count + i)
        seen(own - pick(0), np.zeros(DIM), CONTEXT_COV)
        seen(own + pick(1 + of[i]), reading - MEAN, noise)
        seen(own, context - MEAN, 1e-9 * np.eye(DIM))
    cov = np.linalg.inv(precision).astype(np.float64)
    return cov @ natural, cov


@pytest.mark.parametrize("gaps", [0.0, 0.3])
@pytest.mark.parametrize("devices", [1, 3])
@pytest.mark.parametrize("own", [False, True], ids=["one noise", "a noise a row"])
def test_the_mean_and_the_biases_are_those_of_one_system(gaps: float, devices: int, own: bool) -> None:
    """Some true contexts are known in part. The last row is no part of the fit; its context is held too."""
    noises = np.broadcast_to(NOISE_COV, (ROWS, DIM, DIM))
    if own:
        noises = noises * np.geomspace(0.1, 9, ROWS)[:, None, None]
    drawn, of = readings(ROWS, seed=21, devices=devices, noise=noises), np.arange(ROWS) % devices
    noisy, true = with_gaps(drawn.noisy, gaps, 22), with_gaps(drawn.true, 0.7, 23)
    true[-1] = np.nan
    found = Denoiser(NOISE_COV, BIAS_COV, context_cov=CONTEXT_COV)
    told = {"noise_cov": noises[:-1]} if own else {}
    found.fit(noisy[:-1], true=true[:-1], groups=of[:-1], **told)
    mean, cov = brute(noisy[:-1], true[:-1], of[:-1], noises[:-1])
    np.testing.assert_allclose(found.context_mean_, MEAN + mean[:DIM], rtol=1e-5)
    for device in range(devices):
        part = slice(DIM * (1 + device), DIM * (2 + device))
        belief = found.bias_of(device)
        np.testing.assert_allclose(belief.mean, mean[part], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(belief.cov, cov[part, part], rtol=1e-5, atol=1e-6)
    for device in (of[-1], devices):  # one of those that were seen, and a new one
        whose = np.append(of[:-1], device)
        mean, cov = brute(noisy, true, whose, noises)
        context = found.context(noisy[-1:], groups=whose[-1:], noise_cov=noises[-1])
        np.testing.assert_allclose(context.mean[0], MEAN + mean[-DIM:], rtol=1e-5)
        np.testing.assert_allclose(context.cov[0], cov[-DIM:, -DIM:], rtol=1e-5, atol=1e-6)
