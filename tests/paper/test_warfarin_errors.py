"""Errors that are made are as large as stated."""

import numpy as np
import pytest

from tests.each import each
from tests.paper.people import PLACE, made
from unfog.paper.warfarin import Errors
from unfog.validation import InputError


def test_errors_are_as_stated() -> None:
    people, n = made(40_000, gaps=0.1), 40_000
    seen = Errors(reported=2.0, miscalled=0.1, lost=0.3).noisy(people.contexts, np.random.default_rng(1))
    off = seen - people.contexts
    for name, mean, spread in (("height", 2.0, 6.0), ("weight", -2.0, 8.0)):
        error = off[:, PLACE[name]][~np.isnan(off[:, PLACE[name]])]
        assert abs(error.mean() - mean) < 5 * spread / np.sqrt(len(error))  # 5 standard errors here and below
        assert abs(error.std() - spread) < 5 * spread / np.sqrt(2 * len(error))
        assert abs(np.isnan(seen[:, PLACE[name]]).mean() - 0.37) < 5 * np.sqrt(0.37 * 0.63 / n)
    calls = off[:, PLACE["vkorc1"]][~np.isnan(off[:, PLACE["vkorc1"]])]
    assert {*np.unique(calls)} == {-1.0, 0.0, 1.0}
    assert abs((calls != 0).mean() - 0.1) < 5 * np.sqrt(0.09 / len(calls))
    alleles = seen[:, PLACE["vkorc1"]]
    assert [float(np.nanmin(alleles)), float(np.nanmax(alleles))] == [0, 2]
    untouched = [PLACE[name] for name in ("age", "male", "asian", "black", "amiodarone", "inducer")]
    np.testing.assert_array_equal(seen[:, untouched], people.contexts[:, untouched])


def test_a_lost_test_takes_both_its_numbers_and_none_is_the_record() -> None:
    people = made(500)
    seen = Errors(lost=0.5).noisy(people.contexts, np.random.default_rng(2))
    gone = np.isnan(seen)
    np.testing.assert_array_equal(gone[:, PLACE["cyp2c9_2"]], gone[:, PLACE["cyp2c9_3"]])
    assert (gone[:, PLACE["height"]] != gone[:, PLACE["weight"]]).any()
    np.testing.assert_array_equal(Errors().noisy(people.contexts, np.random.default_rng(2)), people.contexts)


@each("name, value", [("reported", -1.0), ("miscalled", 0.6), ("lost", 1.0)])
def test_bad_errors_are_refused(name: str, value: float) -> None:
    with pytest.raises(InputError, match=f"^{name}: "):
        Errors(**{name: value})
