"""The past as a page shows it, against a plain list of everything that happened."""

import json
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.live.faults import Disk
from tests.live.ground import COORDINATES, Hand, opened, problem
from tests.live.remembering import Clinic, mean, same, weight
from unfog.live import NotFoundError, Problem, StoreError, history
from unfog.live.backend import Row
from unfog.live.log import EventLog
from unfog.live.sqlite import SqliteBackend
from unfog.validation import InputError

TERMS: list[dict[str, Any]] = [
    {"reward_window": 40, "context_window": 60},
    {
        "agent": "late",
        "reward_window": 30,
        "default_reward": 0.25,
        "reward_aggregation": "mean",
        "context_window": 20,
    },
    {"agent": "alg2", "epsilon": 0.0, "reward_window": 40, "context_window": 30},
    {"agent": "naive", "epsilon": 0.3, "reward_aggregation": "first", "context_window": None},
    {"agent": "unfog-thompson", "epsilon": 0.0},
]


def check(clinic: Clinic, unit: str | None, gone: tuple[str, ...] = ()) -> dict[str, Any]:
    """Everything of all units, or of one; some were erased."""
    found = clinic.live.history(unit, points=10_000)
    json.dumps(found, allow_nan=False)
    clinic.book.touch(clinic.clock.time)
    mine = [
        one for one in clinic.decisions if (unit is None or one["unit"] == unit) and one["unit"] not in gone
    ]
    assert found["decisions"] == found["kept"] == len(mine)
    assert found["arms"] == clinic.arms
    check_points(clinic, found, mine)
    check_worth(found, mine)
    check_rewards(clinic, found, mine)
    check_shadows(clinic, found, mine)
    return found


def check_points(clinic: Clinic, found: dict[str, Any], mine: list[dict[str, Any]]) -> None:
    points, paid = found["points"], [clinic.book.entries[one["answer"].id].paid for one in mine]
    answers = [one["answer"] for one in mine]
    assert points["number"] == [answer.number for answer in answers]
    assert found["last_number"] == answers[-1].number
    assert points["time"] == [one["time"] for one in mine]
    assert points["unit"] == [one["unit"] for one in mine]
    assert [found["arms"][arm] for arm in points["arm"]] == [answer.arm for answer in answers]
    assert points["probability"] == [answer.probability for answer in answers]
    lowest = [None if one["logged_arm"] else min(one["answer"].probabilities.values()) for one in mine]
    assert all(map(same, points["lowest"], lowest))
    assert all(map(same, points["reward"], paid))
    for i, name in enumerate(COORDINATES):
        assert points["noisy"][name] == [one["noisy"][i] for one in mine]
        assert points["denoised"][name] == [answer.denoised[name] for answer in answers]
        assert points["sd"][name] == [answer.sd[name] for answer in answers]
        assert points["true"][name] == [one["true"].get(name) for one in mine]


def check_worth(found: dict[str, Any], mine: list[dict[str, Any]]) -> None:
    for i, name in enumerate(COORDINATES):
        shown = [one for one in mine if name in one["true"] and one["noisy"][i] is not None]
        errors = [(one["noisy"][i] - one["true"][name]) ** 2 for one in shown]
        left = [(one["answer"].denoised[name] - one["true"][name]) ** 2 for one in shown]
        wrong, better = (float(np.sqrt(np.mean(x))) if x else None for x in (errors, left))
        said = found["worth"][name]
        assert said["revealed"] == len(shown)
        assert same(said["rmse_noisy"], wrong)
        assert same(said["rmse_denoised"], better)
        assert same(said["ratio"], better / wrong if better and wrong else None)


