"""What is believed after a start is what was believed before: from the log, from a snapshot, to the bit."""

import random
import sqlite3
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import unfog
from tests.live.faults import Disk
from tests.live.played import VECTORS, Player, copied, terms
from unfog import _codec
from unfog.live import snapshot
from unfog.live.errors import StoreError
from unfog.live.sqlite import SqliteBackend

ROWS = [name for name, row in unfog.AGENTS.items() if row.can.see_bias is None]
BINARY = ["alg1", "alg1-pg", "alg1-laplace", "unfog", "unfog-delayed", "late", "temporal"]
MORE = ["unfog-thompson", "unfog-toptwo", "unfog-ids", "alg1-exact-smoothing", "alg1-exact-joint"]

ONE_UNIT = ["coupled", "alg1-exact-smoothing", "alg1-exact-joint"]  # these denoise past rounds with one bias


def recovered(folder: Path, given: dict[str, Any], calls: int, copies: int, **how: Any) -> Player:
    """A problem that is played, closed and opened, and whose files are copied now and then: each copy is
    played on as the store itself is, and must come to the same answers and the same state.
    """
    player, points = Player(3, given["agent"] not in ONE_UNIT, **how), random.Random(4)
    path = folder / "store" / "walks.unfog"
    path.parent.mkdir(parents=True)
    store = player.open(path)
    store.problem("walks", **given)
    left, others = calls, []
    for part in range(copies):
        now = min(left, points.randrange(2 * calls // (copies + 1)))
        player.play(store.problem("walks"), now)
        left -= now
        if part % 3 == 1:
            store.close()
            store = player.open(path)
        elif part % 3 == 2:
            store.processor.cache.save()
            player.play(store.problem("walks"), min(left, 7))
            left -= min(left, 7)
        others.append((copied(store, folder / f"copy {part}"), player.again(), left))
    player.play(store.problem("walks"), left)
    found = store.problem("walks").state_hash()
    for replayed in (store.replay()["walks"], store.replay(verify=True)["walks"]):
        assert replayed.same
    assert store.problem("walks").state_hash() == found
    store.close()
    for path_, other, rest in others:
        with other.open(path_) as again:
            other.play(again.problem("walks"), rest)
            assert other.answers == player.answers
            assert again.problem("walks").state_hash() == found
    return player


def check(player: Player, **least: int) -> None:
    """Enough of everything happened."""
    wanted = {"decide": 20, "reward": 8, "reveal": 3, "cancel": 1, "retire_arm": 1} | least
    assert all(player.done[verb] >= number for verb, number in wanted.items()), player.done


@pytest.mark.slow
@pytest.mark.parametrize("agent", [*ROWS, *MORE])
def test_every_row(tmp_path: Path, agent: str) -> None:
    check(recovered(tmp_path, terms(agent), 150, 3, grows=True), add_arm=1)


@pytest.mark.slow
@pytest.mark.parametrize("agent", BINARY)
def test_rewards_of_0_or_1(tmp_path: Path, agent: str) -> None:
    """Chains go on where they were."""
    check(recovered(tmp_path, terms(agent, "binary"), 150, 3, grows=True), add_arm=1)


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["unfog", "late", "alg2", "coupled", "temporal"])
def test_rewards_that_are_kept_until_the_wait_is_over(tmp_path: Path, agent: str) -> None:
    given = terms(agent, reward_window=20, context_window=60, default_reward=0.25, reward_aggregation="mean")
    check(recovered(tmp_path, given, 150, 3))


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["unfog", "late", "naive"])
def test_arms_with_vectors_that_are_added(tmp_path: Path, agent: str) -> None:
    given = terms(agent, arms=VECTORS, features="product")
    check(recovered(tmp_path, given, 150, 3, grows=True), add_arm=1)


@pytest.mark.parametrize("agent", ["unfog", "alg1"])
def test_no_channel(tmp_path: Path, agent: str) -> None:
    check(recovered(tmp_path, terms(agent, channel=None), 150, 3))


def closed(folder: Path) -> tuple[Path, Player, str, int]:
    """A store with two snapshots and another problem; its player, what is remembered, and of how much."""
    player, path = Player(6), folder / "store" / "walks.unfog"
    path.parent.mkdir()
    with player.open(path) as store:
        store.problem("naps", **terms("late")).decide([0.5, 1.0])
        walks = store.problem("walks", **terms("late"))
        player.play(walks, 60)
        store.processor.cache.save()
        player.play(walks, 60)
        found = walks.state_hash(), len(walks.events())
    return path, player, *found


def damage(path: Path, place: int) -> None:
    """Change a bit of the newest snapshot."""
    connection = sqlite3.connect(path)
    newest = "SELECT seq, blob FROM snapshot WHERE problem = 'walks' ORDER BY seq DESC"
    seq, blob = connection.execute(newest).fetchone()
    blob = bytearray(blob)
    blob[place] ^= 1
    connection.execute("UPDATE snapshot SET blob = ? WHERE problem = 'walks' AND seq = ?", (blob, seq))
    connection.commit()
    connection.close()


def read_anew(path: Path, player: Player, monkeypatch: pytest.MonkeyPatch) -> tuple[str, int]:
    """What is remembered of the problem by another start, and how many events it had to read for that."""
    fold, counts = snapshot.apply_rows, list[int]()

    def counting(*given: Any) -> Any:
        state, found = fold(*given)
        counts.append(found.events)
        return state, found

    with monkeypatch.context() as patch, player.open(path) as store:
        patch.setattr(snapshot, "apply_rows", counting)
        return store.problem("walks").state_hash(), counts[0]


def test_a_snapshot_spares_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, player, found, _ = closed(tmp_path)
    assert read_anew(path, player, monkeypatch) == (found, 0)


