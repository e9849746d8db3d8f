"""Doses as arms, what they pay, and the published algorithms by hand."""

import numpy as np
import pytest

from tests.paper.people import PLACE
from unfog.paper import warfarin, warfarin_study
from unfog.paper.warfarin_study import CLINICAL, PHARMACOGENETIC
from unfog.validation import InputError


def test_doses_and_rewards() -> None:
    stable = np.array([20.9, 21.0, 49.0, 49.1])
    assert warfarin.bucket(stable).tolist() == [0, 1, 1, 2]
    assert warfarin.rewards(stable)[[0, 2]].tolist() == [[0, -1, -1], [-1, 0, -1]]
    graded = warfarin.rewards(np.array([28.0]), "graded")
    np.testing.assert_allclose(graded, [[-np.log(2), -np.log(1.25), -np.log(2)]])
    wrong, severe = warfarin.mistakes(stable, np.array([2, 2, 1, 0]))
    assert (wrong.tolist(), severe.tolist()) == ([True, True, False, True], [True, False, False, True])
    with pytest.raises(InputError, match=r"^reward: 'sharp'; allowed: bucket, graded"):
        warfarin.rewards(stable, "sharp")


def test_the_algorithms_by_hand() -> None:
    """A man of 63, 175 cm and 80 kg, on amiodarone: the published sums, written out."""
    man = np.array([6, 175, 80, 1, 0, 0, 1, 1, 0, 1, 0], float)
    root = 5.6044 - 0.2614 * 6 + 0.0087 * 175 + 0.0128 * 80 - 0.8677 - 0.5211 - 0.5503
    np.testing.assert_allclose(warfarin_study.weekly_dose(PHARMACOGENETIC, man), root**2)
    root = 4.0376 - 0.2546 * 6 + 0.0118 * 175 + 0.0134 * 80 - 0.5695
    np.testing.assert_allclose(warfarin_study.weekly_dose(CLINICAL, man), root**2)
    unknown = man.copy()
    unknown[[PLACE[name] for name in ("asian", "black", "vkorc1", "cyp2c9_2", "cyp2c9_3")]] = np.nan
    root = 5.6044 - 0.2614 * 6 + 0.0087 * 175 + 0.0128 * 80 - 0.1032 - 0.4854 - 0.2188 - 0.5503
    np.testing.assert_allclose(warfarin_study.weekly_dose(PHARMACOGENETIC, unknown), root**2)


def test_expected_alleles_give_the_expected_root() -> None:
    base = np.array([5, 168, 70, 0, 1, 0, 0, 0, 0, 0, 1], float)

    def root(**alleles: float) -> float:
        context = base.copy()
        for name, number in alleles.items():
            context[PLACE[name]] = number
        return float(np.sqrt(warfarin_study.weekly_dose(PHARMACOGENETIC, context)))

    mixed = 0.3 * root(vkorc1=1) + 0.7 * root(vkorc1=2)
    assert abs(root(vkorc1=1.7) - mixed) < 1e-12
    corners = [[root(cyp2c9_2=two, cyp2c9_3=three) for three in (0, 1)] for two in (0, 1)]
    expected = np.array([0.6, 0.4]) @ np.array(corners) @ np.array([0.9, 0.1])
    assert abs(root(cyp2c9_2=0.4, cyp2c9_3=0.1) - expected) < 1e-12
    assert root(vkorc1=-0.2) == root(vkorc1=0)
