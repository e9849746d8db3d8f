"""`unfog run baselines` as a user meets it."""

import json
from pathlib import Path

import pytest

from unfog._io import seal
from unfog.cli import main
from unfog.lab.baselines.folder import ENTRIES
from unfog.lab.run_folder import LAYOUT

Capture = pytest.CaptureFixture[str]
SMALL = ("--rounds", "8", "--trials", "3", "--workers", "1", "--agents", "linucb, oracle")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without data, and where a round is soon timed."""
    from unfog.lab.baselines import report

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("UNFOG_DATA", raising=False)
    monkeypatch.setattr(report, "TRIALS", 2)


def unfog(capsys: Capture, *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(words)
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


@pytest.mark.slow
def test_a_small_suite(capsys: Capture) -> None:
    code, out, err = unfog(capsys, "run", "baselines", *SMALL)
    assert code == 0
    assert out.startswith("Regret of each as a ratio to ours")
    assert [line.split(" ")[0] for line in err.splitlines()] == [
        "fig1-movielens",
        "airquality-none",
        "airquality-some",
        "airquality-all",
        "kept",
    ]
    kept = {path.name for path in Path("runs/baselines-001").iterdir()}
    assert {"fig1-gaussian", "fig1-logistic", "missing", "suite.json", "table.json"} <= kept
    assert Path("runs/baselines-001/table.txt").read_text("utf-8") == out
    code, shown, _ = unfog(capsys, "show", "runs/baselines-001/drift")
    assert code == 0
    assert "linucb" in shown
    code, out, _ = unfog(capsys, "run", "baselines", *SMALL, "--json")
    facts = json.loads(out)
    assert code == 0
    assert Path("runs/baselines-002/table.json").exists()
    assert facts["outcomes"][0]["problem"] == "fig1-gaussian"
    assert {name.partition("-")[0] for name in facts["left_out"]} == {"fig1", "airquality"}


WRONG: list[tuple[tuple[str, ...], str]] = [
    (("--tails",), "neither for a suite"),
    (("--agents", "alg9"), "no agent is called 'alg9'"),
    (("--trials", "0"), "trials: 0"),
    (("--engine", "steam"), "engine: 'steam'"),
    (("--engine", "cuda"), "engine: cuda"),
    (("--workers", "0"), "workers: 0"),
    (("--problems", "nowhere"), "problems: 'nowhere'"),
    (("--problems", ","), "problems: none named"),
    (("--tuned", "--seed", "1000"), "seed: 1000"),
]


def test_what_does_not_fit_is_one_line(capsys: Capture) -> None:
    for words, complaint in WRONG:
        code, out, err = unfog(capsys, "run", "baselines", *words)
        assert (code, out) == (2, ""), words
        assert complaint in err
        assert len(err.splitlines()) == 1
        assert not Path("runs").exists()


def test_a_suite_is_no_spec(capsys: Capture) -> None:
    code, _, err = unfog(capsys, "reproduce", "baselines")
    assert code == 2
    assert "'baselines' is a suite of experiments" in err


@pytest.mark.parametrize("words", [("--problems", "drift"), ("--tuned",)])
def test_what_only_a_suite_has_is_refused_elsewhere(words: tuple[str, ...], capsys: Capture) -> None:
    code, out, err = unfog(capsys, "run", "fig1-gaussian", *words)
    assert (code, out) == (2, "")
    assert err.startswith(f"unfog: {words[0]}: ")
    assert err.endswith("; allowed: for `unfog run baselines` alone\n")
    assert not Path("runs").exists()


def test_show_and_plot_say_again_what_a_suite_found(capsys: Capture) -> None:
    code, ran, _ = unfog(capsys, "run", "baselines", *SMALL, "--problems", "missing, drift", "--out", "kept")
    assert code == 0
    assert {path.name for path in Path("kept").iterdir() if path.is_dir()} == {"missing", "drift"}
    assert unfog(capsys, "show", "kept")[:2] == (0, ran)
    code, out, _ = unfog(capsys, "show", "kept", "--json")
    kept, said = json.loads(Path("kept/table.json").read_text("utf-8")), json.loads(out)
    assert (code, said) == (0, {name: kept[name] for name in said})
    assert said["outcomes"]
    code, out, err = unfog(capsys, "show", "kept", "--tails")
    assert (code, out, err.count("\n")) == (2, "", 1)
    code, out, _ = unfog(capsys, "plot", "kept", "--out", "drawn")
    assert (code, out.split()) == (0, [str(Path("drawn", f"kept.{kind}")) for kind in ("svg", "pdf", "png")])
    assert all(Path(line).stat().st_size > 1000 for line in out.split())


def test_a_setting_is_chosen_for_all_where_that_is_asked_for(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from unfog.lab.baselines import suite

    monkeypatch.setitem(suite.TRIALS, "quick", 2)
    words = ("--problems", "drift", "--tuned", "--json")
    code, out, _ = unfog(capsys, "run", "baselines", *SMALL, *words)
    (one,) = json.loads(out)["outcomes"]
    assert (code, one["problem"]) == (0, "drift")
    assert [row["agent"] for row in one["tuned"]] == [row["agent"] for row in one["rows"]]
    assert Path("runs/baselines-001/drift-tuning").is_dir()


@pytest.mark.parametrize("command", ["show", "plot"])
@pytest.mark.parametrize(
    ("table", "words"), [(None, "is an unfinished suite: it has no table.json yet"), ("{}", "is damaged")]
)
def test_a_suite_without_a_table_is_one_line(
    command: str, table: str | None, words: str, capsys: Capture
) -> None:
    Path("kept").mkdir()
    Path("kept/suite.json").write_bytes(seal(dict.fromkeys(ENTRIES, "") | {"layout": LAYOUT}))
    if table is not None:
        Path("kept/table.json").write_text(table)
    code, out, err = unfog(capsys, command, "kept")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("unfog: run: 'kept")
    assert words in err
    assert not Path("figures").exists()


def test_a_setting_that_does_not_fit_leaves_a_problem_out(capsys: Capture) -> None:
    words = ("--agents", "polinucb:before=4", "--problems", "fig1-gaussian,gaussian-correlated")
    code, out, err = unfog(capsys, "run", "baselines", *words, *SMALL[:6])
    why = "polinucb:before=4: before: 4; allowed: less than 3, the dimension of contexts"
    assert code == 0
    assert err.splitlines() == [f"gaussian-correlated is left out: {why}", "kept in runs/baselines-001"]
    assert f"gaussian-correlated was not played: {why}" in " ".join(out.split())
    assert not Path("runs/baselines-001/gaussian-correlated").exists()