@pytest.mark.parametrize("place", [0, 9, 40, 3000, -1])
def test_a_snapshot_with_a_changed_byte_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: int
) -> None:
    """There is one before it."""
    path, player, found, events = closed(tmp_path)
    damage(path, place)
    state_hash, read = read_anew(path, player, monkeypatch)
    assert state_hash == found
    assert 0 < read < events


def test_a_snapshot_of_another_version_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, player, found, events = closed(tmp_path)
    monkeypatch.setattr(snapshot, "__version__", "0.0.0")
    assert read_anew(path, player, monkeypatch) == (found, events)


def test_a_snapshot_of_another_problem_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, player, found, events = closed(tmp_path)
    with player.open(path) as store:
        processor, last = store.processor, store.processor.log.last
        other = snapshot.written(snapshot.content(processor.cache.get("naps")))
        processor.log.keep("walks", last, snapshot.snapshot_key(processor.made("naps")), other)
    assert read_anew(path, player, monkeypatch) == (found, events)


@pytest.mark.parametrize(
    "more", [{}, {"reward_window": 20, "default_reward": 0.25, "reward_aggregation": "mean"}]
)
@pytest.mark.parametrize("agent", ["unfog", "late", "alg2", "coupled", "temporal"])
def test_what_is_to_be_written_does_not_change_any_more(
    tmp_path: Path, agent: str, more: dict[str, Any]
) -> None:
    """A snapshot is written while others go on deciding."""
    player = Player(5, agent not in ONE_UNIT, grows=True)
    with player.open(tmp_path / "walks.unfog") as store:
        walks = store.problem("walks", **terms(agent, **more))
        walks.add_shadow("naive")
        for _ in range(2):
            player.play(walks, 25)
            before = walks.state_hash()
            told = snapshot.content(store.processor.cache.get("walks"))
            player.play(walks, 25)
            assert _codec.digest(told) == before != walks.state_hash()


def test_a_snapshot_on_its_way_holds_up_nobody_but_who_erases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others decide while it is written; what was erased meanwhile must not come back with it."""
    player, path = Player(6), tmp_path / "walks.unfog"
    begun, go_on, wrote = threading.Event(), threading.Event(), snapshot.written

    def slow(told: Any) -> bytes:
        begun.set()
        assert go_on.wait(10)
        return wrote(told)

    with player.open(path) as store:
        walks = store.problem("walks", **terms("late"))
        player.play(walks, 40)
        monkeypatch.setattr(snapshot, "written", slow)
        threads = [threading.Thread(target=store.processor.cache.save)]
        threads[0].start()
        assert begun.wait(10)
        player.play(walks, 20)
        threads.append(threading.Thread(target=lambda: store.erase(unit="ann")))
        threads[1].start()
        threads[1].join(0.05)
        assert threads[1].is_alive()
        go_on.set()
        for thread in threads:
            thread.join(10)
        monkeypatch.undo()
        assert store.processor.log.snapshot("walks") is None
        assert "ann" not in store.processor.cache.get("walks").runner.channels
        found = walks.state_hash()
    with player.open(path) as store:
        assert store.problem("walks").state_hash() == found


def failure(call: Callable[[], object]) -> str:
    """What a call says that fails; nothing, if it does not."""
    try:
        call()
    except StoreError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("number", [1, 2])
def test_a_commit_that_fails_leaves_memory_as_the_log_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, late: bool
) -> None:
    """Whichever statement it is: the caller is told, and the next answer is that of a store read anew."""
    disk, player = Disk(), Player(8)
    monkeypatch.setattr("unfog.live.sqlite.SqliteBackend", partial(SqliteBackend, connect=disk.connect))
    path = tmp_path / "store" / "walks.unfog"
    path.parent.mkdir()
    with player.open(path) as store:
        walks = store.problem("walks", **terms("late"))
        player.play(walks, 40)
        refused = reached = 0
        for statement in range(1, 12):
            disk.fail([statement], late)
            player.time += 1.0
            asked = [{"context": [0.3, 0.4], "key": f"k{statement}{'+' * i}"} for i in range(number)]
            said = failure(partial(walks.decide_many, asked))
            refused, reached = refused + bool(said), reached + (disk.calls >= statement)
            disk.fail(())
            kept = sum((event["key"] or "").strip("+") == f"k{statement}" for event in walks.events())
            assert kept == number if not said else kept <= number * ("nothing was changed" not in said)
            other = player.again()
            with other.open(copied(store, tmp_path / f"copy {statement}")) as copy:
                assert copy.problem("walks").state_hash() == walks.state_hash()
                again = copy.problem("walks").decide([1.0, -1.0], key=f"next {statement}")
            assert walks.decide([1.0, -1.0], key=f"next {statement}") == again
            walks.decide_many(asked)
        assert store.replay(verify=True)["walks"].same
    assert reached >= refused >= 2 - late


def test_a_call_is_answered_after_its_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk, player = Disk(), Player(9)
    monkeypatch.setattr("unfog.live.sqlite.SqliteBackend", partial(SqliteBackend, connect=disk.connect))
    reached, go_on, answered = threading.Event(), threading.Event(), list[Any]()

    def at_commit(_: sqlite3.Connection) -> None:
        reached.set()
        assert go_on.wait(10)

    with player.open(tmp_path / "walks.unfog") as store:
        walks = store.problem("walks", **terms("unfog"))
        disk.at_commit = at_commit
        thread = threading.Thread(target=lambda: answered.append(walks.decide([0.1, 0.2])))
        thread.start()
        assert reached.wait(10)
        thread.join(0.05)
        assert answered == []
        go_on.set()
        thread.join(10)
        assert len(answered) == 1
