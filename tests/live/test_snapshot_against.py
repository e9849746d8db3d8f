"""What is remembered is held against the log while others go on."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.live.played import Player, terms
from unfog.live import Store, snapshot
from unfog.live.errors import StoreError
from unfog.live.snapshot import Replayed


def beside(monkeypatch: pytest.MonkeyPatch, work: Callable[[], object], times: int = 1) -> list[int]:
    """Have something done by another thread, to its end, when a replay has read the log; how often it was."""
    fold, done, others = snapshot.apply_rows, list[int](), list[threading.Thread]()

    def apply_rows(*told: Any) -> Any:
        found = fold(*told)
        if len(done) < times and threading.current_thread() not in others:  # they read the log, too
            thread = threading.Thread(target=work, daemon=True)
            others.append(thread)
            thread.start()
            thread.join(10)
            assert not thread.is_alive(), "a replay keeps others waiting"
            done.append(len(done))
        return found

    monkeypatch.setattr(snapshot, "apply_rows", apply_rows)
    return done


def opened(path: Path, player: Player) -> Store:
    store = player.open(path / "walks.unfog")
    player.play(store.problem("walks", **terms("late")), 40)
    return store


def test_others_decide_while_the_log_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    player = Player(6)
    with opened(tmp_path, player) as store:
        walks = store.problem("walks")
        state, events = store.processor.cache.get("walks"), len(walks.events())
        done = beside(monkeypatch, lambda: player.play(walks, 20))
        found = store.replay()["walks"]
        assert (done, found.same, found.events) == ([0], True, events)
        assert store.processor.cache.get("walks") is state  # and not that of before
        assert store.replay(verify=True)["walks"].same


def test_what_is_not_as_the_log_says_is_put_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    player = Player(6)
    with opened(tmp_path, player) as store:
        walks = store.problem("walks")
        store.processor.cache.save()
        store.processor.cache.get("walks").exploration.random()
        wrong = store.problem("walks").state_hash()
        beside(monkeypatch, lambda: player.play(walks, 20))
        assert not store.replay()["walks"].same
        assert store.problem("walks").state_hash() != wrong
        assert store.processor.log.snapshot("walks") is None
        assert store.replay()["walks"].same
        events = store.replay()["walks"].events
    with player.open(tmp_path / "walks.unfog") as store:
        assert store.replay()["walks"] == Replayed(events, store.processor.cache.get("walks").number, 0)


def test_a_unit_that_is_erased_meanwhile_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows that were read are not those that are remembered any more: it is done again."""
    with opened(tmp_path, Player(6)) as store:
        done = beside(monkeypatch, lambda: store.erase(unit="ann"))
        assert store.replay()["walks"].same
        assert done == [0]


def test_a_log_that_changes_all_the_time_is_said_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path, Player(6)) as store:

        def drop() -> None:
            store.processor.cache.clear()
            store.processor.cache.get("walks").exploration.random()

        store.processor.cache.get("walks").exploration.random()
        beside(monkeypatch, drop, times=snapshot.TRIES)
        with pytest.raises(StoreError, match="ask again"):
            store.replay()


def test_who_reads_the_log_ends_when_it_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = opened(tmp_path, Player(6))

    def closed(made: Any, rows: Any, since: int) -> Any:
        next(rows)
        store.close()
        return list(rows)

    monkeypatch.setattr(snapshot, "verify_rows", closed)
    with pytest.raises(StoreError, match="was closed"):
        store.replay(verify=True)