def check_rewards(clinic: Clinic, found: dict[str, Any], mine: list[dict[str, Any]]) -> None:
    """Stretches of as many decisions, one after the other."""
    rewards, shares, last = found["rewards"], found["shares"], 0
    number = len(rewards["number"])
    sizes = [len(mine) // number + (i < len(mine) % number) for i in range(number)]
    for i, size in enumerate(sizes):
        part = mine[last : last + size]
        last += size
        paid = [clinic.book.entries[one["answer"].id].paid for one in part]
        wanted = mean([x for x in paid if x is not None])
        assert all(same(rewards[name][i], wanted[name]) for name in wanted)
        assert rewards["number"][i] == shares["number"][i] == part[size // 2]["answer"].number
        for arm in clinic.arms:
            assert same(shares["arms"][arm][i], sum(one["answer"].arm == arm for one in part) / size)


def check_shadows(clinic: Clinic, found: dict[str, Any], mine: list[dict[str, Any]]) -> None:
    paid = {one["answer"].number: clinic.book.entries[one["answer"].id].paid for one in mine}
    own = mean([x for x in paid.values() if x is not None])
    assert all(same(found["estimates"][""][name], own[name]) for name in own)
    assert set(found["estimates"]) == {"", *found["shadows"]}
    for name in found["shadows"]:
        beside = [one for one in mine if name in one["answer"].shadows]
        said = found["estimates"][name]
        free = [one["answer"].shadows[name]["arm"] == one["answer"].arm for one in beside if one["free"]]
        assert same(said["agreement"], float(np.mean(free)) if free else None)
        pairs = [(weight(one, name), paid[one["answer"].number]) for one in beside]
        judged = [(w, r) for w, r in pairs if w is not None and r is not None]
        wanted = mean([w * r for w, r in judged])
        assert all(same(said[name], wanted[name]) for name in wanted)
        total, squares = sum(w for w, _ in judged), sum(w * w for w, _ in judged)
        assert same(said["effective"], total**2 / squares if squares else 0.0)


@pytest.mark.parametrize("place", range(len(TERMS)))
def test_everything_that_happened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: int) -> None:
    """At every look, by one who reads on and by one who reads it all; and after a unit was erased."""
    monkeypatch.setattr(history, "CHUNK", 13)
    clinic = Clinic(tmp_path, place, **TERMS[place])
    with clinic.store:
        for _ in range(3):
            clinic.play(70)
            clinic.clock.time += 25.0  # something expires by the look alone
            found = check(clinic, None)
            check(clinic, "ann")
        assert "naive" in found["shadows"] or "alg1" in found["shadows"]
        clinic.store.processor._rings.clear()
        assert clinic.live.history(points=10_000) == found
        clinic.store.erase(unit="bob")
        check(clinic, None, gone=("bob",))
        clinic.play(30)
        check(clinic, "cy", gone=("bob",))
        with pytest.raises(NotFoundError):
            clinic.live.history("nobody")


def test_another_store_shows_the_same(tmp_path: Path) -> None:
    """From an export; and after more events came in, which the first look did not see."""
    clinic = Clinic(tmp_path, 7, **TERMS[1])
    (tmp_path / "other").mkdir()
    with clinic.store, opened(tmp_path / "other", clinic.clock) as other:
        for calls in (60, 60):
            clinic.play(calls)
            other.import_events(clinic.store.export("p"))
            assert other.problem("p").history() == clinic.live.history()
        clinic.store.erase(unit="ann")
        other.erase(unit="ann")
        assert other.problem("p").history() == clinic.live.history()


@pytest.mark.parametrize("most", [1, 20, 50])
def test_of_a_long_log_the_end_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """Also by who looks again after much has happened; what is said of older decisions is passed over."""
    monkeypatch.setattr(history, "MOST", most)
    monkeypatch.setattr(history, "CHUNK", 7)
    clinic = Clinic(tmp_path, 8, **TERMS[0])
    with clinic.store:
        for calls in (10, 20, 30, 200, 10, 10):
            clinic.play(calls)
            found, first = clinic.live.history(), clinic.store.processor._rings.pop("p")
            assert clinic.live.history() == found
            clinic.store.processor._rings["p"] = first
            newest = clinic.decisions[-most:]
            assert (found["kept"], found["decisions"]) == (len(newest), len(clinic.decisions))
            check_points(clinic, found, newest)
            check_worth(found, newest)


def test_who_comes_back_late_does_not_read_what_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "MOST", 10)
    read, rows = EventLog.read, list[int]()

    def counted(
        log: EventLog, name: str | None = None, after: int = 0, upto: int | None = None
    ) -> Iterator[Row]:
        for row in read(log, name, after, upto):
            rows.append(row.seq)
            yield row

    with opened(tmp_path, Hand()) as store:
        p = problem(store)
        for number in (5, 100):
            for _ in range(number):
                p.decide([1.0, 2.0])
            with monkeypatch.context() as patch:
                patch.setattr(EventLog, "read", counted)
                assert p.history()["kept"] == min(number, 10)
        assert len(rows) == 1 + 5 + 10


