"""`unfog live` as a shell script meets it: JSON in, JSON out, exit codes, and one-line complaints."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.each import each
from unfog import live
from unfog.cli import main

Capture = pytest.CaptureFixture[str]

TERMS = """\
context = ["steps", "sleep"]
arms = ["send", "wait"]
agent = "late"
seed = 7
reward_window = "30m"

[channel]
context_mean = [6000, 7]
context_cov = [4e6, 1]
noise_cov = [1e6, 0.25]
bias_cov = [4e6, 0.1]
bias = 0
"""
HERE = ("walks.unfog", "walks")
MADE = ["create", "decide", "reward", "reveal", "cancel", "arms", "pin", "unpin", "shadow"]
COMMANDS = [*MADE, "show", "log", "replay", "export", "import", "erase", "demo"]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("walks.toml").write_text(TERMS)


def unfog(capsys: Capture, *words: str) -> tuple[int, str, str]:
    """Run a command of live; its exit code, stdout and stderr."""
    with pytest.raises(SystemExit) as ended:
        main(("live", *words))
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


def answer(capsys: Capture, *words: str) -> Any:
    """The one JSON object that a command prints, which nothing else goes with."""
    code, out, err = unfog(capsys, *words)
    assert (code, err) == (0, "")
    assert out.count("\n") == 1
    return json.loads(out, parse_constant=pytest.fail)


def lines(capsys: Capture, *words: str) -> list[Any]:
    """NDJSON."""
    code, out, err = unfog(capsys, *words)
    assert (code, err) == (0, "")
    return [json.loads(line, parse_constant=pytest.fail) for line in out.splitlines()]


def refusal(capsys: Capture, *words: str, code: int = 2) -> str:
    """The one line with which a command refuses."""
    found, out, err = unfog(capsys, *words)
    assert (found, out, err.count("\n")) == (code, "", 1)
    return err.removeprefix("unfog: ").strip()


def typed(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """On stdin."""
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))


@pytest.fixture
def walks(capsys: Capture) -> str:
    """The problem made, and the id of a first decision for ann."""
    answer(capsys, "create", *HERE, "--terms", "walks.toml")
    made = answer(capsys, "decide", *HERE, "--context", '{"steps": 1648, "sleep": null}', "--unit", "ann")
    return str(made["id"])


def test_every_command_has_help_with_an_example(capsys: Capture) -> None:
    for command in COMMANDS:
        code, out, _ = unfog(capsys, command, "--help")
        assert code == 0
        assert f"unfog live {command}" in " ".join(out.split("Example")[1].split())


def test_the_group_lists_its_commands(capsys: Capture) -> None:
    _, out, _ = unfog(capsys, "--help")
    table = out.split("Commands:")[1].split("Example")[0].splitlines()
    assert [line.split()[0] for line in table if line.strip()] == COMMANDS


def test_make_says_what_was_made(capsys: Capture) -> None:
    made = answer(capsys, "create", *HERE, "--terms", "walks.toml")
    assert made == {
        "store": "walks.unfog",
        "problem": "walks",
        "created": True,
        "message": "created",
        "context": ["steps", "sleep"],
        "arms": ["send", "wait"],
        "agent": "late",
        "seed": 7,
        "note": None,
    }
    again = answer(capsys, "create", *HERE, "--terms", "walks.toml")
    message = "it is there, with these terms: nothing was changed"
    assert again == {**made, "created": False, "message": message}
    Path("other.toml").write_text(TERMS.replace("30m", "1h"))
    said = refusal(capsys, "create", *HERE, "--terms", "other.toml")
    assert said == "reward_window: 1h; allowed: what the problem was created with: 1800.0"


def test_without_a_channel_it_says_what_it_is(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    typed(monkeypatch, '{"context": ["x"], "arms": {"a": [1], "b": [0.5]}, "features": "product"}')
    made = answer(capsys, "create", "s.unfog", "p", "--terms", "-")
    assert made["arms"] == {"a": [1.0], "b": [0.5]}
    assert made["note"].startswith("All coordinates are taken to be exact: an ordinary contextual bandit.")
    Path("terms.json").write_text('{"context": ["x"]}')
    assert "arms" in refusal(capsys, "create", "s.unfog", "q", "--terms", "terms.json")


BAD_TERMS = {
    "unknown field": (
        'context = ["x"]\narmz = ["a"]',
        "armz: no such field (did you mean 'arms'?); allowed: context, arms",
    ),
    "not TOML": ("context = [", "terms: bad.toml is not TOML"),
    "told the truth": (TERMS.replace("late", "oracle"), "agent: 'oracle' is told the bias"),
    "empty": ("", "context: not given; allowed: a mapping from names of coordinates to how far"),
}


def test_bad_terms_leave_no_store_behind(capsys: Capture) -> None:
    for text, said in BAD_TERMS.values():
        Path("bad.toml").write_text(text)
        assert said in refusal(capsys, "create", *HERE, "--terms", "bad.toml")
        assert sorted(path.name for path in Path().iterdir()) == ["bad.toml", "walks.toml"]


SEVERAL = """\
[problem.walks]
arms = ["send", "wait", "call"]
seed = 1

