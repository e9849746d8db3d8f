"""What Vowpal Wabbit is told beside the context."""

import copy
import re
from typing import Any

import numpy as np
import pytest
from vowpalwabbit import Workspace

import unfog
from tests.each import each
from unfog.adapters import wrap
from unfog.adapters.sklearn import Denoiser


def wrapped() -> Any:
    told = Denoiser(0.5, None, [1.0, -1.0], [2.0, 1.0]).fit([[1.0, 0.0], [0.0, 3.0]])
    return wrap(Workspace("--cb_explore_adf -q ca --quiet"), told, actions=["heat", 7])


def test_names_are_words_of_its_text() -> None:
    told = Denoiser(0.5, None, [1.0, -1.0], [2.0, 1.0])
    bandit = wrap(Workspace("--cb_explore_adf --quiet"), told, names=["a:b", "c"], actions=["x"])
    with pytest.raises(unfog.InputError, match=r"^context: 'a:b'; allowed: names without blanks"):
        bandit.predict({"a:b": 2.0, "c": 1.0})


def test_its_lines_are_those_that_one_writes_by_hand() -> None:
    told, arguments = Denoiser(0.5, 1.0, [1.0, -1.0], [2.0, 1.0]), "--cb_explore_adf -q ca --quiet --squarecb"
    alone, by_hand = Workspace(arguments), copy.deepcopy(told)
    bandit = wrap(Workspace(arguments), told, names=["rain", "wind"], actions=["heat", "wait"])
    for t, row in enumerate(np.random.default_rng(1).normal([1.0, -1.0], 2.0, (40, 2)).tolist()):
        rain, wind = by_hand.transform_one(row).tolist()
        shared = f"shared |c rain:{rain!r} wind:{wind!r}\n"
        chances = bandit.predict({"wind": row[1], "rain": row[0]})
        assert chances == list(alone.predict(shared + "|a heat\n|a wait"))
        bandit.learn({"wind": row[1], "rain": row[0]}, "wait", rain / 5, chances[1])
        alone.learn(shared + f"|a heat\n0:{rain / 5!r}:{chances[1]!r} |a wait")
        assert t == 0 or chances[0] != 0.5


def test_numbers_in_a_row_are_a_context_too() -> None:
    bandit, again = wrapped(), wrapped()
    assert bandit.predict([2.0, np.nan]) == again.predict({0: 2.0, 1: None}) == [0.5, 0.5]
    bandit.learn([2.0, np.nan], 7, -1.0, 0.5)
    again.learn({0: 2.0}, "7", -1.0, 0.5)
    found = bandit.predict([3.0, 0.0])
    assert found == again.predict({1: 0.0, 0: 3.0}) == pytest.approx([0.025, 0.975])


@each(
    "arguments, said",
    [
        (([2.0, 1.0], "cool", 1.0, 0.5), "action: 'cool'; allowed: heat, 7"),
        (([2.0, 1.0], "heat", np.nan, 0.5), "cost: nan has a value that is not finite"),
        (([2.0, 1.0], "heat", 1.0, 0.0), "probability: 0.0; allowed: a positive number"),
        (([2.0, 1.0], "heat", 1.0, 1.5), "probability: 1.5; allowed: a probability above 0"),
        (("|c 0:2", "heat", 1.0, 0.5), "context: '|c 0:2'; allowed: numbers by name"),
        (
            ([[2.0, 1.0], [3.0, 1.0]], "heat", 1.0, 0.5),
            "context: 2 rows; allowed: the numbers of one context",
        ),
    ],
)
def test_what_is_learnt_from_is_checked(arguments: tuple[Any, ...], said: str) -> None:
    with pytest.raises(unfog.InputError, match="^" + re.escape(said)):
        wrapped().learn(*arguments)
