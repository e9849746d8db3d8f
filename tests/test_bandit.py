"""`unfog.Bandit`: what it has besides the verbs of a live problem, which tests/live/conformance checks."""

import inspect
import os
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import unfog
from tests.each import each
from tests.live.conformance.places import in_memory
from tests.live.conformance.stores import lived
from tests.live.ground import ARMS, CHANNEL, COORDINATES, Hand
from tests.live.nonsense import JUNK
from unfog.live import StoreError, memory, saved, snapshot
from unfog.validation import InputError

TERMS: dict[str, Any] = {"context": COORDINATES, "arms": ARMS, "channel": CHANNEL, "seed": 11}
STORE = b"SQLite format 3\0" + b"\0" * 100


def played(bandit: unfog.Bandit, rounds: int) -> list[str]:
    """The arms of decisions of two units with gaps, rewards and truths."""
    arms = []
    for i in range(rounds):
        d = bandit.decide([i % 7 - 3.0, None if i % 5 == 0 else i % 4], unit="ann" if i % 3 else "bob")
        arms.append(d.arm)
        if i % 4:
            bandit.reward(d.id, i % 3 - 1.0)
        if i % 6 == 1:
            bandit.reveal(d.id, {"x": i % 7 - 2.5})
    return arms


def test_a_saved_bandit_goes_on_as_the_one_it_was(tmp_path: Path) -> None:
    with in_memory(tmp_path) as place:
        bandit = lived(place)
        assert isinstance(bandit, unfog.Bandit)
        bandit.save(tmp_path / "walks.bandit")
        loaded = unfog.Bandit.load(tmp_path / "walks.bandit", clock=place.clock)
        assert (loaded.state_hash(), loaded.events()) == (bandit.state_hash(), bandit.events())
        assert loaded.replay(verify=True).same
        assert played(loaded, 20) == played(bandit, 20)
        bandit.save(tmp_path / "walks.bandit")  # in place of the one that is there
        assert unfog.Bandit.load(tmp_path / "walks.bandit").state_hash() == bandit.state_hash()
    assert os.listdir(tmp_path) == ["walks.bandit"]


def test_another_version_builds_the_state_from_the_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bandit, path = unfog.Bandit(**TERMS), tmp_path / "walks.bandit"
    played(bandit, 30)
    bandit.save(path)
    monkeypatch.setattr(snapshot, "snapshot_key", lambda _: "another version")
    monkeypatch.setattr(snapshot, "_read_state", None)  # it must not be read
    assert unfog.Bandit.load(path).state_hash() == bandit.state_hash()


def test_a_file_that_was_damaged_or_is_not_ours_is_refused(tmp_path: Path) -> None:
    bandit, path = unfog.Bandit(**TERMS), tmp_path / "walks.bandit"
    played(bandit, 10)
    bandit.save(path)
    good = path.read_bytes()
    for i in range(0, len(good), 41):
        check_refused(path, good[:i] + bytes([good[i] ^ 1]) + good[i + 1 :], "damaged|another program's")
        check_refused(path, good[:i], "damaged|another program's")
    check_refused(path, b"", "another program's")
    check_refused(path, STORE, r"a store is opened by unfog\.live\.open")
    newer = saved.MAGIC + b"2\n" + good[len(saved.MAGIC) + 2 : -saved.HASH]
    check_refused(path, newer + sha256(newer).digest(), "has layout 2")
    check_refused(path, None, "there is no file .*allowed: a file that Bandit.save wrote")
    assert unfog.Bandit.load(write(path, good)).state_hash() == bandit.state_hash()


def write(path: Path, content: bytes | None) -> Path:
    path.unlink(missing_ok=True)
    if content is not None:
        path.write_bytes(content)
    return path


def check_refused(path: Path, content: bytes | None, message: str) -> None:
    with pytest.raises(InputError, match=rf"^path: .*({message})") as caught:
        unfog.Bandit.load(write(path, content))
    assert "\n" not in str(caught.value)


@each("path", [5, "a\0.bandit", "walks.unfog", "walks", "nowhere/walks.bandit", ""])
def test_only_a_file_of_its_own_kind_is_written(tmp_path: Path, path: Any) -> None:
    with pytest.raises(InputError, match=r"^path: "):
        unfog.Bandit(**TERMS).save(tmp_path / path if isinstance(path, str) and path else path)


