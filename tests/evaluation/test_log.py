"""What is wrong with a log is said by name, with the first row that offends; each refusal by its words."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.each import each
from tests.evaluation.readers import logs
from tests.live.ground import opened, problem
from unfog.evaluation.log import DecisionLog
from unfog.evaluation.readers import Columns, read, to_obp
from unfog.evaluation.readers import table as tables
from unfog.live import decision_table
from unfog.validation import InputError

ARMS = "wait, send, 10, call"


def told() -> dict[str, list[Any]]:
    return logs.table(logs.simulated(12))


def put(column: str, row: int, value: Any) -> Callable[[dict[str, list[Any]]], object]:
    """Row 1 is the first."""
    return lambda table: table[column].__setitem__(row - 1, value)


CELLS = [
    (put("reward", 5, None), "row 5, reward: nothing; allowed: a finite number: what was earned"),
    (put("reward", 5, "much"), "row 5, reward: 'much'; allowed: a number, or nothing where it is not known"),
    (put("reward", 5, float("inf")), "row 5, reward: inf; allowed: a finite number: what was earned"),
    (
        put("reward", 5, True),
        "row 5, reward: True; allowed: a number, or nothing where it is not known; 1 for true and 0 for fals",
    ),
    (put("probability", 3, 0.0), "row 3, probability: 0; allowed: a number above 0 and at most 1: the arm"),
    (put("probability", 3, 1.25), "row 3, probability: 1.25; allowed: a number above 0 and at most 1: the"),
    (put("probability", 3, -0.5), "row 3, probability: -0.5; allowed: a number above 0 and at most 1: the"),
    (put("probability", 3, None), "row 3, probability: nothing; allowed: a number above 0 and at most 1: "),
    (put("probability", 3, "p"), "row 3, probability: 'p'; allowed: a number, or nothing where"),
    (put("arm", 7, "sing"), f"row 7, arm: sing; allowed: one of the arms: {ARMS}"),
    (put("arm", 7, ""), "row 7, arm: nothing; allowed: the arm that was drawn"),
    (put("context.sleep", 4, "deep"), "row 4, context.sleep: 'deep'; allowed: a number, or nothing where it"),
    (put("context.sleep", 4, 1e80), "row 4, context.sleep: 1e+80; allowed: a number, at most 1e+50 in size,"),
    (put("true.steps", 4, -1e99), "row 4, true.steps: -1e+99; allowed: a number, at most 1e+50 in size, or"),
    (put("time", 9, 0.0), "row 9, time: 0 after 1700"),
    (put("time", 9, None), "row 9, time: nothing; allowed: a number, or a date with its time"),
    (put("time", 9, "2026-13-01"), "row 9, time: '2026-13-01'; allowed: a number, or a date with its time, "),
    (put("unit", 2, None), "row 2, unit: nothing; allowed: whose context it is: every row says so, or none"),
    (
        put("probability.send", 6, 1.5),
        "row 6, probability of send: 1.5; allowed: a number from 0 to 1, 0 whe",
    ),
    (put("probability.send", 6, None), "row 6, probability of send: nothing; allowed: a number from 0 to 1,"),
    (put("probability.send", 6, 0.0), "row 6, probabilities: a sum of 0."),
]


@pytest.mark.parametrize("how", ["mapping", "quick", "rows"])
@each("spoil, words", CELLS)
def test_a_cell(spoil: Any, words: str, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = told()
    spoil(table)
    log: Any = table
    if how != "mapping":
        if how == "rows":
            monkeypatch.setattr(tables, "find_spec", lambda _: None)
            monkeypatch.setattr(tables, "PIECE", 4)
        log = logs.written(tmp_path / "log.csv", table)
        first, row, rest = words.partition(" ")[0], words.split()[1], words.split(" ", 2)[2]
        words = f"{first} {int(row.strip(',')) + 1}, {rest}"
        words = words.replace(": True;", ": 'True';")
    with pytest.raises(InputError) as error:
        read(log)
    assert str(error.value).startswith(words)


def test_the_first_row_is_named() -> None:
    table = told()
    table["reward"][4] = table["reward"][8] = None
    with pytest.raises(InputError, match=r"^row 5, reward: nothing"):
        read(table)


def test_probabilities_that_disagree() -> None:
    table = told()
    own, arm = table["probability"][5], table["arm"][5]
    table["probability"][5] = 0.9 * own
    said = f"row 6, probability: {0.9 * own:g} for {arm!r}, which was drawn; allowed: what all probabilities"
    with pytest.raises(InputError) as error:
        read(table)
    assert str(error.value) == f"{said} say of it: {own:g}"
    table["probability"][5] = own * 1.0009  # loggers round
    read(table)


def test_without_probabilities() -> None:
    table = {name: column for name, column in told().items() if not name.startswith("probability")}
    words = (
        r"^probability: no such column among arm, context.steps.*; allowed: the probability of each arm that "
    )
    with pytest.raises(InputError, match=words) as error:
        read(table)
    for said in (
        "inverse propensity",
        "log probabilities from now on, with a floor",
        "say so: probability 0.25, for four arms",
    ):
        assert said in str(error.value)
    with pytest.raises(
        InputError, match=r"^probability: the column 'probability' is empty; allowed: the prob"
    ):
        read({**table, "probability": [None] * 12})
    words = (
        r"^probability: 0.3; allowed: 0.25 if all of 4 arms were drawn evenly; else a column of probabilitie"
    )
    with pytest.raises(InputError, match=words):
        read(table, arms=logs.ARMS, probability=0.3)
    with pytest.raises(InputError, match=r"^probability: 0; allowed: a positive number"):
        read(table, arms=logs.ARMS, probability=0)


COLUMNS: list[tuple[dict[str, Any], str]] = [
    ({"reward": "gain"}, "reward: no column 'gain'; allowed: one of: arm, context.steps, context.sleep, "),
    ({"context": ["mood"]}, "context: no column 'mood'; allowed: one of: arm, context.steps, "),
    ({"context": "context.steps"}, "columns.context: 'context.steps'; allowed: a list of names of columns"),
    ({"arm": 3}, "columns.arm: 3; allowed: the name of a column"),
    ({"probability": "p"}, "probability: no column 'p'; allowed: one of: arm, "),
    ({"probabilities": {"wait": "w"}}, "probabilities: no column 'w'; allowed: one of: arm, "),
    ({"true": ["true.steps"]}, "columns.true: ['true.steps']; allowed: a column for each of context.steps, "),
    (
        {"true": {"mood": "true.steps"}},
        "columns.true: 'mood'; allowed: columns of the context: context.steps",
    ),
    ({"true": {"steps": "gone"}}, "true: no column 'gone'; allowed: one of: arm, "),
    (
        {"when": "time"},
        "columns.when: no such field; allowed: context, arm, reward, probability, true, time, ",
    ),
]


@each("columns, words", COLUMNS)
def test_columns(columns: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError) as error:
        read(told(), columns=columns)
    assert str(error.value).startswith(words)


def test_columns_that_are_not_there(tmp_path: Path) -> None:
    table = told()
    for name in ("arm", "reward"):
        with pytest.raises(InputError, match=rf"^{name}: no column '{name}'; allowed: one of: "):
            read({column: cells for column, cells in table.items() if column != name})
    bare = {name.removeprefix("context."): cells for name, cells in table.items()}
    with pytest.raises(
        InputError, match=r"^context: no columns; allowed: columns context.<name>; or say which"
    ):
        read(bare)
    read(bare, coordinates=logs.COORDINATES)
    with pytest.raises(InputError, match=r"^coordinates: \['a'\]; allowed: a name for each of steps, sleep$"):
        read(bare, columns=Columns(context=["steps", "sleep"]), coordinates=["a"])
    both = {"wait": "probability.wait", "send": "probability.send"}
    with pytest.raises(
        InputError, match=r"^probabilities: columns for wait, send; allowed: one for each arm"
    ):
        read(table, columns={"probabilities": both}, arms=logs.ARMS)
    path = tmp_path / "twice.csv"
    path.write_text("arm,reward,arm\na,1,b\n", "utf-8")
    with pytest.raises(InputError, match=r"^arm: two columns of this name; allowed: each column once"):
        read(path)
    path = tmp_path / "columns.toml"
    path.write_text("arm = [", "utf-8")
    with pytest.raises(
        InputError, match=r"^columns: .*columns.toml' is not TOML .*; allowed: a file of TOML"
    ):
        read(table, columns=path)
    with pytest.raises(
        InputError, match=r"^columns: 3; allowed: Columns\(…\), a mapping, or a path to a file"
    ):
        read(table, columns=3)  # type: ignore[arg-type]


def test_lengths_and_numbers_of_rows(tmp_path: Path) -> None:
    table = told()
    with pytest.raises(
        InputError, match=r"^reward: 11 rows; allowed: 12, as many as the other columns have$"
    ):
        read({**table, "reward": table["reward"][1:]})
    for scalar in (3.0, "x", np.ones((12, 2))):
        with pytest.raises(
            InputError, match=r"^reward: .*, of shape \(.*\); allowed: a list with a value for"
        ):
            read({**table, "reward": scalar})
    with pytest.raises(InputError, match=r"^log: no rows in dict; allowed: one decision at least, with its"):
        read({name: [] for name in table})
    with pytest.raises(InputError, match=r"^log: no rows in log.csv; allowed: one decision"):
        read(logs.written(tmp_path / "log.csv", {name: [] for name in table}))
    one = {"context.x": [1.0, 2.0], "arm": ["a", "a"], "reward": [1, 2], "probability": [0.5, 0.5]}
    with pytest.raises(
        InputError, match=r"^arms: a alone; allowed: two arms at least: with one there is noth"
    ):
        read(one)
    read(one, arms=["a", "b"])
    with pytest.raises(InputError, match=r"^row 2, arm: \['b'\]; allowed: one name$"):
        read({**one, "arm": ["a", ["b"]]})
    with pytest.raises(InputError, match=r"^arms: \['a', 'a'\]; allowed: a list of names, each once$"):
        read(one, arms=["a", "a"])


@pytest.mark.parametrize("quick", [True, False])
@each(
    "rows, words",
    [
        (["1,a,1,0.5", "2,b,1"], "row 3: 3 values; allowed: 4 values, one for each column"),
        (["1,a,1,0.5,7", "2,b,1"], "row 2: 5 values; allowed: 4 values, one for each column"),
        (["1,a,1,0.5", "", "2,b,1,0.5"], "row 3: an empty row; allowed: 4 values, one for each column"),
        (["1,a,1,0.5", '2,"b,1,0.5'], "row 3: 2 values; allowed: 4 values, one for each column"),
    ],
)
def test_rows_of_other_lengths(
    tmp_path: Path, rows: list[str], words: str, quick: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not quick:
        monkeypatch.setattr(tables, "find_spec", lambda _: None)
    path = tmp_path / "log.csv"
    path.write_text("\n".join(["context.x,arm,reward,probability", *rows]), "utf-8")
    with pytest.raises(InputError) as error:
        read(path)
    assert str(error.value) == words


def spoilt(**parts: Any) -> DecisionLog:
    return logs.simulated(12)._replace(**parts)


@each(
    "log, words",
    [
        (
            spoilt(reward=np.ones(11)),
            r"reward: the shape \(11,\); allowed: \(12,\), since there are 12 arms dra",
        ),
        (
            spoilt(probabilities=np.ones((12, 3)) / 3),
            r"probabilities: the shape \(12, 3\); allowed: \(12, 4\)",
        ),
        (
            spoilt(arm=np.full(12, 4)),
            "row 1, arm: 4; allowed: a place in the list of arms: wait, send, 10, ca",
        ),
        (spoilt(unit=np.full(12, 3)), "row 1, unit: 3; allowed: a place in the list of units"),
        (spoilt(offered=np.zeros((12, 4), bool)), "row 1, arm: .*; allowed: an arm that was offered"),
        (spoilt(arms=("a", "b", "c", "a")), "arms: a, b, c, a; allowed: each arm once"),
    ],
)
def test_a_log_made_by_hand(log: DecisionLog, words: str) -> None:
    with pytest.raises(InputError, match=f"^{words}"):
        read(log)


OBP: list[tuple[dict[str, Any], str]] = [
    ({"position": [0] * 4 + [2] * 8}, "row 5, position: 2; allowed: None or 0: slates of several positions"),
    ({"pscore": None}, "pscore: nothing; allowed: the probability of each arm that was drawn. Other "),
    (
        {"pscore": [0.5] * 3 + [0] * 9, "pi_b": None},
        "row 4, pscore: 0; allowed: a number above 0 and at most",
    ),
    ({"reward": [1.0] * 11}, "reward: 11 rows; allowed: 12, as many as action has"),
    ({"n_rounds": 9}, "n_rounds: 9; allowed: 12, as many as action has"),
    ({"action": [0] * 6 + [4] * 6}, "row 7, arm: 4; allowed: a place in the list of arms: 0, 1, 2, 3"),
    ({"context": None}, "context: is made of object, not of numbers; allowed: an array of"),
    ({"context": [1.0] * 12}, "context: the shape (12,); allowed: (12, d): a row for each round, a column"),
    ({"context": [[1.0]] * 11 + [[1.0, 2.0]]}, "context: is ragged; allowed: an array of numbers"),
    ({"reward": 1.0}, "reward: 1 rows; allowed: 12, as many as action has"),
    ({"action": 0}, "action: the shape (); allowed: a number for each round"),
    ({"action": [0.0] * 6 + [1.5] * 6}, "row 7, action: 1.5; allowed: a whole number: which arm was drawn"),
    ({"n_actions": "four"}, "n_actions: 'four'; allowed: a whole number"),
    ({"position": [0, 0]}, "position: the shape (2,); allowed: None or 0: slates of several positions are"),
]


@each("parts, words", OBP)
def test_feedback_of_obp(parts: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError) as error:
        read(to_obp(logs.simulated(12)) | parts)
    assert str(error.value).startswith(words)


def at(line: int, **parts: Any) -> Callable[[list[Any]], object]:
    return lambda objects: objects[line - 1].update(parts)


DSJSON: list[tuple[Any, str]] = [
    (at(4, _label_Action=5), "line 4, _label_Action: 5; allowed: a number from 1 to 4"),
    (at(4, _label_cost=None), "line 4, _label_cost: nothing; allowed: a number"),
    (at(4, _label_probability=0.0), "line 4, _label_probability: 0; allowed: a number above 0 "),
    (at(4, _label_probability=None), "line 4, _label_probability: nothing; allowed: the probability of each"),
    (at(4, p=[0.5, 0.5]), "line 4, a and p: "),
    (at(4, a=[1, 1, 2, 3]), "line 4, a and p: [1, 1, 2, 3] and "),
    (at(4, p=[0.5, 0.5, 0.5, 0.5]), "line 4, probabilities: a sum of 2; allowed: 1, over all arms"),
    (at(4, pdrop=0.5), "line 4: pdrop 0.5 after 0; allowed: one share of events that were dropped"),
    (at(4, Timestamp="2001-01-01T00:00:00Z"), "line 4, Timestamp: 978307200 after 1700"),
    (
        at(4, Timestamp="noon-ish"),
        "line 4, Timestamp: 'noon-ish'; allowed: a number, or a date with its time",
    ),
    (at(4, c={"x": 1}), "line 4, c._multi: None; allowed: a list of actions"),
    (at(4, c={"_slots": [], "_multi": []}), "line 4: _slots; allowed: one action a decision: slates are not"),
    (at(4, p=["a", 0.1, 0.1, 0.1]), "line 4, p: 'a'; allowed: a number"),
    (at(4, p=[None, 0.1, 0.1, 0.1]), "line 4, p: nothing; allowed: a number"),
    (at(4, p=0.5), "line 4, a and p: "),
    (at(4, a=["x", 2, 3, 4]), "line 4, a and p: ['x', 2, 3, 4] and "),
    (at(4, a=2), "line 4, a and p: 2 and "),
    (at(4, a=None), "line 4, a and p: None and "),
    (at(4, _label_Action=True), "line 4, _label_Action: True; allowed: a number from 1 to 4"),
    (
        lambda objects: (objects[3].pop("_label_Action"), objects[3].update(_labelIndex="1")),
        "line 4, _labelIndex: '1'; allowed: a number from 0 to 3",
    ),
    (at(4, pdrop="x"), "line 4, pdrop: 'x'; allowed: a number"),
    (at(4, o=3), "line 4, o: 3; allowed: a list of what was observed later"),
    (at(4, _label_probability="x"), "line 4, _label_probability: 'x'; allowed: a number"),
    (at(4, _label_cost=10**400), "line 4, _label_cost: 1000"),
    (at(4, c={"x": 10**400, "_multi": [{"_tag": str(k)} for k in range(4)]}), "line 4, x: 1000"),
    (
        at(4, c={"x": 1, "_multi": [{"_tag": one} for one in ("wait", "send", "send", "call")]}),
        "line 4, _multi: two actions called 'send'; allowed: actions with a _tag or an id of their own; or",
    ),
    (
        at(4, c={"x": 1, "_multi": [{"F": {"size": 9}}] * 4}),
        "line 4, action 1: {'F': {'size': 9}}; allowed: w",
    ),
]


@each("spoil, words", DSJSON)
def test_dsjson(spoil: Any, words: str, tmp_path: Path) -> None:
    objects = logs.dsjson(logs.simulated(12))
    if "action 1" in words:
        for one in objects:
            one["c"]["_multi"] = [{"F": {"size": k}} for k in range(4)]
    spoil(objects)
    with pytest.raises(InputError) as error:
        read(logs.lines(tmp_path / "log.json", objects))
    assert str(error.value).startswith(words)


def test_dsjson_that_says_nothing_of_dropped_events(tmp_path: Path) -> None:
    objects = logs.dsjson(logs.simulated(12))
    expected = read(logs.lines(tmp_path / "log.json", objects))
    for one in objects[::2]:
        one["pdrop"] = None
    logs.same(read(logs.lines(tmp_path / "log.json", objects)), expected)


def test_what_is_no_log(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^log: 3; allowed: a live store or problem; a path"):
        read(3)
    with pytest.raises(InputError, match=r"^log: there is no file .*gone.csv'; allowed: a live store"):
        read(tmp_path / "gone.csv")
    path = tmp_path / "log.xlsx"
    path.write_text("x")
    with pytest.raises(
        InputError, match=r"^log: log.xlsx; allowed: a name that ends in .csv, .tsv, .txt, .parquet, .ndj"
    ):
        read(path)
    for text, words in [
        ("", r"log: no rows in log.json; allowed: an export of `unfog live`"),
        ("{", r"line 1: {; allowed: one JSON object, in UTF-8 \("),
        ("[1]", r"line 1: \[1\]; allowed: one JSON object"),
        ('\n{"x": 1}', r"line 2: an object with x; allowed: an export of `unfog live`"),
    ]:
        path = tmp_path / "log.json"
        path.write_text(text)
        with pytest.raises(InputError, match=f"^{words}"):
            read(path)
    path = tmp_path / "log.json"
    path.write_bytes(b'\xef\xbb\xbf\n{"c": 1}\n\xff\xfe\n')
    with pytest.raises(InputError, match=r"^line 3: .*; allowed: one JSON object, in UTF-8 \(.*0xff"):
        read(path)
    path = tmp_path / "log.csv"
    path.write_text("")
    with pytest.raises(InputError, match=r"^log: no columns; allowed: a header with their names, then a row"):
        read(path)
    path.write_bytes(b"arm,reward,context.x,probability\n\xff,1,1,1\n")
    with pytest.raises(InputError, match=r"^log: log.csv cannot be read \(.*\); allowed: CSV in UTF-8"):
        read(path)


def test_a_table_of_live_decisions_says_what_has_no_reward(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        live = problem(store)
        made = [live.decide([0.5 * i, 2.0]) for i in range(6)]
        other = live.decide([1, 2], logged_arm="a")
        for i, one in enumerate([*made[:3], other]):
            live.reward(one.id, 0.5 + i)
        live.cancel(made[3].id)
        rows = list(decision_table.as_table(live.events(), ["x", "y"]))
        found = read(live)
    table = dict(zip(rows[0], map(list, zip(*rows[1:], strict=True)), strict=True))
    read_again = read(logs.written(tmp_path / "log.csv", table), arms=found.arms)
    logs.same(read_again, found, "probabilities", "channel")
    assert read_again.notes == (
        "1 decisions are cancelled: left out",
        "2 decisions are open: left out",
        "1 decisions were made by somebody else, and no probability was logged: left out",
    )
    table["reward"][2] = None
    with pytest.raises(InputError, match=r"^row 3, reward: nothing"):
        read(table, arms=found.arms)
    table["outcome"][0] = "fine"  # a column of somebody else's: every row is a decision then
    with pytest.raises(InputError, match=r"^row 3, reward: nothing"):
        read(table, arms=found.arms)
