"""Noise from readings that repeat, against the long way round; studies that repeat too little refused."""

import numpy as np
import numpy.typing as npt
import pytest

from tests.channel.studies import BIAS, CONTEXT, MEAN, NOISE, D, Sensor
from tests.each import each
from tests.problems import spd, within
from unfog.channel.studies import calibrate_replicates
from unfog.validation import InputError

SIZES = np.array([1, 2, 5, 3, 2, 1, 4, 2, 7, 2])


def test_it_is_what_the_formula_says(rng: np.random.Generator) -> None:
    sensor, owners = Sensor(rng), np.repeat(np.arange(10), SIZES)
    readings = sensor.read(sensor.contexts(10)[owners])
    each = [readings[owners == owner] for owner in range(10)]
    means = np.array([one.mean(0) for one in each])
    noise = sum((one - one.mean(0)).T @ (one - one.mean(0)) for one in each) / (SIZES.sum() - 10)
    law = np.cov(means.T) - noise * (1 / SIZES).mean()
    mixed = rng.permutation(len(owners))
    names = np.array([f"patient {9 - owner}" for owner in owners])
    for found in (
        calibrate_replicates(readings, owners),
        calibrate_replicates(readings[mixed], names[mixed].astype(object)),
        calibrate_replicates([[*one, *[[np.nan] * D] * (7 - len(one))] for one in each]),
    ):
        np.testing.assert_allclose(found.noise_cov, noise, rtol=1e-10)
        np.testing.assert_allclose(found.context_cov, law, rtol=1e-10)
        np.testing.assert_allclose(found.context_mean, means.mean(0), rtol=1e-12)
        np.testing.assert_allclose(found.bias_cov, np.cov(means.T) / 10, rtol=1e-10)
        assert found.pairs == 0
        assert found.contexts is None
        assert found.design.notes == ()
        assert found.design.used == "29 readings of 10 contexts, 8 of them read more than once"


def test_the_bias_is_told_or_stays_in_the_contexts(rng: np.random.Generator) -> None:
    sensor, n = Sensor(rng), 4000
    readings = sensor.read(np.repeat(sensor.contexts(n)[:, None], 2, axis=1))
    spread, unsure = np.sqrt(np.diag(CONTEXT + NOISE / 2) / n), spd(rng, D, 0.01, 0.1)
    alone, known = calibrate_replicates(readings), calibrate_replicates(readings, bias=BIAS, bias_cov=unsure)
    # Six tests at 5 standard errors: 4e-6.
    assert within(alone.context_mean, MEAN + BIAS, spread)
    assert within(known.context_mean, MEAN, spread)
    assert (alone.bias == 0).all()
    assert (known.bias == BIAS).all()
    np.testing.assert_allclose(known.bias_cov - alone.bias_cov, unsure, rtol=1e-9)
    np.testing.assert_allclose(known.errors.bias, np.sqrt(np.diag(unsure)), rtol=1e-12)
    np.testing.assert_allclose(
        known.errors.context_mean**2 - alone.errors.context_mean**2, np.diag(unsure), rtol=1e-9
    )


def test_an_error_that_repeats_looks_like_context(rng: np.random.Generator) -> None:
    sensor, n = Sensor(rng), 20_000
    shared = rng.standard_normal((n, D)) @ np.linalg.cholesky(NOISE).T
    readings = sensor.read(np.repeat((sensor.contexts(n) + shared)[:, None], 2, axis=1))
    found = calibrate_replicates(readings)
    # 18 tests at 5 standard errors: 1e-5.
    assert within(found.context_cov, CONTEXT + NOISE, found.errors.context_cov)
    assert within(found.noise_cov, NOISE, found.errors.noise_cov)


def test_noise_within_makes_the_law_of_contexts_less_sure(rng: np.random.Generator) -> None:
    n, context, noise = 4000, 0.2, 1.0
    true = np.sqrt(context) * rng.standard_normal((n, 1, 1))
    found = calibrate_replicates(true + np.sqrt(noise) * rng.standard_normal((n, 2, 1)))
    # Of Gaussian numbers: 2 v^2 / n for what lies between, a quarter of 2 noise^2 / n for what is taken off.
    # The error is good to 1 in 30; without the second part it would be off by 1 in 6.
    expected = np.sqrt((2 * (context + noise / 2) ** 2 + noise**2 / 2) / n)
    np.testing.assert_allclose(found.errors.context_cov, expected, rtol=0.1)


def test_contexts_that_do_not_show_stay_positive(rng: np.random.Generator) -> None:
    readings = Sensor(rng).read(np.zeros((30, 2, D)))
    found = calibrate_replicates(readings)
    root = np.linalg.cholesky(found.noise_cov)
    white = np.linalg.solve(root, np.linalg.solve(root, found.context_cov).T)
    np.testing.assert_allclose(np.linalg.eigvalsh(white)[0], 1 / 30, rtol=1e-6)
    assert "held at its floor" in found.design.notes[0]


GOOD = Sensor(np.random.default_rng(5)).read(np.ones((6, 2, D)) * np.arange(6)[:, None, None])
BAD: dict[str, tuple[npt.ArrayLike, npt.ArrayLike | None, str]] = {
    "once": (
        GOOD[:, :1],
        None,
        "replicates: every context is read once; allowed: for 3 dimensions, at least 3",
    ),
    "lost": (np.where([[True], [False]], GOOD, np.nan), None, "replicates: every context is read once"),
    "seldom": (
        GOOD[:, 0],
        [0, 1, 1, 2, 3, 4],
        "replicates: 1 readings beyond the first of their context, 5 con",
    ),
    "few": (
        GOOD.reshape(-1, D),
        [0] * 6 + [1] * 6,
        "replicates: 10 readings beyond the first .* 2 contexts;",
    ),
    "flat": (GOOD[:, 0], None, r"noisy: has shape \(6, 3\); allowed: readings \(n, r, d\)"),
    "length": (
        GOOD[:, 0],
        [1, 2],
        r"replicates: has shape \(2,\); allowed: a label for each of the 6 readings",
    ),
    "label": (GOOD[:, 0], [1, 2, 3, 1, 2, np.nan], "replicates: row 5 has nan; allowed: a label for each"),
    "copied": (
        np.repeat(GOOD[:, :1], 2, 1),
        None,
        "noisy: column 0 is the same in all readings of a context",
    ),
    "one context": (GOOD - GOOD.mean(1)[:, None], None, "noisy: column 0 is the same for all contexts"),
    "infinite": (np.where(GOOD[2, 1, 0] == GOOD, np.inf, GOOD), None, "noisy: row 2, column 0 is inf"),
    "text": ([[["a"]]], None, "noisy: is made of <U1, not of numbers"),
}


@each("case", BAD)
def test_studies_that_repeat_too_little_are_refused(case: str) -> None:
    readings, owners, why = BAD[case]
    with pytest.raises(InputError, match=f"^{why}"):
        calibrate_replicates(readings, owners)


def test_a_bias_that_is_none_is_refused() -> None:
    with pytest.raises(InputError, match=r"^bias: \[1, 2\] has shape \(2,\)"):
        calibrate_replicates(GOOD, bias=[1, 2])
    with pytest.raises(InputError, match=r"^bias_cov: -1 has the variance -1"):
        calibrate_replicates(GOOD, bias_cov=-1)
