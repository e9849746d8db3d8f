"""How beliefs went: samples that are thinned evenly, folded from events, and right."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.live.ground import Hand, opened, problem, replayed
from unfog.live import Problem, monitoring
from unfog.live.monitoring import FIRST_EVERY, Series, Tracks
from unfog.live.state import State

FEW, FEWER, ROOM = 16, 8, 3


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Little room, so that little has to happen."""
    for name, value in (("MOST", FEW), ("MOST_EACH", FEWER), ("MOST_UNITS", ROOM)):
        monkeypatch.setattr(monitoring, name, value)


def test_samples_are_even_and_few_and_cover_everything() -> None:
    for happened in (1, 4, 5, 30, 31, 32, 33, 64, 65, 500, 1023):
        sampled(happened)


def sampled(happened: int) -> None:
    found, every = Series(FEWER, 1), FIRST_EVERY
    found.join()
    for number in range(happened):
        if found.is_due(0):
            found.add(0)[:] = number
    while happened > FEWER * every:
        every *= 2
    assert found.rows(0)[:, 0].tolist() == list(range(0, happened, every))


def state_of(problem: Problem) -> State:
    return problem.processor.cache.get(problem.name)


def decided(problem: Problem, number: int, units: list[str], seed: int = 1) -> list[dict[str, Any]]:
    """So many decisions: of each what was believed of its unit's bias before."""
    chance, found = np.random.default_rng(seed), []
    for _ in range(number):
        unit = units[chance.integers(len(units))]
        law = state_of(problem).runner.bias(unit)
        problem.decide(chance.normal([1.8, -2.5], 1.5).tolist(), unit=unit)
        found.append({"unit": unit, "law": law})
    return found


def test_a_unit_has_samples_of_what_was_believed_of_it(tmp_path: Path) -> None:
    with opened(tmp_path, Hand()) as store:
        said = decided(problem(store), 92, ["ann", "bob"])
        state = state_of(problem(store))
        now = state.runner.bias("ann")
        found = state.watch.tracks.of("ann", now)
    own = [(number, one["law"]) for number, one in enumerate(said) if one["unit"] == "ann"]
    every = FIRST_EVERY * 2 ** int(np.ceil(np.log2(len(own) / FIRST_EVERY / FEWER)))
    sampled = [*own[::every], (91, now)]
    assert len(sampled) > FEWER // 2
    assert found.number.tolist() == [number for number, _ in sampled]
    np.testing.assert_allclose(found.bias, [mean for _, (mean, _) in sampled])
    np.testing.assert_allclose(found.bias_sd, [np.sqrt(variance) for _, (_, variance) in sampled])
    assert state.watch.tracks.decisions("ann") == len(own)


def test_the_problem_has_samples_of_the_mean_of_its_units(tmp_path: Path) -> None:
    """Of the first units, each as it was last sampled: in its own turn, or in the problem's turn."""
    with opened(tmp_path) as store:
        said = decided(problem(store), 60, [*"abcde"])
        state = state_of(problem(store))
        found = state.watch.tracks.whole(state.watch.readings)
    first = list(dict.fromkeys(one["unit"] for one in said))[:ROOM]
    last, turns, means = dict[str, Any](), dict.fromkeys(first, 0), dict[int, Any]()
    for number, one in enumerate(said):
        unit = one["unit"]
        if unit in turns:
            if number % FIRST_EVERY == 0 or turns[unit] % FIRST_EVERY == 0:
                last[unit] = one["law"]
            turns[unit] += 1
        means[number] = np.mean([[mean, variance] for mean, variance in last.values()], axis=0)
    assert found.number.tolist() == [*range(0, 60, FIRST_EVERY), 59]
    wanted = np.array([means[int(number)] for number in found.number[:-1]])
    np.testing.assert_allclose(found.bias[:-1], wanted[:, 0])
    np.testing.assert_allclose(found.bias_sd[:-1], np.sqrt(wanted[:, 1]))
    assert state.watch.tracks.decisions(first[0]) == turns[first[0]]
    assert state.watch.tracks.decisions("z") is None