[problem.walks.context]
steps = 1200
mood = {noise_sd = 0.6, sd = 1.1}
hour = {period = 24}
weekday = ["mon", "tue"]

[problem.naps]
arms = ["yes", "no"]
context = {"age" = 0}
"""


def test_several_problems_in_a_file_by_coordinate(capsys: Capture) -> None:
    Path("several.toml").write_text(SEVERAL)
    made = lines(capsys, "create", "s.unfog", "--terms", "several.toml")
    assert [one["problem"] for one in made] == ["walks", "naps"]
    assert made[0]["context"] == ["steps", "mood", "hour", "weekday"]
    again = answer(capsys, "create", "s.unfog", "walks", "--terms", "several.toml")
    assert not again["created"]
    asked = "decide", "s.unfog", "walks", "--unit", "ann", "--context"
    found = answer(capsys, *asked, "steps=1648,mood=,hour=9,weekday=mon")
    assert found["denoised"]["weekday"] == {"mon": 1, "tue": 0}
    body = '{"steps": 1648, "mood": null, "hour": 9, "weekday": "mon"}'
    assert answer(capsys, *asked, body)["denoised"]["hour"] == 9
    said = refusal(capsys, *asked, "steps=1648,mood=,hour=9,weekday=mo")
    assert said.startswith("context.weekday: 'mo' (did you mean 'mon'?)")
    assert (
        answer(capsys, "reveal", "s.unfog", "walks", found["id"], "weekday=mon,steps=1500")["outcome"]
        == "learnt"
    )
    assert "weekday=mon,denoised.weekday=tue" in unfog(capsys, "export", "s.unfog", "walks", "--csv")[1]
    assert (
        "expected"
        in unfog(capsys, "show", "s.unfog", "walks", "--context", "steps=1,mood=2,hour=,weekday=")[1]
    )


BAD_TABLES = {
    "field": (
        SEVERAL.replace("sd = 1.1", "context_sd = 1"),
        "problem.walks.context.mood.context_sd: no such",
    ),
    "level": (SEVERAL.replace(', "tue"', ""), "problem.walks.context.weekday.levels: ['mon']; allowed: two"),
    "beside": (f"seed = 1\n{SEVERAL}", "seed: beside [problem.NAME]; allowed: options in the table"),
    "no table": ("[problem]\nwalks = 1", "problem.walks: 1; allowed: a table: [problem.walks]"),
}


@each("case", BAD_TABLES)
def test_a_bad_table_makes_no_problem(capsys: Capture, case: str) -> None:
    text, said = BAD_TABLES[case]
    Path("several.toml").write_text(text)
    assert refusal(capsys, "create", "s.unfog", "--terms", "several.toml").startswith(said)
    assert not Path("s.unfog").exists()


def test_a_problem_from_options(capsys: Capture) -> None:
    words = "create", "s.unfog", "walks", "--arms", "send,wait", "--seed", "3", "--reward-window", "30m"
    made = answer(capsys, *words, "--context", "steps=1200,age=0", "--default-reward", "0")
    assert (made["context"], made["arms"], made["seed"]) == (["steps", "age"], ["send", "wait"], 3)
    assert not answer(capsys, *words)["created"]
    assert refusal(capsys, "create", "s.unfog", "p").startswith("context: not given; allowed: --context")
    assert refusal(capsys, "create", "s.unfog", "--arms", "a,b").startswith(
        "name: not given; allowed: the name"
    )
    assert refusal(capsys, *words[:2], "p", "--context", "steps=-1").startswith("context.steps: -1; allowed")


def test_terms_must_be_readable(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    said = refusal(capsys, "create", *HERE, "--terms", "none.toml")
    assert said.startswith("terms: none.toml cannot be read (No such file or directory); allowed: a file")
    for text in ("", "[1]", "{", '{"context": NaN}', '{"context": ["x"], "context": ["y"]}', "[" * 9000):
        typed(monkeypatch, text)
        assert refusal(capsys, "create", *HERE, "--terms", "-").startswith("terms: ")


def test_decide_answers_with_one_object(capsys: Capture, monkeypatch: pytest.MonkeyPatch, walks: str) -> None:
    answer(capsys, "shadow", *HERE, "naive")
    typed(monkeypatch, '{"steps": 5000, "sleep": 8}')
    made = answer(capsys, "decide", *HERE, "--context", "-", "--unit", "ann", "--key", "k")
    order = ["id", "arm", "probability", "probabilities", "denoised", "sd", "number", "shadows"]
    assert list(made) == order
    assert made["number"] == 1
    assert made["probability"] == made["probabilities"][made["arm"]]
    assert set(made["shadows"]) == {"naive"}
    assert made["sd"]["steps"] < 2000
    words = "decide", *HERE, "--context", "[5000, 8]", "--unit", "ann", "--key", "k"
    assert answer(capsys, *words) == made
    assert refusal(capsys, *words[:4], "[5000, 9]", *words[5:]).startswith("key: 'k'; allowed: a new key")
    assert walks != made["id"]
    assert answer(capsys, "shadow", *HERE, "naive", "--remove")["outcome"] == "done"
    assert "shadows" not in answer(capsys, "decide", *HERE, "--context", "[5000, 8]")


def test_options_reach_the_decision(capsys: Capture, walks: str) -> None:
    asked = {
        "--context": "[7000, 6]",
        "--arms": "send, wait",
        "--logged-arm": "wait",
        "--probability": "0.25",
        "--measured-at": "2026-11-15T09:00:00+01:00",
    }
    made = answer(capsys, "decide", *HERE, *(word for pair in asked.items() for word in pair))
    assert (made["arm"], made["probability"]) == ("wait", 0.25)
    event = lines(capsys, "log", *HERE, "--since", "2")[0]
    assert event["arms"] == ["send", "wait"]
    assert event["measured_at"] == 1794729600.0
    only = answer(
        capsys, "decide", *HERE, "--context", "[7000, 6]", "--arms", '["wait"]', "--measured-at", "-3.5"
    )
    assert (only["arm"], only["probability"]) == ("wait", 1.0)
    assert lines(capsys, "log", *HERE, "--since", "3")[0]["measured_at"] == -3.5
    assert walks


def test_a_reading_may_have_a_noise_of_its_own(capsys: Capture) -> None:
    Path("walks.toml").write_text(TERMS.replace("late", "temporal"))
    answer(capsys, "create", *HERE, "--terms", "walks.toml")
    faint, loud = (
        answer(capsys, "decide", *HERE, "--context", "[1000, 7]", "--unit", unit, "--noise-cov", noise)
        for unit, noise in (("ann", "[1, 0.25]"), ("bob", "[[1e9, 0], [0, 0.25]]"))
    )
    assert faint["sd"]["steps"] < loud["sd"]["steps"]


BAD_ASKS = {
    "no context": ([], "context: not given; allowed: --context alone, or --batch alone"),
    "both": (["--context", "[1, 2]", "--batch", "x"], "context: with --batch; allowed"),
    "no JSON": (["--context", "steps"], "context: steps; allowed: JSON such as"),
    "twice": (["--context", "steps=1,steps=2"], "context: steps=2; allowed: each NAME=VALUE once"),
    "a part": (["--context", "steps=1"], "context.sleep: missing; allowed"),
    "NaN": (["--context", "[NaN, 2]"], "NaN is no number of JSON"),
    "coordinate": (
        ["--context", '{"steps": 1, "slep": 2}'],
        "context.slep: no such coordinate (did you mean 'sleep'?); allowed: steps",
    ),
    "arm": (["--context", "[1, 2]", "--arms", "send,call"], "arms: 'call'; allowed: send, wait"),
    "no offset": (
        ["--context", "[1, 2]", "--measured-at", "2026-11-15T09:00:00"],
        "has no time zone (did you mean",
    ),
    "no time": (
        ["--context", "[1, 2]", "--measured-at", "noon"],
        "measured_at: 'noon'; allowed: a number, or a date",
    ),
    "sync": (["--context", "[1, 2]", "--sync", "half"], "sync: 'half'; allowed: full, normal"),
    "option": (["--context", "[1, 2]", "--units", "ann"], "--units"),
}


def test_what_cannot_be_decided_is_refused_by_name(capsys: Capture, walks: str) -> None:
    for case, (words, said) in BAD_ASKS.items():
        assert said in refusal(capsys, "decide", *HERE, *words), case
    assert len(lines(capsys, "log", *HERE)) == 2
    assert walks


def test_a_batch_is_answered_in_order(capsys: Capture, monkeypatch: pytest.MonkeyPatch, walks: str) -> None:
    asked: list[dict[str, Any]] = [
        {"context": [5000 + i, 7], "unit": f"u{i}", "key": f"k{i}"} for i in range(5)
    ]
    asked[2] |= {"logged_arm": "wait", "measured_at": "2026-11-15T09:00:00Z"}
    Path("asked.ndjson").write_text("\n\n".join(map(json.dumps, asked)))
    made = lines(capsys, "decide", *HERE, "--batch", "asked.ndjson")
    assert [one["number"] for one in made] == [1, 2, 3, 4, 5]
    assert made[2]["arm"] == "wait"
    events = lines(capsys, "log", *HERE, "--since", "2")
    assert [event["unit"] for event in events] == ["u0", "u1", "u2", "u3", "u4"]
    typed(monkeypatch, Path("asked.ndjson").read_text())
    assert lines(capsys, "decide", *HERE, "--batch", "-") == made
    assert walks


def test_a_batch_is_refused_whole_by_its_line(capsys: Capture, walks: str) -> None:
    good = '{"context": [5000, 7]}\n\n'
    for bad, said in {
        '{"context": [5000, "7"]}': "line 3, context.sleep: '7' (did you mean 7?); allowed: a finite number",
        '{"context": [5000, 7], "arms": ["call"]}': "line 3, arms: 'call'; allowed: send, wait",
        '{"context": [5000, 7], "units": "u"}': "line 3, units: no such field",
        '{"context": [5000, 7], "key": ""}': "line 3, key: ''",
        '{"context": [5000, 7], "measured_at": "noon"}': "line 3, measured_at: 'noon'",
        "[5000, 7]": "line 3: [5000, 7]; allowed: a JSON object",
        "{": "line 3: {; allowed: JSON",
    }.items():
        Path("asked.ndjson").write_text(good + bad)
        assert refusal(capsys, "decide", *HERE, "--batch", "asked.ndjson").startswith(said)
    assert len(lines(capsys, "log", *HERE)) == 2
    assert walks


def test_rewards_and_true_contexts_get_receipts(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, walks: str
) -> None:
    assert answer(capsys, "reward", *HERE, walks, "-1.5", "--key", "r") == {
        "seq": 3,
        "outcome": "learnt",
        "message": "learnt",
    }
    assert answer(capsys, "reward", *HERE, walks, "-1.5", "--key", "r")["seq"] == 3
    typed(monkeypatch, '{"steps": 7065}')
    assert answer(capsys, "reveal", *HERE, walks, "-")["outcome"] == "learnt"
    assert lines(capsys, "log", *HERE, "--since", "3")[0]["context"] == {"steps": 7065.0}
    assert answer(capsys, "reveal", *HERE, walks, '{"steps": 7065}')["outcome"] == "known"
    said = refusal(capsys, "cancel", *HERE, walks)
    assert said.startswith(f"decision: '{walks}'; allowed: a decision without a reward")
    other = answer(capsys, "decide", *HERE, "--context", "[1000, 7]")["id"]
    cancelled = answer(capsys, "cancel", *HERE, other)
    assert (cancelled["outcome"], cancelled["message"]) == (
        "cancelled",
        "nothing will be learnt from this decision",
    )


def test_reports_that_make_no_sense_are_refused(capsys: Capture, walks: str) -> None:
    assert refusal(capsys, "reward", *HERE, "9-none", "1").startswith(
        "decision: '9-none'; allowed: the id of"
    )
    assert refusal(capsys, "reward", *HERE, walks, "much").startswith(
        "value: much; allowed: JSON such as 1.0"
    )
    assert "value" in refusal(capsys, "reward", *HERE, walks, "nan")
    assert refusal(capsys, "reveal", *HERE, walks, "7065 steps").startswith(
        "context: 7065 steps; allowed: JSON"
    )
    assert len(lines(capsys, "log", *HERE)) == 2


def test_arms_come_and_go(capsys: Capture, walks: str) -> None:
    done = lines(capsys, "arms", *HERE, "--add", "call", "--retire", "send")
    assert [(one.get("add"), one.get("retire"), one["outcome"]) for one in done] == [
        ("call", None, "done"),
        (None, "send", "done"),
    ]
    assert refusal(capsys, "decide", *HERE, "--context", "[1, 2]", "--arms", "send").startswith(
        "arms: 'send'"
    )
    shown = unfog(capsys, "show", *HERE)[1]
    assert "send (retired)" in shown
    answer(capsys, "arms", *HERE, "--restore", "send")
    answer(capsys, "pin", *HERE, "wait")
    assert answer(capsys, "decide", *HERE, "--context", "[1, 2]")["probabilities"]["wait"] == 1.0
    assert "pinned: wait is taken" in unfog(capsys, "show", *HERE)[1]
    answer(capsys, "unpin", *HERE)
    assert answer(capsys, "decide", *HERE, "--context", "[1, 2]")["probabilities"]["wait"] < 1.0
    assert refusal(capsys, "arms", *HERE) == "arms: nothing to do; allowed: --add, --retire or --restore"
    assert refusal(capsys, "arms", *HERE, "--add", "send").startswith("add: 'send'; allowed: a new name")
    assert refusal(capsys, "pin", *HERE, "fly").startswith("arm: 'fly'; allowed: ")
    assert refusal(capsys, "shadow", *HERE, "oracle").startswith("agent: 'oracle' is told the bias")
    assert walks


def test_an_arm_comes_with_its_vector(capsys: Capture) -> None:
    Path("t.json").write_text('{"context": ["x"], "arms": {"a": [1]}, "features": "product"}')
    answer(capsys, "create", "s.unfog", "p", "--terms", "t.json")
    answer(capsys, "arms", "s.unfog", "p", "--add", "b=[0.5]")
    assert lines(capsys, "log", "s.unfog", "p")[1]["add"] == {"b": [0.5]}
    assert refusal(capsys, "arms", "s.unfog", "p", "--add", "c=half").startswith("add: half; allowed: JSON")
    assert refusal(capsys, "arms", "s.unfog", "p", "--add", "c").startswith("arms.c: a name alone")


def test_the_log_can_be_read_from_somewhere(capsys: Capture, walks: str) -> None:
    answer(capsys, "reward", *HERE, walks, "1")
    everything = lines(capsys, "log", *HERE)
    assert [event["kind"] for event in everything] == ["problem", "decide", "reward"]
    assert lines(capsys, "log", *HERE, "--since", "1", "--limit", "1") == everything[1:2]
    assert lines(capsys, "log", *HERE, "--limit", "0") == []
    assert refusal(capsys, "log", "walks.unfog", "runs") == "name: 'runs'; allowed: walks"


def test_a_replay_agrees_or_fails(capsys: Capture, monkeypatch: pytest.MonkeyPatch, walks: str) -> None:
    found = answer(capsys, "replay", "walks.unfog", "--verify")
    assert found == {
        "problem": "walks",
        "events": 2,
        "decisions": 1,
        "verified": 1,
        "same": True,
        "message": "equal to the bit",
    }
    assert answer(capsys, "replay", *HERE)["verified"] == 0
    assert refusal(capsys, "replay", "walks.unfog", "runs").startswith("name: 'runs'")
    monkeypatch.setattr("unfog.live.snapshot.digest", lambda state: "another than is remembered")
    code, out, _ = unfog(capsys, "replay", *HERE)
    assert code == 1
    assert json.loads(out)["message"] == "what is remembered is not what the log says"
    assert walks


def test_an_export_comes_in_again(capsys: Capture, monkeypatch: pytest.MonkeyPatch, walks: str) -> None:
    answer(capsys, "reward", *HERE, walks, "1")
    _, text, _ = unfog(capsys, "export", *HERE)
    assert unfog(capsys, "export", *HERE, "--out", "walks.ndjson") == (0, "", "")
    assert Path("walks.ndjson").read_text() == text
    assert answer(capsys, "import", "copy.unfog", "walks.ndjson") == {
        "problem": "walks",
        "events": 3,
        "message": "imported",
    }
    assert answer(capsys, "import", "copy.unfog", "walks.ndjson")["message"] == "all of it was there already"
    typed(monkeypatch, text)
    assert answer(capsys, "import", "runs.unfog", "-", "--name", "runs")["problem"] == "runs"
    assert list(answer(capsys, "show", "runs.unfog", "--json")) == ["runs"]
    assert unfog(capsys, "export", "copy.unfog", "walks")[1] == text


def test_an_export_imports_modules_that_are_allowed(capsys: Capture, walks: str) -> None:
    first, *rest = unfog(capsys, "export", *HERE)[1].splitlines()
    told = json.loads(first) | {"agent": "no_such_module:mine"}
    Path("own.ndjson").write_text("\n".join([json.dumps(told), *rest]))
    said = refusal(capsys, "import", "copy.unfog", "own.ndjson")
    assert said.startswith("line 1, agent: no_such_module:mine; allowed: code of one's own")
    assert said.endswith("--allow-modules no_such_module on the command line")
    allowed = ("--allow-modules", "other", "--allow-modules", "no_such_module")
    said = refusal(capsys, "import", "copy.unfog", "own.ndjson", *allowed)
    assert said.startswith("line 1, agent: ")
    assert "cannot import no_such_module" in said
    assert walks


def test_what_is_no_export_makes_no_store(capsys: Capture, walks: str) -> None:
    for text in ("", "{}", '{"kind": "decide"}', "steps,arm\n1,send\n", "[" * 5000):
        Path("no.ndjson").write_text(text)
        assert refusal(capsys, "import", "new.unfog", "no.ndjson").startswith("line 1: ")
    Path("no.ndjson").write_bytes(b"\xff\xfe")
    assert refusal(capsys, "import", "new.unfog", "no.ndjson").startswith("file: no.ndjson cannot be read")
    assert refusal(capsys, "import", "new.unfog", "none").startswith(
        "file: none cannot be read (No such file"
    )
    assert not Path("new.unfog").exists()
    said = refusal(capsys, "export", *HERE, "--out", "walks.unfog")
    assert said == "out: walks.unfog; allowed: another file: this one is the store's"
    assert answer(capsys, "replay", *HERE)["same"]
    assert walks


def test_parquet_goes_out_and_comes_in(capsys: Capture, walks: str) -> None:
    columns = {"steps": [4000.0, 7000], "sleep": [None, 7.0], "arm": ["send", "wait"], "reward": [0.5, 0]}
    pl.DataFrame(columns | {"decision": [5, 6], "unit": [1, 2]}).write_parquet("past.parquet")
    assert answer(capsys, "import", "walks.unfog", "past.parquet", "--name", "walks") == {
        "problem": "walks",
        "decisions": 2,
    }
    unfog(capsys, "export", *HERE, "--parquet", "--out", "all.parquet")
    rows = pl.read_parquet("all.parquet")
    assert rows["arm"].to_list()[-2:] == ["send", "wait"]
    assert rows["context.sleep"].to_list()[-2:] == [None, 7.0]
    assert rows["unit"].to_list()[-2:] == ["1", "2"]
    assert refusal(capsys, "export", *HERE, "--parquet").startswith("out: not given")
    Path("bad.parquet").write_text("steps")
    assert refusal(capsys, "import", "walks.unfog", "bad.parquet", "--name", "walks").startswith(
        "file: bad.parquet cannot be read"
    )


def test_tables_go_out_and_come_in(capsys: Capture, walks: str) -> None:
    answer(capsys, "reward", *HERE, walks, "1")
    _, text, _ = unfog(capsys, "export", *HERE, "--csv")
    head, row = text.splitlines()
    assert head.startswith("decision,number,time,unit,arm,probability,reward,outcome,context.steps")
    assert row.split(",")[:2] == [walks, "0"]
    Path("past.csv").write_text("steps,sleep,arm,reward,probability\n4000,,send,0.5,0.5\n7000,7,wait,0,0.5\n")
    assert answer(capsys, "import", "walks.unfog", "past.csv", "--name", "walks") == {
        "problem": "walks",
        "decisions": 2,
    }
    assert [event["kind"] for event in lines(capsys, "log", *HERE, "--since", "3")] == [
        "decide",
        "reward",
    ] * 2
    assert refusal(capsys, "import", "walks.unfog", "past.csv").startswith("name: not given; allowed: --name")
    assert refusal(capsys, "import", "new.unfog", "past.csv", "--name", "w").startswith(
        "store: there is no new"
    )
    before = len(lines(capsys, "log", *HERE))
    for last, said in {
        "7000,7,fly,0,": "row 3.logged_arm: 'fly'",
        "x,7,send,0,": "row 3, steps: 'x'",
    }.items():
        Path("past.csv").write_text(f"steps,sleep,arm,reward,probability\n4000,,send,0.5,0.5\n{last}\n")
        assert refusal(capsys, "import", "walks.unfog", "past.csv", "--name", "walks").startswith(said)
    assert len(lines(capsys, "log", *HERE)) == before


def test_a_unit_is_erased_only_if_it_is_meant(capsys: Capture, walks: str) -> None:
    words = "erase", "walks.unfog", "--unit", "ann"
    assert refusal(capsys, *words) == "yes: not given; allowed: --yes: what is erased cannot be brought back"
    assert answer(capsys, *words, "--yes") == {"unit": "ann", "decisions": {"walks": 1}, "message": "erased"}
    assert '"ann"' not in unfog(capsys, "log", *HERE)[1]
    assert refusal(capsys, *words, "--yes").startswith("unit: 'ann'; allowed: a unit that")
    assert walks


def test_a_store_that_is_not_there_is_not_made(capsys: Capture) -> None:
    for words in (
        ("decide", *HERE, "--context", "[1, 2]"),
        ("reward", *HERE, "0-x", "1"),
        ("show", "walks.unfog"),
        ("log", *HERE),
        ("replay", "walks.unfog"),
        ("export", *HERE),
        ("erase", "walks.unfog", "--unit", "ann", "--yes"),
        ("unpin", *HERE),
    ):
        said = (
            "store: there is no walks.unfog; allowed: a store that is there; `unfog live create` creates one"
        )
        assert refusal(capsys, *words) == said
        assert [path.name for path in Path().iterdir()] == ["walks.toml"]


def test_a_store_that_cannot_be_used_is_a_failure(capsys: Capture, walks: str) -> None:
    with live.open("walks.unfog"):
        said = refusal(capsys, "show", "walks.unfog")
    assert said == "walks.unfog is held by this process already; close it first"
    code = "import sys, unfog.live; s = unfog.live.open('walks.unfog'); print(); sys.stdin.read()"
    other = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ}
    )
    assert other.stdout is not None
    other.stdout.readline()
    said = refusal(capsys, "reward", *HERE, walks, "1")
    other.communicate()
    assert said.startswith(f"walks.unfog is held by process {other.pid} since ")
    Path("text.unfog").write_text("no store at all, but a text that is long enough to be looked at" * 20)
    assert "it is no store of unfog" in refusal(capsys, "show", "text.unfog", code=1)
    assert "it is a folder" in refusal(capsys, "show", ".", code=1)


@pytest.mark.slow
def test_a_shell_script_gets_through(capsys: Capture) -> None:
    """The real command, from a real shell."""
    answer(capsys, "create", "s.unfog", "walks", "--terms", "walks.toml")
    script = r"""
    set -e
    unfog() { "$PYTHON" -c "from unfog.cli import main; main()" "$@"; }
    field() { sed 's/.*"'$1'": "\([^"]*\)".*/\1/'; }
    id=$(unfog live decide s.unfog walks --context '{"steps": 1648, "sleep": null}' --unit ann | field id)
    unfog live reward s.unfog walks "$id" -0.5 | field outcome
    unfog live reward s.unfog walks "$id" 2 || echo "left with $?"
    """
    environment = {**os.environ, "PYTHON": sys.executable}
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env=environment)
    assert done.stdout.splitlines() == [
        "learnt",
        "left with 2",
    ]
    assert done.stderr.count("\n") == 1
    assert done.returncode == 0


@pytest.mark.slow
def test_the_demo_tells_and_draws(capsys: Capture) -> None:
    code, out, err = unfog(capsys, "demo", "--decisions", "120", "--seed", "1", "--store", "clinic.unfog")
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 80
    assert out.startswith("A clinic of 20 patients: 120 decisions in 2 days, seed 1,")
    assert "figure: figures/live-demo.svg, figures/live-demo.pdf, figures/live-demo.png" in out
    assert Path("figures/live-demo.png").read_bytes().startswith(b"\x89PNG")
    assert answer(capsys, "show", "clinic.unfog", "--json")["clinic"]["decisions"] == 120
    assert answer(capsys, "replay", "clinic.unfog", "--verify")["same"]
    said = refusal(capsys, "demo", "--store", "clinic.unfog")
    assert said == "store: clinic.unfog is there already; allowed: a new file"
    assert refusal(capsys, "demo", "--decisions", "3").startswith("decisions: 3; allowed: a whole number")
