"""The transformer's contexts are those of one joint Gaussian, and those of the agents' denoisers."""

from typing import Any

import numpy as np
import pytest

from tests.adapters.denoising.channels import (
    BIAS_COV,
    CONTEXT_COV,
    DIM,
    MEAN,
    NOISE_COV,
    TOLD,
    last_context,
    readings,
    with_gaps,
)
from unfog.adapters.sklearn import Denoiser
from unfog.agents.denoise.drift import Drift
from unfog.agents.denoise.exact import Exact
from unfog.agents.denoise.incomplete import Incomplete
from unfog.channel.knowledge import Knowledge
from unfog.maths.arrays import Array, diagonal_matrix

ROWS = 9
KNOWN = Knowledge(MEAN, CONTEXT_COV, NOISE_COV, BIAS_COV, np.zeros(1), np.eye(1))


def per_row() -> Array:
    """Noises of very different size, each with correlations."""
    sizes = np.geomspace(0.05, 20, ROWS)[:, None, None]
    return sizes * NOISE_COV + diagonal_matrix(np.random.default_rng(5).random((ROWS, DIM)))


@pytest.mark.parametrize("gaps", [0.0, 0.4])
@pytest.mark.parametrize("devices", [1, 3])
@pytest.mark.parametrize("noise", [None, per_row()], ids=["one noise", "a noise a row"])
def test_contexts_are_those_of_the_joint_gaussian(gaps: float, devices: int, noise: Array | None) -> None:
    """Eight rows are learnt from, some with true contexts in part; the ninth is denoised."""
    noises = np.broadcast_to(NOISE_COV, (ROWS, DIM, DIM)) if noise is None else noise
    drawn = readings(ROWS, seed=4, devices=devices, noise=noises)
    noisy, true = with_gaps(drawn.noisy, gaps, 6), with_gaps(drawn.true, 0.6, 7)
    noisy[-1, 0], true[-1] = drawn.noisy[-1, 0], np.nan
    of = np.arange(ROWS) % devices
    found = Denoiser(**TOLD).fit(noisy[:-1], true=true[:-1], groups=of[:-1], noise_cov=_cut(noise, slice(-1)))
    mean, cov = found.context(noisy[-1:], groups=of[-1:], noise_cov=_cut(noise, slice(-1, None)))
    expected = last_context(noisy, true, of, noises)
    np.testing.assert_allclose(mean[0], expected.mean, rtol=1e-9)
    np.testing.assert_allclose(cov[0], expected.cov, rtol=1e-8, atol=1e-9)


def _cut(noise: Array | None, part: slice) -> Array | None:
    return None if noise is None else noise[part]


def test_rows_of_a_batch_do_not_meet() -> None:
    """Rows of all patterns and devices at once are what they are one at a time."""
    drawn = readings(60, seed=8, devices=4)
    noisy, of = with_gaps(drawn.noisy, 0.4, 9), np.arange(60) % 4
    sizes = np.random.default_rng(1).random((60, DIM)) * 3
    found = Denoiser(**TOLD, output="mean+sd").fit(noisy, groups=of)
    for noise in (None, sizes):
        batch = found.transform(noisy, groups=of, noise_cov=noise)
        each = [
            found.transform(noisy[i : i + 1], groups=of[i : i + 1], noise_cov=_cut(noise, slice(i, i + 1)))[0]
            for i in range(60)
        ]
        np.testing.assert_allclose(batch, each, rtol=1e-10)


def test_large_sets_of_like_rows_are_what_few_rows_are() -> None:
    """Six sets of hundreds of rows share a gain each; two rows of every tenth have one by themselves."""
    drawn, of = readings(1200, seed=18, devices=3), np.arange(1200) % 3
    noisy = drawn.noisy.copy()
    noisy[::2, 1] = np.nan
    found = Denoiser(NOISE_COV, BIAS_COV, output="mean+sd").fit(noisy, groups=of)
    batch = found.transform(noisy, groups=of)
    for i in range(0, 1200, 100):
        few = slice(i, i + 2)
        np.testing.assert_allclose(found.transform(noisy[few], groups=of[few]), batch[few], rtol=1e-10)


