"""Whatever one gives to a command, it works or is refused in one line; some refusals one by one."""

import errno
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.bad import Case, case
from tests.cli.bad.case import LONG
from tests.cli.bad.logs import table
from tests.cli.bad.specs import HEAD, PLAIN, WHOLE
from unfog._io import writing
from unfog.cli import main
from unfog.simulation.executors import WorkerDiedError

CASES, SEED = 40, 20  # tests/soak has thousands
Capture = pytest.CaptureFixture[str]
SMALL = ["--rounds", "3", "--trials", "2", "--workers", "1"]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def refused(capsys: Capture, *words: str, code: int = 2) -> str:
    with pytest.raises(SystemExit) as ended:
        main(words)
    out, err = capsys.readouterr()
    assert (ended.value.code, out, err.count("\n")) == (code, "", 1), err
    return err.removeprefix("unfog: ").rstrip()


def test_bad_inputs_are_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    codes = []
    for number in range(CASES):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        one = case(random.Random(f"{SEED} {number}"), PLAIN[:4])
        one.lay(folder)
        codes.append(one.check(capsys))
    assert codes.count(2) > CASES / 2


def test_files_that_are_none(tmp_path: Path, capsys: Capture) -> None:
    for text in WHOLE:
        one = Case(["run", "spec.toml", *SMALL], {"spec.toml": text})
        one.lay(tmp_path)
        assert one.check(capsys) == 2
    Path("spec.toml").unlink()
    os.mkfifo("spec.toml")
    assert (
        refused(capsys, "run", "spec.toml")
        == "experiment: 'spec.toml' is no ordinary file; allowed: a TOML file"
    )
    assert "is no ordinary file" in refused(capsys, "evaluate", "/dev/zero")
    assert "is no ordinary file" in refused(capsys, "evaluate", "spec.toml")
    Path("log.csv").write_bytes(table(random.Random(0), []))
    assert "is no ordinary file" in refused(capsys, "evaluate", "log.csv", "--columns", "spec.toml")
    assert "is no ordinary file" in refused(capsys, "evaluate", "log.csv", "--channel", "/dev/zero")


def test_numbers_that_cannot_be_divided_by(capsys: Capture) -> None:
    for field, value in {
        "noise_cov": "1e-320",
        "bias_cov": "[1e-60, 1.0]",
        "reward_var": "5e-324",
        "theta_scale": "1e-99",
    }.items():
        Path("spec.toml").write_bytes(HEAD + f"dim = 2\n{field} = {value}\n".encode())
        said = refused(capsys, "run", "spec.toml", *SMALL)
        assert said.startswith(f"problem.{field}: ")
        assert "1e-50" in said


@pytest.mark.parametrize("words", [["fig1-gaussian"], ["baselines", "--problems", "drift"]])
def test_folders_that_cannot_be_made(words: list[str], capsys: Capture) -> None:
    Path("file").write_text("")
    for out in ("x.partial", LONG, "", "file", "file/x", "/proc/x"):
        assert refused(capsys, "run", *words, *SMALL, "--out", out).startswith("out: "), out
        assert sorted(os.listdir()) == ["file"]


def test_folders_of_figures_that_cannot_be_made(capsys: Capture) -> None:
    Path("file").write_text("")
    for words in (["plot", "r"], ["bounds", "bounds-delayed"], ["evaluate", "log.csv"]):
        for out in ("file", "file/x", LONG):
            assert refused(capsys, *words, "--out", out).startswith("out: "), words


def test_an_empty_word_is_not_the_folder_at_hand(capsys: Capture) -> None:
    for command in ("show", "plot", "run", "evaluate"):
        said = refused(capsys, command, "")
        assert said == f"{command}: ''; allowed: a name, a file or a folder (see --help)"


