"""Rewards and true contexts in any order, any number of times: what is believed of theta is the same."""

import secrets
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.live.ground import Hand, opened, problem, theta
from unfog.live import Problem

ROUNDS = 8
FREE = ["alg1", "naive", "late", "alg2"]  # with whole contexts, a round's term hangs on no other round


def reports(agent: str, seed: int) -> list[tuple[str, int, Any]]:
    """A reward for each decision, and a true context for each that learns from it."""
    dice = np.random.default_rng(seed)
    found: list[tuple[str, int, Any]] = [
        ("reward", i, float(x)) for i, x in enumerate(dice.normal(size=ROUNDS))
    ]
    shown = range(ROUNDS) if agent in ("alg2", "late") else ()  # a hidden one weighs as is believed just then
    return found + [("reveal", i, dice.normal(size=2).tolist()) for i in shown]


def told(path: str, agent: str, sent: list[tuple[str, int, Any]]) -> tuple[Any, Any, str, list[str]]:
    """All decisions first, then these reports: theta, hash of the state and what became of the reports."""
    with pytest.MonkeyPatch.context() as patch, opened(Path(path), Hand()) as store:
        patch.setattr(secrets, "token_hex", lambda _: "0123456789abcdef")
        live = problem(store, agent=agent, reward_window=3600)
        dice = np.random.default_rng(3)
        ids = [live.decide(dice.normal(size=2), unit=f"u{i % 2}").id for i in range(ROUNDS)]
        outcomes = [one(live, ids, *report) for report in sent]
        return *theta(store), live.state_hash(), outcomes


def one(live: Problem, ids: list[str], kind: str, number: int, value: Any) -> str:
    verb = live.reward if kind == "reward" else live.reveal
    return verb(ids[number], value).outcome


@pytest.mark.slow
@pytest.mark.parametrize("agent", FREE)
@settings(max_examples=6)
@given(data=st.data())
def test_any_permutation(agent: str, data: Any) -> None:
    sent = reports(agent, 5)
    mixed = data.draw(st.permutations(sent))
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        expected, found = told(one, agent, sent), told(other, agent, mixed)
    np.testing.assert_allclose(found[0], expected[0], rtol=0, atol=1e-10)
    np.testing.assert_allclose(found[1], expected[1], rtol=0, atol=1e-10)
    assert np.abs(expected[0]).max() > 0.1  # something was learnt


@pytest.mark.slow
@pytest.mark.parametrize("agent", FREE)
@settings(max_examples=6)
@given(data=st.data())
def test_each_one_to_five_times(agent: str, data: Any) -> None:
    """What is known already changes nothing, to the last bit."""
    sent = reports(agent, 6)
    times = data.draw(st.lists(st.integers(1, 5), min_size=len(sent), max_size=len(sent)))
    mixed = data.draw(st.permutations([one for one, n in zip(sent, times, strict=True) for _ in range(n)]))
    firsts = [x for i, x in enumerate(mixed) if x not in mixed[:i]]
    with (
        tempfile.TemporaryDirectory() as one,
        tempfile.TemporaryDirectory() as other,
        tempfile.TemporaryDirectory() as third,
    ):
        ordered, once, found = told(one, agent, sent), told(other, agent, firsts), told(third, agent, mixed)
    assert found[2] == once[2]
    assert found[3].count("known") == len(mixed) - len(sent)
    np.testing.assert_allclose(found[0], ordered[0], rtol=0, atol=1e-10)
