"""`unfog run --plot` as a user meets it."""

import json
from pathlib import Path

import pytest

from unfog.cli import main

Capture = pytest.CaptureFixture[str]
SMALL = ("--rounds", "6", "--trials", "2", "--workers", "1", "--agents", "naive,oracle")
MAGIC = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def unfog(capsys: Capture, *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(words)
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


def test_alone_it_draws_what_plot_draws_and_says_where(capsys: Capture) -> None:
    code, out, err = unfog(capsys, "run", "--plot", "fig1-gaussian", *SMALL, "--json")
    assert code == 0
    assert list(json.loads(out)["agents"]) == ["naive", "oracle"]
    paths = [Path(f"figures/fig1-gaussian-001.{kind}") for kind in ("svg", "pdf", "png")]
    assert err.splitlines() == ["kept in runs/fig1-gaussian-001", "figure:", *map(str, paths)]
    found = [path.read_bytes() for path in paths]
    assert unfog(capsys, "plot", "runs/fig1-gaussian-001", "--out", "again")[0] == 0
    assert found == [(Path("again") / path.name).read_bytes() for path in paths]


@pytest.mark.parametrize("spelled", ["--plot={}", "--plot {}"])
def test_a_file_is_the_only_one_that_is_drawn(spelled: str, capsys: Capture) -> None:
    words = spelled.format("mine/regret.png").split()
    code, out, err = unfog(capsys, "run", "fig1-gaussian", *words, *SMALL)
    assert code == 0
    assert "naive" in out
    assert err.splitlines()[-1] == "figure: mine/regret.png"
    assert [path.name for path in Path("mine").iterdir()] == ["regret.png"]
    assert Path("mine/regret.png").read_bytes().startswith(MAGIC["png"])
    assert not Path("figures").exists()


@pytest.mark.parametrize("file", ["regret.jpg", "regret.png", "there/regret.png"])
def test_what_cannot_be_a_figure_is_refused_before_the_run(file: str, capsys: Capture) -> None:
    Path("regret.png").mkdir()
    Path("there").write_text("a file, not a folder")
    code, out, err = unfog(capsys, "run", "fig1-gaussian", "--plot", file, *SMALL)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("unfog: --plot: ")
    assert not Path("runs").exists()


def test_without_it_nothing_is_drawn(capsys: Capture) -> None:
    assert unfog(capsys, "run", "fig1-gaussian", *SMALL)[0] == 0
    assert not Path("figures").exists()
