"""`unfog evaluate` as a user meets it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unfog as library
from tests.evaluation.readers import logs
from tests.walks import ARMS, CHANNEL, Walks, walks
from unfog.cli import main
from unfog.cli.evaluate import probability_of, reading
from unfog.lab import sensor
from unfog.lab.evaluate import read_log
from unfog.lab.tables import plus_minus

Capture = pytest.CaptureFixture[str]
DAYS = walks(400)
NAMED = ("--context", "steps,sleep", "--arm", "message", "--reward", "walked", "--probability", "p")
WALKS = ("evaluate", "walks.csv", *NAMED)


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    DAYS.write(Path("walks.csv"), known=300)
    Path("channel.json").write_text(json.dumps(CHANNEL))
    Path("channel.toml").write_text("".join(f"{name} = {value}\n" for name, value in CHANNEL.items()))
    Path("bad.toml").write_text("arm = ")
    Path("list.json").write_text("[1]")


def unfog(capsys: Capture, *words: str) -> tuple[int, str, str]:
    """Run a command; its exit code, stdout and stderr."""
    with pytest.raises(SystemExit) as ended:
        main(words)
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


def facts_of(capsys: Capture, *words: str) -> dict[str, Any]:
    code, out, err = unfog(capsys, *words, "--json")
    assert (code, err) == (0, "")
    facts: dict[str, Any] = json.loads(out, parse_constant=pytest.fail)
    return facts


def weighed(days: Walks, arm: str) -> float:
    """Inverse propensity by hand."""
    return float(np.mean((days.arm == ARMS.index(arm)) * days.reward / days.probability))


def test_numbers_are_those_of_the_log(capsys: Capture) -> None:
    words = (
        "--policies",
        "always:walk,always:rest,logger",
        "--estimators",
        "ips,replay",
        "--intervals",
        "plain",
    )
    facts = facts_of(capsys, *WALKS, *words)
    assert (facts["rounds"], facts["arms"]) == (400, ["nothing", "rest", "walk"])
    for arm in ("walk", "rest"):
        found = facts["policies"][f"always:{arm}"]["estimators"]["ips"]["value"]
        assert found == pytest.approx(weighed(DAYS, arm), rel=1e-9)
    assert facts["policies"]["logger"]["estimators"]["replay"]["value"] is None
    assert [Path(path).stat().st_size > 5000 for path in facts["figures"]] == [True] * 3
    assert "sensor" not in facts


@pytest.mark.usefixtures("undrawn")
def test_the_table_fits_a_terminal_and_says_what_json_says(capsys: Capture) -> None:
    words = ("--policies", "logger,fitted,always:walk", "--estimators", "dr,snips,ips,clipped,switch,dm")
    facts = facts_of(capsys, *WALKS, *words, "--level", "0.9")
    _, out, _ = unfog(capsys, *WALKS, *words, "--level", "0.9")
    assert max(map(len, out.splitlines())) <= 80
    assert "± is the 90 % interval, adaptive" in out
    one = facts["policies"]["fitted"]
    dr = one["estimators"]["dr"]
    half, gain = (dr["high"] - dr["low"]) / 2, (dr["gain_high"] - dr["gain_low"]) / 2
    value, more = plus_minus(dr["value"], half, 3), plus_minus(dr["gain"], gain, 3, "+")
    shown = f"fitted {value} {more} {one['effective']:.0f}"
    squeezed = [" ".join(line.split()) for line in out.splitlines()]
    assert any(line.startswith(shown) for line in squeezed)
    dm = one["estimators"]["dm"]
    assert any(line.endswith(plus_minus(dm["value"], (dm["high"] - dm["low"]) / 2, 3)) for line in squeezed)
    for note in facts["notes"]:
        assert note in " ".join(out.replace("\n- ", "\n").split())


def test_columns_of_a_file_and_options_over_them() -> None:
    told = 'context = ["steps", "sleep"]\narm = "message"\nreward = "steps"\nprobability = "p"\n'
    Path("columns.toml").write_text(told)
    for fields, column in (({}, DAYS.noisy[:, 0]), ({"reward": "walked"}, DAYS.reward)):
        log = read_log(
            "walks.csv", **reading(Path("walks.csv"), Path("columns.toml"), fields, {"problem": None})
        )
        np.testing.assert_array_equal(log.reward, column)


def test_true_columns_in_order_or_by_the_name_of_their_context() -> None:
    named = {"context": "steps,sleep", "arm": "message", "reward": "walked"}
    for told in ("true_steps,true_sleep", "sleep=true_sleep, steps = true_steps"):
        given = {"problem": None, **probability_of("p")}
        log = read_log("walks.csv", **reading(Path("walks.csv"), None, {**named, "true": told}, given))
        np.testing.assert_array_equal(np.asarray(log.true)[:300], DAYS.true[:300])


@pytest.mark.usefixtures("undrawn")
def test_arms_that_were_drawn_evenly(capsys: Capture) -> None:
    words = ("--probability", "0.25", "--arms", "nothing,walk,rest,run", "--policies", "always:walk")
    facts = facts_of(capsys, *WALKS[:-2], *words, "--estimators", "ips", "--intervals", "plain")
    byhand = 4 * np.mean((DAYS.arm == 1) * DAYS.reward)
    assert facts["policies"]["always:walk"]["estimators"]["ips"]["value"] == pytest.approx(byhand)


@pytest.mark.usefixtures("undrawn")
def test_a_live_store_and_its_export_say_the_same(capsys: Capture) -> None:
    dice = np.random.default_rng(3)
    with library.live.open("live.unfog") as store:
        problem = store.problem(
            "walks", context=["steps", "sleep"], arms=list(ARMS), channel=CHANNEL, epsilon=0.6, seed=2
        )
        for noisy in DAYS.noisy[:60]:
            made = problem.decide(dict(zip(("steps", "sleep"), noisy.tolist(), strict=True)))
            problem.reward(made.id, float(noisy[0] * ARMS.index(made.arm) + dice.normal()))
        Path("live.ndjson").write_text("".join(json.dumps(one) + "\n" for one in problem.events()))
    words = ("--policies", "always:walk,uniform", "--estimators", "snips")
    one = facts_of(capsys, "evaluate", "live.unfog", "--problem", "walks", *words)
    other = facts_of(capsys, "evaluate", "live.ndjson", *words)
    assert one["policies"] == other["policies"]
    assert one["rounds"] == 60
    assert one["policies"]["always:walk"]["unsupported"] == 0


@pytest.mark.usefixtures("undrawn")
def test_agents_learn_from_the_log(capsys: Capture) -> None:
    walks(60).write(Path("walks.csv"))
    facts = facts_of(capsys, *WALKS, "--policies", "naive", "--seed", "3")
    assert list(facts["policies"]["naive"]["estimators"]) == ["dr", "snips", "ips", "replay"]
    _, out, _ = unfog(capsys, *WALKS, "--policies", "naive", "--seed", "3")
    count = facts["policies"]["naive"]["estimators"]["replay"]["rounds"]
    assert 0 < count < 60
    assert f"replay rests on the rounds that count: {count} of naive." in " ".join(out.split())


@pytest.mark.usefixtures("undrawn")
def test_what_a_better_sensor_is_worth(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    walks(220).write(Path("walks.csv"), known=200)
    asked, worths, work = list[Any](), list[Any](), sensor.sensor_worth

    def once(*given: Any, **told: Any) -> Any:
        asked.append(told["channel"])
        worths.append(worths[0] if worths else work(*given, **told))
        return worths[-1]

    monkeypatch.setattr(sensor, "sensor_worth", once)
    words = ("--policies", "logger", "--true", "true_steps,true_sleep", "--channel", "channel.json")
    facts = facts_of(capsys, *WALKS, *words, "--alone", "sleep")
    found = facts["sensor"]
    assert list(found["sensors"]) == ["all", "sleep"]
    assert list(found["ladder"]) == ["naive", "denoised", "perfect", "denoised, known", "true"]
    assert found["ladder"]["true"]["ladder_rounds"] == 200
    assert len(facts["figures"]) == 6
    code, out, _ = unfog(capsys, *WALKS, *words[:-1], "channel.toml", "--sensor", "--alone", "sleep")
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    one = found["sensors"]["sleep"]
    worth = one["curves"][one["used"]]
    none, half = (found["less"].index(level) for level in (-1.0, -0.5))
    shown = [
        f"{worth['worth'][i]:+.3f} ± {(worth['worth_high'][i] - worth['worth_low'][i]) / 2:.3f}"
        for i in (half, none)
    ]
    line = " ".join(["sleep", *shown, one["used"]])
    assert line in [" ".join(row.split()) for row in out.splitlines()]
    assert asked[0] == asked[1]


WRONG: list[tuple[tuple[str, ...], str]] = [
    (("evaluate", "nowhere.csv"), "log: there is no file 'nowhere.csv'; allowed: "),
    (WALKS[:-2], "probability: no such column among steps, sleep, message, p, walked"),
    ((*WALKS[:-1], "q"), "probability: no column 'q'; allowed: one of: steps, "),
    ((*WALKS[:-1], "0.2"), "probability: 0.2; allowed: 0.333333 if all of 3 arms were drawn evenly"),
    ((*WALKS, "--policies", "always:run"), "policies: always:run; allowed: always:ARM, with one of "),
    ((*WALKS, "--policies", ","), "policies: none; allowed: logger, uniform, "),
    ((*WALKS, "--policies", "best"), "policies: no policy is called 'best'; allowed: "),
    ((*WALKS, "--estimators", "magic"), "estimators: 'magic'; allowed: dr, snips, "),
    ((*WALKS, "--intervals", "wide"), "intervals: 'wide'; allowed: adaptive, plain"),
    ((*WALKS, "--level", "1"), "level: 1.0; allowed: a number between 0 and 1"),
    ((*WALKS, "--seed", "-1"), "seed: -1; allowed: a whole number"),
    ((*WALKS, "--features", "product"), "features: product; allowed: per_arm; for others, "),
    ((*WALKS, "--problem", "walks"), "problem: walks; allowed: nothing, for walks.csv: only live "),
    ((*WALKS, "--sensor"), "channel: none, and 0 true contexts; allowed: what is known of the noise"),
    (
        (*WALKS, "--channel", "channel.json", "--alone", "run"),
        "alone: 'run'; allowed: each, steps, sleep",
    ),
    ((*WALKS, "--channel", "none.json"), "channel: there is no file 'none.json'; allowed: "),
    ((*WALKS, "--channel", "list.json"), 'channel: [1]; allowed: a JSON object such as {"context_mean"'),
    ((*WALKS, "--channel", "bad.toml"), "channel: 'bad.toml' is not TOML (Invalid value"),
    ((*WALKS, "--columns", "bad.toml"), "columns: 'bad.toml' is not TOML (Invalid value"),
    ((*WALKS, "--true", "true_steps"), "columns.true: ['true_steps']; allowed: a column for each of "),
    ((*WALKS, "--arms", "walk,rest"), "message: nothing; allowed: one of the arms: walk, rest"),
    ((*WALKS, "--out", "walks.csv"), "out: walks.csv; allowed: a folder that can be made"),
    (("evaluate", "list.json", "--arm", "x"), "arm: x; allowed: nothing, for list.json: only tables "),
    (("evaluate", "list.json", "--columns", "bad.toml"), "columns: bad.toml; allowed: nothing, for "),
]


def test_what_is_wrong_is_said_in_a_line(capsys: Capture) -> None:
    for words, complaint in WRONG:
        code, out, err = unfog(capsys, *words, "--json")
        assert (code, out) == (2, ""), words
        assert complaint in err
        assert err.count("\n") == 1
        assert not Path("figures").exists()


@pytest.mark.usefixtures("undrawn")
def test_numbers_of_dsjson_are_chosen(capsys: Capture) -> None:
    log = logs.simulated(80)._replace(true=None, unit=None, units=())
    logs.lines(Path("log.json"), logs.dsjson(log))
    words = ("evaluate", "log.json", "--policies", "logger", "--estimators", "ips")
    facts = facts_of(capsys, *words, "--context", "heart rate,sleep")
    assert facts["coordinates"] == ["heart rate", "sleep"]
    assert facts["earned"] == pytest.approx(log.reward.mean())
