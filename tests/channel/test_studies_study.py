"""Which study it is follows from what is given; what belongs to another is refused, with what is needed."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.channel.studies import NOISE, Sensor
from tests.each import each
from unfog.channel.studies import Asked, study
from unfog.validation import InputError

SENSOR = Sensor(np.random.default_rng(4))
TRUE = SENSOR.contexts(40)
NOISY, TWICE = SENSOR.read(TRUE), SENSOR.read(np.repeat(TRUE[:, None], 2, axis=1))
TOLD = {"noise_cov": NOISE, "noise_df": 30, "bias_cov": 0.1}
GOOD: dict[str, list[tuple[Any, Any, dict[str, Any]]]] = {
    "pairs": [(NOISY, TRUE, {}), (NOISY, TRUE, {"groups": np.arange(40) // 10})],
    "replicates": [
        (TWICE, None, {}),
        (TWICE.tolist(), None, {"bias": 1.0}),
        (TWICE.reshape(80, 3), None, {"replicates": np.arange(80) // 2}),
    ],
    "subset": [(NOISY, TRUE, {})],
    "external": [(NOISY, None, TOLD)],
}


@each("design", GOOD)
def test_the_design_follows_from_what_is_given(design: str) -> None:
    for noisy, true, given in GOOD[design]:
        found = study(noisy, true, design, Asked(**given))
        assert found.design.name == design
        if design != "subset":  # a truth that is missing for some may be meant either way
            same = study(noisy, true, None, Asked(**given))
            np.testing.assert_array_equal(same.noise_cov, found.noise_cov)
            assert same.design == found.design


BAD: dict[str, tuple[Any, Any, str | None, dict[str, Any], str]] = {
    "nothing known": (
        NOISY,
        None,
        None,
        {},
        "true: readings alone do not show their noise; allowed: pairs: ",
    ),
    "ragged": ([[[1.0]], [[1.0], [2.0]]], None, None, {}, "true: readings alone do not show their noise"),
    "no such": (
        NOISY,
        TRUE,
        "triples",
        {},
        "design: 'triples'; allowed: pairs, replicates, subset, external",
    ),
    "no truth": (
        NOISY,
        None,
        "pairs",
        {},
        "true: None; allowed: true contexts: design pairs is noisy and true",
    ),
    "no subset": (
        NOISY,
        None,
        "subset",
        {},
        "true: None; allowed: true contexts: design subset is readings for",
    ),
    "truth for replicates": (
        TWICE,
        TRUE,
        "replicates",
        {},
        "true: is given; allowed: nothing: design replicates",
    ),
    "truth for external": (
        NOISY,
        TRUE,
        "external",
        TOLD,
        "true: is given; allowed: nothing: design external",
    ),
    "pairs with noise": (
        NOISY,
        TRUE,
        None,
        {"noise_cov": 1},
        "noise_cov: is given; allowed: nothing .* pairs",
    ),
    "groups": (
        TWICE,
        None,
        None,
        {"groups": [1] * 40},
        "groups: is given; .* it takes replicates, bias, bias_cov",
    ),
    "times": (NOISY, TRUE, "subset", {"times": np.arange(40)}, "times: is given; allowed: nothing .* subset"),
    "cycles": (NOISY, TRUE, None, {"cycles": (24,)}, r"cycles: \(24,\); allowed: none without times"),
    "no uncertainty": (
        NOISY,
        None,
        None,
        {"noise_cov": 1.0},
        "noise_error: neither it nor noise_df is given",
    ),
}


@each("case", BAD)
def test_a_study_that_is_not_one_is_refused_with_what_it_needs(case: str) -> None:
    noisy, true, design, given, why = BAD[case]
    with pytest.raises(InputError, match=f"^{why}"):
        study(noisy, true, design, Asked(**given))


def test_columns_that_may_be_missing_are_numbers() -> None:
    holes = np.where(np.arange(40)[:, None] % 7 == 0, np.nan, NOISY)
    boxed = pd.DataFrame(holes).convert_dtypes()
    assert str(boxed.dtypes[0]) == "Float64"
    right, found = (study(given, TRUE, None, Asked()) for given in (holes, boxed))
    np.testing.assert_array_equal(found.noise_cov, right.noise_cov)
    for wrong in (["1.5"] * 40, [True, None] * 20):
        with pytest.raises(InputError, match=r"^noisy: is made of object, not of numbers"):
            study(pd.DataFrame({0: wrong, 1: TRUE[:, 1], 2: TRUE[:, 2]}), TRUE, None, Asked())
