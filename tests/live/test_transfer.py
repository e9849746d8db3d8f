"""Logs go out and come in, and the same is believed; whatever else comes in changes nothing."""

import csv
import io
import json
import math
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tests.live.faults import Disk
from tests.live.ground import Hand, opened, problem
from tests.live.played import NAMES, VECTORS, Player, terms
from unfog.live import decision_table, transfer
from unfog.live.errors import ConflictError, NotFoundError, StoreError
from unfog.live.problem import Problem
from unfog.live.sqlite import SqliteBackend
from unfog.live.store import Store
from unfog.validation import InputError


def exported(path: Path, agent: str, calls: int = 150, **more: Any) -> tuple[list[str], str]:
    """The lines of a problem in which much happened, and what is remembered of it."""
    player = Player(3, grows=True)
    with player.open(path / "first.unfog") as store:
        walks = store.problem("walks", **terms(agent, **more))
        walks.add_shadow("alg1")
        player.play(walks, calls // 2)
        walks.decide([0.1, 0.2], unit="ann", key="ann 1")
        walks.decide([0.1, 0.2], unit="dan", key="dan 1")
        player.play(walks, calls // 2)
        assert player.done["add_arm"]
        return [*store.export("walks")], walks.state_hash()


def other(path: Path) -> Store:
    return Player(0).open(path / "second.unfog")


@pytest.mark.parametrize("agent", ["unfog", "late", "alg2"])
def test_what_was_exported_is_believed_elsewhere(tmp_path: Path, agent: str) -> None:
    lines, found = exported(tmp_path, agent)
    with other(tmp_path) as store:
        assert store.import_events(lines) == len(lines)
        assert store.problem("walks").state_hash() == found
        assert store.replay(verify=True)["walks"].same
        assert [*store.export("walks")] == lines
        assert store.import_events(lines) == 0
        assert store.import_events(["", *lines[:20], "\n"]) == 0
        assert store.import_events(lines, "again") == len(lines)
        assert store.problem("again").state_hash() == found
        assert store.problem("again").state_hash() == found


def test_coordinates_in_another_order_are_the_same(tmp_path: Path) -> None:
    """Other programs write JSON with names in an order of their own."""
    lines, found = exported(tmp_path, "late", 60)
    events = [json.loads(line) for line in lines]
    for event in events[1:]:
        if isinstance(event.get("context"), dict):
            event["context"] = dict(reversed(event["context"].items()))
    with Player(3).open(tmp_path / "second.unfog") as store:
        store.import_events(json.dumps(event) for event in events)
        assert store.problem("walks").state_hash() == found


def test_times_of_the_past_come_into_a_store_that_goes_on(tmp_path: Path) -> None:
    """They are those of another problem; the store's own clock does not go back."""
    lines, found = exported(tmp_path, "unfog")
    player = Player(1)
    player.time = 5e6
    with player.open(tmp_path / "second.unfog") as store:
        naps = store.problem("naps", **terms("unfog", reward_window=40, default_reward=0.0))
        first = naps.decide([0.1, 0.2])
        store.import_events(lines)
        assert store.problem("walks").state_hash() == found
    player.time = 100.0  # a clock that was set back
    with player.open(tmp_path / "second.unfog") as store:
        assert store.processor.now("naps") == 5e6
        assert store.problem("walks").state_hash() == found
        assert store.problem("naps").pending() == [first.id]


def test_an_import_that_was_cut_short_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines, found = exported(tmp_path, "late")
    disk = Disk()
    monkeypatch.setattr("unfog.live.sqlite.SqliteBackend", partial(SqliteBackend, connect=disk.connect))
    monkeypatch.setattr(transfer, "CHUNK", 20)
    with other(tmp_path) as store:
        disk.fail([10])
        with pytest.raises(StoreError):
            store.import_events(lines)
        disk.fail(())
        there = len(store.problem("walks").events())
        assert 0 < there < len(lines)
        assert there % 20 == 0
        assert store.import_events(lines) == len(lines) - there
        assert store.problem("walks").state_hash() == found


def test_a_changed_line_is_a_conflict(tmp_path: Path) -> None:
    lines, found = exported(tmp_path, "unfog")
    place = next(i for i, line in enumerate(lines) if '"value": ' in line)
    with other(tmp_path) as store:
        store.import_events(lines[:-5])
        before = store.problem("walks").state_hash(), store.processor.log.last
        for new in ({"value": 0.125}, {"key": "another"}, {"decision": None}, {"time": 0.0}):
            changed = [*lines]
            changed[place] = json.dumps(json.loads(lines[place]) | new)
            with pytest.raises(ConflictError, match=rf"^line {place + 1}: "):
                store.import_events(changed)
            assert (store.problem("walks").state_hash(), store.processor.log.last) == before
        assert store.import_events(lines) == 5
        assert store.problem("walks").state_hash() == found


def refused(store: Store, lines: list[str], match: str, **more: Any) -> None:
    """An import that is refused and changes nothing."""
    before = store.names(), store.processor.log.last, store.problem("naps").state_hash()
    with pytest.raises(InputError, match=match):
        store.import_events(lines, **more)
    assert (store.names(), store.processor.log.last, store.problem("naps").state_hash()) == before


NO_EVENTS = [
    "not JSON",
    "[1, 2]",
    '"decide"',
    "{}",
    '{"kind": "decide", "x": NaN}',
    '{"kind": ["decide"]}',
    '{"kind": "decides"}',
    '{"a":' * 100_000,
    '{"kind": "reward", "value": Infinity}',
    '{"kind": "decide"',
    "null",
]


def test_lines_that_are_no_events(tmp_path: Path) -> None:
    lines, _ = exported(tmp_path, "unfog", 40)
    with other(tmp_path) as store:
        store.problem("naps", **terms("unfog"))
        for line in NO_EVENTS:
            refused(store, [*lines[:9], line, *lines[9:]], "^line 10")
            refused(store, [line], "^line 1")


def test_a_log_that_does_not_begin_with_terms(tmp_path: Path) -> None:
    lines, _ = exported(tmp_path, "unfog", 40)
    with other(tmp_path) as store:
        store.problem("naps", **terms("unfog"))
        refused(store, lines[1:], "^line 1")
        refused(store, [], "^line 1")
        refused(store, [lines[0], lines[0]], "^line 2, kind")


BAD: list[Any] = [
    None,
    True,
    -1,
    10**400,
    1e300,
    "x",
    "",
    "\ud800",
    [],
    [1, [2]],
    {},
    {"steps": "x"},
    {"a": {"b": [None]}},
]


def variants(lines: list[str]) -> list[tuple[int, str, Any]]:
    """Of one event of each kind, each field in turn with another value, or without it."""
    found, seen = [], set()
    for place, line in enumerate(lines):
        event = json.loads(line)
        kind = (
            event["kind"],
            event.get("outcome"),
            "logged_arm" in event,
            "arms" in event,
            "believed" in event,
        )
        if kind not in seen:
            seen.add(kind)
            fields = {name for name in event if name not in ("seq", "problem")}
            found += [(place, name, bad) for name in sorted(fields) for bad in (*BAD, math.nan)]
            found += [(place, name, ...) for name in sorted(fields)]
            found.append((place, "unheard of", 1))
    return found


def tried(folder: Path, agent: str, every: int, **more: Any) -> None:
    """What is refused is refused by the line, and what is taken can be read and decided from."""
    lines, _ = exported(folder, agent, 150, **more)
    taken = set[str]()
    with other(folder) as store:
        for number, (place, name, bad) in enumerate(variants(lines)[::every]):
            event = json.loads(lines[place])
            if bad is ...:
                del event[name]
            elif event.get(name) == bad and type(event.get(name)) is type(bad):
                continue
            else:
                event[name] = bad
            before, copy = (store.names(), store.processor.log.last), f"copy {number}"
            try:
                store.import_events([*lines[:place], json.dumps(event)], copy)
            except InputError as error:
                assert str(error).startswith(f"line {place + 1}")  # noqa: PT017
                assert (store.names(), store.processor.log.last) == before
            else:
                if event["kind"] != "problem" and (name, bad) not in FINE:
                    taken.add(name)
                walks = store.problem(copy)
                assert math.isfinite(walks.decide([0.3, 0.4], unit="ann").probability or math.nan)
                assert store.replay(problem=copy)[copy].same
    assert taken & NEVER == set()


FINE = [("believed", ...), ("noise_cov", ...), ("value", -1), ("value", None)]
NEVER = {"number", "context", "arm", "probability", "agent_probabilities", "denoised", "sd", "outcome"}
NEVER |= {
    "value",
    "expired",
    "unheard of",
    "kind",
    "agent",
    "add",
    "retire",
    "restore",
    "believed",
    "decisions",
    "noise_cov",
}


@pytest.mark.slow
def test_no_field_of_any_event_is_taken_on_trust(tmp_path: Path) -> None:
    tried(tmp_path, "late", 17, reward_window=20, default_reward=0.5, reward_aggregation="mean")


def test_a_reward_is_learnt_once(tmp_path: Path) -> None:
    lines, _ = exported(tmp_path, "unfog")
    place = next(i for i, line in enumerate(lines) if '"learnt"' in line and '"reward"' in line)
    with other(tmp_path) as store:
        store.problem("naps", **terms("unfog"))
        again = [*lines[: place + 1], lines[place]]
        try:
            store.import_events(again)
        except InputError as error:
            assert str(error).startswith(f"line {place + 2}, outcome")  # noqa: PT017
        else:
            assert store.replay(problem="walks")["walks"].same


def test_code_that_has_changed_does_not_come_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_agents.py").write_text("import unfog\nmine = unfog.AGENTS['alg1']\n")
    monkeypatch.syspath_prepend(tmp_path)
    player = Player(3)
    with player.open(tmp_path / "first.unfog") as store:
        store.problem("walks", **terms("unfog") | {"agent": "own_agents:mine"}).decide([0.1, 0.2])
        lines = [*store.export("walks")]
    first = json.loads(lines[0])
    first["module_hashes"]["agent"] = "0" * 64
    with other(tmp_path) as store:
        store.problem("naps", **terms("unfog"))
        changed, said = [json.dumps(first), *lines[1:]], "^line 1, agent: own_agents:mine has changed"
        refused(store, changed, said, allow_modules=["own_agents"])
        store.import_events(lines, allow_modules=["own_agents"])


@pytest.mark.parametrize("kind", ["features", "agent", "shadow"])
def test_a_log_imports_no_module_that_is_not_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    own = "import unfog\nfrom unfog.features import product as features\nmine = unfog.AGENTS['alg1']\n"
    (tmp_path / "own_code.py").write_text(own)
    monkeypatch.syspath_prepend(tmp_path)
    given = {"agent": "own_code:mine"} if kind == "agent" else {}
    given |= {"features": "own_code:features"} if kind == "features" else {}
    with Player(3).open(tmp_path / "first.unfog") as store:
        walks = store.problem("walks", **terms("unfog", arms=VECTORS, features="product") | given)
        if kind == "shadow":
            walks.add_shadow("own_code:mine")
        walks.decide([0.1, 0.2])
        lines, found = [*store.export("walks")], walks.state_hash()
    del sys.modules["own_code"]
    line = r"line 2, agent" if kind == "shadow" else f"line 1, {kind}"
    with other(tmp_path) as store:
        store.problem("naps", **terms("unfog"))
        for modules in ((), ["own", "own_code.more"]):
            said = rf"^{line}: own_code:.*allow_modules=\['own_code'\].*--allow-modules own_code"
            refused(store, lines, said, allow_modules=modules)
        refused(store, lines, "^allow_modules: ", allow_modules="own_code")
        assert "own_code" not in sys.modules
        store.import_events(lines, allow_modules=["own_code"])
        assert store.problem("walks").state_hash() == found
        assert store.import_events(lines) == 0


def test_shadows_that_have_left_come_in(tmp_path: Path) -> None:
    player = Player(3)
    with player.open(tmp_path / "first.unfog") as store:
        walks = store.problem("walks", **terms("unfog"))
        walks.add_shadow("alg1")
        walks.decide([0.1, 0.2])
        walks.remove_shadow("alg1")
        walks.decide([0.1, 0.2])
        lines, found = [*store.export("walks")], walks.state_hash()
    place = next(i for i, line in enumerate(lines) if '"removed"' in line)
    event = json.loads(lines[place])
    with other(tmp_path) as store:
        store.problem("naps", **terms("unfog"))
        for new in (
            {"agent": "late"},
            {"agent": ""},
            {"agent": "own:code"},
            {"removed": 1},
            {"removed": False},
        ):
            changed = [*lines[:place], json.dumps(event | new)]
            refused(store, changed, rf"^line {place + 1}, {next(iter(new))}: ")
        refused(store, [*lines[:place], lines[place], lines[place]], rf"^line {place + 2}, agent: ")
        assert store.import_events(lines) == len(lines)
        assert store.problem("walks").state_hash() == found


def test_times_of_the_future_stay_out(tmp_path: Path) -> None:
    """They would carry the store's clock along, and end the waits of other problems."""
    lines, _ = exported(tmp_path, "unfog", 20)
    last = json.loads(lines[-1])
    with other(tmp_path) as store:
        naps = store.problem("naps", **terms("unfog"))
        first = naps.decide([0.1, 0.2])
        for time in (1000.0 + 86_401.0, 1e11, 10**400, 1e300):
            late = [*lines[:-1], json.dumps(last | {"time": time})]
            refused(store, late, rf"^line {len(lines)}, time: [18].*store's own time, which is 1000\.0$")
        assert naps.pending() == [first.id]
        assert store.import_events([*lines[:-1], json.dumps(last | {"time": 1000.0 + 86_400.0})]) == len(
            lines
        )


@pytest.mark.parametrize(("agent", "what"), [("unfog", "reward"), ("unfog-delayed", "context")])
def test_a_wait_ends_when_it_is_over(tmp_path: Path, agent: str, what: str) -> None:
    player = Player(3)
    with player.open(tmp_path / "first.unfog") as store:
        walks = store.problem("walks", **terms(agent))
        made = walks.decide([0.1, 0.2])
        if what == "context":
            walks.reward(made.id, 1.0)
        player.time += 120 if what == "context" else 40
        walks.decide([0.1, 0.2])
        lines = [*store.export("walks")]
    place = next(i for i, line in enumerate(lines) if '"expire"' in line)
    event, early = json.loads(lines[place]), [*lines]
    assert event["expired"] == what
    early[place] = json.dumps(event | {"time": event["time"] - 0.5})
    with other(tmp_path) as store:
        store.problem("naps", **terms("unfog"))
        refused(store, early, rf"^line {place + 1}, time: {event['time'] - 0.5}; .*{event['time']}, or later")
        terms_alone = json.dumps(json.loads(early[0]) | {"reward_window": None, "context_window": None})
        refused(store, [terms_alone, *lines[1:]], rf"^line {place + 1}, expired: {what}; .*no end")
        assert store.import_events(lines) == len(lines)


def test_a_problem_that_there_is_not_has_no_log(tmp_path: Path) -> None:
    with other(tmp_path) as store:
        walks = store.problem("walks", **terms("unfog"))
        for ask in (store.events, store.export):
            with pytest.raises(NotFoundError, match=r"^name: 'typo'; allowed: walks$"):
                ask("typo")
        for since in ("a", None, -1, 0.5, True):
            with pytest.raises(InputError, match=r"^since: "):
                walks.events(since)  # type: ignore[arg-type]
        assert len(walks.events(0)) == 1
        assert walks.events(store.processor.log.last) == []


def tabled(store: Store, name: str) -> str:
    out = io.StringIO()
    csv.writer(out).writerows(decision_table.as_table(store.events(name), NAMES))
    return out.getvalue()


def test_a_table_out_and_in(tmp_path: Path) -> None:
    """Decisions that come in are forced, with the arms, rewards and true contexts they had."""
    given = terms("late", reward_window=None, context_window=None)
    with Player(3).open(tmp_path / "first.unfog") as store:
        walks = store.problem("walks", **given)
        for i in range(12):
            made = walks.decide(
                {"steps": None if i % 5 == 1 else i / 3, "sleep": -i / 4}, unit=f"unit {i % 3}"
            )
            if i % 4:
                walks.reward(made.id, i / 10)
            if i % 3 == 0:
                walks.reveal(made.id, {"sleep": -i / 5})
        table, old = tabled(store, "walks"), walks.events()
    with other(tmp_path) as store:
        copy = store.problem("copy", **given | {"seed": 99})
        assert decision_table.from_table(copy, io.StringIO(table)) == 12
        new = copy.events()
        rows = [*csv.DictReader(io.StringIO(tabled(store, "copy")))]
    columns = ["unit", "arm", "probability", "reward", "context.steps", "context.sleep", "true.sleep"]
    for row, was in zip(rows, csv.DictReader(io.StringIO(table)), strict=True):
        assert {name: row[name] for name in columns} == {name: was[name] for name in columns}
    assert [event["logged_arm"] for event in new if event["kind"] == "decide"] == [
        event["arm"] for event in old if event["kind"] == "decide"
    ]


CHANGES: list[tuple[Callable[[str], str], str]] = [
    (lambda text: text.replace("context.steps", "context.stops"), "context.steps"),
    (lambda text: text.replace("arm,", "limb,", 1), "arm"),
    (lambda text: text.replace("send", "sent"), "row 2.logged_arm"),
    (lambda text: text.replace("0.25", "a quarter"), "row 2(, |.)context.steps"),
    (lambda text: text.replace("0.75", "inf"), "row 3.reward"),
    (lambda text: "", "context.steps"),
    (lambda text: text.replace("reward", "true.steps").replace("0.75", "inf"), "row 3.true.steps"),
]


def test_a_table_that_cannot_be_read_changes_nothing(tmp_path: Path) -> None:
    table = "context.steps,context.sleep,arm,reward\n0.25,1,send,1\n0.5,1,wait,0.75\n"
    with other(tmp_path) as store:
        walks = store.problem("walks", **terms("unfog"))
        for change, field in CHANGES:
            untaken(walks, change(table), rf"^{field}: ")
        assert decision_table.from_table(walks, io.StringIO(table)) == 2


def test_decisions_in_frames_come_in(tmp_path: Path) -> None:
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    columns: dict[str, Any] = {
        "steps": [0.25, None],
        "sleep": [1, 2],
        "arm": ["send", "wait"],
        "unit": [7, None],
        "reward": [None, 0.75],
        "measured_at": [noon, None],
        "true.steps": [0.5, None],
    }
    frames = (pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns))
    with other(tmp_path) as store:
        for i, frame in enumerate(frames):
            walks = store.problem(f"walks {i}", **terms("unfog"))
            assert walks.import_decisions(frame) == 2
            first, shown, second, reward = walks.events()[1:]
            assert first["context"] == {"steps": 0.25, "sleep": 1.0}
            assert (first["unit"], first["measured_at"]) == ("7", noon.timestamp())
            assert shown["context"] == {"steps": 0.5}
            assert second["context"] == {"steps": None, "sleep": 2.0}
            assert "unit" not in second
            assert reward["value"] == 0.75
        with pytest.raises(InputError, match=r"^row 3, unit: 7.5"):
            walks.import_decisions(pl.DataFrame(columns | {"unit": [7, 7.5]}, strict=False))
        text = "steps,sleep,arm,measured_at\n1,2,send,2026-01-01T12:00:00Z\n"
        assert walks.import_decisions(text) == 1
        assert walks.events()[-1]["measured_at"] == noon.timestamp()
        with pytest.raises(InputError, match=r"^row 2, measured_at: .* has no time zone"):
            walks.import_decisions(text.replace("Z", ""))


def test_arms_with_vectors_come_in(tmp_path: Path) -> None:
    lines, found = exported(tmp_path, "unfog", arms=VECTORS, features="product")
    with other(tmp_path) as store:
        store.import_events(lines)
        assert store.problem("walks").state_hash() == found


HEAD = "steps,sleep,arm"


def untaken(problem: Problem, table: str, match: str) -> None:
    """A table that is refused and changes nothing."""
    before = problem.state_hash(), problem.processor.log.last
    with pytest.raises(InputError, match=match):
        decision_table.from_table(problem, io.StringIO(table))
    assert (problem.state_hash(), problem.processor.log.last) == before


HOLES = [
    (f"{HEAD}\n1,2,send\n3,4\n", r"^row 3: 2 values; allowed: 3 values, one for each column"),
    (f"{HEAD}\n1,2,send\n3,4,\n", r"^row 3, arm: nothing"),
    (f"{HEAD}\n1,2,send\n3,4, \n", r"^row 3, arm: nothing"),
    (f"{HEAD}\n1,2,send\n3,4,send,5\n", r"^row 3: 4 values; allowed: 3 values"),
    (f"{HEAD},reward,unit\n1,2,send,1,ann\n3,4,send,1\n", r"^row 3: 4 values; allowed: 5 values"),
    (
        f"{HEAD},rewrad\n1,2,send,1\n",
        r"^rewrad: no such column \(did you mean 'reward'\?\)",
    ),
    (f"{HEAD},true.zz\n1,2,send,1\n", r"^true\.zz: no such column"),
    (f"{HEAD},\n1,2,send,1\n", r"^column 4: no such column"),
    (f"{HEAD},context.steps\n1,2,send,1\n", r"^steps: no such column"),
    (f"{HEAD},reward,reward\n1,2,send,1,0\n", r"^reward: two columns of this name"),
    (f"{HEAD},key\n1,2,send,k\n3,4,send,k\n", r"^row 3\.key: 'k'"),
    (f"{HEAD},decision\n1,2,send,k\n1,2,send,k\n", r"^row 3\.key: 'k'"),
    (f"{HEAD}\n1,2,{'x' * 200_000}\n", r"^line 2: field larger"),
]


def test_a_table_with_holes_changes_nothing(tmp_path: Path) -> None:
    with other(tmp_path) as store:
        walks = store.problem("walks", **terms("unfog"))
        for table, match in HOLES:
            untaken(walks, table, match)


@pytest.mark.parametrize(
    ("agent", "table", "match"),
    [
        ("unfog-delayed", f"{HEAD},true.steps\n1,2,send,\n3,4,send,1\n", r"^row 3\.true\.sleep: missing"),
        (
            "temporal",
            f"{HEAD},measured_at\n1,2,send,9000\n3,4,send,8000\n",
            r"^row 3\.measured_at: .* after ",
        ),
        ("unfog", f"{HEAD},key,reward\n1,2,send,,1\n3,4,send,there,2\n", r"^row 3\.reward: 2"),
        ("unfog", f"{HEAD},key\n1,2,send,\n3,5,send,there\n", r"^row 3\.key: 'there'"),
    ],
)
def test_a_row_that_could_not_come_after_those_before(
    tmp_path: Path, agent: str, table: str, match: str
) -> None:
    with other(tmp_path) as store:
        walks = store.problem("walks", **terms(agent))
        made = walks.decide({"steps": 3.0, "sleep": 4.0}, logged_arm="send", key="there")
        walks.reward(made.id, 1.0)
        untaken(walks, table, match)


@pytest.mark.parametrize("more", [{}, {"update": "at_close", "reward_aggregation": "sum"}])
def test_a_table_that_comes_again_changes_nothing(tmp_path: Path, more: dict[str, Any]) -> None:
    """Not even rewards that are added up; what has come since comes in."""
    first = f"decision,{HEAD},reward,true.steps\n0-there,1,2,send,0.5,\n1-there,3,4,wait,,\n"
    later = first.replace("wait,,", "wait,0.25,2")
    with other(tmp_path) as store:
        walks = store.problem("walks", **terms("late", **more))
        assert decision_table.from_table(walks, io.StringIO(first)) == 2
        before = walks.state_hash(), store.processor.log.last
        assert decision_table.from_table(walks, io.StringIO(first)) == 2
        assert (walks.state_hash(), store.processor.log.last) == before
        decision_table.from_table(walks, io.StringIO(later))
        assert [event["kind"] for event in walks.events()][-2:] == ["reward", "reveal"]
        assert store.processor.log.last == before[1] + 2
        decision_table.from_table(walks, io.StringIO(later))
        assert store.processor.log.last == before[1] + 2
        untaken(walks, tabled(store, "walks"), r"^row 2, decision: 0-.*of the same problem")


def test_erased_decisions_stay_out(tmp_path: Path) -> None:
    """Of a table all columns are known that an export writes; its erased rows are no readings."""
    with Player(3).open(tmp_path / "first.unfog") as store:
        walks = store.problem("walks", **terms("unfog"))
        for i, unit in enumerate(["ann", "bob", "ann", "cy"]):
            walks.reward(walks.decide([i / 2, 1.0], unit=unit).id, i / 4)
        store.erase(unit="ann")
        table = tabled(store, "walks")
    assert [row["outcome"] for row in csv.DictReader(io.StringIO(table))] == ["erased", "learnt"] * 2
    with other(tmp_path) as store:
        copy = store.problem("copy", **terms("unfog"))
        assert decision_table.from_table(copy, io.StringIO(table)) == 2
        made = [event for event in copy.events() if event["kind"] == "decide"]
        assert [event["unit"] for event in made] == ["bob", "cy"]


def test_a_reward_that_was_never_learnt_is_not_in_the_table(tmp_path: Path) -> None:
    """It was kept, and then the decision was cancelled."""
    with opened(tmp_path, Hand()) as store:
        live = problem(store, reward_window="10m", update="at_close")
        made = live.decide([1.0, 2.0])
        live.reward(made.id, 5.0)
        live.cancel(made.id)
        head, row = decision_table.as_table(live.events(), live.terms.context)
        found = dict(zip(head, row, strict=True))
        assert (found["outcome"], found["reward"]) == ("cancelled", None)


def test_others_are_served_while_a_log_is_taken_in(tmp_path: Path) -> None:
    store = opened(tmp_path)
    first = problem(store, "first")
    first.decide([0.5, -1.0])
    lines = list(store.export("first"))
    seen = list[str]()

    def slowly() -> Iterator[str]:
        yield lines[0]
        found = threading.Thread(target=lambda: seen.append(first.decide([1.0, 0.0]).arm))
        found.start()
        found.join(10)
        with pytest.raises(StoreError, match=r"the log of 'copy' is being imported; retry"):
            problem(store, "copy")
        yield from lines[1:]

    assert store.import_events(slowly(), "copy") == 2
    assert len(seen) == 1
    assert store.problem("copy").decide([0.5, -1.0]).number == 1


def test_several_changes_of_arms_as_one_come_in(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    with opened(tmp_path) as store, opened(tmp_path / "other") as other:
        live = problem(store)
        live.update_arms(add={"d": None, "e": None}, retire=["a"])
        live.update_arms(retire=["b"], restore=["a"])
        with pytest.raises(InputError, match=r"^arms: nothing to do; allowed: add, retire or restore$"):
            live.update_arms()
        live.decide([1.0, 2.0])
        assert other.import_events(store.export("p")) == 4
        assert other.problem("p").state_hash() == live.state_hash()
        assert other.problem("p").describe()["arms"] == ["a", "c", "d", "e"]


def test_a_log_from_a_fast_clock_lets_nothing_expire_elsewhere(tmp_path: Path) -> None:
    clock = Hand()
    with opened(tmp_path, clock) as store:
        problem(store, "ahead").decide([0.5, -1.0])
        lines = list(store.export("ahead"))
        lines[-1] = json.dumps(json.loads(lines[-1]) | {"time": clock.time + 80_000})
        walks = problem(store, "walks", reward_window="1h", default_reward=0.0)
        made = walks.decide([0.5, -1.0])
        assert store.import_events(lines, "copy") == 2
        assert walks.pending() == [made.id]
        assert walks.events()[-1]["time"] == clock.time
        assert store.processor.now("copy") == clock.time + 80_000
        again = [json.dumps(json.loads(line) | {"time": clock.time + 160_000}) for line in lines]
        with pytest.raises(InputError, match=r"at most a day after the store's own time"):
            store.import_events(again, "more")
    with opened(tmp_path, clock) as store:
        assert problem(store, "walks", reward_window="1h", default_reward=0.0).pending() == [made.id]
        assert store.problem("copy").decide([0.5, -1.0]).number == 1