def test_a_disk_that_is_full_leaves_the_file_that_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(handle: int) -> None:
        raise OSError(28, "No space left on device")

    bandit, path = unfog.Bandit(**TERMS), tmp_path / "walks.bandit"
    bandit.save(path)
    before = path.read_bytes()
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StoreError, match="cannot be written: No space left"):
        bandit.save(path)
    assert (path.read_bytes(), os.listdir(tmp_path)) == (before, ["walks.bandit"])


def test_a_pilot_moves_into_a_store_and_back(tmp_path: Path) -> None:
    clock = Hand()
    bandit = unfog.Bandit(name="pilot", clock=clock, **TERMS)
    played(bandit, 20)
    with unfog.live.open(tmp_path / "a.unfog", sync="normal", clock=clock) as store:
        bandit.copy_to(store)
        bandit.copy_to(store, "walks")
        assert store.names() == ["pilot", "walks"]
        assert store.problem("walks").state_hash() == bandit.state_hash()
        played(bandit, 5)
        bandit.copy_to(store, "walks")  # what is new
        assert store.problem("walks").state_hash() == bandit.state_hash()
        back = unfog.Bandit.from_events(store.export("walks"), clock=clock)
        assert (back.name, back.state_hash()) == ("walks", bandit.state_hash())
        assert played(back, 10) == played(bandit, 10)


def test_code_of_ones_own_is_imported_only_if_its_module_is_allowed() -> None:
    bandit = unfog.Bandit(**TERMS)
    lines = [line.replace('"agent": "unfog"', '"agent": "no_such:agent"') for line in bandit.export()]
    with pytest.raises(InputError, match=r"^line 1, agent: no_such:agent; allowed: code of one's own if"):
        unfog.Bandit.from_events(lines)


def test_keep_drops_the_events_of_old_closed_decisions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "BLOCK", 16)
    clock = Hand()
    complete = unfog.Bandit(clock=clock, **TERMS)
    waiting = complete.decide([1.0, 2.0], unit="cora", key="k").id
    bandit = unfog.Bandit.from_events(complete.export(), keep=50, clock=clock)
    assert played(bandit, 400) == played(complete, 400)
    assert bandit.state_hash() == complete.state_hash()
    numbers = [event["number"] for event in bandit.events() if event["kind"] == "decide"]
    assert numbers[0] == 0  # of the decision that is still open
    assert numbers[-50:] == [*range(351, 401)]
    assert 2 * len(bandit.events()) < len(complete.events())
    bandit.processor.cache.clear()  # as after a change that was interrupted
    assert bandit.state_hash() == complete.state_hash()
    assert bandit.decide([1.0, 2.0], unit="cora", key="k").id == waiting
    assert bandit.reward(waiting, 1.0).learnt
    assert len(bandit.history()["points"]["number"]) >= 50
    store = unfog.live.open(tmp_path / "a.unfog")
    calls: list[Callable[[], object]] = [
        bandit.replay,
        lambda: bandit.erase(unit="ann"),
        lambda: bandit.import_events(complete.export()),
        lambda: bandit.copy_to(store),
    ]
    for call in calls:
        with pytest.raises(
            StoreError, match=r"this bandit .*: events of its first \d+ decisions were dropped"
        ):
            call()
    store.close()
    bandit.save(tmp_path / "walks.bandit")
    assert unfog.Bandit.load(tmp_path / "walks.bandit").state_hash() == bandit.state_hash()
    monkeypatch.setattr(snapshot, "snapshot_key", lambda _: "another version")
    with pytest.raises(StoreError, match=r"events of its first .* were dropped, and its snapshot was"):
        unfog.Bandit.load(tmp_path / "walks.bandit")


def test_nonsense_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bandit = unfog.Bandit(**TERMS)
    played(bandit, 10)
    before = bandit.events()
    calls: list[Callable[[Any], object]] = [
        unfog.Bandit.load,
        unfog.Bandit.from_events,
        bandit.import_events,
        bandit.save,
        lambda junk: bandit.erase(unit=junk),
    ]
    monkeypatch.chdir(tmp_path)
    for junk in JUNK:
        for call in calls:
            with pytest.raises(InputError) as caught:
                call(junk)
            assert str(caught.value).isprintable()
    assert (bandit.events(), os.listdir(tmp_path)) == (before, [])


