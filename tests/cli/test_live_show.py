"""`unfog live show`: what it says to people and to programs."""

import json
from pathlib import Path

import pytest

from tests.cli.test_live import HERE, TERMS, answer, lines, refusal, unfog
from unfog.lab.tables import WIDTH

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _some_walks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    """Twelve decisions for two units, of which the first four are rewarded, and one is revealed."""
    monkeypatch.chdir(tmp_path)
    Path("walks.toml").write_text(TERMS)
    answer(capsys, "create", *HERE, "--terms", "walks.toml")
    asked = [{"context": [1000 + 500 * i, 6 + i % 3], "unit": "ann" if i % 2 else "bob"} for i in range(12)]
    Path("asked.ndjson").write_text("\n".join(map(json.dumps, asked)))
    made = lines(capsys, "decide", *HERE, "--batch", "asked.ndjson")
    for i, one in enumerate(made[:4]):
        answer(capsys, "reward", *HERE, one["id"], str(0.5 * i))
    answer(capsys, "reveal", *HERE, made[0]["id"], '{"steps": 5000}')


def test_a_store_lists_its_problems(capsys: Capture) -> None:
    Path("t.json").write_text('{"context": ["x"], "arms": ["a", "b", "c"]}')
    answer(capsys, "create", "walks.unfog", "shop", "--terms", "t.json")
    code, out, err = unfog(capsys, "show", "walks.unfog")
    assert (code, err) == (0, "")
    assert [line.split() for line in out.splitlines()] == [
        ["problem", "agent", "arms", "decisions", "rewards", "pending"],
        ["walks", "late", "2", "12", "4", "8"],
        ["shop", "hedged", "3", "0", "0", "0"],
    ]
    assert answer(capsys, "show", "walks.unfog", "--json")["shop"]["arms"] == ["a", "b", "c"]


def test_an_ordinary_bandit_is_called_one(capsys: Capture) -> None:
    Path("t.json").write_text('{"context": ["x"], "arms": ["a", "b", "c"]}')
    answer(capsys, "create", "walks.unfog", "shop", "--terms", "t.json")
    _, out, _ = unfog(capsys, "show", "walks.unfog", "shop")
    assert "note: All coordinates are taken to be exact: an ordinary contextual bandit" in out
    assert "as the channel says" not in out
    assert "nothing settled yet" in out


def test_a_problem_in_eighty_columns(capsys: Capture) -> None:
    code, out, err = unfog(capsys, "show", *HERE, "--unit", "bob", "--context", "[3000, null]")
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= WIDTH
    said = out.splitlines()
    assert said[0] == "walks: agent late, 12 decisions, seed 7"
    assert said[1].split() == ["arm", "chosen", "share", "rewards", "mean", "reward"]
    belief = answer(capsys, "show", *HERE, "--unit", "bob", "--json")["belief"]
    row = next(line for line in said if line.startswith("steps")).split()
    assert float(row[1].replace(",", "")) == pytest.approx(belief["bias"]["steps"], rel=1e-3)
    assert float(row[2].replace(",", "")) == pytest.approx(belief["bias_sd"]["steps"], rel=1e-3)
    assert row[3:] == ["12", "4,000", row[5], "1"]
    assert "bias as believed of unit bob" in out
    assert "readings are as the channel says" in out
    assert "of 4 rewards" in out
    assert "pending: 8 (8 within the minute); late reports: 0 of rewards" in out
    assert "what each arm would be expected to earn in this context:" in said


def test_no_all_clear_from_an_agent_that_does_not_look(capsys: Capture) -> None:
    for agent in ("alg1", "naive"):
        Path("t.toml").write_text(TERMS.replace("late", agent))
        answer(capsys, "create", "walks.unfog", agent, "--terms", "t.toml")
        answer(capsys, "decide", "walks.unfog", agent, "--context", "[90000, 7]")
        _, out, _ = unfog(capsys, "show", "walks.unfog", agent)
        assert f"agent {agent} does not check whether readings are as the channel says" in out
        assert "\nreadings are" not in out


def test_readings_without_a_unit_are_called_so(capsys: Capture) -> None:
    answer(capsys, "decide", *HERE, "--context", "[9000, 7]")
    _, out, _ = unfog(capsys, "show", *HERE)
    said = "bias as believed of readings without a unit (3 units: name one with --unit)"
    assert said in " ".join(out.split())


def test_units_have_beliefs_of_their_own(capsys: Capture) -> None:
    _, out, _ = unfog(capsys, "show", *HERE)
    assert "bias as believed of a new unit (2 units: name one with --unit)" in " ".join(out.split())
    of = {unit: answer(capsys, "show", *HERE, "--unit", unit, "--json")["belief"] for unit in ("ann", "bob")}
    assert of["ann"]["bias"]["steps"] != of["bob"]["bias"]["steps"]
    assert refusal(capsys, "show", *HERE, "--unit", "eve").startswith("unit: 'eve'; allowed: a unit that")


def test_json_has_everything_and_no_nan(capsys: Capture) -> None:
    found = answer(capsys, "show", *HERE, "--json", "--context", '{"steps": 3000, "sleep": 7}')
    parts = [
        "problem",
        "seed",
        "channel",
        "pinned",
        "retired",
        "shadows",
        "diagnostics",
        "belief",
        "predicted_rewards",
    ]
    assert list(found) == parts
    seen = found["diagnostics"]
    assert (seen["decisions"], seen["pending"], seen["join_rate"], seen["revealed"]) == (12, 8, 1.0, 1)
    assert sum(seen["chosen"].values()) == 12
    assert seen["rmse_noisy"] == {"steps": pytest.approx(4000.0), "sleep": None}
    assert found["belief"]["theta"]["send"].keys() == {"intercept", "steps", "sleep"}
    assert sum(found["predicted_rewards"]["probability_best"].values()) == pytest.approx(1.0)


def test_an_alarm_is_loud(capsys: Capture) -> None:
    wild = [{"context": [6000 + 60_000 * (-1) ** i, 7]} for i in range(60)]
    Path("asked.ndjson").write_text("\n".join(map(json.dumps, wild)))
    lines(capsys, "decide", *HERE, "--batch", "asked.ndjson")
    _, out, _ = unfog(capsys, "show", *HERE)
    assert "ALARM: " in out
    assert "steps" in out.split("ALARM: ")[1]
    assert "readings are as the channel says" not in out


def test_a_figure_is_drawn_where_it_is_wanted(capsys: Capture) -> None:
    assert answer(capsys, "show", *HERE, "--json", "--figure", "walks.png")["figure"] == "walks.png"
    assert Path("walks.png").read_bytes().startswith(b"\x89PNG")
    assert refusal(capsys, "show", *HERE, "--figure", "walks.gif").startswith(
        "figure: walks.gif; allowed: FILE.png"
    )
    assert refusal(capsys, "show", "walks.unfog", "--figure", "f.png").startswith("name: not given")


def test_an_empty_store_says_so(capsys: Capture) -> None:
    from unfog import live

    live.open("empty.unfog").close()
    assert (
        unfog(capsys, "show", "empty.unfog")[1]
        == "empty.unfog is empty: `unfog live create` creates a problem\n"
    )
    assert (
        refusal(capsys, "show", "empty.unfog", "walks") == "name: 'walks'; allowed: none: the store is empty"
    )
