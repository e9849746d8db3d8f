"""Clocks that are set, decisions that stay open for long, and threads."""

import gc
import threading
import time
import tracemalloc
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from tests.live.ground import Hand, opened, problem, replayed


def kinds(live: object, kind: str) -> int:
    return sum(one["kind"] == kind for one in live.events())  # type: ignore[attr-defined]


def test_a_clock_set_back_lets_nothing_expire_early(tmp_path: Path) -> None:
    clock = Hand()
    with opened(tmp_path, clock) as store:
        live = problem(store, reward_window="30m", default_reward=0.0)
        first = live.decide([0, 1])
        clock.time -= 3600
        second = live.decide([0, 1])
        clock.time += 3600 + 1799
        live.decide([0, 1])
        assert kinds(live, "expire") == 0
        clock.time += 1
        assert live.reward(first.id, 1.0).outcome == "late"
        assert live.reward(second.id, 1.0).outcome == "late"  # made when the store's time stood still
        times = [one["time"] for one in live.events()]
        assert times == sorted(times)


def test_reopened_with_a_clock_that_was_set_back(tmp_path: Path) -> None:
    clock = Hand()
    with opened(tmp_path, clock) as store:
        made = problem(store, reward_window="30m").decide([0, 1])
    clock.time -= 86_400
    with opened(tmp_path, clock) as store:
        live = store.problem("p")
        assert live.pending() == [made.id]
        assert live.reward(made.id, 1.0).outcome == "learnt"
        assert kinds(live, "expire") == 0


def test_the_machines_clock_may_jump_while_a_store_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path) as store:
        live = problem(store, reward_window="30m")
        made = live.decide([0, 1])
        for jump in (7200, -7200):
            monkeypatch.setattr(time, "time", lambda jump=jump: 1e9 + jump)
            live.decide([0, 1])
        assert live.reward(made.id, 1.0).outcome == "learnt"


def test_the_time_of_a_reading_lets_nothing_expire(tmp_path: Path) -> None:
    with opened(tmp_path, Hand()) as store:
        live = problem(store, reward_window="1m", default_reward=0.0)
        first = live.decide([0, 1])
        for at in (0.0, -1e9, 4e9, datetime(2099, 1, 1, tzinfo=UTC), datetime(1950, 1, 1, tzinfo=UTC)):
            live.decide([0, 1], measured_at=at)
        assert first.id in live.pending()
        assert kinds(live, "expire") == 0


def test_a_replay_lets_nothing_expire(tmp_path: Path) -> None:
    clock = Hand()
    with opened(tmp_path, clock) as store:
        live = problem(store, reward_window="1m", default_reward=0.0)
        made, before = live.decide([0, 1]), live.state_hash()
        clock.time += 3600
        assert store.replay(verify=True)["p"].same
        assert ([*store.processor.cache.get("p").open], live.state_hash()) == ([made.id], before)
    with opened(tmp_path, clock) as store:
        live = store.problem("p")
        store.processor.log.discard("p")
        assert ([*store.processor.cache.get("p").open], live.state_hash()) == ([made.id], before)
        live.decide([0, 1])
        assert made.id not in live.pending()


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["unfog", "late"])
def test_many_open_decisions(tmp_path: Path, agent: str) -> None:
    many(tmp_path, agent, 600)


def many(path: Path, agent: str, number: int) -> None:
    """Less than 20 MB for ten thousand; answered in any order each is learnt once."""
    size = 5
    channel = {"context_mean": 0.0, "context_cov": 1.0, "noise_cov": 0.5, "bias_cov": 0.5}
    names, dice = [f"x{i}" for i in range(size)], np.random.default_rng(4)
    with opened(path, Hand()) as store:
        live = problem(store, context=names, channel=channel, agent=agent, reward_window="30m", epsilon=0.1)
        live.decide(dice.normal(size=size))
        tracemalloc.start()
        with store.batch():
            ids = [live.decide(dice.normal(size=size)).id for _ in range(number)]
        gc.collect()  # Python keeps up to two thousand freed tuples of each length, which nobody holds
        used, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert used < 20e6 * number / 10_000
        assert len(live.pending()) == number + 1
        order = dice.permutation(number)
        found = live.reward_many({ids[i]: float(i % 2) for i in order})
        assert {one.outcome for one in found.values()} == {"learnt"}
        assert store.processor.cache.get("p").runner.learnt == number
        assert len(live.pending()) == 1
        assert live.state_hash() == replayed(store)


@pytest.mark.slow
@pytest.mark.parametrize("sync", ["full", "normal"])
def test_threads(tmp_path: Path, sync: str) -> None:
    """Eight at a time on two problems: all is logged once, and comes out the same when it is done again."""
    import unfog

    workers, rounds = 8, 50
    failed: list[BaseException] = []
    with unfog.live.open(tmp_path / "threads.unfog", sync=sync) as store:
        lives = [problem(store, "p", reward_window="1h"), problem(store, "q", agent="late")]
        gate = threading.Barrier(workers)

        def work(number: int) -> None:
            try:
                gate.wait()
                live, dice = lives[number % 2], np.random.default_rng(number)
                for i in range(rounds):
                    key = f"{number}-{i}"
                    made = live.decide(dice.normal(size=2), unit=f"u{number % 3}", key=key)
                    live.reward(made.id, float(i), key=f"{key} paid")
                    assert live.reward(made.id, float(i), key=f"{key} paid").outcome == "learnt"
            except BaseException as error:
                failed.append(error)
                raise

        threads = [threading.Thread(target=work, args=(n,)) for n in range(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failed
        found = store.replay(verify=True)
        assert all(one.same and one.verified == workers * rounds // 2 for one in found.values())
        for live in lives:
            assert live.pending() == []
            assert kinds(live, "reward") == workers * rounds // 2
            rows = live.events()
            assert len({one["decision"] for one in rows if one["kind"] == "decide"}) == workers * rounds // 2


def test_a_repeated_report_has_the_number_of_the_first(tmp_path: Path) -> None:
    with opened(tmp_path, Hand()) as store:
        live, other = problem(store), problem(store, "q")
        made = live.decide([0, 1])
        first = live.reward(made.id, 1.0)
        other.decide([0, 1])
        again = live.reward(made.id, 1.0)
        assert (again.seq, again.outcome) == (first.seq, "known")
