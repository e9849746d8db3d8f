"""Calibration against channels that are known, and pairs that cannot be used refused by name."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import unfog
from tests.each import each
from tests.problems import covariance_error, spd, within
from unfog.channel.calibration import Calibration, affine, calibrate
from unfog.maths.arrays import Array, Ints
from unfog.validation import InputError, covariance

D = 3
LAWS = np.random.default_rng(8)
MEAN, BIAS = np.array([2.0, -1.0, 0.5]), np.array([0.7, -0.4, 1.5])
CONTEXT, NOISE, SPREAD = spd(LAWS, D), spd(LAWS, D, 0.2, 2.0), spd(LAWS, D, 0.5, 4.0)


def drawn(rng: np.random.Generator, cov: Array, *shape: int) -> Array:
    return rng.standard_normal((*shape, D)) @ np.linalg.cholesky(cov).T


def pairs(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Pairs of one bias, noisy ones first."""
    true = MEAN + drawn(rng, CONTEXT, n)
    return true + BIAS + drawn(rng, NOISE, n), true


def grouped(rng: np.random.Generator, sizes: Ints, spread: Array = SPREAD) -> tuple[Array, Array, Ints]:
    """Pairs whose groups each draw a bias around BIAS."""
    labels = np.repeat(np.arange(len(sizes)), sizes)
    noisy, true = pairs(rng, len(labels))
    return noisy + drawn(rng, spread, len(sizes))[labels], true, labels


def test_errors_shrink_with_the_root_of_the_pairs(rng: np.random.Generator) -> None:
    def errors(n: int, repeats: int = 60) -> list[float]:
        found = [calibrate(*pairs(rng, n)) for _ in range(repeats)]
        right = {"context_mean": MEAN, "context_cov": CONTEXT, "bias": BIAS, "noise_cov": NOISE}
        return [
            float(np.sqrt(np.mean([(getattr(one, part) - value) ** 2 for one in found])))
            for part, value in right.items()
        ]

    # Each of 8 errors is good to 1 in 13 (60 repeats of three or more numbers): a ratio of 4 lies outside
    # 2.7 to 5.9, 3.6 standard errors, in less than 0.2 % of the seeds.
    for few, many in zip(errors(100), errors(1600), strict=True):
        assert 2.7 < few / many < 5.9


def test_the_channel_is_recovered(rng: np.random.Generator) -> None:
    n = 40_000
    found = calibrate(*pairs(rng, n))
    assert found.pairs == n
    # 24 tests at 5 standard errors: 1e-5.
    assert within(found.context_mean, MEAN, np.sqrt(np.diag(CONTEXT) / n))
    assert within(found.context_cov, CONTEXT, covariance_error(CONTEXT, n))
    assert within(found.bias, BIAS, np.sqrt(np.diag(NOISE) / n))
    assert within(found.noise_cov, NOISE, covariance_error(NOISE, n))
    np.testing.assert_allclose(found.bias_cov, np.diag(found.bias**2) + found.noise_cov / n, rtol=1e-12)


@pytest.mark.slow
def test_groups_show_the_spread_of_biases_without_bias(rng: np.random.Generator) -> None:
    sizes, repeats = np.array([2, 3, 40, 5, 9, 2, 3, 70, 4, 6] * 3), 500
    found = [
        calibrate(noisy, true, groups=labels)
        for noisy, true, labels in map(_draw(rng, sizes), range(repeats))
    ]
    for part, right in (("bias", BIAS), ("noise_cov", NOISE), ("bias_cov", SPREAD)):
        values = np.array([getattr(one, part) for one in found])
        # 21 tests in all at 5 standard errors: 1e-5. The floor is never reached with biases this large.
        assert within(values.mean(0), right, values.std(0) / np.sqrt(repeats)), part


def _draw(rng: np.random.Generator, sizes: Ints) -> Any:
    return lambda _: grouped(rng, sizes)


