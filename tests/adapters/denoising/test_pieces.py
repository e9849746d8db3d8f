"""Rows in pieces come to what all rows at once come to, whatever is told or the first piece lacks."""

from typing import Any

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
from unfog.validation import InputError

ROWS = 120
SIZES = np.random.default_rng(41).gamma(2.0, 0.5, size=(ROWS, DIM)) * [0.5, 1.0, 20.0]
DRAWN = readings(ROWS, seed=42, devices=4)
OF = np.sort(np.arange(ROWS) % 4)  # the first piece has one device alone
TRUE = np.where(np.arange(ROWS)[:, None] % 3 == 0, DRAWN.true, np.nan)

CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "told nothing": ({}, {}),
    "noise told": ({"noise_cov": NOISE_COV}, {}),
    "noise by row": ({}, {"noise_cov": SIZES}),
    "mean and spread of biases told": (
        {"noise_cov": NOISE_COV, "bias_cov": BIAS_COV, "context_mean": MEAN},
        {},
    ),
    "devices": ({"noise_cov": NOISE_COV}, {"groups": OF}),
    "devices, spread told": ({"noise_cov": NOISE_COV, "bias_cov": BIAS_COV}, {"groups": OF}),
    "devices, noise by row": ({}, {"groups": OF, "noise_cov": SIZES}),
    "truths": ({}, {"true": TRUE}),
    "truths, noise told": ({"noise_cov": NOISE_COV}, {"true": TRUE}),
    "truths and devices": ({"bias": [0.5, 1.0, -3.0]}, {"true": TRUE, "groups": OF}),
    "law told, noise by row": (
        {"bias_cov": BIAS_COV, "context_mean": MEAN, "context_cov": CONTEXT_COV},
        {"noise_cov": SIZES, "groups": OF},
    ),
}


def assert_same(found: Denoiser, expected: Denoiser, groups: Ints | None, noisy: Array) -> None:
    for name in ("context_mean_", "context_cov_", "noise_cov_", "bias_", "bias_cov_"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-7, atol=1e-9)
    for device in [None, "new"] if groups is None else [*range(4), "new"]:
        for one, other in zip(found.bias_of(device), expected.bias_of(device), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-9)
    ours, theirs = (each.transform(noisy, groups=groups) for each in (found, expected))
    np.testing.assert_allclose(ours, theirs, rtol=1e-7)


@pytest.mark.parametrize("gaps", [0.0, 0.25])
@pytest.mark.parametrize("case", CASES)
def test_pieces_are_the_whole(case: str, gaps: float) -> None:
    """A first piece of one device and of few rows, one row alone, then the rest."""
    settings, said = CASES[case]
    first = 30 if "true" in said else 3
    noisy = with_gaps(DRAWN.noisy, gaps, 43)
    noisy[:first] = DRAWN.noisy[:first]
    pieces = Denoiser(**settings)
    for part in (slice(first), slice(first, first + 1), slice(first + 1, 70), slice(70, None)):
        # Three rows of three columns: only a covariance for each says without doubt what is meant.
        told = {name: value[part] for name, value in said.items()}
        if "noise_cov" in told:
            told["noise_cov"] = told["noise_cov"][:, :, None] * np.eye(DIM)
        pieces.partial_fit(noisy[part], **told)
    assert_same(pieces, Denoiser(**settings).fit(noisy, **said), said.get("groups"), noisy)


def test_single_rows_come_to_the_whole() -> None:
    """The first row shows no spread of contexts; what follows does."""
    settings: dict[str, Any] = {"noise_cov": NOISE_COV, "bias_cov": BIAS_COV, "context_mean": MEAN}
    one_by_one = Denoiser(**settings)
    for row in DRAWN.noisy:
        one_by_one.partial_fit(row[None])
    assert_same(one_by_one, Denoiser(**settings).fit(DRAWN.noisy), None, DRAWN.noisy)
    assert np.diag(one_by_one.context_cov_).min() > 0.1


def test_what_is_not_told_at_first_may_be_told_later() -> None:
    """One device, then two more, then truths: as if all had been there at once."""
    labels = np.array(["none"] * 40 + ["a", "b"] * 40)
    true = np.where(np.arange(ROWS)[:, None] < 80, np.nan, DRAWN.true)
    pieces = Denoiser(NOISE_COV).fit(DRAWN.noisy[:40], groups=labels[:40])
    pieces.partial_fit(DRAWN.noisy[40:80], groups=labels[40:80])
    pieces.partial_fit(DRAWN.noisy[80:], groups=labels[80:], true=true[80:])
    whole = Denoiser(NOISE_COV).fit(DRAWN.noisy, groups=labels, true=true)
    for device in ("none", "a", "b", "new"):
        for one, other in zip(pieces.bias_of(device), whole.bias_of(device), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-9)


def test_a_refused_piece_changes_nothing() -> None:
    found = Denoiser().fit(DRAWN.noisy)
    before = found.transform(DRAWN.noisy)
    few = np.where(np.arange(ROWS)[:, None] < 3, DRAWN.true, np.nan)
    with pytest.raises(InputError, match=r"^true: 3 whole pairs; allowed: at least 4 whole rows"):
        found.partial_fit(DRAWN.noisy, true=few)
    np.testing.assert_array_equal(found.transform(DRAWN.noisy), before)


def test_few_truths_do_where_the_noise_is_told() -> None:
    """Two truths, each without a coordinate; a column without any is refused by name."""
    true = np.full((ROWS, DIM), np.nan)
    true[0, :2], true[1, 1:] = DRAWN.true[0, :2], DRAWN.true[1, 1:]
    found = Denoiser(NOISE_COV).fit(DRAWN.noisy, true=true)
    assert (np.abs(found.bias_ - DRAWN.bias[:4].mean(0)) < 4.5 * np.sqrt(np.diag(found.bias_cov_)) + 4).all()
    true[1, 2] = np.nan
    with pytest.raises(
        InputError, match=r"^true: column 2 has no true context; allowed: some in each column"
    ):
        Denoiser(NOISE_COV).fit(DRAWN.noisy, true=true)


@pytest.mark.parametrize("told", [[[1.0, 0.5, 0.0]] * 3, NOISE_COV])
def test_a_square_noise_for_as_many_rows_as_columns_is_refused(told: Any) -> None:
    """It may be one covariance or variances by row; what is meant can be said in other shapes."""
    found = Denoiser(NOISE_COV).fit(DRAWN.noisy)
    three = DRAWN.noisy[:DIM]
    for call in (found.transform, found.partial_fit, found.fit):
        with pytest.raises(InputError, match=r"^noise_cov: of shape \(3, 3\) is one covariance, or"):
            call(three, noise_cov=told)
    stack = np.broadcast_to(NOISE_COV, (DIM, DIM, DIM))
    np.testing.assert_allclose(found.transform(three, noise_cov=stack), found.transform(three), rtol=1e-12)
    variances = np.array([[1.0, 0.5, 2.0], [0.5, 3.0, 1.0], [2.0, 1.0, 4.0]])
    by_row = found.transform(three, noise_cov=variances[:, :, None] * np.eye(DIM))
    each = [found.transform_one(x, noise_cov=v) for x, v in zip(three, variances, strict=True)]
    np.testing.assert_allclose(by_row[0], each[0], rtol=1e-12)
