"""A unit that is erased: its bytes are gone, what was learnt from it is gone, and all else stays."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.live.played import Player, terms
from unfog import _codec
from unfog.live import decision_table, snapshot
from unfog.live.errors import NotFoundError
from unfog.live.problem import Problem
from unfog.live.store import Store
from unfog.validation import InputError

MARKS = [
    1234.5678125,  # a noisy context
    8765.4321875,  # a true one
    4242.4242125,  # the time of a reading
    0.7171717171,  # the noise of a reading
    "hermione",
    "secret-key-of-",
]


def bytes_of(store: Store) -> bytes:
    """All that is in the files of a store, as it is open."""
    return b"".join(path.read_bytes() for path in sorted(store.path.parent.iterdir()) if path.is_file())


def found(store: Store) -> list[Any]:
    """Those marks that some byte of the files still shows, as text or as a number's bytes."""
    raw, left = bytes_of(store), []
    for mark in MARKS:
        forms = [str(mark).encode()]
        if isinstance(mark, float):
            forms += [np.float64(mark).tobytes(), np.float64(mark).tobytes()[::-1]]
        left += [mark] * any(form in raw for form in forms)
    return left


def lived(store: Store, agent: str = "late", **more: Any) -> Problem:
    """A problem in which a unit left all kinds of traces between those of others."""
    given = terms(agent, reward_window=None, context_window=None, **more)
    walks = store.problem("walks", **given)
    if agent != "temporal":
        walks.add_shadow("alg1")
    at = {"measured_at": 4242.4242125} if agent == "temporal" else {}
    noise = {"noise_cov": [[0.7171717171, 0.0], [0.0, 1.0]]} if agent == "temporal" else {}
    for i in range(8):
        own: dict[str, Any] = {"unit": "hermione", **at, **noise}
        made = walks.decide([1234.5678125, 0.1], key=f"secret-key-of-{i}", **own)
        bob = walks.decide([0.3, i / 10], unit="bob", key=f"bob {i}")
        if i % 2:
            walks.reward(made.id, 5.0, key=f"secret-key-of-r{i}")
        if i % 3 == 0:
            walks.reveal(made.id, {"steps": 8765.4321875}, key=f"secret-key-of-s{i}")
        if i == 4:
            walks.cancel(walks.decide([1234.5678125, None], **own).id, key="secret-key-of-v")
        walks.reward(bob.id, i / 4)
        walks.reveal(bob.id, {"sleep": 0.5})
        if i == 5:
            store.processor.cache.save()
    return walks


@pytest.mark.parametrize("agent", ["late", "temporal", "unfog"])
def test_no_byte_of_it_is_left(tmp_path: Path, agent: str) -> None:
    player = Player(0)
    more = {"standardise": False} if agent == "temporal" else {}
    with player.open(tmp_path / "walks.unfog") as store:
        lived(store, agent, **more)
        store.processor.cache.save()
        assert [mark for mark in MARKS if mark not in found(store)] == (
            [] if agent == "temporal" else MARKS[2:4]
        )
        assert store.erase(unit="hermione") == {"walks": 9}
        assert found(store) == []
        store.processor.cache.save()
        assert found(store) == []
    with player.open(tmp_path / "walks.unfog") as store:
        assert found(store) == []
        walks = store.problem("walks")
        assert not any("hermione" in json.dumps(event) for event in walks.events())
        assert [event["decisions"] for event in walks.events() if event["kind"] == "erase"] == [9]
        walks.decide([0.5, 0.5], unit="bob", measured_at=5000.0)
        assert store.replay(verify=True)["walks"].same
    assert "hermione" not in (tmp_path / "walks.unfog").read_bytes().decode(errors="replace")


def learnt(store: Store, name: str = "walks") -> dict[str, Any]:
    """What is believed of theta and, for each unit, of its channel, by every agent."""
    runners = snapshot.content(store.processor.cache.get(name))["runners"]
    return {
        one: {"learner": runner["learner"], "channels": runner["channels"], "learnt": runner["learnt"]}
        for one, runner in runners.items()
    }


