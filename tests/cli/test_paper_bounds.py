"""`unfog bounds` as a user meets it."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from unfog import plotting
from unfog.cli import main
from unfog.paper.bounds_report import table

Capture = pytest.CaptureFixture[str]
SPEC = """
title = "Small"
[problem]
kind = "gaussian"
dim = 2
actions = 4
action_law = "uniform"
features = "product"
context_cov = 0.1
noise_cov = 0.1
bias_cov = 0.1
reward_var = 1.0
prior_cov = 0.04
[run]
rounds = 48
trials = 5
agents = ["alg1", "naive", "alg2"]
[sweep]
dim = [2, 4]
"""
SMALL = ("bounds", "small.toml", "--workers", "1")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("small.toml").write_text(SPEC)


def unfog(capsys: Capture, *words: str) -> tuple[int, str, str]:
    """Run a command; its exit code, stdout and stderr."""
    with pytest.raises(SystemExit) as ended:
        main(words)
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


def facts_of(capsys: Capture, *words: str) -> dict[str, Any]:
    code, out, err = unfog(capsys, *SMALL, *words, "--json")
    assert (code, err) == (0, "")
    facts: dict[str, Any] = json.loads(out, parse_constant=pytest.fail)
    return facts


def test_help_has_an_example(capsys: Capture) -> None:
    code, out, _ = unfog(capsys, "bounds", "--help")
    assert code == 0
    assert "unfog bounds" in out.split("Example")[1]


@pytest.mark.slow
def test_a_table_and_a_figure(capsys: Capture) -> None:
    code, out, err = unfog(capsys, *SMALL, "--seed", "2")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].startswith("small: 5 trials, 48 rounds, seed 2, ")
    assert lines[1].split() == ["agent", "regret", "CB", "EE1", "EE2", "at", "random"]
    assert [line.split()[0] for line in lines[2:4]] == ["alg1", "alg2"]
    heads = [line.split("  ") for line in lines if line.startswith("bound ")]
    assert [[cell.strip() for cell in head if cell][3:] for head in heads] == [
        ["learning", "mismatch", "mismatch of the best", "estimation", "largest"],
        ["learning", "tail", "estimation", "largest"],
    ]
    for row in ("alg1: theorem 1, printed", "alg1: theorem 1, corrected", "alg2: theorem 2, corrected"):
        assert sum(line.startswith(row) for line in lines) == 1
    start = next(place for place, line in enumerate(lines) if line.startswith("growth"))
    assert [line.split(",")[0] for line in lines[start + 1 : start + 6]] == [
        "round",
        "round",
        "horizon",
        "dim",
        "dim",
    ]
    assert lines[start + 3].startswith("horizon, 3 to 48, prior variance ~ 1/horizon")
    assert lines[-4:] == ["figure:", *(f"figures/bounds-small.{kind}" for kind in ("svg", "pdf", "png"))]
    for kind, magic in (("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")):
        assert Path(f"figures/bounds-small.{kind}").read_bytes().startswith(magic)
    drawn = Path("figures/bounds-small.svg").read_text("utf-8")
    assert all(name in drawn for name in ("Algorithm 1", "Theorem 2, printed", "horizon T", "dimension d"))


@pytest.mark.usefixtures("undrawn")
def test_json_says_everything_and_the_table_says_it_again(capsys: Capture) -> None:
    Path("bounds-tiny.toml").write_text(SPEC)
    words = ("bounds", "bounds-tiny.toml", "--workers", "1", "--rounds", "32", "--trials", "4")
    code, out, err = unfog(capsys, *words, "--out", "here", "--json")
    assert (code, err) == (0, "")
    facts = json.loads(out, parse_constant=pytest.fail)
    assert list(facts) == [
        "experiment", "rounds", "trials", "seed", "seconds", "fixed", "tied", "swept", "mismatch", "figures",
    ]  # fmt: skip
    told = facts["experiment"], facts["rounds"], facts["trials"], facts["mismatch"]
    assert told == ("bounds-tiny", 32, 4, None)
    assert [facts[panel]["axis"] for panel in ("fixed", "tied", "swept")] == ["round", "horizon", "dim"]
    assert [list(facts[panel]["agents"]) for panel in ("fixed", "tied")] == [["alg1", "alg2"], ["alg1"]]
    for one in facts["fixed"]["agents"].values():
        assert list(one["losses"]) == ["regret", "cb", "ee1", "ee2", "ee"]
        regret, cb, ee = (one["losses"][loss]["mean"] for loss in ("regret", "cb", "ee"))
        assert regret == pytest.approx([a + b for a, b in zip(cb, ee, strict=True)], abs=1e-9)
        for bound in one["bounds"].values():
            assert bound["total"] == pytest.approx(
                [sum(parts) for parts in zip(*bound["parts"].values(), strict=True)]
            )
    assert facts["figures"] == [f"here/bounds-tiny.{kind}" for kind in ("svg", "pdf", "png")]
    code, out, _ = unfog(capsys, *words, "--out", "here")
    assert (code, out.splitlines()[1:]) == (0, table(facts).splitlines()[1:])  # seconds are in the first


@pytest.mark.usefixtures("undrawn")
def test_a_single_trial_of_a_single_round_has_no_intervals_and_no_nan(capsys: Capture) -> None:
    facts = facts_of(capsys, "--rounds", "1", "--trials", "1")
    one = facts["fixed"]["agents"]["alg1"]
    assert (one["exponent"], one["losses"]["regret"]["half_width"]) == (None, None)
    assert facts["tied"] is None
    assert table(facts).startswith("small: 1 trial, 1 round, seed 0, ")


def test_a_picture_that_cannot_be_saved_takes_no_numbers_with_it(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device", "figures/bounds-small.svg")

    monkeypatch.setattr(plotting, "save", full)
    code, out, err = unfog(capsys, *SMALL, "--rounds", "8")
    assert (code, err) == (1, "unfog: figures/bounds-small.svg: No space left on device\n")
    assert out.startswith("small: 5 trials, 8 rounds, seed 0, ")
    assert out.endswith("figure: none\n")
    code, out, _ = unfog(capsys, *SMALL, "--rounds", "8", "--json")
    assert (code, json.loads(out)["figures"]) == (1, [])


@pytest.mark.usefixtures("undrawn")
def test_the_mismatch_is_measured_where_it_is_asked_for(capsys: Capture) -> None:
    facts = facts_of(capsys, "--rounds", "12", "--mismatch", "2")
    told = facts["mismatch"]
    assert told["rounds"][-1] == 12
    assert told["limits"]["printed"][-1] == pytest.approx(2 * 12 / 4)
    assert 0 <= told["sum"][-1] < told["limits"]["printed"][-1]
    least = facts["fixed"]["agents"]["alg1"]["bounds"]["printed"]["parts"]
    assert told["lemma_1"]["parts"]["mismatch"][-1] < least["mismatch"][-1]
    out = table(facts)
    assert "sum of D_t to round 12: " in out
    assert "; printed bound 6; corrected bound 12" in out
    assert "Lemma 1 with it: CB <= " in out


BAD_CALLS = {
    "unknown experiment": (["fig9"], "experiment: 'fig9'"),
    "rewards of 0 or 1": (["fig1-logistic"], "problem: bernoulli rewards"),
    "no agent with a bound": (["none.toml"], "run.agents: kk, naive"),
    "zero trials": (["small.toml", "--trials", "0"], "run.trials: 0"),
    "zero workers": (["small.toml", "--workers", "0"], "workers: 0"),
    "negative mismatch": (["small.toml", "--mismatch", "-1"], "mismatch: -1"),
    "a file for a folder": (["small.toml", "--out", "none.toml"], "out: none.toml"),
    "a folder in a file": (["small.toml", "--out", "none.toml/a/b"], "out: none.toml/a/b"),
    "mismatch of one trial": (["small.toml", "--mismatch", "1"], "mismatch: 1"),
    "mismatch without alg1": (["bounds-delayed", "--mismatch", "3"], "mismatch: of alg2, alg2-exact"),
}


def test_bad_calls_are_refused_in_one_line(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unfog.paper.bounds.play", pytest.fail)  # before anything is simulated
    Path("none.toml").write_text('[problem]\nkind = "gaussian"\n[run]\nagents = ["kk", "naive"]\n')
    for case, (words, said) in BAD_CALLS.items():
        code, out, err = unfog(capsys, "bounds", *words)
        assert (code, out, err.count("\n")) == (2, "", 1), case
        assert said in err
        assert "allowed: " in err
        assert {path.name for path in Path().iterdir()} == {"small.toml", "none.toml"}


def test_a_missing_extra_is_named(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    code, out, err = unfog(capsys, "bounds", "small.toml")
    assert (code, out) == (2, "")
    assert "pip install 'unfog[lab]'" in err
