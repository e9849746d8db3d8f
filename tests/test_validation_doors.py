"""The doors: what may come in, and which value is to blame where it may not."""

import numpy as np
import pytest

from tests.each import each
from unfog import validation
from unfog.validation import InputError

BAD = float("nan"), float("inf"), -float("inf"), 1e60


@each("value", BAD)
def test_numbers_are_finite_and_the_first_bad_one_is_named(value: float) -> None:
    values = np.zeros((2, 3))
    validation.check_finite("context", values)
    values[1, 2] = value
    with pytest.raises(InputError, match=r"^context\[1\]\[2\]: .*; allowed: finite numbers"):
        validation.check_finite("context", values)
    if np.isnan(value):
        validation.check_finite("context", values, gaps="it was lost")
    else:
        with pytest.raises(InputError, match=r"nan where it was lost$"):
            validation.check_finite("context", values, gaps="it was lost")


@each("value", BAD)
def test_rewards_are_finite(value: float) -> None:
    validation.check_reward("reward", np.asarray([1e6, -3.0]), "gaussian")
    with pytest.raises(InputError, match=r"^reward\[1\]: .*; allowed: finite numbers$"):
        validation.check_reward("reward", np.asarray([0.0, value]), "gaussian")
    with pytest.raises(InputError, match=r"^reward: .*; allowed: 0 or 1$"):
        validation.check_reward("reward", np.asarray(value), "bernoulli")


def test_rewards_have_a_range_where_one_is_told() -> None:
    validation.check_reward("reward", np.asarray([0.0, 5.0]), "gaussian", 0.0, 5.0)
    for wrong in (-0.1, 5.1, float("nan")):
        with pytest.raises(InputError, match=r"^reward: .*; allowed: finite numbers from 0 to 5$"):
            validation.check_reward("reward", np.asarray(wrong), "gaussian", 0.0, 5.0)
    with pytest.raises(InputError, match=r"^reward: 0\.5; allowed: 0 or 1$"):
        validation.check_reward("reward", np.asarray(0.5), "bernoulli")
