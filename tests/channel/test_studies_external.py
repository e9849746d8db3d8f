"""A noise from elsewhere: what own readings leave for contexts, with the errors of both."""

from typing import Any

import numpy as np
import pytest

from tests.channel.studies import BIAS, CONTEXT, NOISE, D, Sensor
from tests.each import each
from tests.problems import spd
from unfog.channel.studies import calibrate_external
from unfog.validation import InputError

SENSOR = Sensor(np.random.default_rng(4))
NOISY = SENSOR.read(SENSOR.contexts(200))


def test_what_is_left_of_the_spread_is_context(rng: np.random.Generator) -> None:
    unsure = spd(rng, D, 0.01, 0.1)
    holes = np.vstack([NOISY, [[np.nan, 0.0, 0.0]]])
    found = calibrate_external(holes, NOISE, noise_df=30, bias=BIAS, bias_cov=unsure)
    np.testing.assert_allclose(found.context_cov, np.cov(NOISY.T) - NOISE, rtol=1e-10)
    np.testing.assert_allclose(found.context_mean, NOISY.mean(0) - BIAS, rtol=1e-12)
    np.testing.assert_array_equal(found.bias_cov, (unsure + unsure.T) / 2)
    np.testing.assert_allclose(found.errors.bias, np.sqrt(np.diag(unsure)))
    expected = np.var(NOISY, axis=0, ddof=1) / 200 + np.diag(unsure)
    np.testing.assert_allclose(found.errors.context_mean**2, expected, rtol=1e-12)
    assert found.design.used == "200 readings"
    assert found.design.notes == ()


def test_degrees_of_freedom_are_standard_errors(rng: np.random.Generator) -> None:
    free = 40
    found = calibrate_external(NOISY, NOISE, noise_df=free, bias_cov=0.1)
    errors = rng.standard_normal((4000, free + 1, D)) @ np.linalg.cholesky(NOISE).T
    away = errors - errors.mean(1)[:, None]
    spread = (away.mT @ away / free).std(0)
    np.testing.assert_allclose(found.errors.noise_cov, spread, rtol=0.06)  # 5 errors of a spread of 4000
    exact = calibrate_external(NOISY, NOISE, noise_error=0, bias_cov=0.1)
    added = found.errors.context_cov**2 - exact.errors.context_cov**2
    np.testing.assert_allclose(added, found.errors.noise_cov**2, rtol=1e-9)
    assert (exact.errors.noise_cov == 0).all()
    # Errors of the variances, as these degrees of freedom make them, say the same of every entry.
    given = np.sqrt(np.diag(found.errors.noise_cov) ** 2)
    for error in (given, found.errors.noise_cov):
        same = calibrate_external(NOISY, NOISE, noise_error=error, bias_cov=0.1)
        np.testing.assert_allclose(same.errors.noise_cov, found.errors.noise_cov, rtol=1e-12)


def test_contexts_that_do_not_show_stay_positive() -> None:
    noisy = Sensor(np.random.default_rng(9)).read(np.zeros((50, D)))
    found = calibrate_external(noisy, NOISE, noise_df=20, bias_cov=1.0)
    root = np.linalg.cholesky(NOISE)
    white = np.linalg.solve(root, np.linalg.solve(root, found.context_cov).T)
    assert np.linalg.eigvalsh(white)[0] > 0.9 / 50
    assert "held at its floor" in found.design.notes[0]


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no error": (
        {"bias_cov": 1.0},
        "noise_error: neither it nor noise_df is given; allowed: one of the two: ",
    ),
    "both": (
        {"noise_df": 3, "noise_error": 1.0, "bias_cov": 1.0},
        "noise_error: it and noise_df are both given",
    ),
    "no bias": (
        {"noise_df": 30},
        "bias_cov: None; allowed: with a noise from elsewhere, noise_cov with noise_df",
    ),
    "nothing": ({"noise_cov": None}, "noise_cov: None; allowed: noise_cov with noise_df"),
    "df": ({"noise_df": 0, "bias_cov": 1.0}, "noise_df: 0; allowed: a positive number"),
    "negative": (
        {"noise_error": -1.0, "bias_cov": 1.0},
        "noise_error: -1.0; allowed: standard errors, none neg",
    ),
    "shape": (
        {"noise_error": [1.0, 1.0], "bias_cov": 1.0},
        r"noise_error: \[1.0, 1.0\]; allowed: .* or 3 x 3",
    ),
    "singular": ({"noise_cov": [1, 1, 0], "noise_df": 9}, "noise_cov: .* has the variance 0"),
    "units": (
        {"noise_cov": 1000 * CONTEXT, "noise_df": 30, "bias_cov": 1.0},
        "noise_cov: the variance of coordinate . is larger than that of the readings themselves",
    ),
    "few": ({"noisy": NOISY[:3], "noise_df": 9}, "noisy: 3 readings are complete; allowed: at least 4"),
    "constant": ({"noisy": NOISY * [1, 0, 1], "noise_df": 9}, "noisy: column 1 is constant"),
}


@each("case", BAD)
def test_what_must_be_told_is_asked_for(case: str) -> None:
    given, why = BAD[case]
    with pytest.raises(InputError, match=f"^{why}"):
        calibrate_external(**{"noisy": NOISY, "noise_cov": NOISE, **given})