COLUMNS = ["--context", "steps", "--arm", "a", "--reward", "r", "--probability", "p"]
SLIPS = [
    (["run", "fig1-gausian"], "fig1-gaussian"),
    (["run", "baselins"], "baselines"),
    (["run", "fig1-gaussian", "--agents", "alg1-exat"], "alg1-exact"),
    (["run", "fig1-gaussian", "--agents", "orcale"], "oracle"),
    (["run", "fig1-gaussian", "--agents", "orcale-ucb"], "oracle-ucb"),
    (["run", "fig1-gaussian", "--agents", "alg1-exact-hetro-ucb"], "alg1-exact-hetero-ucb"),
    (["run", "fig1-gaussian", "--agents", "drift:stp=0.1"], "step"),
    (["run", "fig1-gaussian", "--agents", "linucbb"], "linucb"),
    (["run", "fig1-gaussian", "--engine", "nunpy"], "numpy"),
    (["run", "baselines", "--problems", "drft"], "drift"),
    (["check", "posterior", "--learners", "laplce"], "laplace"),
    (["data", "fetch", "movilens"], "movielens"),
    (["run", "noise.toml"], "noise_cov"),
    (["run", "kind.toml"], "gaussian"),
    (["run", "round.toml"], "rounds"),
    (["run", "table.toml"], "problem"),
    (["run", "missing.toml"], "problem"),
    (["run", "nosie.toml"], "noise.toml"),
    (["run", "fig1-gaussain.toml"], "fig1-gaussian"),
    (["run", "fig1-gaussian", "--plot", "regret.pgn"], "regret.png"),
    (["show", "runs/fig1-gausian-001"], "runs/fig1-gaussian-001"),
    (["plot", "rnus/fig1-gaussian-001"], "runs/fig1-gaussian-001"),
    (["run", "law.toml"], "uniform"),
    (["run", "features.toml"], "quadratic"),
    (["run", "sweep.toml"], "noise_cov"),
    (["run", "fig1-gaussian", "--executor", "procesess"], "processes"),
    (["run", "fig1-gaussian", "--precision", "float23"], "float32"),
    (["run", "fig1-gaussian", "--precision", "doubel"], "float64"),
    (["run", "fig1-gaussian", "--agents", "alg1-hetero-ubc"], "alg1-hetero-ucb"),
    (["bounds", "bounds-delaed"], "bounds-delayed"),
    (["reproduce", "fi1"], "fig1"),
    (["reproduce", "fig-action"], "fig-actions"),
    (["list", "chosers"], "choosers"),
    (["check", "posterior", "--agent", "unfgo"], "unfog"),
    (["evaluate", "log.csv", *COLUMNS, "--estimators", "snip"], "snips"),
    (["evaluate", "log.csv", *COLUMNS, "--intervals", "plane"], "plain"),
    (["evaluate", "log.csv", *COLUMNS, "--policies", "unfgo"], "unfog"),
    (["evaluate", "log.csv", *COLUMNS, "--policies", "loger"], "logger"),
    (["evaluate", "log.csv", *COLUMNS, "--policies", "fited"], "fitted"),
    (["evaluate", "log.csv", *COLUMNS, "--policies", "alwys:x"], "always:x"),
    (["evaluate", "log.csv", *COLUMNS, "--policies", "always:X"], "always:x"),
    (["evaluate", "log.cvs", *COLUMNS], "log.csv"),
    (["evaluate", "log.csv", *COLUMNS, "--channel", "agnt.json"], "agent.json"),
    (["evaluate", "log.csv", *COLUMNS, "--time", "step"], "steps"),
    (["live", "create", "w.unfog", "walks", "--terms", "agent.json"], "naive"),
    (["live", "create", "w.unfog", "walks", "--terms", "field.json"], "agent"),
]


