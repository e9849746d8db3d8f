"""Shell completion, as shells ask for it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from unfog.agents.catalogue import EVERY
from unfog.cli import common, main
from unfog.evaluation.policies import FIXED
from unfog.lab.datasets.files import DATASETS
from unfog.lab.spec import SUITES, catalog
from unfog.simulation import engines
from unfog.simulation.executors import NAMES
from unfog.simulation.job import PRECISIONS

ASK = "import sys; from unfog.cli import main; main(sys.argv[1:])"


OFFERED = [
    ("unfog rep", ["reproduce"]),
    ("unfog data fe", ["fetch"]),
    ("unfog run fig1-g", ["fig1-gaussian"]),
    ("unfog run fig1-gaussian --agents naive,unfog-o", ["naive,unfog-oracle"]),
    ("unfog data fetch air", ["airquality"]),
    ("unfog run fig1-gaussian --engine nu", ["numba", "numpy"]),
    ("unfog run fig1-gaussian --precision float6", ["float64"]),
    ("unfog run fig1-gaussian --executor ser", ["serial"]),
    ("unfog run fig1-gaussian --reference unfog-o", ["unfog-oracle"]),
    ("unfog reproduce fig1 --engine cu", ["cuda"]),
    ("unfog evaluate log.csv --policies logger,fitted-", ["logger,fitted-noisy"]),
    ("unfog check posterior --agent unfog-o", ["unfog-oracle"]),
    ("unfog list deno", ["denoisers"]),
]


def completing(words: str) -> dict[str, str]:
    """The environment in which bash asks what to offer for the last of these words."""
    return {"_UNFOG_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}


def test_a_shell_is_offered_what_begins_like_that(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for words, offered in OFFERED:
        with monkeypatch.context() as patch:
            for name, value in completing(words).items():
                patch.setenv(name, value)
            with pytest.raises(SystemExit, match="0"):
                main(())
        assert capsys.readouterr().out.split() == offered, words


def test_a_shell_asks_a_process() -> None:
    words, offered = OFFERED[0]
    environment = {**os.environ, **completing(words)}
    done = subprocess.run([sys.executable, "-c", ASK], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, offered, "")


def test_everything_is_offered_where_nothing_was_typed() -> None:
    assert set(common.experiments("")) == {*catalog(), *SUITES}
    assert set(common.agents("")) == set(EVERY)
    assert set(common.data("")) == set(DATASETS)
    assert set(common.engines("")) == {*engines.NAMES, engines.AUTO}
    assert set(common.precisions("")) == set(PRECISIONS)
    assert set(common.executors("")) == {*NAMES, "dask://", "ray://"}
    assert set(common.policies("")) == {*FIXED, "always:", *EVERY}


def test_the_script_is_shown_and_installed_for_a_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    monkeypatch.setenv("HOME", str(tmp_path))
    for option in ("--show-completion", "--install-completion"):
        with pytest.raises(SystemExit, match="0"):
            main((option, "bash"))
    script = (tmp_path / ".bash_completions/unfog.sh").read_text()
    assert "_UNFOG_COMPLETE=complete_bash" in script
    assert script.rstrip().endswith("unfog")
    assert str(tmp_path / ".bash_completions/unfog.sh") in (tmp_path / ".bashrc").read_text()
    assert subprocess.run(["bash", "-n", tmp_path / ".bash_completions/unfog.sh"]).returncode == 0


def test_help_says_how_to_have_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    out = capsys.readouterr().out
    assert out.startswith("Usage: unfog ")
    assert "--install-completion" in out.split("Examples:")[1]