def test_groups_are_what_the_formula_says(rng: np.random.Generator) -> None:
    noisy, true, labels = grouped(rng, np.array([7, 20, 12, 31, 9]))
    errors = [(noisy - true)[labels == label] for label in range(5)]
    noise = sum((len(e) - 1) * np.cov(e.T) for e in errors) / (len(noisy) - 5)
    means = np.array([e.mean(0) for e in errors])
    spread = np.cov(means.T) - noise * np.mean([1 / len(e) for e in errors])
    names = np.array(["a", "b", "x", "y", "z"])[[3, 0, 2, 1, 4]]
    for given in (labels, names[labels], names[labels].astype(object), labels * 0.5):
        found = calibrate(noisy, true, groups=given)
        np.testing.assert_allclose(found.noise_cov, noise, rtol=1e-12)
        np.testing.assert_allclose(found.bias, means.mean(0), rtol=1e-12)
        np.testing.assert_allclose(found.bias_cov, spread, rtol=1e-9)


def test_a_spread_that_cannot_be_seen_stays_positive(rng: np.random.Generator) -> None:
    for sizes in (np.full(8, 20), np.full(2, 100)):
        noisy, true, labels = grouped(rng, sizes, 1e-9 * np.eye(D))
        found = calibrate(noisy, true, groups=labels)
        least = np.linalg.eigvalsh(found.bias_cov - found.noise_cov / found.pairs)[0]
        assert least > -1e-12
        for part in ("context_cov", "noise_cov", "bias_cov"):
            covariance(part, getattr(found, part), D)


def test_units_may_be_changed(rng: np.random.Generator) -> None:
    noisy, true, labels = grouped(rng, np.full(6, 15), 1e-3 * np.eye(D))
    units, origin = np.array([1e-3, 1.0, 1e4]), np.array([5.0, 0.0, -70.0])
    one = calibrate(noisy, true, groups=labels)
    other = calibrate(noisy * units + origin, true * units + origin, groups=labels)
    np.testing.assert_allclose(other.context_mean, one.context_mean * units + origin, rtol=1e-9)
    for part in ("context_cov", "noise_cov", "bias_cov"):
        np.testing.assert_allclose(
            getattr(other, part), getattr(one, part) * units * units[:, None], rtol=1e-8
        )


def same(one: Calibration, other: Calibration) -> bool:
    numbers = [(*found[:7], *found.errors) for found in (one, other)]
    same_words = one.design[:2] == other.design[:2] and one.timing is other.timing is None
    return same_words and all(map(np.array_equal, *numbers))


def test_a_pair_with_a_missing_value_is_left_out(rng: np.random.Generator) -> None:
    noisy, true, labels = grouped(rng, np.full(5, 30))
    lost = rng.random(150) < 0.3
    holes, gaps = noisy.copy(), true.copy()
    holes[np.flatnonzero(lost)[::2], 1] = np.nan
    gaps[np.flatnonzero(lost)[1::2], 2] = np.nan
    right = calibrate(noisy[~lost], true[~lost], groups=labels[~lost])
    assert same(calibrate(holes, gaps, groups=labels), right)
    masked = np.ma.masked_where(np.isnan(holes), noisy)
    assert same(calibrate(masked, gaps, groups=labels), right)
    assert right.pairs == 150 - lost.sum()
    assert right.design.notes == ()
    unused = calibrate(holes, gaps, groups=labels).design.notes
    assert unused == (f"{lost.sum() // 2} whole readings have no whole truth beside them, and are not used.",)
    np.testing.assert_array_equal(right.contexts, true[~lost])  # the sample that is handed on


def test_values_missing_at_random_bias_nothing(rng: np.random.Generator) -> None:
    n = 60_000
    noisy, true = (np.where(rng.random((n, D)) < 0.1, np.nan, x) for x in pairs(rng, n))
    found = calibrate(noisy, true)
    assert found.pairs == np.isfinite(noisy + true).all(1).sum()
    # 24 tests at 5 standard errors: 1e-5.
    assert within(found.context_mean, MEAN, np.sqrt(np.diag(CONTEXT) / found.pairs))
    assert within(found.context_cov, CONTEXT, covariance_error(CONTEXT, found.pairs))
    assert within(found.bias, BIAS, np.sqrt(np.diag(NOISE) / found.pairs))
    assert within(found.noise_cov, NOISE, covariance_error(NOISE, found.pairs))


