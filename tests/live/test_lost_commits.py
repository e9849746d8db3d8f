"""A commit that fails while other threads are in the middle of something, and locks that are taken twice.

Each test holds a thread at the moment at which the failure would do harm, lets the commit fail, and goes on.
"""

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.live.faults import Disk, failure
from tests.live.ground import problem, replayed
from unfog.live import Problem, Store, StoreError, snapshot, transfer
from unfog.live.errors import ImportInProgressError
from unfog.live.log import EventLog
from unfog.live.sqlite import SqliteBackend

READING = [0.5, -1.0]


class Failure:
    """The next commit of a disk: it is reached, waits until it is let go, and fails."""

    def __init__(self, disk: Disk) -> None:
        self.reached, self.go, self._disk = threading.Event(), threading.Event(), disk
        disk.at_commit = self

    def __call__(self, connection: object) -> None:
        self._disk.at_commit = None
        self.reached.set()
        assert self.go.wait(20)
        raise failure()


class Call(threading.Thread):
    """A call in a thread of its own, and what came of it."""

    def __init__(self, do: Callable[[], Any]) -> None:
        super().__init__(daemon=True)
        self.do = do
        self.result: Any = None
        self.start()

    def run(self) -> None:
        try:
            self.result = self.do()
        except Exception as error:  # noqa: BLE001
            self.result = error

    def end(self) -> Any:
        self.join(20)
        assert not self.is_alive(), "it waits for ever"
        return self.result


@pytest.fixture(name="disk")
def _disk() -> Disk:
    return Disk()


@pytest.fixture(name="store")
def _store(tmp_path: Path, disk: Disk) -> Iterator[Store]:
    store = Store(EventLog(SqliteBackend(tmp_path / "walks.unfog", "normal", connect=disk.connect)))
    yield store
    Call(store.close).end()


def failing_reward(live: Problem, decision: str, disk: Disk, key: str | None = None) -> tuple[Failure, Call]:
    """A reward whose commit is under way, and will fail."""
    commit = Failure(disk)
    call = Call(lambda: live.reward(decision, 1.0, key=key))
    assert commit.reached.wait(20)
    return commit, call