def test_a_caller_sees_nothing_that_came_after_it_asked(tmp_path: Path) -> None:
    """Another thread may have read on: an arm that this one does not know would have no name."""
    with opened(tmp_path, Hand()) as store:
        p = problem(store)
        p.decide([1.0, 2.0])
        around, upto = p._around(store.processor.cache.get("p")), store.processor.log.last
        p.add_arm("d")
        p.decide([1.0, 2.0], arms=["d"])
        first, last = p.history()["points"]["arm"]
        assert last == 3
        with store.processor.recent_decisions("p").filled(around, upto) as kept:
            assert kept.data[history.ARM].tolist() == [first]


def test_a_reward_that_waits_goes_with_its_decision(tmp_path: Path) -> None:
    with opened(tmp_path, Hand()) as store:
        p = problem(store, agent="alg2")
        one, other = p.decide([1.0, 2.0]).id, p.decide([2.0, 1.0]).id
        for decision in (one, other):
            assert p.reward(decision, 3.0).outcome == "waits"
        assert p.history()["points"]["reward"] == [3.0, 3.0]
        p.cancel(one)
        assert p.history()["points"]["reward"] == [None, 3.0]


@pytest.mark.parametrize("most", [1, 2, 3, 10, 100])
def test_thinned_points_are_even_and_have_the_newest(most: int) -> None:
    for number in (0, 1, 2, 3, 9, 10, 11, 99, 1000):
        found = history.thinned(number, most)
        assert len(found) == min(number, most)
        assert len({*found.tolist()}) == len(found)
        if number:
            assert found[-1] == number - 1
        steps = np.diff(found)
        assert steps.size == 0 or steps.max() - steps.min() <= 1, number


def test_points_are_those_of_the_whole(tmp_path: Path) -> None:
    clinic = Clinic(tmp_path, 9)
    with clinic.store:
        clinic.play(150)
        whole, found = clinic.live.history(points=10_000), clinic.live.history(points=20)
    places = [whole["points"]["number"].index(number) for number in found["points"]["number"]]
    assert len(places) == 20
    assert found["points"]["sd"]["y"] == [whole["points"]["sd"]["y"][place] for place in places]
    assert found["rewards"] == whole["rewards"]
    for points in (0, -1, 1.5, True, history.MOST + 1):
        with pytest.raises(InputError, match="points"):
            clinic.live.history(points=points)  # type: ignore[arg-type]


def test_what_denoising_was_worth_is_what_diagnostics_say(tmp_path: Path) -> None:
    clinic = Clinic(tmp_path, 10, agent="late", context_window=None)
    with clinic.store:
        clinic.play(200)
        found, data = clinic.live.history(), clinic.live.diagnostics()
    for name in COORDINATES:
        one = data.sel(coordinate=name)
        assert found["worth"][name]["revealed"] == one["true_contexts"].item() > 10
        assert same(found["worth"][name]["rmse_noisy"], one["rmse_noisy"].item())
        assert same(found["worth"][name]["rmse_denoised"], one["rmse_denoised"].item())
    assert same(found["tracks"]["bias_sd"]["x"][0], np.sqrt(0.3))
    assert same(found["tracks"]["e_value"]["y"][-1], data["e_value"].sel(coordinate="y").item())
    assert same(found["tracks"]["e_value_of_all"][-1], data.attrs["e_value_of_all"])


