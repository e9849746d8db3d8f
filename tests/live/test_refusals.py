"""What is refused, repeated or fails in the middle leaves memory and log as one."""

import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.live.ground import Hand, opened, problem, replayed
from unfog.features import per_arm
from unfog.live import DecisionClosedError, Store
from unfog.live.backend import Row
from unfog.live.commands import Event, Reward
from unfog.live.errors import InternalError, KeyForgottenError
from unfog.live.state import State
from unfog.validation import InputError


def same(store: Store) -> bool:
    return store.problem("p").state_hash() == replayed(store)


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (InputError("mine", 1, "2"), InternalError),  # checks are over by then
        (RuntimeError("mine"), InternalError),
        (MemoryError(), MemoryError),
        (KeyboardInterrupt(), KeyboardInterrupt),
    ],
)
def test_a_feature_map_that_fails_in_the_middle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, raised: type[BaseException]
) -> None:
    """By then random numbers are drawn, whatever it raises."""
    failing: list[BaseException] = []

    def build(actions: Any) -> Any:
        made = per_arm(actions)

        class Own(type(made)):  # type: ignore[misc]
            def design(self, context: Any) -> Any:
                if failing:
                    raise failing.pop()
                return super().design(context)

        return Own(*made)

    module = ModuleType("own_map")
    vars(module)["build"] = build
    monkeypatch.setitem(sys.modules, "own_map", module)
    with opened(tmp_path) as store:
        live = problem(store, features="own_map:build", arms={"a": [0, 0], "b": [0, 0]})
        other = problem(store, "other")
        live.reward(live.decide([0, 1]).id, 1.0)
        before = live.state_hash(), other.state_hash(), len(live.events())
        failing.append(error)
        with pytest.raises(raised) as caught:
            live.decide([1, 1])
        if raised is InternalError:
            assert caught.value.__cause__ is error
            assert str(caught.value) == (
                f"'decide' of problem 'p' failed half-way with {type(error).__name__}: "
                "a bug of unfog, or of your own code; this request changed nothing"
            )
        assert (live.state_hash(), other.state_hash(), len(live.events())) == before
        live.reward(live.decide([0, 1]).id, 1.0)
        other.decide([0, 1])
        assert all(found.same for found in store.replay(verify=True).values())


def test_an_event_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path) as store:
        live = problem(store)
        made, before = live.decide([0, 1]), live.state_hash()
        with monkeypatch.context() as patch:
            patch.setattr(store.processor, "_log_event", lambda *_: float("no"))
            with pytest.raises(InternalError, match="'reward' of problem 'p' failed half-way"):
                live.reward(made.id, 1.0)
        assert live.state_hash() == before


@pytest.mark.parametrize("snapshot", [False, True])
def test_after_a_failure_the_events_since_the_last_snapshot_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: bool
) -> None:
    """The whole log only where there is no snapshot."""
    apply, asked = Reward.apply, list[tuple[int, int]]()

    def fail(self: Reward, state: State, event: Event, now: float) -> Event:
        apply(self, state, event, now)
        raise ZeroDivisionError

    with opened(tmp_path) as store:
        live, log = problem(store), store.processor.log
        for _ in range(5):
            live.decide([0, 1])
        if snapshot:
            store.processor.cache.save()
        first, made, before = log.last, live.decide([0, 1]), live.state_hash()
        read = log.backend.read

        def counted(problem: str | None, after: int, upto: int, size: int) -> list[Row]:
            asked.append((after, upto))
            return read(problem, after, upto, size)

        with monkeypatch.context() as patch:
            patch.setattr(Reward, "apply", fail)
            patch.setattr(log.backend, "read", counted)
            with pytest.raises(InternalError):
                live.reward(made.id, 1.0)
            assert live.state_hash() == before
        assert asked == [(first if snapshot else 0, first + 1)]


def test_known_again_with_a_key_once_the_window_is_over(tmp_path: Path) -> None:
    """The event changes nothing but what time has: the same as in a replay."""
    clock = Hand()
    with opened(tmp_path, clock) as store:
        live = problem(store, agent="late", context_window=50)
        made = live.decide([0, 1])
        live.reward(made.id, 1.0)
        clock.time += 60
        assert live.reward(made.id, 1.0, key="again").outcome == "known"
        assert same(store)


def test_a_refusal_that_writes_down_what_has_expired(tmp_path: Path) -> None:
    clock = Hand()
    with opened(tmp_path, clock) as store:
        live = problem(store, reward_window=10, default_reward=0.0)
        live.decide([0, 1])
        clock.time += 20
        with pytest.raises(InputError, match="decision"):
            live.reward("0-nobody", 1.0)
        assert store.replay()["p"].same
        assert live.pending() == []
        assert [one["kind"] for one in live.events()] == ["problem", "decide", "expire"]


def test_beside_a_batch_of_another_thread_nothing_is_acknowledged_early(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        live = problem(store)
        live.decide([0, 0])
        begun, ended = threading.Event(), threading.Event()

        def batch() -> None:
            with store.batch():
                begun.set()
                ended.wait()

        other, lock = threading.Thread(target=batch), store.processor.lock

        class Lock:
            """Given back by us, it goes to a batch of another thread before we do anything else."""

            def __enter__(self) -> None:
                lock.acquire()

            def __exit__(self, *_: object) -> None:
                lock.release()
                if threading.current_thread() is threading.main_thread() and not begun.is_set():
                    other.start()
                    begun.wait()

        vars(store.processor)["lock"] = Lock()
        try:
            assert live.pin_arm("a").seq <= store.processor.log.committed
        finally:
            vars(store.processor)["lock"] = lock
            ended.set()
            other.join()


def test_so_many_keys_that_the_file_is_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path) as store:
        live, recent, asked = problem(store), store.processor.log.recent, []

        def forgetful(*told: Any) -> Any:
            asked.append(told)
            if len(asked) == 1:
                raise KeyForgottenError("k")
            return recent(*told)

        monkeypatch.setattr(store.processor.log, "recent", forgetful)
        assert live.decide([0, 0], key="k") == live.decide([0, 0], key="k")
        assert len(asked) == 2


def test_no_arm_is_frozen_that_there_is_not(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        live = problem(store)
        for arm in ("a", "b", "c"):
            live.retire_arm(arm)
        with pytest.raises(InputError, match="arm"):
            live.pin_arm("nobody")


def test_in_setting_2_a_reward_after_the_window_is_dropped(tmp_path: Path) -> None:
    clock = Hand()
    with opened(tmp_path, clock) as store:
        live = problem(store, agent="alg2", context_window=50)
        late, cancelled = live.decide([0, 1]), live.decide([0, 2])
        clock.time += 10
        assert live.reward(cancelled.id, 1.0).outcome == "waits"
        assert live.cancel(cancelled.id).outcome == "cancelled"
        with pytest.raises(DecisionClosedError):
            live.reveal(cancelled.id, [0, 2])
        clock.time += 50
        assert live.reward(late.id, 1.0).outcome == "waits"
        live.decide([0, 1])
        dropped = [one["decision"] for one in live.events() if one["kind"] == "expire"]
        assert dropped == [late.id]
        assert late.id not in store.processor.cache.get("p").open
        assert same(store)
