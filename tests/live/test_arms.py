"""Arms that come and go, are pinned, forced or brought along; code of one's own; agents that only look on."""

import linecache
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unfog
from tests.live.played import VECTORS, Player, terms
from unfog import _codec
from unfog.live.problem import Problem
from unfog.live.store import Store
from unfog.validation import InputError


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with Player(0).open(tmp_path / "walks.unfog") as found:
        yield found


def plain(store: Store, name: str = "walks", **more: Any) -> Problem:
    return store.problem(name, **terms("unfog", reward_window=None, context_window=None) | more)


def test_an_arm_that_is_added_is_as_one_that_was_there_and_never_chosen(store: Store) -> None:
    """With per_arm an arm brings features of its own: against a problem made with all four."""
    later = plain(store, "later", epsilon=0)
    first = plain(store, "first", epsilon=0, arms=[*VECTORS, "new"])
    for i in range(12):
        context, forced = [i / 5 - 1, 0.3 - i / 9], [*VECTORS][i % 3]
        for problem in (later, first):
            problem.reward(problem.decide(context, logged_arm=forced).id, np.sin(i))
    later.add_arm("new")
    for problem in (later, first):
        problem.reward(problem.decide([0.5, 0.5], logged_arm="new").id, 2.0)
    found, wanted = (problem.predict_rewards([0.4, -0.2]) for problem in (later, first))
    assert [*found["arm"].values] == [*wanted["arm"].values]
    for name in ("mean", "low", "high"):
        assert np.allclose(found[name].values, wanted[name].values, rtol=1e-9, atol=1e-12)
    assert store.replay(verify=True)["later"].same


def test_what_others_decided_is_learnt_from(store: Store) -> None:
    """As if the agent had chosen it itself; an arm that is retired may still have been somebody's choice."""
    forced, own = plain(store, "forced"), plain(store, "own")
    for i in range(10):
        made = own.decide([i / 5 - 1, 0.3])
        other = forced.decide([i / 5 - 1, 0.3], logged_arm=made.arm, probability=0.25)
        assert (other.arm, other.probability, other.probabilities) == (made.arm, 0.25, made.probabilities)
        own.reward(made.id, i / 10)
        forced.reward(other.id, i / 10)
    learnt = (store.processor.cache.get(name).runner.learner for name in ("forced", "own"))
    assert len({_codec.digest(one) for one in learnt}) == 1
    assert forced.decide([0.1, 0.2], logged_arm="send").probability is None
    forced.retire_arm("send")
    assert forced.decide([0.1, 0.2], logged_arm="send").arm == "send"


def test_arms_that_come_with_the_decision(store: Store) -> None:
    walks = plain(store, features="product", arms=None, arm_size=2, epsilon=0.2)
    rng = np.random.default_rng(3)
    for i in range(20):
        arms = {f"item {i} {k}": rng.normal(size=2).tolist() for k in range(2 + i % 4)}
        made = walks.decide(rng.normal(size=2), arms=arms, unit="ann")
        assert made.arm in arms
        assert {*made.probabilities} == {*arms}
        assert sum(made.probabilities.values()) == pytest.approx(1, abs=1e-12)
        if i % 3:
            walks.reward(made.id, float(rng.normal()))
    assert store.replay(verify=True)["walks"].same
    for bad in (None, {}, ["a"], {"a": [1.0]}, {"a": None}, {"a": [np.nan, 1.0]}, {"a": [[1.0, 2.0]]}):
        with pytest.raises(InputError, match=r"^arms"):
            walks.decide([0.1, 0.2], arms=bad)
    with pytest.raises(InputError, match=r"^add"):
        walks.add_arm("new", [1.0, 2.0])


def test_vectors_that_come_are_learnt_from_as_those_that_were_there(store: Store) -> None:
    fixed = plain(store, "fixed", features="product", arms=VECTORS, epsilon=0)
    brought = plain(store, "brought", features="product", arms=None, arm_size=2, epsilon=0)
    for i in range(15):
        context = [np.sin(i), np.cos(2 * i)]
        one, other = fixed.decide(context), brought.decide(context, arms=VECTORS)
        assert (one.arm, one.probabilities) == (other.arm, other.probabilities)
        fixed.reward(one.id, np.sin(3 * i))
        brought.reward(other.id, np.sin(3 * i))
    learnt = (store.processor.cache.get(name).runner.learner for name in ("fixed", "brought"))
    assert len({_codec.digest(one) for one in learnt}) == 1


OWN = """
from dataclasses import replace

import unfog
from unfog.features import product

mine = replace(unfog.AGENTS["unfog"], name="mine")


def ours(actions):
    return product(actions)
"""


