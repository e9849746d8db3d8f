"""`unfog check posterior` as a user meets it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from unfog.cli import main, paper

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
def test_a_table_and_a_figure(capsys: Capture) -> None:
    code, out, err = unfog(capsys, *SMALL, "lmc, pg,laplace", "--seed", "2")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "small: 40 rounds played by alg1, seed 2; 60 draws of each learner, as used"
    assert lines[1].startswith("NUTS: 16 x 1000 draws, R-hat 1.00")
    assert lines[2].split() == " ".join(paper.HEAD).split()
    rows = {line.split()[0]: line.split()[1:] for line in lines[3:6]}
    assert list(rows) == ["lmc", "pg", "laplace"]
    assert float(rows["lmc"][2]) < 0.1 < 0.6 < float(rows["pg"][2]) < 1.5
    assert rows["laplace"][-1] == "-"
    assert lines[-2].startswith("spread, where 100 % is the posterior's and near 0 is greedy: lmc 3.")
    assert lines[-1] == "figure: figures/posterior.svg, figures/posterior.pdf, figures/posterior.png"
    for kind, magic in (("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")):
        assert Path(f"figures/posterior.{kind}").read_bytes().startswith(magic)
    drawn = Path("figures/posterior.svg").read_text("utf-8")
    assert all(name in drawn for name in ("lmc", "pg", "laplace", "Posteriors of θ against NUTS: small"))


@pytest.mark.slow
def test_json_is_all_there_is_and_repeats_itself(capsys: Capture) -> None:
    words = (*SMALL, "lmc:temperature=0,adf", "--agent", "alg2", "--json", "--out", "here")
    code, out, err = unfog(capsys, *words)
    assert (code, err) == (0, "")
    facts = json.loads(out, parse_constant=pytest.fail)
    assert list(facts) == ["experiment", "agent", "rounds", "seed", "chains", "nuts", "learners", "figures"]
    assert (facts["experiment"], facts["agent"], facts["rounds"], facts["seed"]) == ("small", "alg2", 40, 0)
    assert facts["nuts"]["rhat"] < 1.01
    assert facts["nuts"]["divergences"] == 0
    greedy, adf = facts["learners"]["lmc:temperature=0"], facts["learners"]["adf"]
    assert list(greedy) == ["mean_rms", "mean_max", "spread", "narrowest", "widest", "volume", "z", "z_long"]
    assert greedy["spread"] < 1e-9
    assert adf["z_long"] is None
    assert all(Path(path).is_file() for path in facts["figures"])
    pictures = [Path(path).read_bytes() for path in facts["figures"]]
    assert unfog(capsys, *words)[1] == out
    assert [Path(path).read_bytes() for path in facts["figures"]] == pictures


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


@pytest.mark.parametrize("case", BAD_CALLS)
def test_bad_calls_are_refused_in_one_line(case: str, capsys: Capture) -> None:
    words, said = BAD_CALLS[case]
    code, out, err = unfog(capsys, "check", "posterior", *words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said in err
    assert "allowed: " in err
    assert [path.name for path in Path().iterdir()] == ["small.toml"]


@pytest.mark.parametrize("missing", ["blackjax", "matplotlib"])
@pytest.mark.slow
def test_a_missing_extra_is_named(missing: str) -> None:
    code = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "from unfog.cli import main; main(['check', 'posterior', '--rounds', '5'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"pip install 'unfog[{'exact' if missing == 'blackjax' else 'lab'}]'" in done.stderr