FORKED = """
import os
import unfog
from tests.test_bandit import TERMS, played

bandit = unfog.Bandit(**TERMS)
played(bandit, 10)
with bandit.processor.lock:  # as another thread of the parent might
    child = os.fork()
if child == 0:
    arms = played(bandit, 10)
    os._exit(0 if len(arms) == 10 and bandit.replay(verify=True).decisions == 20 else 1)
assert os.waitpid(child, 0)[1] == 0
assert bandit.replay(verify=True).decisions == 10
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_has_a_bandit_of_its_own() -> None:
    """In a process of its own, since JAX, which other tests import, warns of any fork."""
    root = Path(__file__).parents[1]
    subprocess.run([sys.executable, "-c", FORKED], check=True, timeout=100, cwd=root)


ALONE = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"sqlite3", "_sqlite3", "pydantic", "typer", "xarray", "scipy", "httpx"}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Refuse())
import unfog
walks = unfog.Bandit(arms=["send", "wait"], context={"steps": 1200, "day": unfog.Category(["mon", "tue"])})
d = walks.decide({"steps": 1648, "day": None}, unit="ann")
walks.reward(d.id, 320.0)
walks.reveal(d.id, {"steps": 2410})
walks.save("walks.bandit")
loaded = unfog.Bandit.load("walks.bandit")
print(repr(loaded), loaded, sep="\\n")
"""


def test_it_needs_numpy_alone(tmp_path: Path) -> None:
    package = Path(unfog.__file__).parents[1]
    environment = os.environ | {"PYTHONPATH": str(package)}
    done = subprocess.run(
        [sys.executable, "-c", ALONE],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    first, second, *_ = [*done.stdout.splitlines(), "", ""]
    assert first == "<unfog.Bandit: agent 'hedged', 2 arms, 1 decisions, 1 rewards>", done.stderr
    assert second == "bandit (agent hedged): 1 decision for 1 unit, 1 reward learnt, 1 true context shown"


def test_options_are_those_of_a_problem_in_a_store() -> None:
    own = {"name", "keep", "clock"}
    options = {*inspect.signature(unfog.Bandit).parameters} - own
    assert options == {*inspect.signature(unfog.live.Store.problem).parameters} - {"self", "name"}
    bad: dict[str, Any] = {"keep": 0.5, "name": "", "arms": ["a", "a"], "context": None, "seeds": 1}
    for field, value in bad.items():
        with pytest.raises(InputError, match=f"^{field}"):
            unfog.Bandit(**TERMS | {field: value})


def test_arms_come_to_a_bandit_that_was_told_nothing_else() -> None:
    """Before the first reward and after many: what was learnt stays, and the new arm is tried."""
    for rounds in (0, 60):
        bandit = unfog.Bandit(arms=["a", "b"], context={"steps": 1200, "hour": 0}, seed=3)
        for i in range(rounds):
            d = bandit.decide({"steps": 7000 + 500 * (i % 9), "hour": i % 24}, unit=i % 4)
            bandit.reward(d.id, 300.0 if d.arm == "a" else 200.0 + i % 3)
        bandit.add_arm("c")
        taken = set()
        for i in range(40):
            d = bandit.decide({"steps": 7000 + 400 * (i % 7), "hour": i % 24}, unit=i % 4)
            bandit.reward(d.id, {"a": 300.0, "b": 200.0, "c": 800.0}[d.arm] + i % 3)
            taken.add(d.arm)
        assert "c" in taken
        assert bandit.predict_rewards({"steps": 7000, "hour": 9}).mean("arm")["mean"] > 300
        assert bandit.replay(verify=True).same


def test_nothing_is_expected_of_arms_that_are_drawn_by_lot() -> None:
    bandit = unfog.Bandit(arms=["a", "b"], context={"steps": 1200})
    bandit.decide({"steps": 7000})
    data = bandit.predict_rewards({"steps": 7000})
    assert data["mean"].isnull().all()
    assert data["probability_best"].values.tolist() == [0.5, 0.5]