def test_code_of_ones_own_must_stay_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "own_code_of_arms.py"
    source.write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    given = terms("unfog") | {"agent": "own_code_of_arms:mine", "features": "own_code_of_arms:ours"}
    given |= {"arms": VECTORS, "channel": unfog.GaussianProblem(dim=2, actions=3).knowledge()}
    player = Player(2, grows=False)
    with player.open(tmp_path / "walks.unfog") as store:
        walks = store.problem("walks", **given)
        player.play(walks, 40)
        found = walks.state_hash()
        assert store.replay(verify=True)["walks"].same
    with player.open(tmp_path / "walks.unfog") as store:
        assert store.problem("walks").state_hash() == found
    source.write_text(OWN + "\n# changed\n")
    forget(source)
    with player.open(tmp_path / "walks.unfog") as store:
        for again in ({}, given):
            with pytest.raises(InputError, match=r"^(features|agent): own_code_of_arms:\w+ has changed"):
                store.problem("walks", **again)
    source.write_text(OWN)
    forget(source)
    with player.open(tmp_path / "walks.unfog") as store:
        assert store.problem("walks").state_hash() == found


def test_a_shadow_of_ones_own_must_stay_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "own_shadow.py"
    source.write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    player = Player(2, grows=False)
    with player.open(tmp_path / "walks.unfog") as store:
        walks = plain(store)
        walks.add_shadow("own_shadow:mine")
        player.play(walks, 20)
        found = walks.state_hash()
        lines = [*store.export("walks")]
    with player.open(tmp_path / "walks.unfog") as store:
        assert store.problem("walks").state_hash() == found
        assert store.replay(verify=True)["walks"].same
        assert store.import_events(lines, "copy", allow_modules=["own_shadow"]) == len(lines)
    source.write_text(OWN + "\n# changed\n")
    forget(source)
    with player.open(tmp_path / "walks.unfog") as store:
        walks = store.problem("walks")
        for call in (
            lambda: walks.decide([0.1, 0.2]),
            walks.state_hash,
            lambda: store.import_events(lines, "more", allow_modules=["own_shadow"]),
        ):
            with pytest.raises(InputError, match=r"shadow: own_shadow:mine has changed"):
                call()
    source.write_text(OWN)
    forget(source)
    with player.open(tmp_path / "walks.unfog") as store:
        assert store.problem("walks").state_hash() == found


def forget(source: Path) -> None:
    """As another process would find it."""
    sys.modules.pop(source.stem, None)
    linecache.clearcache()
    for cached in source.parent.glob("__pycache__/*"):
        cached.unlink()


@pytest.mark.parametrize("agent", ["alg1", "late", "unfog-thompson"])
def test_a_shadow_decides_and_learns_and_is_not_obeyed(store: Store, agent: str) -> None:
    """It is the agent that would have been had the same arms been forced on it."""
    watched, alone = plain(store, "watched"), plain(store, "alone")
    other = plain(store, "other", agent=agent)
    watched.add_shadow(agent)
    rng = np.random.default_rng(4)
    for i in range(30):
        context = rng.normal(size=2)
        made, same = watched.decide(context, unit="ann"), alone.decide(context, unit="ann")
        assert made[1:7] == same[1:7]
        third = other.decide(context, unit="ann", logged_arm=made.arm)
        shadow = made.shadows[agent]
        assert shadow["probability"] == third.probabilities[shadow["arm"]]
        if i % 4:
            value = float(rng.normal())
            for problem, one in ((watched, made), (alone, same), (other, third)):
                problem.reward(one.id, value)
        if i % 5 == 0:
            for problem, one in ((watched, made), (alone, same), (other, third)):
                problem.reveal(one.id, {"sleep": 0.5})
    states = [store.processor.cache.get(name) for name in ("watched", "alone", "other")]
    for part in ("learner", "channels", "surprises", "learnt"):
        digests = [_codec.digest(state.runner.content()[part]) for state in states]
        assert _codec.digest(states[0].runners[agent].content()[part]) == digests[2]
        assert digests[0] == digests[1]
    assert store.replay(verify=True)["watched"].same


def test_a_shadow_may_come_later_and_arms_after_it(store: Store) -> None:
    walks = plain(store)
    for i in range(6):
        walks.reward(walks.decide([i / 3, 0.2]).id, 1.0)
    open_ = walks.decide([0.1, 0.1])
    walks.add_shadow("late")
    with pytest.raises(InputError, match=r"^agent: 'late'"):
        walks.add_shadow("late")
    with pytest.raises(InputError, match=r"^agent"):
        walks.add_shadow("oracle")
    with pytest.raises(InputError, match=r"^agent"):
        walks.add_shadow("nobody")
    walks.add_arm("new")
    made = walks.decide([0.1, 0.2])
    assert {*made.shadows} == {"late"}
    walks.reward(open_.id, 1.0)
    walks.reward(made.id, 1.0)
    walks.reveal(made.id, {"steps": 0.3})
    assert store.processor.cache.get("walks").runners["late"].learnt == 1
    assert store.replay(verify=True)["walks"].same
