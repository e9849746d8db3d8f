"""`unfog check posterior` as a user meets it."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from unfog.cli import main, paper
from unfog.paper import posterior

Capture = pytest.CaptureFixture[str]

# Three features, forty rounds, NUTS's usual draws: compiled once for here and tests/paper/test_posterior.py.
SPEC = '[problem]\nkind = "logistic"\ndim = 1\nactions = 6\n'
SMALL = ("check", "posterior", "small.toml", "--rounds", "40", "--chains", "60", "--learners")


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


def test_help_has_an_example(capsys: Capture) -> None:
    for words in (("check", "--help"), ("check", "posterior", "--help")):
        code, out, _ = unfog(capsys, *words)
        assert code == 0
        assert "unfog check posterior" in out.split("Example")[1]


@pytest.mark.slow
def test_json_says_everything_and_the_table_says_it_again(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = (*SMALL, "lmc:temperature=0, laplace", "--seed", "2", "--out", "here")
    check, checks = posterior.check, list[posterior.Check]()

    def once(*given: Any, **named: Any) -> posterior.Check:
        checks.append(check(*given, **named) if not checks else checks[0])
        return checks[0]

    monkeypatch.setattr(posterior, "check", once)
    code, out, err = unfog(capsys, *words, "--json")
    assert (code, err) == (0, "")
    facts = json.loads(out, parse_constant=pytest.fail)
    assert list(facts) == ["experiment", "agent", "rounds", "seed", "chains", "nuts", "learners", "figures"]
    assert (facts["experiment"], facts["agent"], facts["rounds"], facts["seed"]) == ("small", "alg1", 40, 2)
    assert facts["nuts"]["rhat"] < 1.01
    assert facts["nuts"]["divergences"] == 0
    assert list(facts["learners"]) == ["lmc:temperature=0", "laplace"]
    greedy, laplace = facts["learners"].values()
    assert list(greedy) == ["mean_rms", "mean_max", "spread", "narrowest", "widest", "volume", "z", "z_long"]
    assert greedy["spread"] < 1e-9 < 0.5 < laplace["spread"] < 1.5
    assert laplace["z_long"] is None
    for path, magic in zip(facts["figures"], (b"<?xml", b"%PDF", b"\x89PNG"), strict=True):
        assert Path(path).read_bytes().startswith(magic)
    drawn = Path("here/posterior.svg").read_text("utf-8")
    assert all(name in drawn for name in ("lmc", "laplace", "Posteriors of θ against NUTS: small"))
    monkeypatch.setattr("unfog.plotting.save", lambda *_: [Path("drawn.svg")])
    code, out, err = unfog(capsys, *words)
    assert (code, err, out) == (0, "", f"{paper.table(facts)}\nfigure: drawn.svg\n")
    lines = out.splitlines()
    assert lines[0] == "small: 40 rounds played by alg1, seed 2; 60 draws of each learner, as used"
    assert lines[1].startswith("NUTS: 16 x 1000 draws, R-hat 1.00")
    assert lines[2].split() == " ".join(paper.HEAD).split()
    assert lines[-2].startswith(
        "spread, where 100 % is the posterior's and near 0 is greedy: lmc:temperature=0 "
    )


def test_nuts_that_has_not_converged_is_not_trusted() -> None:
    numbers = dict.fromkeys(["mean_rms", "spread", "z"], 0.5)
    nuts = {"chains": 16, "draws": 200, "rhat": 1.2, "ess": 10.0, "divergences": 0}
    asked = {"experiment": "made-up", "agent": "kk", "rounds": 3, "seed": 0, "chains": 50}
    facts = {**asked, "nuts": nuts, "learners": {"pg": {**numbers, **dict.fromkeys("abcde")}}}
    assert "not to be trusted" in paper.table(facts)
    assert "not to be trusted" not in paper.table({**facts, "nuts": {**nuts, "rhat": 1.0}})
    assert "not to be trusted" in paper.table({**facts, "nuts": {**nuts, "rhat": 1.0, "divergences": 2}})


BAD_CALLS = {
    "gaussian rewards": (["fig1-gaussian"], "experiment: the rewards of 'fig1-gaussian' are gaussian"),
    "unknown experiment": (["fig9"], "experiment: 'fig9'"),
    "unknown learner": (["--learners", "nuts"], "learners: 'nuts'"),
    "bad setting": (["--learners", "lmc:temperature=-1"], "temperature: -1.0"),
    "unknown setting": (["--learners", "pg:temperature=1"], "temperature: no such setting"),
    "learner twice": (["--learners", "pg,pg"], "learners: pg, pg"),
    "no learner": (["--learners", ","], "learners: none named"),
    "agent with a learner": (["--agent", "alg1-pg"], "agent: 'alg1-pg'"),
    "no rounds": (["--rounds", "0"], "rounds: 0"),
    "few chains": (["--chains", "3"], "chains: 3"),
    "few draws": (["--draws", "3"], "draws: 3"),
    "negative seed": (["--seed", "-1"], "seed: -1"),
}


def test_bad_calls_are_refused_in_one_line(capsys: Capture) -> None:
    for case, (words, said) in BAD_CALLS.items():
        code, out, err = unfog(capsys, "check", "posterior", *words)
        assert (code, out, err.count("\n")) == (2, "", 1), case
        assert said in err
        assert "allowed: " in err
        assert [path.name for path in Path().iterdir()] == ["small.toml"]


def test_a_missing_extra_is_named(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "unfog.paper.nuts", raising=False)
    monkeypatch.delattr("unfog.paper.nuts", raising=False)
    for missing, extra in (("matplotlib.figure", "lab"), ("blackjax", "exact")):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, missing, None)
            code, out, err = unfog(capsys, "check", "posterior", "--rounds", "5")
        assert (code, out) == (2, "")
        assert f"pip install 'unfog[{extra}]'" in err
