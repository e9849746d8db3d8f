"""Maxima and limits against closed forms and grids."""

import numpy as np
import pytest

from tests.problems import spd
from unfog.maths.arrays import Array
from unfog.maths.optimize import Box, Search, about, climb, limits

WIDE = Box(np.full(3, -50.0), np.full(3, 50.0))
FREE = np.ones((1, 3), bool)


def bent(points: Array) -> Array:
    """Neither quadratic nor concave everywhere; its maximum, 0, is in (1, -1, 0.5)."""
    x, y, z = (points - np.array([1.0, -1.0, 0.5])).T
    return -np.expm1(x) + x - 3 * np.log1p((y + x / 2) ** 2) - np.cosh(z - 0.3 * y) + 1


def test_derivatives_of_a_quadratic(rng: np.random.Generator) -> None:
    bend, slope, at = spd(rng, 3), rng.standard_normal(3), rng.standard_normal((4, 3))
    found = about(lambda x: x @ slope - np.einsum("bi,ij,bj->b", x, bend, x) / 2, at, FREE)
    np.testing.assert_allclose(found.slope, slope - at @ bend, atol=1e-9)
    np.testing.assert_allclose(found.bend, np.tile(-bend, (4, 1, 1)), atol=1e-8)


def test_every_start_leads_to_the_top(rng: np.random.Generator) -> None:
    starts = np.array([1.0, -1.0, 0.5]) + rng.normal(0, 1.5, (8, 3))
    peak = climb(bent, starts, np.tile(FREE, (8, 1)), WIDE)
    np.testing.assert_allclose(peak.value, 0.0, atol=1e-4)
    np.testing.assert_allclose(peak.at, np.tile([1.0, -1.0, 0.5], (8, 1)), atol=0.02)


def test_what_is_not_free_stays_and_the_box_holds() -> None:
    box = Box(np.array([-50.0, -50.0, 0.9]), WIDE.high)
    peak = climb(
        lambda x: bent(np.where(np.isinf(x), 1.0, x)),
        np.array([[-np.inf, 3.0, 2.0]]),
        FREE & [False, True, True],
        box,
    )
    assert peak.at[0, 0] == -np.inf
    assert peak.at[0, 2] == 0.9
    assert -1.0 < peak.at[0, 1] < 0.4


@pytest.mark.parametrize("drop", [0.3, 2.0])
def test_limits_are_where_the_profile_is(drop: float) -> None:
    which, side = np.repeat(np.arange(3), 2), np.tile([-1.0, 1.0], 3)
    top = np.array([1.0, -1.0, 0.5])
    ends = limits(bent, np.tile(top, (6, 1)), Search(which, side, np.tile(FREE, (6, 1))), WIDE, -drop)
    for end, number, one in zip(ends, which, side, strict=True):
        assert np.sign(end - top[number]) == one
        start = np.where(np.arange(3) == number, end, top)[None]
        profile = climb(bent, start, FREE & (np.arange(3) != number), WIDE).value
        assert profile == pytest.approx(-drop, abs=2e-3)


def test_where_nothing_holds_back_the_limit_is_the_edge() -> None:
    def flat(points: Array) -> Array:
        return -np.exp(points[:, 0]) - points[:, 1] ** 2 - points[:, 2] ** 2

    search = Search(np.array([0, 0]), np.array([-1.0, 1.0]), np.tile(FREE, (2, 1)))
    box = Box(np.full(3, -20.0), np.full(3, 20.0))
    ends = limits(flat, np.array([[-3.0, 0, 0], [-3.0, 0, 0]]), search, box, -1.0)
    assert ends[0] == -20.0
    assert ends[1] == pytest.approx(0.0, abs=1e-3)
