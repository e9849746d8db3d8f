"""`unfog run rivals` as a user meets it."""

import json
from pathlib import Path

import pytest

from unfog.cli import main

Capture = pytest.CaptureFixture[str]
SMALL = ("--rounds", "8", "--trials", "3", "--workers", "1", "--agents", "linucb, oracle")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without data, and where a round is soon timed."""
    from unfog.lab.rivals import timing

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("UNFOG_DATA", raising=False)
    monkeypatch.setattr(timing, "TRIALS", 2)


def unfog(capsys: Capture, *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(words)
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


@pytest.mark.slow
def test_a_small_suite(capsys: Capture) -> None:
    code, out, err = unfog(capsys, "run", "rivals", *SMALL)
    assert code == 0
    assert out.startswith("Regret of each as a ratio to ours")
    assert [line.split(" ")[0] for line in err.splitlines()] == [
        "fig1-movielens",
        "airquality-none",
        "airquality-some",
        "airquality-all",
        "kept",
    ]
    kept = {path.name for path in Path("runs/rivals-001").iterdir()}
    assert {"fig1-gaussian", "fig1-logistic", "missing", "suite.json", "table.json"} <= kept
    assert Path("runs/rivals-001/table.txt").read_text("utf-8") == out
    code, shown, _ = unfog(capsys, "show", "runs/rivals-001/drift")
    assert code == 0
    assert "linucb" in shown
    code, out, _ = unfog(capsys, "run", "rivals", *SMALL, "--json")
    facts = json.loads(out)
    assert code == 0
    assert Path("runs/rivals-002/table.json").exists()
    assert facts["outcomes"][0]["problem"] == "fig1-gaussian"
    assert {name.partition("-")[0] for name in facts["left_out"]} == {"fig1", "airquality"}


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--tails",), "neither for a suite"),
        (("--agents", "alg9"), "no agent is called 'alg9'"),
        (("--trials", "0"), "trials: 0"),
        (("--engine", "steam"), "engine: 'steam'"),
    ],
)
def test_what_does_not_fit_is_one_line(words: tuple[str, ...], complaint: str, capsys: Capture) -> None:
    code, out, err = unfog(capsys, "run", "rivals", *words)
    assert (code, out) == (2, "")
    assert complaint in err
    assert len(err.splitlines()) == 1
    assert not Path("runs").exists()


def test_a_suite_is_no_spec(capsys: Capture) -> None:
    code, _, err = unfog(capsys, "reproduce", "rivals")
    assert code == 2
    assert "'rivals' is a suite of experiments" in err
