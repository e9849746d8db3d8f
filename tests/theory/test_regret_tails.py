"""Quantiles and the share of trials that grow linearly, on curves made for it."""

import numpy as np
import pytest

from tests.each import each
from unfog.maths.arrays import Array
from unfog.simulation.plan import quarters
from unfog.theory import regret

T = 400


def share(*curves: Array) -> float:
    """Of curves over rounds 1 to T."""
    ends = np.asarray(quarters(T)) - 1
    return regret.linear_share(*np.stack(curves)[:, ends].T)


def test_lines_are_linear_and_what_flattens_is_not() -> None:
    t = np.arange(1.0, T + 1)
    assert share(0.3 * t) == 1
    assert share(0.3 * t + 17) == 1
    assert share(t**1.2) == 1
    assert share(t**0.5) == 0
    assert share(np.log(t)) == 0
    assert share(np.full(T, 5.0)) == 0  # nothing is lost any more: not linear, though 0 is 0.9 of 0
    assert share(np.where(t > 390, t - 390, 0.0)) == 1  # begins to lose in the end
    assert share(-t) == 0
    assert share(t, t**0.5, np.log(t), 2 * t) == 0.5


@each("last, right", [(9.0, 1), (8.99, 0), (10.0, 1), (1e9, 1)])
def test_the_bound_is_nine_tenths_of_the_quarter_before(last: float, right: int) -> None:
    half, before = np.array([3.0]), np.array([13.0])
    assert regret.linear_share(half, before, before + last) == right


def test_quantiles_are_those_between_trials() -> None:
    values = np.array([5.0, 1.0, 3.0, 2.0, 104.0])
    assert regret.quantiles(values) == pytest.approx({"q50": 3.0, "q99": 5 + 0.96 * 99})
    assert regret.quantiles(np.array([7.0])) == {"q50": 7.0, "q99": 7.0}