def test_a_snapshot_has_only_what_the_log_has(
    store: Store, disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though a commit fails while the state is copied, and another event then takes the number of its row."""
    live = problem(store)
    lost, kept = (live.decide(READING).id for _ in range(2))
    commit, call = failing_reward(live, lost, disk)
    copy, encode = snapshot.content, snapshot.written

    def content(state: Any) -> Any:
        monkeypatch.setattr(snapshot, "content", copy)
        values = copy(state)
        commit.go.set()
        assert isinstance(call.end(), StoreError)
        return values

    def written(values: Any) -> bytes:
        monkeypatch.setattr(snapshot, "written", encode)
        assert Call(lambda: live.reward(kept, -1.0)).end().learnt
        return encode(values)

    monkeypatch.setattr(snapshot, "content", content)
    monkeypatch.setattr(snapshot, "written", written)
    Call(store.processor.cache.save).end()
    store.processor.cache._since.clear()  # so that closing writes no other snapshot
    store.close()
    with Store(EventLog(SqliteBackend(tmp_path / "walks.unfog", "normal"))) as again:
        reopened = again.problem("p")
        assert reopened.pending() == [lost]
        assert reopened.state_hash() == replayed(reopened)


@pytest.mark.parametrize("agent", ["late", "temporal"])
def test_what_was_not_kept_is_not_known_already(store: Store, disk: Disk, agent: str) -> None:
    """A report that another thread repeats, without a key, while the first is on its way to the disk."""
    live = problem(store, agent=agent)
    made = live.decide(READING)
    commit, first = failing_reward(live, made.id, disk)
    second = Call(lambda: live.reward(made.id, 1.0))
    second.join(0.2)
    commit.go.set()
    assert isinstance(first.end(), StoreError)
    assert isinstance(second.end(), StoreError)
    assert [event["kind"] for event in live.events()] == ["problem", "decide"]
    assert live.pending() == [made.id]


def test_a_key_is_not_answered_with_a_row_that_was_lost(
    store: Store, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though another event has its number by the time the caller waits for the commit."""
    live = problem(store)
    made, other = live.decide(READING), live.decide(READING)
    log = store.processor.log
    find, recent, commits = log.find, log.recent, log.commit
    asked, begun, failing = threading.Event(), threading.Event(), Failure(disk)

    def find_first(name: str, key: str) -> Any:
        row = find(name, key)
        if threading.current_thread() is second:
            asked.set()
            assert failing.reached.wait(20)
        return row

    def lose_it(name: str, key: str, mark: int) -> Any:
        row = recent(name, key, mark)
        if threading.current_thread() is second and row is not None:
            assert begun.wait(20)
            failing.go.set()
            first.end()
        return row

    def after_another(ticket: int, epoch: int) -> None:
        if threading.current_thread() is second:
            Call(lambda: live.reward(other.id, 0.0)).end()
        commits(ticket, epoch)

    monkeypatch.setattr(log, "find", find_first)
    monkeypatch.setattr(log, "recent", lose_it)
    monkeypatch.setattr(log, "commit", after_another)
    start = threading.Event()
    second = Call(lambda: start.wait(20) and live.reward(made.id, 1.0, key="k"))
    start.set()
    assert asked.wait(20)
    first = Call(lambda: live.reward(made.id, 1.0, key="k"))
    begun.set()
    assert isinstance(second.end(), StoreError)
    assert isinstance(first.end(), StoreError)
    rewards = [event["decision"] for event in live.events() if event["kind"] == "reward"]
    assert rewards == [other.id]


def test_what_is_looked_at_was_kept(store: Store, disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    live = problem(store)
    made = live.decide(READING)
    commit, call = failing_reward(live, made.id, disk)
    expire = store.processor._expire

    def fail_meanwhile(*arguments: Any) -> None:
        expire(*arguments)
        commit.go.set()
        call.end()

    monkeypatch.setattr(store.processor, "_expire", fail_meanwhile)
    assert live.pending() == [made.id]
    assert isinstance(call.end(), StoreError)


def test_a_failed_commit_leaves_no_problem_reserved(
    store: Store, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    live, other = problem(store), problem(store, "other")
    live.decide(READING)
    other.decide(READING)
    lines = list(store.export("p"))
    commits, queued, go = store.processor.log.commit, threading.Event(), threading.Event()

    def wait(ticket: int, epoch: int) -> None:
        if threading.current_thread() is not threading.main_thread():
            queued.set()
            assert go.wait(20)
        commits(ticket, epoch)

    monkeypatch.setattr(store.processor.log, "commit", wait)
    call = Call(lambda: other.decide(READING))  # its row is in the queue
    assert queued.wait(20)
    Failure(disk).go.set()
    with pytest.raises(StoreError):
        store.import_events(lines)
    go.set()
    assert isinstance(call.end(), StoreError)
    assert live.decide(READING).number == 1
    assert store.import_events(lines) == 0


def test_a_unit_is_erased_in_a_batch_while_a_snapshot_is_to_be_written(store: Store) -> None:
    """Neither waits for ever for what the other holds."""
    live = problem(store)
    live.decide(READING, unit="ann")
    saving = list[Call]()

    def erase() -> dict[str, int]:
        with store.batch():
            saving.append(Call(store.processor.cache.save))  # it wants the lock that the batch holds
            saving[0].join(0.3)
            return store.erase(unit="ann")

    assert Call(erase).end() == {"p": 1}
    assert saving[0].end() is None
    assert "'ann'" not in str(live.events())
    assert live.state_hash() == replayed(live)


def test_no_unit_is_erased_while_a_log_comes_in(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    live = problem(store)
    for _ in range(6):
        live.decide(READING, unit="ann")
    lines, append = list(store.export("p")), store.processor.append
    refused = list[Any]()

    def erase_meanwhile(*arguments: Any) -> None:
        append(*arguments)
        refused.append(Call(lambda: store.erase(unit="ann")).end())

    monkeypatch.setattr(transfer, "CHUNK", 3)
    monkeypatch.setattr(store.processor, "append", erase_meanwhile)
    store.import_events(lines, "copy")
    assert refused
    assert all(isinstance(one, ImportInProgressError) for one in refused)
    assert store.problem("copy").state_hash() == live.state_hash()


FORK = """
import os, sys, threading
import unfog
store = unfog.live.open(sys.argv[1], sync="normal")
live = store.problem("p", context=["x"], arms=["a", "b"], agent="naive")
live.decide([1.0])
held, go = threading.Event(), threading.Event()

def work():
    with store.batch():
        held.set()
        go.wait()

thread = threading.Thread(target=work)
thread.start()
held.wait()
child = os.fork()
if child == 0:
    for call in (lambda: live.decide([1.0]), live.pending, store.close):
        try:
            call()
        except Exception as error:
            print(error, flush=True)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
go.set()
thread.join()
live.decide([2.0])
store.close()
"""


def test_a_forked_child_is_refused_though_a_thread_of_its_parent_was_at_work(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FORK, str(tmp_path / "walks.unfog")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    refused = done.stdout.splitlines()
    assert len(refused) >= 2
    assert all("which alone may use it" in line for line in refused)


def test_an_import_of_erased_events_goes_on_after_a_start(tmp_path: Path) -> None:
    """What is reported of an erased decision counts for nothing, whatever is in the snapshot."""

    def opened(name: str) -> Store:
        return Store(EventLog(SqliteBackend(tmp_path / f"{name}.unfog", "normal")))

    with opened("first") as store:
        live = problem(store, reward_window="30m")
        ids = [live.decide(READING, unit=unit).id for unit in ("ann", "ann", "bob", "bob")]
        for one in ids[::2]:
            live.reward(one, 1.0)
        for one in ids[1::2]:
            live.cancel(one)
        store.erase(unit="ann")
        lines = list(store.export("p"))
    with opened("second") as store:
        store.import_events(lines[:6])
        store.problem("p").pending()
    with opened("second") as store, opened("third") as other:
        store.import_events(lines)
        other.import_events(lines)
        assert store.problem("p").state_hash() == other.problem("p").state_hash()
        assert store.replay()["p"].same