def test_one_dimension(rng: np.random.Generator) -> None:
    true = rng.standard_normal((50, 1))
    found = calibrate(true + 1 + rng.standard_normal((50, 1)), true, groups=np.arange(50) // 10)
    assert [np.shape(part) for part in found[:5]] == [(1,), (1, 1), (1,), (1, 1), (1, 1)]


def test_sensors_are_regressed_on_contexts(rng: np.random.Generator) -> None:
    n, gain, offset = 20_000, np.array([2.0, -0.5, 30.0]), np.array([3.0, 1.0, -100.0])
    true = MEAN + drawn(rng, CONTEXT, n)
    noise = drawn(rng, NOISE, n)
    raw = gain * (true + noise) + offset
    line = affine(np.where(rng.random((n, D)) < 0.05, np.nan, raw), true)
    kept = 0.95**3 * n
    # Six tests at 5 standard errors, 4e-6. The other regression would give gain (C + N) / C instead.
    error = np.abs(gain) * np.sqrt(np.diag(NOISE) / np.diag(CONTEXT) / kept)
    assert within(line.gain, gain, error)
    assert within(line.offset, offset, error * np.sqrt(np.diag(CONTEXT) + MEAN**2))
    np.testing.assert_allclose(line.contexts(line.gain * true + line.offset), true, atol=1e-12)


NOISY, TRUE = pairs(np.random.default_rng(3), 12)


def altered(matrix: Array, row: int, column: int, value: float) -> Array:
    changed = matrix.copy()
    changed[row, column] = value
    return changed


BAD: dict[str, tuple[npt.ArrayLike, npt.ArrayLike, str]] = {
    "too few": (NOISY[:3], TRUE[:3], "noisy: 3 pairs are complete; allowed: at least 4 pairs.* for 3 dim"),
    "too few left": (altered(NOISY[:4], 1, 1, np.nan), TRUE[:4], "noisy: 3 pairs are complete"),
    "none left": (np.full((5, 2), np.nan), np.zeros((5, 2)), "noisy: 0 pairs are complete"),
    "shapes": (NOISY, TRUE[:, :2], r"noisy: has shape \(12, 3\) and true \(12, 2\)"),
    "vector": (NOISY[:, 0], TRUE[:, 0], r"noisy: has shape \(12,\)"),
    "empty": (np.empty((0, 3)), np.empty((0, 3)), r"noisy: has shape \(0, 3\)"),
    "infinite": (NOISY, altered(TRUE, 4, 2, -np.inf), "true: row 4, column 2 is -inf"),
    "huge": (altered(NOISY, 0, 1, 1e60), TRUE, r"noisy: row 0, column 1 is 1e\+60"),
    "text": ([["1", "2"]] * 5, TRUE[:5, :2], "noisy: is made of <U1, not of numbers"),
    "ragged": ([[1, 2], [3]], TRUE[:2], "noisy: is ragged"),
    "constant": (NOISY, np.where(np.arange(D) == 1, 0.1, TRUE), "true: column 1 is constant"),
    "dead": (np.where(np.arange(D) == 1, 0.1, NOISY), TRUE, "noisy: column 1 is constant"),
    "no noise": (
        np.where(np.arange(D) == 2, TRUE + 0.3, NOISY),
        TRUE,
        "noisy: column 2 is apart from true by a",
    ),
    "dependent": (
        NOISY,
        TRUE @ np.diag([1, 1, 0]) + TRUE[:, :1] @ [[0, 0, 2]],
        "true: columns hang together",
    ),
}


@each("case", BAD)
def test_pairs_that_cannot_be_used_are_refused_by_name(case: str) -> None:
    noisy, true, why = BAD[case]
    with pytest.raises(InputError, match=f"^{why}"):
        calibrate(noisy, true)


BAD_GROUPS: dict[str, tuple[npt.ArrayLike, str]] = {
    "length": (np.arange(11), r"groups: has shape \(11,\); allowed: a label for each of the 12 pairs"),
    "one": (["a"] * 12, "groups: 1 group with complete pairs"),
    "missing": ([np.nan, 1.0] * 6, "groups: row 0 has nan; allowed: a label for each"),
    "objects": (np.array([None, "a"] * 6, object), "groups: row 0 has None"),
    "each its own": (np.arange(12), "noisy: 12 pairs are complete; allowed: at least 15 .*12 groups"),
}


@each("case", BAD_GROUPS)
def test_bad_groups_are_refused_by_name(case: str) -> None:
    groups, why = BAD_GROUPS[case]
    with pytest.raises(InputError, match=f"^{why}"):
        calibrate(NOISY, TRUE, groups=groups)


def test_a_sensor_that_is_dead_in_every_group_is_refused() -> None:
    """Each device stuck at a value of its own: between devices the column varies, within none."""
    groups = np.arange(12) // 4
    stuck = np.where(np.arange(D) == 2, groups[:, None] * 3.0, NOISY)
    with pytest.raises(InputError, match=r"^noisy: column 2 is constant"):
        calibrate(stuck, TRUE, groups=groups)


def test_readings_without_a_truth_are_not_left_out_in_silence(rng: np.random.Generator) -> None:
    noisy, true = pairs(rng, 300)
    true[30:, 2] = np.nan
    noisy[40:45, 0] = np.nan
    said = "265 whole readings have no whole truth beside them, and are "
    assert calibrate(noisy, true).design.notes == (f'{said}not used: design="subset" uses them.',)
    timed = calibrate(noisy, true, times=np.arange(300.0))
    assert timed.design.notes == (f"{said}used for the constants of time alone.",)


@each("field", ["raw", "true"])
def test_a_sensor_that_says_nothing_is_refused(field: str) -> None:
    flat = np.where(np.arange(D) == 1, 0.1, NOISY)
    with pytest.raises(InputError, match=f"^{field}: column 1 is constant"):
        affine(**{"raw": NOISY, "true": TRUE, field: flat})
    with pytest.raises(InputError, match=r"^raw: 3 pairs are complete"):
        affine(NOISY[:3], TRUE[:3])


def test_for_the_very_device_of_the_study_the_bias_is_known_to_its_error() -> None:
    rng = np.random.default_rng(4)
    true = rng.normal([40.0, 7.0], [10.0, 1.0], (200, 2))
    found = calibrate(true + np.array([6.0, -0.5]) + rng.normal(0, [5.0, 0.4], (200, 2)), true)
    same = found.same_device()
    # The mean of n errors has the variance Sigma_n / n.
    np.testing.assert_allclose(np.diagonal(same.bias_cov), np.diagonal(found.noise_cov) / 200, rtol=1e-6)
    assert (np.diagonal(same.bias_cov) < 0.05 * np.diagonal(found.bias_cov)).all()
    assert same.channel.bias is found.bias


def test_readings_alone_tell_no_bias_of_a_device() -> None:
    rng = np.random.default_rng(4)
    twice = rng.normal(40.0, 10.0, (50, 1, 1)) + rng.normal(0, 5.0, (50, 2, 1))
    with pytest.raises(InputError, match=r"^same_device: .* tell no bias; allowed: a study that has pairs"):
        unfog.calibrate(twice).same_device()


def test_frames_of_all_kinds_are_matched_by_name(rng: np.random.Generator) -> None:
    true = rng.normal([7000, 3], [2000, 1], (60, 2))
    noisy = true + rng.normal(0, [1200, 0.4], (60, 2))
    groups = [f"device {i % 3}" for i in range(60)]
    gaps: list[float | None] = noisy[:, 1].tolist()
    gaps[5] = None
    seen = {
        "steps": noisy[:, 0].tolist(),
        "mood": gaps,
    }
    known = {"mood": true[:, 1].tolist(), "steps": true[:, 0].tolist()}
    noisy[5, 1] = np.nan
    expected = unfog.calibrate(noisy, true, groups=groups)
    for frame, series in ((pd.DataFrame, pd.Series), (pl.DataFrame, pl.Series), (pa.table, pa.array)):
        found = unfog.calibrate(frame(seen), frame(known), groups=series(groups))
        for name in ("context_mean", "noise_cov", "bias", "bias_cov"):
            np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-9)
    nullable = pd.DataFrame(seen).convert_dtypes()
    np.testing.assert_array_equal(
        unfog.calibrate(nullable, pd.DataFrame(known), groups=groups).bias, expected.bias
    )
    with pytest.raises(InputError, match="noisy: is made of object"):
        unfog.calibrate(pl.DataFrame(seen | {"mood": ["a"] * 60}), true)