@pytest.mark.parametrize("agent", ["late", "unfog", "alg1"])
def test_the_rest_is_believed_as_if_it_had_never_been_learnt_from(tmp_path: Path, agent: str) -> None:
    """Against a store in which the others' decisions were the same, and the unit's were never reported."""
    player = Player(0)
    with player.open(tmp_path / "first.unfog") as store:
        walks = lived(store, agent)
        bob = learnt(store)[""]["channels"]["bob"]
        events = walks.events()
        store.erase(unit="hermione")
        erased = learnt(store)
        assert [*erased[""]["channels"]] == ["bob"]
        assert _codec.digest(erased[""]["channels"]["bob"]) == _codec.digest(bob)
    with player.open(tmp_path / "second.unfog") as store:
        other = store.problem("walks", **terms(agent, reward_window=None, context_window=None))
        other.add_shadow("alg1")
        ids = {}
        for event in events:
            if event["kind"] == "decide":
                told = {"context": event["context"], "unit": event["unit"], "logged_arm": event["arm"]}
                ids[event["decision"]] = other.decide(**told).id, event["unit"]
            elif event["decision"] in ids and ids[event["decision"]][1] == "bob":
                name, _ = ids[event["decision"]]
                if event["kind"] == "reward":
                    other.reward(name, event["value"])
                else:
                    other.reveal(name, event["context"])
        never = learnt(store)
    for runner in never.values():
        del runner["channels"]["hermione"]
    assert _codec.digest(erased) == _codec.digest(never)


def test_what_comes_after_goes_on(tmp_path: Path) -> None:
    """Later decisions are as a replay makes them, from a snapshot as well, and for the same name anew."""
    player = Player(4)
    with player.open(tmp_path / "walks.unfog") as store:
        walks = store.problem("walks", **terms("late"))
        player.play(walks, 80)
        pending = [
            one
            for one in walks.pending()
            if "bob" in json.dumps(store.processor.log.of("walks", one)[0].body)
        ]
        number = sum(event.get("unit") == "ann" for event in walks.events())
        assert store.erase(unit="ann") == {"walks": number}
        assert [one for one in walks.pending() if one in pending] == pending
        player.play(walks, 60)
        replayed = store.replay(verify=True)["walks"]
        assert replayed.same
        assert 0 < replayed.verified < replayed.decisions
        found = walks.state_hash()
        lines = [*store.export("walks")]
    with player.open(tmp_path / "walks.unfog") as store:
        assert store.problem("walks").state_hash() == found
        assert store.import_events(lines, "copy") == len(lines)
        assert store.problem("copy").state_hash() == found
        assert store.erase(unit="ann")  # those that came since


def test_all_problems_of_a_store(tmp_path: Path) -> None:
    with Player(0).open(tmp_path / "walks.unfog") as store:
        lived(store)
        naps = store.problem("naps", **terms("unfog"))
        naps.decide([0.1, 0.2], unit="bob")
        before = naps.state_hash()
        store.problem("rests", **terms("unfog")).decide([0.1, 0.2], unit="hermione")
        assert store.erase(unit="hermione") == {"walks": 9, "rests": 1}
        assert found(store) == []
        assert naps.state_hash() == before
        assert [event["kind"] for event in naps.events()] == ["problem", "decide"]


def test_a_unit_that_there_is_not(tmp_path: Path) -> None:
    with Player(0).open(tmp_path / "walks.unfog") as store:
        walks = lived(store)
        before, last = walks.state_hash(), store.processor.log.last
        with pytest.raises(
            NotFoundError, match=r"^unit: 'ron'; allowed: a unit that decisions were made for"
        ):
            store.erase(unit="ron")
        for unit in ("", None, 7):
            with pytest.raises(InputError, match=r"^unit: "):
                store.erase(unit=unit)  # type: ignore[arg-type]
        assert (walks.state_hash(), store.processor.log.last) == (before, last)
        store.erase(unit="hermione")
        with pytest.raises(NotFoundError, match=r"^unit: "):
            store.erase(unit="hermione")
        with pytest.raises(NotFoundError, match=r"^unit: "):
            walks.belief("hermione")


def test_a_table_after_an_erasure(tmp_path: Path) -> None:
    with Player(0).open(tmp_path / "walks.unfog") as store:
        walks = lived(store)
        store.erase(unit="hermione")
        rows = [*decision_table.as_table(walks.events(), ["steps", "sleep"])]
    assert len(rows) == 1 + 17
    assert not any("hermione" in str(row) or "1234" in str(row) or "8765" in str(row) for row in rows)


def test_vectors_that_came_with_a_decision_go(tmp_path: Path) -> None:
    with Player(0).open(tmp_path / "walks.unfog") as store:
        given = terms("unfog", features="product", arm_size=2) | {"arms": None}
        walks = store.problem("walks", **given)
        for i in range(4):
            arms = {"a": [1234.5678125, 0.5], f"b {i}": [8765.4321875, 1.0]}
            made = walks.decide([0.1, 0.2], unit="hermione", arms=arms, key=f"secret-key-of-{i}")
            walks.reward(made.id, 1.0)
        assert found(store) == [MARKS[0], MARKS[1], *MARKS[4:]]
        store.erase(unit="hermione")
        assert found(store) == []
        assert walks.decide([0.3, 0.1], arms={"c": [1.0, 2.0]}).number == 4
        assert store.replay(verify=True)["walks"].same
