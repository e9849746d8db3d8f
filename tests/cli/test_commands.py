"""The commands as a user meets them: output, exit codes, and what lands on disk."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from unfog.agents import denoise
from unfog.agents.baselines import BASELINES
from unfog.agents.catalogue import AGENTS, CHOOSERS, EVERY, LEARNERS, PARTS, Catalogue
from unfog.cli import main
from unfog.cli.common import KINDS
from unfog.features.registry import BUILT_IN
from unfog.lab.datasets.files import DATASETS
from unfog.lab.spec import KINDS as PROBLEMS
from unfog.lab.spec import SUITES, catalog
from unfog.simulation import engines
from unfog.version import __version__

DENOISERS = [vars(denoise)[name].name for name in denoise.__all__]

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def unfog(capsys: Capture, *words: str) -> tuple[int, str, str]:
    """Run a command; its exit code, stdout and stderr."""
    with pytest.raises(SystemExit) as ended:
        main(words)
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


SMALL = ("--rounds", "30", "--trials", "4", "--workers", "1")


def test_help_is_given_without_numpy() -> None:
    code = "import sys, unfog.cli; sys.exit(bool({'numpy', 'pydantic'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_every_command_has_help_with_an_example(capsys: Capture) -> None:
    for command in ("list", "explain", "run", "show", "plot", "reproduce", "bounds", "evaluate"):
        code, out, _ = unfog(capsys, command, "--help")
        assert code == 0
        assert f"unfog {command}" in out.split("Example")[1]


def test_list_names_everything(capsys: Capture) -> None:
    code, out, _ = unfog(capsys, "list")
    assert code == 0
    rows = [line for line in out.splitlines() if line[:2] == "  " != line[1:3]]  # others go on with a row
    lines = {line.split()[0]: line.split()[1:] for line in rows}
    more = {*PROBLEMS, *DENOISERS, *BUILT_IN, *engines.NAMES, engines.AUTO}
    assert set(lines) == {*EVERY, *catalog(), *SUITES, *PARTS, *DATASETS, *more}
    assert all(lines.values())
    assert max(map(len, out.splitlines())) <= 80
    assert "(temperature=0.001, steps=50, rate=0.2, decay=1.0, marginal=false)" in " ".join(out.split())


def test_list_says_how_parts_are_named(capsys: Capture) -> None:
    _, out, _ = unfog(capsys, "list")
    starts = [line.split(",")[0] for line in out.splitlines() if not line.startswith(" ")]
    assert starts == list(KINDS)
    whole = "\n".join(line for line in out.splitlines() if not line.startswith("  "))
    headings = whole.replace("\n ", " ").splitlines()
    own = ", ".join(name for name, part in LEARNERS.items() if part.rewards == "gaussian")
    assert f"({own} for Gaussian rewards, the others for rewards of 0 or 1)" in headings[5]
    for name in ("alg1-hetero", "alg1-exact-ucb", "alg1-hetero-ucb:quantile=0.9"):
        assert name in " ".join(headings)
        assert Catalogue()[name].name == name
    assert Catalogue("bernoulli")["alg1-lmc:temperature=1:steps=20"].summary.endswith("Langevin Monte Carlo")


def test_list_as_json_is_in_the_same_groups(capsys: Capture) -> None:
    code, out, err = unfog(capsys, "list", "--json")
    groups = json.loads(out)
    assert (code, err) == (0, "")
    assert list(groups) == list(KINDS)
    agents = list(AGENTS), list(BASELINES), DENOISERS, list(LEARNERS), list(CHOOSERS)
    more = list(BUILT_IN), [*engines.NAMES, engines.AUTO], list(DATASETS)
    known = [*catalog(), *SUITES], list(PROBLEMS), *agents, *more
    for group, names in zip(groups.values(), known, strict=True):
        assert set(group) == set(names)
        assert all(isinstance(line, str) and line for line in group.values())
    assert groups["agents"]["unfog"] == AGENTS["unfog"].summary
    assert groups["choosers"]["greedy"] == PARTS["greedy"].note  # it has no settings to tell
    assert groups["learners"]["hetero"] == f"{PARTS['hetero'].note} (surprise=false)"


def test_one_kind_is_listed_alone_and_words_choose_among_it(capsys: Capture) -> None:
    code, out, _ = unfog(capsys, "list", "agents")
    assert code == 0
    assert {line.split()[0] for line in out.splitlines()[1:] if line[2:3] != " "} == set(AGENTS)
    _, out, _ = unfog(capsys, "list", "agents", "DRIFT")
    both = [["temporal", *AGENTS["temporal"].summary.split()], ["drift", *AGENTS["drift"].summary.split()]]
    assert out.split() == ["agents", *both[0], *both[1]]
    _, out, _ = unfog(capsys, "list", "agents", "default", "true", "contexts", "--json")
    assert json.loads(out) == {"agents": {"unfog-delayed": AGENTS["unfog-delayed"].summary}}
    for kind in KINDS:
        assert list(json.loads(unfog(capsys, "list", kind, "--json")[1])) == [kind]


def test_a_list_of_nothing_is_refused(capsys: Capture) -> None:
    for words, said in {
        ("agent",): "unfog: kind: 'agent' (did you mean 'agents'?); allowed: experiments, problems, agents, ",
        ("agents", "orcale"): "unfog: words: nothing listed has 'orcale' (did you mean 'oracle'?)",
    }.items():
        code, out, err = unfog(capsys, "list", *words)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert err.startswith(said)


def test_a_group_of_commands_alone_shows_its_help(capsys: Capture) -> None:
    for words in ((), ("check",)):
        code, out, err = unfog(capsys, *words)
        assert (code, out) == (2, "")
        assert err.startswith("Usage: ")
        assert len(err.splitlines()) > 8


def test_json_is_all_there_is_on_stdout(capsys: Capture) -> None:
    code, out, err = unfog(capsys, "run", "fig1-gaussian", *SMALL, "--json")
    assert code == 0
    assert err.strip() == "kept in runs/fig1-gaussian-001"
    facts = json.loads(out)
    assert list(facts) == ["experiment", "rounds", "trials", "seed", "seconds", "agents", "pairs"]
    assert (facts["experiment"], facts["rounds"], facts["trials"], facts["seed"]) == (
        "fig1-gaussian",
        30,
        4,
        0,
    )
    assert list(facts["agents"]) == ["unfog", "alg1", "alg2", "naive", "oracle", "kk"]
    row = facts["agents"]["alg1"]
    parts = ["cb", "ee1", "ee2", "regret_true_context", "regret_plug_in"]
    tails = ["q50", "q99", "linear_share"]
    assert list(row) == ["regret", "se", *parts, "regret_realised", "regret_realised_se", *tails]
    assert row["cb"] + row["ee1"] + row["ee2"] == pytest.approx(row["regret"], abs=1e-9)
    gap = row["regret"] - facts["agents"]["oracle"]["regret"]
    assert facts["pairs"]["alg1 - oracle"]["mean"] == pytest.approx(gap, abs=1e-9)
    assert len(facts["pairs"]) == 15


def test_options_override_the_spec(capsys: Capture) -> None:
    _, out, _ = unfog(
        capsys, "run", "fig1-gaussian", *SMALL, "--seed", "7", "--agents", "kk, naive", "--json"
    )
    facts = json.loads(out)
    assert facts["seed"] == 7
    assert list(facts["agents"]) == ["kk", "naive"]


def test_show_repeats_what_run_said(capsys: Capture) -> None:
    _, ran, _ = unfog(capsys, "run", "fig1-gaussian", *SMALL)
    code, shown, _ = unfog(capsys, "show", "runs/fig1-gaussian-001")
    assert code == 0
    assert shown == ran


def test_runs_are_numbered_never_overwritten(capsys: Capture) -> None:
    for _ in range(2):
        unfog(capsys, "run", "fig1-gaussian", *SMALL)
    assert sorted(p.name for p in Path("runs").iterdir()) == ["fig1-gaussian-001", "fig1-gaussian-002"]
    before = Path("runs/fig1-gaussian-001/curves.nc").read_bytes()
    code, _, err = unfog(
        capsys, "run", "fig1-gaussian", *SMALL, "--seed", "1", "--out", "runs/fig1-gaussian-001"
    )
    assert code == 2
    assert "exists already" in err
    assert Path("runs/fig1-gaussian-001/curves.nc").read_bytes() == before
    assert before == Path("runs/fig1-gaussian-002/curves.nc").read_bytes()


def test_a_stored_spec_can_be_run_again(capsys: Capture) -> None:
    unfog(capsys, "run", "fig-actions", *SMALL, "--out", "first")
    unfog(capsys, "run", "first/spec.toml", "--out", "second", "--workers", "1")
    assert Path("first/curves.nc").read_bytes() == Path("second/curves.nc").read_bytes()
    first, second = (json.loads(unfog(capsys, "show", run, "--json")[1]) for run in ("first", "second"))
    assert first["agents"] == second["agents"]
    assert list(first["agents"]) == [f"alg1 actions={k}" for k in (10, 20, 40, 80)]


BAD_SPECS = {
    "non-symmetric": ("noise_cov = [[1.0, 0.3], [0.1, 1.0]]", "problem.noise_cov", "not symmetric"),
    "singular": ("bias_cov = [[1.0, 1.0], [1.0, 1.0]]", "problem.bias_cov", "singular"),
    "indefinite": ("context_cov = [[1.0, 2.0], [2.0, 1.0]]", "problem.context_cov", "not positive definite"),
    "wrong size": ("context_cov = [1.0, 1.0, 1.0]", "problem.context_cov", "[1.0, 1.0, 1.0]"),
    "ragged": ("noise_cov = [[1.0], [0.1, 1.0]]", "problem.noise_cov", "ragged"),
    "NaN": ("context_mean = [nan, 1.0]", "problem.context_mean", "nan"),
    "infinite": ("prior_mean = inf", "problem.prior_mean", "inf"),
    "negative variance": ("reward_var = -2.0", "problem.reward_var", "-2.0"),
    "zero covariance": ("noise_cov = 0.0", "problem.noise_cov", "0.0"),
    "boolean": ("noise_cov = true", "problem.noise_cov", "True"),
    "text": ('dim = "5"', "problem.dim", "'5'"),
    "fraction": ("actions = 2.5", "problem.actions", "2.5"),
    "unknown field": ("noise = 1.0", "problem.noise", "unknown field"),
    "unknown law": ('action_law = "cauchy"', "problem.action_law", "cauchy"),
    "unknown features": ('features = "cubic"', "problem.features", "cubic"),
    "unknown agent": ('[run]\nagents = ["alg9"]', "run.agents", "'alg9'"),
    "repeated agent": ('[run]\nagents = ["kk", "kk"]', "run.agents", "'kk'"),
    "no agents": ("[run]\nagents = []", "run.agents", "none"),
    "unknown run field": ("[run]\nround = 3", "run.round", "unknown field"),
    "zero trials": ("[run]\ntrials = 0", "run.trials", "0"),
    "zero rounds": ("[run]\nrounds = 0", "run.rounds", "0"),
    "negative seed": ("[run]\nseed = -1", "run.seed", "-1"),
    "swept nonsense": ("[sweep]\nactions = [10, 0]", "sweep.actions", "0"),
    "swept twice": ("[sweep]\nactions = [1, 1]\ndim = [2]", "sweep.actions", "all different"),
    "a swept number": ("[sweep]\nactions = 1", "sweep.actions", "1"),
    "swept rounds": ("[sweep]\nrounds = [10, 20]", "sweep.rounds", "a field of [run]"),
    "huge": ("context_mean = 1e200", "problem.context_mean", "1e+200"),
    "too many actions": ("actions = 1000000000000", "problem.actions", "at most 1000000"),
    "too many rounds": ("[run]\nrounds = 1000000000000000000000", "run.rounds", "at most"),
    "unknown table": ("[runs]\ntrials = 3", "runs", "unknown field"),
}


def test_bad_specs_are_refused_in_one_line(capsys: Capture) -> None:
    for case, (text, field, value) in BAD_SPECS.items():
        head = "" if "dim = " in text and "sweep" not in text else "dim = 2\n"
        Path("bad.toml").write_text(f'[problem]\nkind = "gaussian"\n{head}{text}\n')
        code, out, err = unfog(capsys, "run", "bad.toml")
        assert (code, out, err.count("\n")) == (2, "", 1), case
        assert err.startswith(f"unfog: {field}: ")
        assert value in err
        assert "allowed: " in err
        assert [p.name for p in Path().iterdir()] == ["bad.toml"]


BAD_CALLS = {
    "unknown experiment": (["run", "fig9"], "'fig9'"),
    "missing file": (["run", "nowhere.toml"], "'nowhere.toml'"),
    "zero trials": (["run", "fig1-gaussian", "--trials", "0"], "run.trials: 0"),
    "zero workers": (["run", "fig1-gaussian", "--workers", "0"], "workers: 0"),
    "unknown agent": (["run", "fig1-gaussian", "--agents", "alg9"], "'alg9'"),
    "no such run": (["show", "nowhere"], "'nowhere'"),
    "not a run": (["plot", "."], "run.json"),
    "unknown figure": (["reproduce", "fig9"], "'fig9'"),
}


def test_bad_calls_are_refused_in_one_line(capsys: Capture) -> None:
    for case, (words, value) in BAD_CALLS.items():
        code, out, err = unfog(capsys, *words)
        assert (code, out, err.count("\n")) == (2, "", 1), case
        assert value in err
        assert not any(Path().iterdir())


def test_a_bad_option_is_one_line(capsys: Capture) -> None:
    code, out, err = unfog(capsys, "run", "fig1-gaussian", "--rounds", "abc")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "--rounds" in err
    assert unfog(capsys, "frobnicate")[0] == 2


def test_version(capsys: Capture) -> None:
    assert unfog(capsys, "--version")[:2] == (0, f"unfog {__version__}\n")


RUN = """
import signal
import sys
from unfog.cli import main
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
main(["run", "fig1-gaussian", "--trials", "20000", "--rounds", "300", "--workers", sys.argv[1]])
"""


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.slow
def test_an_interrupt_is_heard_and_leaves_no_process(workers: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", RUN, workers], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    _wait_for(lambda: any(Path().glob("runs/*.partial/block-*")))
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert err.splitlines()[-1] == "unfog: interrupted; the same command goes on where it stopped"
    _wait_for(lambda: not _alive(process.pid))


@pytest.mark.slow
def test_workers_do_not_outlive_a_killed_parent() -> None:
    process = subprocess.Popen([sys.executable, "-c", RUN, "2"], start_new_session=True)
    _wait_for(lambda: any(Path().glob("runs/*.partial/block-*")))
    process.kill()
    process.wait()
    _wait_for(lambda: not _alive(process.pid))


def _wait_for(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.slow
def test_a_closed_pipe_is_no_error() -> None:
    code = "from unfog.cli import main; main(['list'])"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    _, err = process.communicate()
    assert (process.returncode, err) == (0, b"")


def test_not_toml(capsys: Capture) -> None:
    Path("bad.toml").write_text("[problem")
    code, _, err = unfog(capsys, "run", "bad.toml")
    assert code == 2
    assert "not TOML" in err


def test_a_missing_extra_is_named() -> None:
    code = (
        "import sys; sys.modules['xarray'] = None\n"
        "from unfog.cli import main; main(['run', 'fig1-gaussian', '--trials', '1'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2
    assert "pip install 'unfog[lab]'" in done.stderr
    assert not Path("runs").exists()


def test_an_end_of_file_inside_is_no_interrupt(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a bug, to be seen whole: typer would have it as if somebody had pressed ctrl-c."""

    def broken(*_: object) -> None:
        raise EOFError("inside")

    monkeypatch.setattr("unfog.lab.spec.load", broken)
    with pytest.raises(EOFError, match="inside"):
        unfog(capsys, "run", "fig1-gaussian", *SMALL)