def test_what_readings_were_like_is_what_diagnostics_say(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        p, seen = problem(store), list[Any]()
        for number in range(3 * FEW):
            p.decide([1.0 + number, -2.0], unit="ann")
            seen.append(p.diagnostics())
        readings = state_of(p).watch.readings
        found = state_of(p).watch.tracks.whole(readings)
    assert found.z_square is not None
    assert found.e_value is not None
    assert found.e_value_of_all is not None
    for place, number in enumerate(found.number[:-1].astype(int)):
        np.testing.assert_allclose(found.z_square[place], seen[number]["z_mean_square_lately"])
        np.testing.assert_allclose(found.e_value[place], seen[number]["e_value"])
        np.testing.assert_allclose(found.e_value_of_all[place], seen[number].attrs["e_value_of_all"])
    np.testing.assert_allclose(found.e_value[-1], seen[-1]["e_value"])


def test_an_agent_that_knows_no_bias_has_none(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        p = problem(store, agent="naive")
        for _ in range(5):
            p.decide([1.0, 2.0])
        state = state_of(p)
        found = state.watch.tracks.whole(state.watch.readings)
        assert np.isnan(found.bias).all()
        assert len(found.bias) == 2
        assert np.isnan(state.watch.tracks.of("", None).bias).all()


@pytest.mark.parametrize("agent", ["unfog", "naive", "temporal"])
def test_a_start_has_the_same_ones(tmp_path: Path, agent: str) -> None:
    """From a snapshot, and from the log; and goes on as if nothing had been."""
    (tmp_path / "other").mkdir()
    with opened(tmp_path) as store, opened(tmp_path / "other") as through:
        for one in (store, through):
            decided(problem(one, agent=agent), 45, [*"abcd"])
        before = state_of(store.problem("p")).watch.tracks.content()
        store.processor.cache.save()
        store.processor.cache.clear()
        after = state_of(store.problem("p")).watch.tracks.content()
        np.testing.assert_equal(after, before)
        for one in (store, through):
            decided(problem(one, agent=agent), 100, [*"abcdef"], seed=2)
        assert store.problem("p").state_hash() == replayed(store)
        found, wanted = (state_of(one.problem("p")).watch.tracks.content() for one in (store, through))
        assert [found["places"], found["each"][1:]] == [wanted["places"], wanted["each"][1:]]
        np.testing.assert_array_equal(found["each"][0][..., 2:], wanted["each"][0][..., 2:])


def test_samples_that_were_dropped_leave_no_trace(tmp_path: Path) -> None:
    """A snapshot when one unit has few samples again, and then another unit that has more."""
    with opened(tmp_path) as store:
        p = problem(store)
        decided(p, FEWER * FIRST_EVERY + 1, ["ann"])
        store.processor.cache.save()
        store.processor.cache.clear()
        decided(p, (FEWER - 1) * FIRST_EVERY, ["bob"])
        assert p.state_hash() == replayed(store)


def test_of_a_unit_that_is_erased_nothing_is_left(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        decided(problem(store), 40, ["ann", "bob"])
        store.erase(unit="ann")
        content = state_of(problem(store)).watch.tracks.content()
        assert content["places"] == ["bob"]
        assert len(content["each"][0]) == len(content["last"]) == 1


def test_room_is_for_fewer_units_where_there_are_many_coordinates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitoring, "MOST_UNITS", 1000)
    monkeypatch.setattr(monitoring, "MOST_VALUES", 2000)
    found = Tracks(9)
    for number in range(200):
        found.decided(number, 1.0, f"unit {number}", lambda: (np.zeros(9), np.ones(9)), None)
    assert len(found.content()["places"]) == 2000 // (FEWER * 20)
