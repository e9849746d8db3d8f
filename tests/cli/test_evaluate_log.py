"""Options of `unfog evaluate` that do not fit the log are refused in words of options."""

import json
from pathlib import Path

import pytest

from tests.live.ground import opened, problem
from unfog.cli import main

Capture = pytest.CaptureFixture[str]
CSV = ["context.x,arm,reward,probability,outcome", "1.5,a,2,0.5,3", "2.5,b,-1,0.25,4", "-0.5,a,0,0.75,6"]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("log.csv").write_text("\n".join(CSV) + "\n")
    Path("bare.csv").write_text("\n".join(line.replace("probability", "p") for line in CSV) + "\n")
    with opened(tmp_path) as store:
        walks = problem(store)
        for i in range(4):
            walks.reward(walks.decide([0.5 * i, 1.0]).id, 1.0 + i)
        Path("log.ndjson").write_text("".join(store.export(walks.name)))


def unfog(capsys: Capture, *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(("evaluate", *words, "--policies", "logger", "--estimators", "ips", "--json"))
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (
            ("log.ndjson", "--context", "x"),
            "coordinates of the context: ['x']; allowed: nothing, for log",
        ),
        (
            ("test.unfog", "--context", "mood"),
            "coordinates of the context: ['mood']; allowed: nothing, for",
        ),
        (
            ("test.unfog", "--probability", "0.5"),
            "probability: 0.5; allowed: nothing, for test.unfog: it ",
        ),
        (
            ("test.unfog", "--probability", "p"),
            "probability: p; allowed: nothing, for test.unfog: only ",
        ),
        (
            ("log.csv", "--problem", "test"),
            "problem: test; allowed: nothing, for log.csv: only live ",
        ),
        (("bare.csv",), "if all arms were drawn evenly, say so: probability 0.25, for four arms."),
        (
            ("log.csv", "--probability", "0.1"),
            "else a column of probabilities; list arms that were ne",
        ),
        (("log.csv", "--context", "mood"), "context: no column 'mood'; allowed: one of: context.x, arm, "),
    ],
)
def test_what_does_not_fit(words: tuple[str, ...], complaint: str, capsys: Capture) -> None:
    code, out, err = unfog(capsys, *words)
    assert (code, out) == (2, "")
    assert complaint in err
    assert "Columns(" not in err
    assert "=[" not in err


def test_a_reward_that_is_called_outcome(capsys: Capture) -> None:
    code, out, err = unfog(capsys, "log.csv", "--reward", "outcome")
    assert (code, err) == (0, "")
    assert json.loads(out)["earned"] == pytest.approx((3 + 4 + 6) / 3)