def test_a_slip_of_the_pen_is_told_what_was_meant(capsys: Capture) -> None:
    Path("noise.toml").write_bytes(HEAD + b"noise_covv = 1.0")
    Path("kind.toml").write_bytes(HEAD.replace(b"gaussian", b"gausian"))
    Path("round.toml").write_bytes(HEAD + b"[run]\nround = 3")
    Path("table.toml").write_bytes(HEAD + b"[problm]\ndim = 3")
    Path("missing.toml").write_bytes(HEAD.replace(b"[problem]", b"[problme]"))
    Path("runs/fig1-gaussian-001").mkdir(parents=True)
    Path("law.toml").write_bytes(HEAD + b'action_law = "unifrm"')
    Path("features.toml").write_bytes(HEAD + b'features = "quadratc"')
    Path("sweep.toml").write_bytes(HEAD + b"[sweep]\nnois_cov = [1.0, 2.0]")
    Path("log.csv").write_text("steps,a,r,p\n" + "1,x,1,0.5\n2,y,0,0.5\n" * 4)
    Path("agent.json").write_text('{"context": ["steps"], "arms": ["send", "wait"], "agent": "nave"}')
    Path("field.json").write_text('{"context": ["steps"], "arms": ["send", "wait"], "agnt": "naive"}')
    for words, meant in SLIPS:
        assert f" (did you mean {meant!r}?); allowed: " in refused(capsys, *words), words


def test_slips_in_the_names_of_a_store(capsys: Capture) -> None:
    Path("terms.json").write_text('{"context": ["steps"], "arms": ["send", "wait"]}')
    with pytest.raises(SystemExit, match="0"):
        main(["live", "create", "w.unfog", "walks", "--terms", "terms.json"])
    reading = ["--context", '{"steps": 1}']
    for unit in ("ann", "bob"):
        with pytest.raises(SystemExit, match="0"):
            main(["live", "decide", "w.unfog", "walks", *reading, "--unit", unit])
    capsys.readouterr()
    for words, meant in [
        (["show", "w.unfog", "wlks"], "walks"),
        (["decide", "w.unfog", "walk", *reading], "walks"),
        (["decide", "w.unfog", "walks", "--context", '{"step": 1}'], "steps"),
        (["decide", "w.unfog", "walks", *reading, "--arms", "sent"], "send"),
        (["arms", "w.unfog", "walks", "--retire", "wit"], "wait"),
        (["shadow", "w.unfog", "walks", "nave"], "naive"),
        (["show", "w.unfog", "walks", "--unit", "anm"], "ann"),
        (["show", "w.unfg"], "w.unfog"),
        (["create", "w.unfog", "others", "--terms", "term.json"], "terms.json"),
        (["import", "w.unfog", "tems.json"], "terms.json"),
    ]:
        assert f" (did you mean {meant!r}?); allowed: " in refused(capsys, "live", *words)


def test_slips_in_commands(capsys: Capture) -> None:
    slips = {"list": ["lst"], "fetch": ["data", "fech"], "decide": ["live", "decid"], "explain": ["explan"]}
    for meant, words in slips.items():
        assert f"Did you mean '{meant}'?" in refused(capsys, *words)


def test_a_slip_in_the_name_of_a_store_that_has_keys(capsys: Capture) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["serve", "keys", "add", "--store", "w.unfog", "--scope", "decide"])  # before there is a store
    capsys.readouterr()
    for words in (["list"], ["revoke", "1234"]):
        said = refused(capsys, "serve", "keys", *words, "--store", "w.unfg")
        assert said.startswith("store: there is no w.unfg")
    assert "(did you mean 'decide'?)" in refused(
        capsys, "serve", "keys", "add", "--store", "w.unfog", "--scope", "decde"
    )


def test_where_many_names_are_allowed_it_is_said_how_to_list_them(capsys: Capture) -> None:
    for words, kind in (
        (["run", "fig1-gaussian", "--agents", "unfgo"], "agents"),
        (["run", "x"], "experiments"),
    ):
        said = refused(capsys, *words)
        assert f"`unfog list {kind}`" in said
        assert len(said) < 300


