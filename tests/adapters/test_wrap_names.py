"""Which name stands for which column of the denoiser is told, and never guessed from a context."""

from typing import Any

import numpy as np
import pytest

import unfog
from tests.adapters.test_wrap_contexts import MEAN, READING, denoiser
from tests.each import each
from unfog.adapters.wrap import Contexts, Names


def test_the_order_of_a_context_says_nothing() -> None:
    named = Names(Contexts(denoiser()), [], ["heat", "wind"])
    right = denoiser().transform_one(READING[0])
    with named.deciding({"wind": -1.0, "heat": 6.0}, None, None) as found:
        assert found == {"heat": right[0], "wind": right[1]}


def test_numbers_are_names_that_say_their_column() -> None:
    named = Names(Contexts(denoiser()), ["one"])
    right = denoiser().transform_one([np.nan, -1.0])
    with named.deciding({1: -1.0, "one": 1.0}, None, None) as found:
        assert found == {"one": 1.0, 0: right[0], 1: right[1]}


@each("context", [{"wind": -1.0, "heat": 6.0}, {0: 6.0, 2: 1.0}, {}])
def test_names_that_nobody_told_are_refused(context: dict[Any, Any]) -> None:
    named = Names(Contexts(denoiser()), [])
    said = r"^names: missing; allowed: the names of what the denoiser denoises, in the order of its columns$"
    with pytest.raises(unfog.InputError, match=said), named.deciding(context, None, None):
        pass


def fitted() -> Any:
    pandas = pytest.importorskip("pandas")
    return denoiser().fit(pandas.DataFrame(MEAN + np.eye(2), columns=["heat", "wind"]))


def test_names_told_have_to_fit_the_denoiser() -> None:
    two = r"2 different names, in the order of the denoiser's columns$"
    cases: list[tuple[Any, Any, str]] = [
        (denoiser(), ["heat", "wind", "rain"], rf"^names: \['heat', 'wind', 'rain'\]; allowed: {two}"),
        (denoiser().fit(MEAN + np.eye(2)), ["heat"], rf"^names: \['heat'\]; allowed: {two}"),
        (denoiser(), ["heat", "heat"], f"^names: .*; allowed: {two}"),
        (denoiser(), "ab", "^names: 'ab'; allowed: the names of what the denoiser denoises"),
        (denoiser(), ["one", "wind"], "^names: 'one', which is in as_is; allowed: the names of what"),
        (fitted(), ["wind", "heat"], r"^names: \['wind', 'heat'\]; allowed: \['heat', 'wind'\], as the"),
    ]
    for one, names, said in cases:
        with pytest.raises(unfog.InputError, match=said):
            Names(Contexts(one), ["one"], names)
    assert Names(Contexts(fitted()), ["one"], ["heat", "wind"]).names == ["heat", "wind"]


@each(
    "context, said",
    [
        ([6.0, -1.0], r"^context: \[6.0, -1.0\]; allowed: numbers by name"),
        ({"heat": "hot"}, "^context.heat: 'hot'; allowed: a number, or None where it was lost"),
        ({"heat": True}, "^context.heat: True; allowed: a number, or None"),
        ({"heat": 1.0, "cold": 2.0}, r"^context: cold; allowed: the names heat, wind"),
    ],
)
def test_a_context_has_numbers_under_these_names(context: Any, said: str) -> None:
    named = Names(Contexts(denoiser()), ["one"], ["heat", "wind"])
    with pytest.raises(unfog.InputError, match=said), named.deciding(context, None, None):
        pass
