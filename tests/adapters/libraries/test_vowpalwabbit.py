"""What Vowpal Wabbit is told beside the context."""

import re
from typing import Any

import numpy as np
import pytest
from vowpalwabbit import Workspace

import unfog
from unfog.adapters import wrap
from unfog.adapters.sklearn import Denoiser


def wrapped() -> Any:
    told = Denoiser(0.5, None, [1.0, -1.0], [2.0, 1.0]).fit([[1.0, 0.0], [0.0, 3.0]])
    return wrap(Workspace("--cb_explore_adf -q ca --quiet"), told, actions=["heat", 7])


def test_numbers_in_a_row_are_a_context_too() -> None:
    bandit, again = wrapped(), wrapped()
    assert bandit.predict([2.0, np.nan]) == again.predict({0: 2.0, 1: None}) == [0.5, 0.5]
    bandit.learn([2.0, np.nan], 7, -1.0, 0.5)
    again.learn({0: 2.0}, "7", -1.0, 0.5)
    found = bandit.predict([3.0, 0.0])
    assert found == again.predict({1: 0.0, 0: 3.0}) == pytest.approx([0.025, 0.975])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (([2.0, 1.0], "cool", 1.0, 0.5), "action: 'cool'; allowed: heat, 7"),
        (([2.0, 1.0], "heat", np.nan, 0.5), "cost: nan has a value that is not finite"),
        (([2.0, 1.0], "heat", 1.0, 0.0), "probability: 0.0; allowed: a positive number"),
        (([2.0, 1.0], "heat", 1.0, 1.5), "probability: 1.5; allowed: a probability above 0"),
        (("|c 0:2", "heat", 1.0, 0.5), "context: '|c 0:2'; allowed: numbers by name"),
        (({"a:b": 2.0, "c": 1.0}, "heat", 1.0, 0.5), "context: 'a:b'; allowed: names without blanks"),
    ],
)
def test_what_is_learnt_from_is_checked(arguments: tuple[Any, ...], said: str) -> None:
    with pytest.raises(unfog.InputError, match="^" + re.escape(said)):
        wrapped().learn(*arguments)