def test_tracks_are_in_the_units_of_the_caller(tmp_path: Path) -> None:
    channel = {"context_mean": [5000.0, 7.0], "context_cov": [4e6, 1.0], "noise_cov": [1e6, 1.0]}
    channel |= {"bias_cov": [25e4, 0.2], "bias": [300.0, 0.0]}
    with opened(tmp_path, Hand()) as store:
        p = problem(store, channel=channel)
        for i in range(9):
            p.decide([6000.0 + i, 8.0], unit="ann")
        found, known = p.history("ann")["tracks"], p.belief("ann")
        whole = p.history()["tracks"]
        assert found["number"] == whole["number"] == [0, 4, 8]
        assert (found["bias"]["x"][0], found["bias_sd"]["x"][0]) == pytest.approx((300.0, 500.0))
        assert found["bias"]["x"][-1] == pytest.approx(known["bias"].sel(coordinate="x").item())
        assert found["bias_sd"]["y"][-1] == pytest.approx(known["bias_sd"].sel(coordinate="y").item())
        assert found["z_square"] is found["e_value"] is found["e_value_of_all"] is None


@pytest.mark.parametrize("terms", [{}, {"agent": "naive"}, {"channel": None}, {"rewards": "binary"}])
def test_nothing_yet_and_little(tmp_path: Path, terms: dict[str, Any]) -> None:
    with opened(tmp_path, Hand()) as store:
        p = problem(store, **terms)
        found = p.history()
        json.dumps(found, allow_nan=False)
        assert (found["kept"], found["first_number"], found["points"]["number"]) == (0, None, [])
        assert found["rewards"]["mean"] == found["tracks"]["number"] == []
        p.add_shadow("alg1")
        p.reward(p.decide([1.0, 2.0]).id, 1.0)
        found = p.history()
        json.dumps(found, allow_nan=False)
        assert found["rewards"]["mean"] == [1.0]
        assert found["estimates"]["alg1"]["count"] == found["estimates"][""]["count"] == 1


def test_arms_that_come_with_decisions_have_no_place(tmp_path: Path) -> None:
    with opened(tmp_path, Hand()) as store:
        p = problem(store, arms=None, arm_size=2, features="product")
        p.decide([1.0, 2.0], arms={"one": [1.0, 0.0], "two": [0.0, 1.0]})
        found = p.history()
        assert (found["arms"], found["points"]["arm"], found["shares"]["arms"]) == ([], [-1], {})
        assert found["points"]["lowest"] == [0.01]


def test_after_a_commit_that_failed_it_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk()
    monkeypatch.setattr("unfog.live.sqlite.SqliteBackend", partial(SqliteBackend, connect=disk.connect))
    clinic = Clinic(tmp_path, 11)
    with clinic.store:
        clinic.play(40)
        before = clinic.live.history()
        clinic.store.processor.recent_decisions("p")._columns.kept[history.REWARD] = (
            7.0  # as of rows that were not kept
        )
        disk.fail(range(1, 3))
        with pytest.raises(StoreError):
            clinic.live.decide([1.0, 2.0])
        disk.fail(())
        assert clinic.live.history() == before
        clinic.play(10)
        check(clinic, None)


def test_threads_may_look_while_others_decide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "CHUNK", 5)
    errors = list[BaseException]()

    def looks(p: Problem) -> None:
        try:
            for _ in range(25):
                found = p.history(points=10)
                assert max(found["points"]["arm"], default=0) < len(found["arms"])
                assert len({len(found["points"][name]) for name in ("number", "time", "reward")}) == 1
        except (AssertionError, LookupError, ValueError, TypeError, StoreError) as error:
            errors.append(error)

    with opened(tmp_path) as store:
        p = problem(store)
        threads = [threading.Thread(target=looks, args=(p,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for i in range(120):
            p.reward(p.decide([0.1 * i, 1.0], unit=f"{i % 3}").id, float(i))
            if i % 20 == 19:
                p.add_arm(f"arm {i}")
        for thread in threads:
            thread.join()
        assert not errors
        assert p.history()["points"]["reward"] == [float(i) for i in range(120)]
