"""The log of a live problem is what its callers were answered, and what was learnt."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unfog
from tests.evaluation.readers import logs
from tests.live.ground import ARMS, Hand, opened, problem
from tests.live.played import Player, terms
from unfog.evaluation import checks
from unfog.evaluation.readers import live, read
from unfog.live import Decision, Problem, decision_table
from unfog.live.pending import Past
from unfog.validation import InputError

EPSILON = 0.3


def law(made: Decision, arms: tuple[str, ...]) -> list[float]:
    return [made.probabilities.get(arm, 0.0) for arm in arms]


def test_everything_that_can_become_of_a_decision(tmp_path: Path) -> None:
    clock, made, ends = Hand(), list[Decision](), list[float | None]()
    with opened(tmp_path, clock) as store:
        walks = problem(
            store, epsilon=EPSILON, reward_window=60, default_reward=-3.0, reward_aggregation="sum"
        )

        def decide(end: float | None, x: Any, **more: Any) -> Decision:
            clock.time += 1
            made.append(walks.decide(x, **more))
            ends.append(end)
            return made[-1]

        twice = decide(0.75, [2.5, None], unit="ann")
        walks.reward(twice.id, 0.5)
        walks.reward(twice.id, 0.25)
        walks.reveal(twice.id, {"y": -1.5})
        decide(-3.0, [0.5, -2.0], unit="bob")
        cancelled = decide(None, [1.0, 1.0], unit="ann")
        walks.cancel(cancelled.id)
        decide(None, [1.0, 1.0], logged_arm="b")
        decide(None, [1.0, 1.5], unit="ann", logged_arm="b", probability=0.4)
        walks.retire_arm("a")
        decide(-3.0, [3.0, -4.0], unit="bob")
        walks.add_arm("d")
        decide(-3.0, [1.0, -3.0], arms=["d", "b"])
        walks.restore_arm("a")
        walks.pin_arm("c")
        decide(-3.0, [1.5, -3.5], unit="cy")
        walks.unpin_arm()
        late = decide(-3.0, [1.0, -3.0], unit="ann")
        decide(None, [9.0, 9.0], unit="dan")
        clock.time += 61
        walks.pending()
        walks.reward(late.id, 5.0)
        walks.reveal(late.id, {"x": 0.25})
        walks.reveal(late.id, {"y": 0.5})
        store.erase(unit="dan")
        kept_back = decide(None, [2.0, 2.0], unit="eve")
        walks.reward(kept_back.id, 8.0)
        found = read(store)
    kept = [i for i, end in enumerate(ends) if end is not None]
    assert found.arms == ("a", "b", "c", "d")
    assert found.reward.tolist() == [ends[i] for i in kept]
    assert [found.arms[k] for k in found.arm] == [made[i].arm for i in kept]
    assert found.probability.tolist() == [made[i].probability for i in kept]
    np.testing.assert_allclose(
        np.asarray(found.probabilities), [law(made[i], found.arms) for i in kept], rtol=0, atol=1e-15
    )
    assert found.probabilities is not None
    assert found.probabilities[2, 0] == 0.0  # "a" was retired
    assert found.probabilities[4].tolist() == [0, 0, 1, 0]  # "c" was pinned
    abc, bc, bd, all_ = [1, 1, 1, 0], [0, 1, 1, 0], [0, 1, 0, 1], [1, 1, 1, 1]
    assert np.asarray(found.offered).astype(int).tolist() == [abc, abc, bc, bd, all_, all_]
    assert found.units == ("ann", "bob", "", "cy")
    assert np.asarray(found.unit).tolist() == [0, 1, 1, 2, 3, 0]
    assert np.isnan(found.noisy[0]).tolist() == [False, True]
    np.testing.assert_array_equal(np.asarray(found.true)[[0, 5]], [[np.nan, -1.5], [0.25, 0.5]])
    assert found.known().tolist() == [False] * 5 + [True]
    assert np.asarray(found.time).tolist() == [1e9 + i for i in (1, 2, 6, 7, 8, 9)]
    assert found.notes == (
        "1 decisions were cancelled: left out",
        "1 decisions have no reward yet: left out",
        "1 decisions were erased: left out",
        "1 decisions were made by somebody else, and no probability was logged: left out",
        "1 decisions were made by somebody else, who told the probability of the chosen arm alone: left out",
    )


def test_without_a_default_what_expired_is_left_out(tmp_path: Path) -> None:
    clock = Hand()
    with opened(tmp_path, clock) as store:
        walks = problem(store, reward_window=10)
        for i in range(4):
            walks.reward(walks.decide([0.5, i]).id, i)
        walks.decide([0.5, 7])
        clock.time += 11
        walks.pending()
        found = read(walks)
    assert found.reward.tolist() == [0, 1, 2, 3]
    assert found.notes == ("1 decisions have no reward: its window was over: left out",)
    assert (found.unit, found.units) == (None, ())


@pytest.mark.parametrize("agent", ["unfog", "alg2", "unfog-thompson"])
def test_random_lives(tmp_path: Path, agent: str) -> None:
    """Arms, probabilities and rewards are those that callers were answered and the table of decisions has."""
    player = Player(7, grows=True)
    with player.open(tmp_path / "a.unfog") as store:
        walks = store.problem("walks", **terms(agent, epsilon=0.2))
        player.play(walks, 500)
        found, events = read(store), walks.events()
        answers = [Decision(*one) for one in map(loaded, player.answers) if one is not None]
        past = [Past(one.id, store.processor.log.of("walks", one.id)) for one in answers]
    rows = list(decision_table.as_table(events, ["steps", "sleep"]))
    table = [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]
    forced = ["logged_arm" in one.decided for one in past]
    paid = [one.paid is not None and not one.is_cancelled for one in past]
    kept = [i for i in range(len(past)) if paid[i] and not forced[i]]
    assert len(kept) > 50
    assert sum(forced) > 5
    learnt = [table[i] for i in kept]
    assert found.reward.tolist() == [past[i].paid for i in kept]
    assert [found.units[i] for i in np.asarray(found.unit)] == [row["unit"] for row in learnt]
    for part, values in (("context", found.noisy), ("true", np.asarray(found.true))):
        told = [[row[f"{part}.{name}"] for name in found.coordinates] for row in learnt]
        np.testing.assert_array_equal(values, np.array(told, dtype=float))
    answered = {one.id: one for one in answers}
    expected = [law(answered[row["decision"]], found.arms) for row in learnt]
    np.testing.assert_allclose(np.asarray(found.probabilities), expected, rtol=0, atol=1e-15)
    assert checks.by_arm(found).fits


def loaded(answer: str) -> Any:
    """A decision out of what a player was answered; other answers are shorter, or are no JSON."""
    try:
        found = json.loads(answer)
    except ValueError:
        return None
    return found if isinstance(found, list) and len(found) == len(Decision._fields) else None


def forced(walks: Problem, number: int) -> None:
    for i in range(number):
        made = walks.decide([0.1 * i, 1.0], logged_arm=ARMS[i % 3], probability=0.2 + 0.01 * i)
        walks.reward(made.id, i)


def test_a_log_that_somebody_else_made_mostly(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        walks = problem(store)
        forced(walks, 6)
        for i in range(3):
            walks.reward(walks.decide([i, 0.5]).id, 10 + i)
        found = read(walks)
    assert found.reward.tolist() == [0, 1, 2, 3, 4, 5, 10, 11, 12]
    assert found.probabilities is None
    assert found.notes == ("6 arms were chosen by somebody else: the probabilities of all arms are not used",)


def test_one_problem_of_several(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        for name in ("p", "q"):
            walks = problem(store, name)
            walks.reward(walks.decide([0, 1]).id, 1.0 if name == "p" else 2.0)
        assert read(store, problem="q").reward.tolist() == [2.0]
        with pytest.raises(InputError, match=r"^problem: not said, and there are several; allowed: p, q$"):
            read(store)
        with pytest.raises(InputError, match=r"^problem: 'r'; allowed: p, q$"):
            read(store, problem="r")
        both = tmp_path / "both.ndjson"
        both.write_text("".join([*store.export("p"), *store.export("q")]), "utf-8")
        assert read(both, problem="p").reward.tolist() == [1.0]
        with pytest.raises(InputError, match=r"^problem: the problems p, q; allowed: the name of one"):
            read(both)
        cut = logs.lines(tmp_path / "cut.ndjson", list(store.events("p"))[1:])
        with pytest.raises(InputError, match=r"^log: an event of 'p' before its terms; allowed: a log from"):
            read(cut)
        with pytest.raises(InputError, match=r"^log: test.unfog; allowed: a store that is open"):
            read(tmp_path / "test.unfog")


def test_nothing_to_read(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        walks = problem(store)
        with pytest.raises(InputError, match=r"^log: no rows: no decisions; allowed: one decision"):
            read(walks)
        walks.decide([0, 1])
        with pytest.raises(InputError, match=r"^log: no rows: 1 decisions have no reward yet: left out;"):
            read(walks)
        events = [{**one, "outcome": "learnt"} for one in walks.events()]
        paid = {**events[1], "kind": "reward", "value": 2.0}
        found = live.read([events[0], {**events[1], "noise_cov": [[1.0, 0.2], [0.2, 1.0]]}, paid], None, None)
        assert found.notes == ()
        vectors = store.problem("v", context=["x"], arm_size=1, features="quadratic")
        with pytest.raises(InputError, match=r"^log: arms of 'v' come with each decision; allowed: a p"):
            read(vectors)


def test_a_problem_is_no_store(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        offered: list[object] = [store, problem(store), logs.simulated(3)]
    assert [isinstance(one, live.Store) for one in offered] == [True, False, False]
    assert [isinstance(one, live.Problem) for one in offered] == [False, True, False]


def test_a_context_by_coordinate_is_read_by_column() -> None:
    steps = unfog.Reading(2, bias_sd=1, mean=7, sd=3)
    context = {"steps": steps, "hour": unfog.Cycle(24), "day": unfog.Category(["mon", "tue"])}
    bandit = unfog.Bandit(arms=["send", "wait"], context=context, seed=3)
    for i in range(40):
        row = {"steps": None if i == 3 else i % 9, "hour": i % 24, "day": "mon" if i % 4 else "tue"}
        d = bandit.decide(row, unit=i % 3)
        bandit.reward(d.id, float(i % 9) * (d.arm == "send"))
        bandit.reveal(d.id, {"steps": i % 9})
    log = live.read(bandit.events(), None, None)
    assert log.coordinates == ("steps", "hour.cos", "hour.sin", "day=mon", "day=tue")
    assert np.isnan(log.noisy).sum() == 1
    assert log.noisy[:, 3].mean() == 0.75
    assert log.channel is not None
    assert log.channel.noise_cov[0, 0] == 4
    assert log.channel.context_mean[3] == pytest.approx((30 + 0.5) / 41)
    result = unfog.evaluate(bandit, policies=["logger", "always:send", "hedged"])
    assert np.isfinite(result["value"].sel(estimator="dr")).all()
    unknown = unfog.Bandit(arms=["send", "wait"], context={"steps": 2}, seed=3)
    unknown.reward(unknown.decide({"steps": 3}).id, 1.0)
    assert live.read(unknown.events(), None, None).channel is None