@pytest.mark.parametrize("gaps", [0.0, 0.4])
def test_one_by_one_is_what_the_incomplete_denoiser_predicts(gaps: float) -> None:
    noisy = with_gaps(readings(40, seed=10).noisy, gaps, 11)
    agent: Any = Incomplete()
    ours = Denoiser(**TOLD, output="mean+sd")
    parameters = agent.setup(KNOWN, None)
    state = agent.start(parameters)
    for reading in noisy:
        mean, cov = agent.predict(parameters, state, reading)
        np.testing.assert_allclose(ours.transform_one(reading), [*mean, *np.sqrt(np.diag(cov))], rtol=1e-10)
        state = agent.update(parameters, state, reading, None)
    mean, cov = agent.bias(parameters, state)
    np.testing.assert_allclose(ours.bias_, mean, rtol=1e-10)
    np.testing.assert_allclose(ours.bias_cov_, cov, rtol=1e-10)


@pytest.mark.parametrize("step", [0.0, 0.05])
def test_one_by_one_is_what_the_exact_and_the_drifting_denoiser_predict(step: float) -> None:
    agent: Any = Drift(step=step) if step else Exact()
    walks: dict[str, Any] = {"kind": "drift", "walk_cov": step * BIAS_COV} if step else {}
    ours = Denoiser(**TOLD, **walks, output="mean+sd")
    parameters = agent.setup(KNOWN, None)
    state = agent.start(parameters)
    noisy = readings(40, seed=12).noisy
    for reading in noisy:
        mean, cov = agent.predict(parameters, state, reading)
        np.testing.assert_allclose(ours.transform_one(reading), [*mean, *np.sqrt(np.diag(cov))], rtol=1e-9)
        state = agent.update(parameters, state, reading, reading)
    at_once = Denoiser(**TOLD, **walks).fit(noisy)
    np.testing.assert_allclose(ours.bias_cov_, at_once.bias_cov_, rtol=1e-9)
    np.testing.assert_allclose(ours.bias_, at_once.bias_, rtol=1e-9)


def test_each_device_walks_at_its_own_readings() -> None:
    """Two devices that take turns are two transformers, one each."""
    noisy = readings(30, seed=13, devices=2).noisy
    settings: dict[str, Any] = {**TOLD, "kind": "drift", "walk_cov": 0.1 * BIAS_COV}
    together, apart = Denoiser(**settings), [Denoiser(**settings), Denoiser(**settings)]
    for i, reading in enumerate(noisy):
        np.testing.assert_allclose(
            together.transform_one(reading, group="ab"[i % 2]),
            apart[i % 2].transform_one(reading),
            rtol=1e-12,
        )


def test_a_reading_has_no_part_in_its_own_prediction() -> None:
    """`transform_one` is `transform`, then `partial_fit`."""
    noisy = readings(20, seed=14).noisy
    sizes = np.random.default_rng(2).random((20, DIM)) * 4
    one, two = Denoiser(**TOLD), Denoiser(**TOLD).fit(noisy[:1], noise_cov=sizes[:1])
    one.transform_one(noisy[0], noise_cov=sizes[0])
    for reading, noise in zip(noisy[1:], sizes[1:], strict=True):
        before = two.transform(reading[None], noise_cov=noise)[0]
        np.testing.assert_allclose(one.transform_one(reading, noise_cov=noise), before, rtol=1e-10)
        two.partial_fit(reading[None], noise_cov=noise)


def test_draws_have_the_moments_of_the_context() -> None:
    """20,000 draws; 12 bounds of 4.5 standard errors are broken by chance less than once in 10,000."""
    reading = np.array([[3.0, np.nan, 20.0]])
    rows = np.repeat(reading, 2000, axis=0)
    found = Denoiser(**TOLD, output="draws", draws=10, random_state=3).fit(readings(50, seed=15).noisy)
    drawn = found.transform(rows).reshape(-1, DIM)
    mean, cov = (part[0] for part in found.context(reading))
    n, variance = len(drawn), np.diag(cov)
    assert (np.abs(drawn.mean(0) - mean) < 4.5 * np.sqrt(variance / n)).all()
    error = np.sqrt((np.outer(variance, variance) + cov**2) / n)
    assert (np.abs(np.cov(drawn.T) - cov) < 4.5 * error).all()


def test_the_next_reading_draws_anew() -> None:
    """Without a bias nothing is learnt: it is the same context twice, and two draws of it."""
    told = {name: value for name, value in TOLD.items() if name != "bias_cov"}
    one, other = (Denoiser(**told, output="draws", draws=2, random_state=3) for _ in range(2))
    first, again = one.transform_one(MEAN), other.transform_one(MEAN)
    np.testing.assert_array_equal(first, again)
    assert np.abs(one.transform_one(MEAN) - first).min() > 1e-3
    assert np.abs(first[:DIM] - first[DIM:]).min() > 1e-3