def test_options_that_are_given_again_add_up(capsys: Capture) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["run", "fig1-gaussian", *SMALL, "--agents", "kk,naive", "--agents", "oracle", "--out", "run"])
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines() if "±" in line]
    spec = Path("run/spec.toml").read_text()
    assert 'agents = ["kk", "naive", "oracle"]' in spec


def test_a_worker_that_died_is_no_bad_input(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    def dies(*_: object, **__: object) -> None:
        raise WorkerDiedError

    monkeypatch.setattr("unfog.lab.run.keep", dies)
    said = refused(capsys, "run", "fig1-gaussian", *SMALL, code=1)
    assert "a worker process died, possibly for lack of memory" in said
    assert said.endswith("; the same command goes on where it stopped")


def test_what_cannot_be_allocated_is_said(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    def fails(*_: object, **__: object) -> None:
        raise MemoryError("Unable to allocate 7.28 TiB for an array")

    monkeypatch.setattr("unfog.lab.run.keep", fails)
    said = refused(capsys, "run", "fig1-gaussian", *SMALL, code=1)
    kept = "; the same command goes on where it stopped"
    assert said == f"not enough memory: Unable to allocate 7.28 TiB for an array{kept}"


@pytest.mark.parametrize(
    ("kind", "kept"), [(errno.ENOSPC, "; the same command goes on where it stopped"), (errno.EACCES, "")]
)
def test_after_a_full_disk_the_same_command_goes_on(
    kind: int, kept: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise OSError(kind, os.strerror(kind), "runs/x")

    monkeypatch.setattr("unfog.lab.run.keep", fails)
    assert refused(capsys, "run", "fig1-gaussian", *SMALL, code=1) == f"runs/x: {os.strerror(kind)}{kept}"


MEMORY = [
    ("abc", [], "UNFOG_MEMORY: 'abc'; allowed: an amount of memory, such as 8GB, 512MB or 2GiB"),
    ("1", [], r"problem\..*; allowed: what fits in UNFOG_MEMORY, 1 byte"),
    (
        "40MB",
        [],
        "memory: UNFOG_MEMORY, 40 MB; allowed: more than 85 MB: the interpreter .*",
    ),
    (
        "90MB",
        ["--trials", "100"],
        r"trials, points: 100 with 1000 stored rounds take \S+ MB, the process with one trial \S+ MB: \d+ MB"
        " in all; allowed: fewer of either: UNFOG_MEMORY, 90 MB",
    ),
]


@pytest.mark.parametrize(("told", "more", "said"), MEMORY)
def test_too_little_memory_is_refused_with_all_that_takes_it(
    told: str, more: list[str], said: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("UNFOG_MEMORY", told)
    assert re.fullmatch(said, refused(capsys, "run", "fig1-gaussian", "--workers", "1", *more))


def test_a_full_disk_names_the_file() -> None:
    with pytest.raises(OSError, match=r"No space left on device: 'figures/a\.svg'"), writing("figures/a.svg"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with pytest.raises(OSError, match="'other'"), writing("figures/a.svg"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "other")


@pytest.mark.slow
def test_a_full_disk_under_a_figure(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(SystemExit, match="0"):
        main(["run", "fig1-gaussian", *SMALL, "--agents", "kk", "--out", "run"])
    capsys.readouterr()
    monkeypatch.setattr(os, "fsync", fail)
    assert refused(capsys, "plot", "run", code=1) == "figures/run.svg: No space left on device"
    assert list(Path("figures").iterdir()) == []


def test_as_a_process() -> None:
    """Nothing else is written to stderr either, such as warnings; stdin may be a pipe that nobody closes."""
    code = "from unfog.cli import main; main(['run', '/dev/stdin'])"
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stderr is not None
        assert process.wait(60) == 2
        said = process.stderr.read()
    assert said.startswith(b"unfog: ")
    assert said.count(b"\n") == 1
